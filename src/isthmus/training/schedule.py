"""Which solvers run one after the other when the caller names none."""

from dataclasses import replace

from torch import nn

from isthmus.networks import FullyConnected, LeakyResNet
from isthmus.training.adaptive_steps import AdaptiveSteps
from isthmus.training.minibatches import BATCH, MiniBatches
from isthmus.training.moves import least_norm, rebalancing
from isthmus.training.precision import InPrecision
from isthmus.training.preconditioned import PreconditionedLBFGS
from isthmus.training.sharded_moves import sharded_least_norm
from isthmus.training.solvers import LBFGS, Adam, Solver
from isthmus.training.trials import ExactMoves, RankTrials

Schedule = tuple[Solver, ...]
MANY_ROWS = 20_000  # more, and a step of Adam is better made on some of them


def default_schedule(
    network: nn.Module, *, evaluations: int | None = None, ridge: float = 1.0, rows: int = 0
) -> Schedule:
    """Adam with rebalancing, exact moves, L-BFGS, then rank trials; shares of `evaluations` when they are bounded.

    Leaky networks: preconditioned L-BFGS, which moves adaptive steps in between; without a ridge, as the others. Above
    20,000 rows Adam goes over batches of 1024, as many as it else takes steps, but an epoch at least.

    On the small reference problem (L = 9, width 64, 256 samples) this ends at the rank-5 branch from every one of five
    starts after 2,700 gradients; Adam and gradient descent alone end at rank 6 after 30,000.
    """
    if isinstance(network, LeakyResNet) and ridge > 0:
        solver = PreconditionedLBFGS(evaluations=evaluations or PreconditionedLBFGS().evaluations)
        return (AdaptiveSteps(solver),) if network.adaptive else (solver,)
    total = evaluations or 3700
    first, second = round(total * 1000 / 3700), round(total * 1200 / 3700)
    adam = Adam(first, moves=(rebalancing,), move_every=10)
    if not isinstance(network, FullyConnected) or network.depth <= 2:
        return (_warm_up(Adam(first), rows), LBFGS(total - first))
    third = (total - first - second) // 3
    return (_warm_up(adam, rows), ExactMoves(), LBFGS(second), RankTrials(LBFGS(max(third, 1)), most=3))


def _warm_up(adam: Adam, rows: int) -> Solver:
    """Adam on all rows where they are few, else on batches of them."""
    if rows <= MANY_ROWS:
        return adam
    return MiniBatches(replace(adam, steps=max(adam.steps, -(-rows // BATCH))))


def cheaper(schedule: Schedule, *, rate: float) -> Schedule:
    """The same schedule with every Adam step size multiplied by `rate`, for a second attempt."""
    return tuple(_cheaper(solver, rate) for solver in schedule)


def _cheaper(solver: Solver, rate: float) -> Solver:
    if isinstance(solver, Adam):
        return replace(solver, rate=solver.rate * rate)
    if isinstance(solver, MiniBatches):
        return replace(solver, adam=replace(solver.adam, rate=solver.adam.rate * rate))
    if isinstance(solver, InPrecision):
        return replace(solver, solver=_cheaper(solver.solver, rate))
    return solver


def on_all_rows(schedule: Schedule) -> Schedule:
    """The schedule with exact moves that read the samples run by run, as a step that goes over runs of them needs."""
    return tuple(
        replace(s, moves=tuple(sharded_least_norm if m is least_norm else m for m in s.moves))
        if isinstance(s, ExactMoves)
        else s
        for s in schedule
    )
