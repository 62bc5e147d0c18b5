"""Which solvers run one after the other when the caller names none."""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import torch
from torch import nn

from isthmus.networks import FullyConnected, LeakyResNet
from isthmus.networks.arguments import check_fits
from isthmus.networks.kinds import of_class
from isthmus.training.moves import least_norm, rebalancing
from isthmus.training.sharded.row_moves import sharded_least_norm
from isthmus.training.solvers.adaptive_steps import AdaptiveSteps
from isthmus.training.solvers.minibatches import BATCH, MiniBatches
from isthmus.training.solvers.preconditioned import PreconditionedLBFGS
from isthmus.training.solvers.solver import LBFGS, Adam, GradientDescent, Solver, gentler
from isthmus.training.solvers.trials import ExactMoves, RankTrials
from isthmus.training.steps.memory_step import frozen

Schedule = tuple[Solver, ...]
USUAL = 3700  # gradients
KERNELS = (
    8  # share of the memory that is left to the tangent kernel: of its size are its factor and the parts of its sum
)
MANY_ROWS = 20_000  # more, and a step of Adam is better made on some of them


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a default schedule is made for.

    Attributes:
        evaluations: gradients that it may take, None: as many as it usually does.
        ridge: of the objective.
        rows: number of samples.
        memory: bytes of working memory, None: as much as it usually takes.
    """

    evaluations: int | None
    ridge: float
    rows: int
    memory: int | None


def default_schedule(
    network: nn.Module,
    *,
    evaluations: int | None = None,
    ridge: float = 1.0,
    rows: int = 0,
    memory: int | None = None,
) -> Schedule:
    """The solvers for networks of this class, see `SCHEDULES`; of any other module, Adam and L-BFGS.

    So it is where a part is frozen. Above 20,000 rows Adam goes over batches of 1024, as many as it else takes steps,
    but an epoch at least.
    """
    chosen = _descent if frozen(network) else of_class(SCHEDULES, network, _descent)
    return chosen(network, Wanted(evaluations, ridge, rows, memory))


def papers_schedule(adam: int = 20_000, descent: int = 10_000) -> Schedule:
    """The training of the papers: Adam on all rows at 1e-3, then gradient descent at 1e-4.

    Numbers of steps are theirs, the rates, which they do not state, ours: at 1e-3 descent diverges on the problem of
    rank 5. Ends at higher objectives than the default schedule, after many times its gradients.

    Args:
        adam: steps of Adam.
        descent: steps of gradient descent.

    Source: Jacot and Kaiser 2024, appendix B.
    """
    return (Adam(adam, rate=1e-3, decay_from=1.0), GradientDescent(descent, rate=1e-4))


def _descent(_network: nn.Module, wanted: Wanted) -> Schedule:
    total = wanted.evaluations or USUAL
    first = round(total * 1000 / USUAL)
    return (_warm_up(Adam(first), wanted.rows), LBFGS(total - first))


def _with_moves(network: FullyConnected, wanted: Wanted) -> Schedule:
    """Adam with rebalancing, exact moves, L-BFGS, then rank trials; shares of the evaluations when they are bounded.

    On the small reference problem (L = 9, width 64, 256 samples) this ends at the rank-5 branch from every one of five
    starts after 2,700 gradients; Adam and gradient descent alone end at rank 6 after 30,000.
    """
    if network.depth <= 2:
        return _descent(network, wanted)
    total = wanted.evaluations or USUAL
    first, second = round(total * 1000 / USUAL), round(total * 1200 / USUAL)
    adam = Adam(first, moves=(rebalancing,), move_every=10)
    third = (total - first - second) // 3
    return (_warm_up(adam, wanted.rows), ExactMoves(), LBFGS(second), RankTrials(LBFGS(max(third, 1)), most=3))


def _preconditioned(network: LeakyResNet, wanted: Wanted) -> Schedule:
    """Preconditioned L-BFGS, which moves adaptive steps in between; without a ridge, as any other module."""
    if not wanted.ridge > 0:
        return _descent(network, wanted)
    usual = PreconditionedLBFGS()
    room = usual.memory if wanted.memory is None else min(usual.memory, wanted.memory // KERNELS)
    solver = replace(usual, evaluations=wanted.evaluations or usual.evaluations, memory=room)
    return (AdaptiveSteps(solver),) if network.adaptive else (solver,)


def check_steps_move(network: nn.Module, schedule: Schedule) -> None:
    """Raise where a network was made with adaptive steps and nothing in the schedule moves them.

    Raises:
        ValueError: as said; they would stay equidistant without a word.
    """
    moved = any(isinstance(solver, AdaptiveSteps) for solver in schedule)
    if isinstance(network, LeakyResNet) and network.adaptive and not moved:
        solvers = ", ".join(type(solver).__name__ for solver in schedule)
        raise ValueError(
            f'fit: needs a solver that moves the steps of LeakyResNet(steps="adaptive"); got {solvers}, at which they '
            "would stay equidistant. Leave out solver= with a ridge > 0, pass AdaptiveSteps(PreconditionedLBFGS(...)), "
            'or choose steps="equidistant".'
        )


def check_rates(settings: object, dtype: torch.dtype) -> None:
    """Raise where a step size, of any solver within a schedule, is infinite or 0 in the precision of the network.

    Raises:
        ValueError: as said.
    """
    for solver in settings if isinstance(settings, tuple) else (settings,):
        if is_dataclass(solver) and not isinstance(solver, type):
            for field in fields(solver):
                value = getattr(solver, field.name)
                if field.name == "rate":
                    check_fits(float(value), f"{type(solver).__name__}(rate={value:g})", dtype)
                check_rates(value, dtype)


SCHEDULES: dict[type[nn.Module], Callable[[Any, Wanted], Schedule]] = {
    FullyConnected: _with_moves,
    LeakyResNet: _preconditioned,
}


def _warm_up(adam: Adam, rows: int) -> Solver:
    """Adam on all rows where they are few, else on batches of them."""
    if rows <= MANY_ROWS:
        return adam
    return MiniBatches(replace(adam, steps=max(adam.steps, -(-rows // BATCH))))


def cheaper(schedule: Schedule, *, rate: float) -> Schedule:
    """The same schedule with every step size multiplied by `rate`, for a second attempt."""
    return tuple(gentler(solver, rate) for solver in schedule)


def on_all_rows(schedule: Schedule) -> Schedule:
    """The schedule with exact moves that read the samples run by run, as a step that goes over runs of them needs."""
    return tuple(
        replace(s, moves=tuple(sharded_least_norm if m is least_norm else m for m in s.moves))
        if isinstance(s, ExactMoves)
        else s
        for s in schedule
    )
