"""Which solvers run one after the other when the caller names none."""

from torch import nn

from isthmus.networks import FullyConnected, LeakyResNet
from isthmus.training.adaptive_steps import AdaptiveSteps
from isthmus.training.moves import rebalancing
from isthmus.training.preconditioned import PreconditionedLBFGS
from isthmus.training.solvers import LBFGS, Adam, Solver
from isthmus.training.trials import ExactMoves, RankTrials

Schedule = tuple[Solver, ...]


def default_schedule(network: nn.Module, *, evaluations: int | None = None, ridge: float = 1.0) -> Schedule:
    """Adam with rebalancing, exact moves, L-BFGS, then rank trials; shares of `evaluations` when they are bounded.

    Leaky networks: preconditioned L-BFGS, which moves adaptive steps in between; without a ridge, as the others.

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
        return (Adam(first), LBFGS(total - first))
    third = (total - first - second) // 3
    return (adam, ExactMoves(), LBFGS(second), RankTrials(LBFGS(max(third, 1)), most=3))


def cheaper(schedule: Schedule, *, rate: float) -> Schedule:
    """The same schedule with every Adam step size multiplied by `rate`, for a second attempt."""
    return tuple(
        Adam(s.steps, s.rate * rate, s.decay_from, s.moves, s.move_every) if isinstance(s, Adam) else s
        for s in schedule
    )
