"""A solver run in another precision than the network's: a quick float32 or bfloat16 warm-up of a float64 fit.

The precision of the data of a fit is that of the network: `fit`. The objective of a result is always float64: `ending`.
"""

import copy
from dataclasses import dataclass, replace

import torch

from isthmus.training.sharded.row_step import ShardedStep
from isthmus.training.solvers.solver import Settling, Solver, State, gentler
from isthmus.training.steps.step import Step, step_of

BURST = 32  # iterations between two returns to the precision of the network


@dataclass(frozen=True, slots=True)
class InPrecision:
    """A solver on the same objective with parameters and data rounded to another precision.

    Put it before a solver that ends the fit: a network that was warmed up in float32 is polished in float64.

    Attributes:
        solver: run until it is done.
        dtype: float32, bfloat16, ...
    """

    solver: Solver
    dtype: torch.dtype = torch.float32

    def __post_init__(self) -> None:
        if not self.dtype.is_floating_point:
            raise ValueError(f"InPrecision(dtype={self.dtype}): needs a floating-point type, such as torch.float32.")

    def start(self, step: Step) -> State:
        """The state before the first iteration."""
        return self._kept(step, (lowered := rounded(step, self.dtype)), self.solver.start(lowered))

    def advance(self, step: Step, state: State) -> None:
        """A burst of iterations, in place."""
        lowered, inner = rounded(step, self.dtype), state["inner"]
        for _ in range(BURST):
            if inner["done"]:
                break
            self.solver.advance(lowered, inner)
        state.update(self._kept(step, lowered, inner))

    def settle(self, step: Step, state: State) -> None:
        """Put back what the solver had reached."""
        if isinstance(self.solver, Settling):
            self.solver.settle(lowered := rounded(step, self.dtype), state["inner"])
            _take_over(step, lowered)

    def iterations(self) -> int:
        """About how many gradient evaluations the phase takes, for time estimates."""
        return self.solver.iterations()

    def gentler(self, rate: float) -> "InPrecision":
        """The same with the step size of its solver, if it has one, multiplied by `rate`."""
        return replace(self, solver=gentler(self.solver, rate))

    @staticmethod
    def _kept(step: Step, lowered: Step, inner: State) -> State:
        """Take over what the higher precision holds exactly; what the fit asks for, and the state."""
        _take_over(step, lowered)
        return {name: inner[name] for name in ("done", "reason", "value", "evaluations")} | {"inner": inner}


def _take_over(step: Step, lowered: Step) -> None:
    """Parameters, and what a solver moves besides: the width of a smoothed relu, steps. What it left is not rounded."""
    step.theta.copy_(lowered.theta)
    buffers = dict(step.network.named_buffers())
    moved = {n: b for n, b in lowered.network.named_buffers() if not torch.equal(b, buffers[n].to(b.dtype))}
    for name, buffer in moved.items():
        buffers[name].copy_(buffer)
    if moved:
        step.refresh()


def rounded(step: Step, dtype: torch.dtype) -> Step:
    """The same step of a copy of the network, all in another precision."""
    network = copy.deepcopy(step.network).to(dtype)
    x, data = step.x.to(dtype), step.data.to(dtype)
    if isinstance(step, ShardedStep):
        rows = step.rows
        return ShardedStep(network, x, data, step.ridge, total=rows.leaves.rows, team=rows.team, at_once=rows.at_once)
    return step_of(network, x, data, step.ridge, products=step.products)
