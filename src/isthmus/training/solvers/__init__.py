"""What descends: solvers, their parts, phases that are no descent, and the default order of them."""

from isthmus.training.solvers.minibatches import MiniBatches
from isthmus.training.solvers.preconditioned import PreconditionedLBFGS
from isthmus.training.solvers.schedule import papers_schedule
from isthmus.training.solvers.solver import LBFGS, Adam, GradientDescent
from isthmus.training.solvers.trials import ExactMoves, RankTrials

__all__ = [
    "LBFGS",
    "Adam",
    "ExactMoves",
    "GradientDescent",
    "MiniBatches",
    "PreconditionedLBFGS",
    "RankTrials",
    "papers_schedule",
]
