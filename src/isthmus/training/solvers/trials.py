"""Phases that are no descent: exact moves made once, and rank trials kept only if the objective fell.

A rank trial truncates the middle matrices by one rank, or adds a rank to them, and polishes. How a rank is added:
`solvers.rank_raising`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from isthmus.training.fit_result import StopReason
from isthmus.training.moves import Move, least_norm, middle_rank, movable, rebalancing, truncate_middle
from isthmus.training.solvers.solver import LBFGS, State
from isthmus.training.steps.step import Step

USUAL_TRIALS = 2  # one that is kept and one that is not


@dataclass(frozen=True, slots=True)
class ExactMoves:
    """Moves that keep the function and do not raise the penalty, once.

    Attributes:
        moves: made in this order.
    """

    moves: tuple[Move, ...] = (least_norm, rebalancing)

    def start(self, step: Step) -> State:
        """The state before the first iteration."""
        return {"done": False, "reason": "", "value": step(), "evaluations": 1}

    def advance(self, step: Step, state: State) -> None:
        """Make the moves, in place; a move whose rounding raised the objective is taken back."""
        before, value = step.theta.clone(), state["value"]
        for move in self.moves:
            move(step)
        state["value"] = step()
        state["evaluations"] += 1
        if not state["value"] <= value:
            step.theta.copy_(before)
            state["value"] = value
        state["done"] = True

    def iterations(self) -> int:
        """About how many gradient evaluations the phase takes, for time estimates."""
        return 2


Attempt = Callable[[Step], bool]  # changes the rank of the middle matrices in place; False where there is nothing to do


def lower_rank(step: Step) -> bool:
    """Truncate the middle matrices to one rank less; nothing is below rank 1, nor done where a part is frozen."""
    network = movable(step.network)
    if network is None or (rank := middle_rank(network)) <= 1:
        return False
    truncate_middle(network, rank - 1)
    return True


@dataclass(frozen=True, slots=True)
class RankTrials:
    """Change the rank of the middle matrices as long as that lowers the objective.

    From the current minimum: change the rank by one (truncate, unless another attempt is given), polish, keep and go on
    if the objective is lower; otherwise put the parameters back and stop. Where a limit ends the fit within a trial,
    the lower of it and the best is kept.

    Attributes:
        polish: the solver run after each change.
        most: trials allowed.
        attempt: the change, `lower_rank` or `rank_raising.raise_rank`.
    """

    polish: LBFGS = field(default_factory=lambda: LBFGS(500))
    most: int = 3
    attempt: Attempt = lower_rank

    def start(self, step: Step) -> State:
        """The state before the first iteration."""
        network, value = movable(step.network), step()
        usable = network is not None and network.depth > 2
        state: State = {"done": not usable, "value": value, "evaluations": 1, "trials": 0, "inner": None}
        reason = StopReason.NOTHING_BETTER.value  # until a trial is kept
        return state | {"best": step.theta.clone(), "best_value": value, "reason": reason}

    def advance(self, step: Step, state: State) -> None:
        """One iteration, in place."""
        if state["inner"] is None:
            self._change(step, state)
            return
        inner: State = state["inner"]
        before = inner["evaluations"]
        self.polish.advance(step, inner)
        state["evaluations"] += inner["evaluations"] - before
        state["value"] = min(state["best_value"], inner["value"])
        if inner["done"]:
            self._decide(step, state, inner)

    def _change(self, step: Step, state: State) -> None:
        if state["trials"] >= self.most or not self.attempt(step):
            state["done"] = True
            return
        state["inner"] = self.polish.start(step)
        state["evaluations"] += 1
        state["trials"] += 1
        state["expected"] = max(USUAL_TRIALS, state["trials"]) * self.polish.evaluations

    def _decide(self, step: Step, state: State, inner: State) -> None:
        value, state["inner"] = inner["value"], None
        if math.isfinite(value) and value < state["best_value"]:
            state["best_value"], state["reason"] = value, inner["reason"]
            state["best"].copy_(step.theta)
            return
        step.theta.copy_(state["best"])
        state["value"], state["done"] = step(), True
        state["evaluations"] += 1

    def settle(self, step: Step, state: State) -> None:
        """Put the best back where the trial that is under way lies above it, or is no number."""
        inner: State | None = state["inner"]
        if inner is not None and not inner["value"] < state["best_value"]:
            step.theta.copy_(state["best"])

    def iterations(self) -> int:
        """About how many gradient evaluations the phase takes, for time estimates."""
        return USUAL_TRIALS * self.polish.evaluations
