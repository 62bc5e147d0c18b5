"""The last look at a trained network: its objective in float64, its stationarity, and the outcome in words."""

import math

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from isthmus.training.fit_result import FitResult, Outcome, StopReason
from isthmus.training.steps.step import Step


def finish(
    step: Step,
    *,
    reason: StopReason,
    evaluations: int,
    steps: int,
    seconds: float,
    history: list[tuple[int, float]],
    lost: bool,
    rank: int | None,
) -> FitResult:
    """The result of a fit whose last solver ended for `reason`."""
    step()
    relative = stationarity(step)
    data_loss, penalty = step.in_float64()
    outcome = reason.outcome
    if outcome in {Outcome.STEP_LIMIT, Outcome.PLATEAU, Outcome.CONVERGED}:
        outcome = Outcome.CONVERGED if relative <= default_tolerance(step.theta.dtype) else outcome
        outcome = Outcome.COLLAPSED if lost else outcome
    if not math.isfinite(data_loss):
        outcome = Outcome.DIVERGED
    curve = np.array(history, dtype=np.float64).reshape(-1, 2)
    return FitResult(
        network=step.network,
        objective=data_loss + step.ridge * penalty,
        data_loss=data_loss,
        penalty=penalty,
        gradient_evaluations=evaluations,
        outcome=outcome,
        stationarity=relative,
        steps=steps,
        seconds=seconds,
        history=xr.Dataset({"objective": ("evaluation", curve[:, 1])}, coords={"evaluation": curve[:, 0].astype(int)}),
        rank=None if outcome.is_lost else rank,
    )


def default_tolerance(dtype: torch.dtype) -> float:
    """The stationarity that counts as converged: 1e-6 in float64, 1e-3 below."""
    return 1e-6 if dtype == torch.float64 else 1e-3


def stationarity(step: Step) -> float:
    """|gradient of the objective| / |ridge * gradient of the penalty| at the last evaluation: NaN without ridge.

        sqrt(sum g_i^2 / c_i) / (ridge sqrt(sum c_i theta_i^2))

    Both in the coordinates sqrt(c_i) theta_i, in which the penalty sum c_i theta_i^2 / 2 is Euclidean; a parameter that
    the penalty leaves free counts with the largest c.
    """
    c = step.curvature
    if not isinstance(c, Tensor):  # the same for all parameters: it goes out of the norms
        scale = step.ridge * c * float(step.theta.norm())
        return float(step.gradient.norm()) / scale if scale else math.nan
    scale = step.ridge * float((step.theta * c.sqrt()).norm())
    metric = torch.where(c > 0, c, c.max())
    return float((step.gradient / metric.sqrt()).norm()) / scale if scale else math.nan
