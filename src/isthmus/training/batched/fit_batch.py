"""`fit_batch`: many small fully connected networks of one shape trained at once on the same data.

It saves the time that calls take, not arithmetic, so it pays for narrow networks only: `fit_many` chooses. One network:
`fit`. The arithmetic: `batched.batch_step`, `batched.batch_solvers`.
"""

import math
import time
from collections.abc import Sequence

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.networks import FullyConnected
from isthmus.networks.arguments import check_ridge
from isthmus.networks.departures import check_as_written
from isthmus.tasks.foreign import check_row_labels
from isthmus.training.batched.batch_solvers import BatchedLBFGS, Member, run_adam
from isthmus.training.batched.batch_step import BatchedStep
from isthmus.training.ending import finish
from isthmus.training.fit import checked_data, fit
from isthmus.training.fit_result import FitResult, StopReason
from isthmus.training.losses import SQUARED, Loss, loss_argument
from isthmus.training.moves import rank_shown, rebalancing
from isthmus.training.solvers.schedule import check_rates
from isthmus.training.solvers.solver import LBFGS, Adam
from isthmus.training.steps.connected_step import FullyConnectedStep
from isthmus.training.steps.memory_step import frozen

BatchSchedule = tuple[Adam | LBFGS, ...]
DEFAULT: BatchSchedule = (Adam(1000, moves=(rebalancing,), move_every=10), LBFGS(2700))


def fit_batch(
    networks: Sequence[FullyConnected],
    x: ArrayLike | Tensor,
    y: ArrayLike | Tensor,
    *,
    ridges: Sequence[float],
    loss: str | Loss = SQUARED,
    solver: BatchSchedule = DEFAULT,
) -> list[FitResult]:
    """Train networks of one shape at once, in place, each to a minimum of its own penalised objective.

        minimise  data_loss(f_b) + ridge_b * network_b.penalty()   for each b

    Each network stops on its own, and its steps are those of `fit(network, x, y, ridge=..., solver=solver)` up to
    rounding. Rounding grows in training: long runs on relu networks may end in other minima. A network that diverges or
    collapses is handed to `fit` from its initial weights, for the gentler second attempt that is made there.

    Args:
        networks: at least one; equal in dimensions, slope, linear layers, biases and precision.
        x: inputs (n, d_in).
        y: targets (n, d_out), or class numbers (n,) for cross-entropy.
        ridges: one for each network, >= 0.
        loss: as in `fit`.
        solver: Adam and L-BFGS, run one after the other; the only move between steps of Adam is rebalancing.

    Returns:
        One result for each network, in their order. `seconds` is the time of the whole batch divided by its size.

    Raises:
        ShapeError: networks of different shapes, or data that do not match them.
        ValueError: no network, not one ridge >= 0 for each, a solver that does not run on batches, or parameters
            that are frozen.
    """
    _check(networks, ridges, solver)
    if any(map(frozen, networks)):
        raise ValueError(
            "fit_batch(networks): trains all parameters, but some are frozen (requires_grad=False). Use fit."
        )
    check_row_labels(x, {"y": y}, in_order=False)
    inputs, data = checked_data(networks[0], x, y, loss_argument(loss, "fit_batch"), None)
    began = time.monotonic()
    with torch.no_grad():
        step = BatchedStep.of(networks, inputs, data, ridges)
        initial = step.theta.clone()
        members = [Member(index) for index in range(len(networks))]
        for settings in solver:
            _run(settings, step, members)
        for member, network in zip(members, networks, strict=True):
            step.write(member.index, network)
        share = (time.monotonic() - began) / len(networks)
        results: list[FitResult] = []
        for member, network, ridge in zip(members, networks, ridges, strict=True):
            single = FullyConnectedStep(network, inputs, data, ridge)
            diverged = member.reason is StopReason.DIVERGED
            if diverged or not bool(torch.isfinite(single.theta).all()) or single.computes_constant():
                single.theta.copy_(initial[member.index])
                results.append(fit(network, inputs, data.y, ridge=ridge, loss=loss, solver=tuple(solver)))
            else:
                results.append(_result(member, single, share))
    return results


def fit_many(
    networks: Sequence[FullyConnected],
    x: ArrayLike | Tensor,
    y: ArrayLike | Tensor,
    *,
    ridges: Sequence[float],
    loss: str | Loss = SQUARED,
    solver: BatchSchedule = DEFAULT,
) -> list[FitResult]:
    """`fit_batch` where `batching_pays`, else `fit` for one network after the other; arguments and results as there."""
    _check(networks, ridges, solver)
    if len(networks) > 1 and batching_pays(networks[0]) and not any(map(frozen, networks)):
        return fit_batch(networks, x, y, ridges=ridges, loss=loss, solver=solver)
    pairs = zip(networks, ridges, strict=True)
    return [fit(network, x, y, ridge=ridge, loss=loss, solver=tuple(solver)) for network, ridge in pairs]


WIDEST = 32  # hidden width up to which batches were clearly faster on a CPU: benchmarks/batched.py


def batching_pays(network: FullyConnected) -> bool:
    """Whether several networks of this shape are trained faster together: on a GPU always, on a CPU by width.

    The rule is a width and no measurement on the spot, so that a choice does not depend on how busy the machine is.
    """
    return network.weights[0].device.type != "cpu" or max(network.dimensions[1:-1], default=1) <= WIDEST


def _run(settings: Adam | LBFGS, step: BatchedStep, members: list[Member]) -> None:
    """One phase for the members that have not diverged; `step.theta` holds all of them."""
    going = [m for m in members if m.reason is not StopReason.DIVERGED]
    if not going:
        return
    rows = torch.tensor([m.index for m in going], device=step.theta.device)
    for member in going:
        member.restart()
    part = step.some(rows)
    if isinstance(settings, Adam):
        run_adam(settings, part, going)
        step.theta[rows] = part.theta
    else:
        BatchedLBFGS(settings, part, going).run(step.theta)


def _result(member: Member, step: FullyConnectedStep, seconds: float) -> FitResult:
    return finish(
        step,
        reason=member.reason,
        evaluations=member.before + member.evaluations,
        steps=len(member.history),
        seconds=seconds,
        history=member.history,
        lost=False,
        rank=rank_shown(step.network),
    )


def _check(networks: Sequence[FullyConnected], ridges: Sequence[float], solver: BatchSchedule) -> None:
    if not networks or len(networks) != len(ridges) or not all(0 <= ridge < math.inf for ridge in ridges):
        raise ValueError(
            f"fit_batch(networks, ridges=...): needs one finite ridge >= 0 for each network, got {len(networks)} "
            f"networks and {list(ridges)}."
        )
    for network, ridge in zip(networks, ridges, strict=True):
        check_as_written("fit_batch", network, FullyConnected)
        check_ridge(ridge, "fit_batch", network.weights[0].dtype)
    check_rates(solver, networks[0].weights[0].dtype)
    shapes = {(n.dimensions, n.negative_slope, n.linear, n.has_bias, n.weights[0].dtype) for n in networks}
    if len(shapes) > 1:
        raise ShapeError(
            f"fit_batch(networks): needs one shape and precision, got {len(shapes)} kinds. Call it for each kind."
        )
    for settings in solver:
        # every type is looked at: a caller may pass what the annotation does not promise
        if type(settings) not in {Adam, LBFGS}:
            raise ValueError(f"fit_batch(solver=...): runs Adam and LBFGS, not {type(settings).__name__}. Use fit.")
        if isinstance(settings, Adam) and any(move is not rebalancing for move in settings.moves):
            raise ValueError("fit_batch(solver=...): the moves of Adam can only be rebalancing. Use fit.")
