"""A solver that is looked at once on its way, and ends there where its network is of no use any more.

What ends a descent by its objective alone: `prospect`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from isthmus.training.checkpoint import State
from isthmus.training.fit_result import StopReason
from isthmus.training.solvers.solver import Settling, Solver, end
from isthmus.training.steps.step import Step


@dataclass(frozen=True, slots=True)
class LookedAt:
    """Another solver, which ends after `at` gradients where `fails` holds of its network.

    Attributes:
        solver: what descends.
        at: gradients before the look.
        fails: whether the network is of no use; the same for the same parameters, so that a fit can be resumed.
    """

    solver: Solver
    at: int
    fails: Callable[[nn.Module], bool]

    def start(self, step: Step) -> State:
        """The state before the first iteration."""
        return {**self.solver.start(step), "looked": False}

    def advance(self, step: Step, state: State) -> None:
        """One iteration, in place."""
        self.solver.advance(step, state)
        if state["done"] or state["looked"] or state["evaluations"] < self.at:
            return
        state["looked"] = True
        if self.fails(step.network):
            end(state, StopReason.LIMIT)
            self.settle(step, state)

    def settle(self, step: Step, state: State) -> None:
        """Put back what the other solver had reached."""
        if isinstance(self.solver, Settling):
            self.solver.settle(step, state)

    def iterations(self) -> int:
        """About how many gradient evaluations the phase takes, for time estimates."""
        return self.solver.iterations()
