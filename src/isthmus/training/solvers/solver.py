"""Solvers as small objects: settings are frozen, everything that changes is a dictionary that a checkpoint can hold.

`start(step)` makes the state, `advance(step, state)` does one iteration in place on `step.theta`, `state["done"]` says
that the solver has nothing left to do and `state["reason"]` why. Exact moves and trials: `moves`. The loop: `fit`.
"""

import math
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from isthmus.training.checkpoint import State
from isthmus.training.ending import default_tolerance, stationarity
from isthmus.training.fit_result import StopReason
from isthmus.training.moves import Move
from isthmus.training.solvers.line_search import CURVATURE, Point, wolfe_search
from isthmus.training.solvers.pairs import direction, forget, no_pairs, remember
from isthmus.training.solvers.prospect import NONE_NEEDED, Prospect
from isthmus.training.steps.step import Step


def end(state: State, ending: StopReason) -> None:
    """Note that the solver has nothing left to do, and why."""
    state["done"], state["reason"] = True, ending.value


@runtime_checkable
class Solver(Protocol):
    """One phase of training."""

    def start(self, step: Step) -> State:
        """The state before the first iteration."""
        ...

    def advance(self, step: Step, state: State) -> None:
        """One iteration, in place."""

    def iterations(self) -> int:
        """About how many gradient evaluations the phase takes, for time estimates."""
        ...


@runtime_checkable
class Paced(Protocol):
    """A solver with a step size."""

    def gentler(self, rate: float) -> Solver:
        """The same with its step size multiplied by `rate`."""
        ...


def gentler(solver: Solver, rate: float) -> Solver:
    """The solver with its step size multiplied by `rate`, if it has one."""
    return solver.gentler(rate) if isinstance(solver, Paced) else solver


@runtime_checkable
class Settling(Protocol):
    """A solver that leaves what it has reached on its way to the next: from minimum to minimum, in trials."""

    def settle(self, step: Step, state: State) -> None:
        """Put back what it had reached; asked where a limit ends the fit, after the state is saved."""


class Decay(Enum):
    """How a step size falls to a tenth over the last part of the steps."""

    LINEAR = "linear"
    COSINE = "cosine"


@dataclass(frozen=True, slots=True)
class Adam:
    """Adam on the penalised objective, with an exact norm-reducing move every so often.

    Attributes:
        steps: number of steps.
        rate: step size.
        decay_from: fraction of the steps after which the rate falls to a tenth; 1 keeps it constant.
        moves: exact moves made every `move_every` steps.
        move_every: see `moves`.
        decay: along a line or half a period of a cosine.
    """

    steps: int
    rate: float = 3e-3
    decay_from: float = 0.6
    moves: tuple[Move, ...] = ()
    move_every: int = 25
    decay: Decay = Decay.LINEAR

    def __post_init__(self) -> None:
        if not (self.steps >= 0 and self.rate > 0 and 0 <= self.decay_from <= 1):
            raise ValueError(f"{self}: needs steps >= 0, rate > 0 and 0 <= decay_from <= 1.")

    def start(self, step: Step) -> State:
        """The state before the first iteration."""
        moments = {"first": torch.zeros_like(step.theta), "second": torch.zeros_like(step.theta)}
        return {"done": self.steps == 0, "reason": "", "t": 0, "value": math.nan, "evaluations": 0, **moments}

    def advance(self, step: Step, state: State) -> None:
        """One iteration, in place."""
        state["value"] = step()
        state["evaluations"] += 1
        if not math.isfinite(state["value"]):
            end(state, StopReason.DIVERGED)
            return
        state["t"] = t = state["t"] + 1
        rate = self.rate_at(t)
        first, second = state["first"], state["second"]
        first.lerp_(step.gradient, 0.1)
        second.mul_(0.999).addcmul_(step.gradient, step.gradient, value=0.001)
        scale = (second / (1 - 0.999**t)).sqrt_().add_(1e-8)
        step.theta.addcdiv_(first, scale, value=-rate / (1 - 0.9**t))
        if self.moves and t % self.move_every == 0:
            for move in self.moves:
                move(step)
        state["done"] = t >= self.steps

    def gentler(self, rate: float) -> "Adam":
        """The same with its step size multiplied by `rate`."""
        return replace(self, rate=self.rate * rate)

    def rate_at(self, t: int) -> float:
        """The step size of step t = 1 .. steps."""
        late = max(t / self.steps - self.decay_from, 0.0)
        share = late / (1.0 - self.decay_from) if late else 0.0
        if self.decay is Decay.COSINE:
            share = (1.0 - math.cos(math.pi * share)) / 2
        return self.rate * (1.0 - 0.9 * share)

    def iterations(self) -> int:
        """About how many gradient evaluations the phase takes, for time estimates."""
        return self.steps


@dataclass(frozen=True, slots=True)
class GradientDescent:
    """Gradient descent with a constant step size: it tightens a minimum that it is near to, and finds none.

    Attributes:
        steps: number of steps.
        rate: step size; above 2 over the largest curvature it diverges.
        tolerance: stationarity at which it has converged; None: 1e-3 in float32, 1e-6 in float64.
    """

    steps: int
    rate: float = 1e-4
    tolerance: float | None = None

    def __post_init__(self) -> None:
        if not (self.steps >= 0 and self.rate > 0):
            raise ValueError(f"{self}: needs steps >= 0 and rate > 0.")

    def start(self, step: Step) -> State:  # noqa: ARG002 - a solver without memory
        """The state before the first iteration."""
        return {"done": self.steps == 0, "reason": "", "value": math.nan, "evaluations": 0}

    def advance(self, step: Step, state: State) -> None:
        """One iteration, in place."""
        state["value"] = step()
        state["evaluations"] += 1
        if not math.isfinite(state["value"]):
            end(state, StopReason.DIVERGED)
        elif stationarity(step) <= (self.tolerance or default_tolerance(step.theta.dtype)):
            end(state, StopReason.CONVERGED)
        else:
            step.theta.add_(step.gradient, alpha=-self.rate)
            state["done"] = state["evaluations"] >= self.steps

    def iterations(self) -> int:
        """About how many gradient evaluations the phase takes, for time estimates."""
        return self.steps


def searched(step: Step, state: State, origin: Tensor, along: Tensor, *, slope: float, first: float) -> Point | None:
    """Move `step.theta` from `origin` along a direction; where to, or None with theta at the origin.

    Args:
        step: of the objective, which is `state["value"]` at the origin.
        state: of the solver; counts the evaluations.
        origin: (P,).
        along: (P,).
        slope: of the objective along it, negative.
        first: multiple of `along` that is tried first.
    """
    last = math.nan

    def evaluate(length: float) -> tuple[float, float]:
        nonlocal last
        torch.add(origin, along, alpha=length, out=step.theta)
        last = length
        state["evaluations"] += 1
        return step(), float(torch.dot(step.gradient, along))

    noise = 4 * torch.finfo(origin.dtype).eps * abs(state["value"])
    found = wolfe_search(evaluate, value=state["value"], slope=slope, step=first, noise=noise)
    if found is None:
        step.theta.copy_(origin)
    elif last != found.step:
        evaluate(found.step)
    return found


@dataclass(frozen=True, slots=True)
class LBFGS:
    """Full-batch L-BFGS with a strong Wolfe line search.

    It ends when the relative gradient is below `tolerance`, when the objective has fallen by less than
    `plateau` (relative) over `window` iterations, when `evaluations` are used up, or without prospects.

    Attributes:
        evaluations: gradient evaluations allowed.
        history: pairs kept.
        tolerance: stationarity (see `FitResult`) at which it has converged; None: 1e-3 in float32, 1e-6 in
            float64.
        plateau: relative fall of the objective over `window` iterations below which it ends.
        window: see `plateau`.
        prospect: what it must be able to reach to go on.
    """

    evaluations: int
    history: int = 20
    tolerance: float | None = None
    plateau: float = 1e-6
    window: int = 50
    prospect: Prospect = NONE_NEEDED

    def start(self, step: Step) -> State:
        """The state before the first iteration."""
        value = step()
        c = step.curvature
        return {
            "done": False, "reason": "", "value": value, "evaluations": 1, "past": [value], "failures": 0,
            "steepest": float(c.max()) if isinstance(c, Tensor) else c,
            **no_pairs(step.coordinates, step.gradient, most=self.history),
        }  # fmt: skip

    def advance(self, step: Step, state: State) -> None:
        """One iteration, in place."""
        along, slope = direction(step.coordinates, state)
        if not slope < 0:
            state["count"] = 0
            along, slope = direction(step.coordinates, state)
        if slope == 0 or not math.isfinite(slope) or not math.isfinite(state["value"]):
            end(state, StopReason.CONVERGED if slope == 0 else StopReason.DIVERGED)
            return
        origin = step.theta.clone()
        first = 1.0 if state["count"] else min(1.0, 1.0 / float(along.abs().sum()))
        found = searched(step, state, origin, along, slope=slope, first=first)
        if found is None:
            self._recover(step, state)
            return
        remember(
            step.coordinates, state, step.gradient, theta=step.theta, origin=origin,
            slope=found.step * found.slope, sure=found.slope >= CURVATURE * slope,
        )  # fmt: skip
        state["value"], state["failures"] = found.value, 0
        state["past"].append(found.value)
        self._judge(step, state)

    def _recover(self, step: Step, state: State) -> None:
        """After a failed line search: forget the history once, then call it a plateau."""
        state["failures"] += 1
        if state["failures"] > 1 or state["count"] == 0:
            end(state, StopReason.PLATEAU)
        state["value"] = step()
        state["evaluations"] += 1
        forget(step.coordinates, state, step.gradient)

    def _judge(self, step: Step, state: State) -> None:
        past: list[float] = state["past"]
        if len(past) > self.window:
            past.pop(0)
            if past[0] - past[-1] <= self.plateau * abs(past[-1]):
                end(state, StopReason.PLATEAU)
        if self._is_stationary(step, state):
            end(state, StopReason.CONVERGED)
        elif state["evaluations"] >= self.evaluations or self.prospect.looks_at(state, allowed=self.evaluations):
            end(state, StopReason(state["reason"] or StopReason.LIMIT))

    def _is_stationary(self, step: Step, state: State) -> bool:
        """Whether the relative gradient is below the tolerance; read off exactly only where it may be.

        A bound needs no pass over the parameters: (ridge |sqrt(c) theta|)^2 is 2 ridge (objective - data loss), and
        |g / sqrt(c)|^2 is at least |g|^2 over the largest c.
        """
        tolerance = self.tolerance or default_tolerance(step.theta.dtype)
        pull = 2 * step.ridge * (state["value"] - step.data_value)
        if state["square"] > 1.01 * tolerance**2 * pull * state["steepest"]:
            return False
        return stationarity(step) <= tolerance

    def iterations(self) -> int:
        """About how many gradient evaluations the phase takes, for time estimates."""
        return self.evaluations
