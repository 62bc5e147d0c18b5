"""The last look at a trained network: its objective in float64, its stationarity, and the outcome in words."""

import math

import numpy as np
import xarray as xr

from isthmus.training.result import Ending, FitResult, Outcome
from isthmus.training.solvers import default_tolerance, stationarity
from isthmus.training.steps import Step


def finish(
    step: Step,
    *,
    reason: Ending,
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
        rank=rank,
    )
