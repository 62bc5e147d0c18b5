"""Solvers as small objects: settings are frozen, everything that changes is a dictionary that a checkpoint can hold.

`start(step)` makes the state, `advance(step, state)` does one iteration in place on `step.theta`, `state["done"]` says
that the solver has nothing left to do and `state["reason"]` why. Exact moves and trials: `moves`. The loop: `fit`.
"""

import math
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from scipy.linalg.lapack import dtrtrs  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType] - compiled
from torch import Tensor

from isthmus.training.line_search import wolfe_search
from isthmus.training.moves import Move
from isthmus.training.steps import Step

Array = npt.NDArray[np.float64]
State = dict[str, Any]  # plain Python and tensors only: it goes through torch.save and back with weights_only=True


@runtime_checkable
class Solver(Protocol):
    """One phase of training."""

    def start(self, step: Step) -> State:
        """The state before the first iteration."""
        ...

    def advance(self, step: Step, state: State) -> None:
        """One iteration, in place."""
        ...

    def iterations(self) -> int:
        """About how many gradient evaluations the phase takes, for time estimates."""
        ...


@dataclass(frozen=True, slots=True)
class Adam:
    """Adam on the penalised objective, with an exact norm-reducing move every so often.

    Attributes:
        steps: number of steps.
        rate: step size.
        decay_from: fraction of the steps after which the rate falls linearly to a tenth; 1 keeps it constant.
        moves: exact moves made every `move_every` steps.
        move_every: see `moves`.
    """

    steps: int
    rate: float = 3e-3
    decay_from: float = 0.6
    moves: tuple[Move, ...] = ()
    move_every: int = 25

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
            state["done"], state["reason"] = True, "diverged"
            return
        state["t"] = t = state["t"] + 1
        late = max(t / self.steps - self.decay_from, 0.0)
        rate = self.rate * (1.0 - (0.9 * late / (1.0 - self.decay_from) if late else 0.0))
        first, second = state["first"], state["second"]
        first.lerp_(step.gradient, 0.1)
        second.mul_(0.999).addcmul_(step.gradient, step.gradient, value=0.001)
        scale = (second / (1 - 0.999**t)).sqrt_().add_(1e-8)
        step.theta.addcdiv_(first, scale, value=-rate / (1 - 0.9**t))
        if self.moves and t % self.move_every == 0:
            for move in self.moves:
                move(step)
        state["done"] = t >= self.steps

    def iterations(self) -> int:
        """About how many gradient evaluations the phase takes, for time estimates."""
        return self.steps


@dataclass(frozen=True, slots=True)
class LBFGS:
    """Full-batch L-BFGS with a strong Wolfe line search.

    It ends when the relative gradient is below `tolerance`, when the objective has fallen by less than
    `plateau` (relative) over `window` iterations, or when `evaluations` are used up.

    Attributes:
        evaluations: gradient evaluations allowed.
        history: pairs kept.
        tolerance: stationarity |gradient| / |2 ridge theta| at which it has converged; None: 1e-3 in float32, 1e-6 in
            float64.
        plateau: relative fall of the objective over `window` iterations below which it ends.
        window: see `plateau`.
    """

    evaluations: int
    history: int = 20
    tolerance: float | None = None
    plateau: float = 1e-6
    window: int = 50

    def start(self, step: Step) -> State:
        """The state before the first iteration."""
        value, m = step(), self.history
        return {
            "done": False, "reason": "", "value": value, "evaluations": 1, "count": 0, "past": [value], "failures": 0,
            "pairs": step.coordinates.memory(2 * m, step.theta), "gradient": step.gradient.clone(),
            "with_gradient": torch.zeros(2 * m, dtype=torch.float64),
            "mixed": torch.zeros(m, m, dtype=torch.float64), "changes": torch.zeros(m, m, dtype=torch.float64),
        }  # fmt: skip

    def advance(self, step: Step, state: State) -> None:
        """One iteration, in place."""
        gradient: Tensor = state["gradient"]
        direction = self._direction(step, state)
        slope = float(torch.dot(direction, gradient))
        if not slope < 0:
            state["count"], direction = 0, -gradient
            slope = -float(torch.dot(gradient, gradient))
        if slope == 0 or not math.isfinite(slope) or not math.isfinite(state["value"]):
            state["done"], state["reason"] = True, "converged" if slope == 0 else "diverged"
            return
        moved = self._search(step, state, direction, slope)
        if moved is None:
            self._recover(step, state)
            return
        change = step.gradient - gradient
        gradient.copy_(step.gradient)
        self._remember(step, state, moved, change)
        state["failures"] = 0
        state["past"].append(state["value"])
        self._judge(step, state)

    def _search(self, step: Step, state: State, direction: Tensor, slope: float) -> Tensor | None:
        """Move `step.theta` along `direction`; returns the displacement, or None with theta where it was."""
        origin = step.theta.clone()
        last = math.nan

        def evaluate(length: float) -> tuple[float, float]:
            nonlocal last
            torch.add(origin, direction, alpha=length, out=step.theta)
            value = step()
            state["evaluations"] += 1
            last = length
            return value, float(torch.dot(step.gradient, direction))

        first = 1.0 if state["count"] else min(1.0, 1.0 / float(direction.abs().sum()))
        noise = 4 * torch.finfo(step.theta.dtype).eps * abs(state["value"])
        found = wolfe_search(evaluate, value=state["value"], slope=slope, step=first, noise=noise)
        if found is None:
            step.theta.copy_(origin)
            return None
        if last != found.step:
            evaluate(found.step)
        state["value"] = found.value
        return torch.sub(step.theta, origin, out=origin)

    def _direction(self, step: Step, state: State) -> Tensor:
        """Minus the inverse-Hessian estimate times the gradient: the two-loop recursion in coordinates.

        All vectors of the recursion are combinations of the kept displacements s_i (rows 0..m-1 of `pairs`), changes of
        the gradient y_i (rows m..2m-1) and the gradient g, so it runs on their inner products. Those that it needs are
        s_i y_j with j not older than i (`mixed`), y_i y_j (`changes`) and all rows with g (Byrd, Nocedal and Schnabel
        1994): two passes over the pairs an iteration, one here and one in `_remember`.
        """
        gradient, m, count = state["gradient"], self.history, state["count"]
        slots = np.arange(max(0, count - m), count) % m
        if not len(slots):
            return -gradient
        with_gradient, rows = state["with_gradient"].numpy(), slots[:, None]
        weights = np.zeros(2 * m)
        weights[slots], weights[m + slots], of_gradient = _two_loops(
            state["mixed"].numpy()[rows, slots],  # oldest first: its upper triangle is what is known
            state["changes"].numpy()[rows, slots],
            with_gradient[slots],
            with_gradient[m + slots],
        )
        return step.coordinates.combination(
            state["pairs"], torch.from_numpy(weights).to(gradient), gradient, of_gradient
        )

    def _remember(self, step: Step, state: State, moved: Tensor, change: Tensor) -> None:
        """Keep the pair, and bring the inner products up to date."""
        pairs, m, gradient = state["pairs"], self.history, state["gradient"]
        with_change = step.coordinates.products(pairs, change[:, None])[:, 0].cpu().numpy()
        with_gradient = state["with_gradient"].numpy()
        with_gradient += with_change
        curvature = float(torch.dot(moved, change))
        if curvature <= 1e-10 * float(torch.dot(moved, moved)):
            return  # a kink was crossed: this pair says nothing about curvature
        i = state["count"] % m
        step.coordinates.store(pairs, i, moved)
        step.coordinates.store(pairs, m + i, change)
        with_change[i], with_change[m + i] = curvature, float(torch.dot(change, change))
        state["mixed"].numpy()[:, i] = with_change[:m]
        changes = state["changes"].numpy()
        changes[:, i] = changes[i] = with_change[m:]
        with_gradient[i], with_gradient[m + i] = float(torch.dot(moved, gradient)), float(torch.dot(change, gradient))
        state["count"] += 1

    def _recover(self, step: Step, state: State) -> None:
        """After a failed line search: forget the history once, then call it a plateau."""
        state["failures"] += 1
        if state["failures"] > 1 or state["count"] == 0:
            state["done"], state["reason"] = True, "plateau"
        state["count"] = 0
        state["value"] = step()
        state["evaluations"] += 1
        state["gradient"].copy_(step.gradient)

    def _judge(self, step: Step, state: State) -> None:
        past: list[float] = state["past"]
        if len(past) > self.window:
            past.pop(0)
            if past[0] - past[-1] <= self.plateau * abs(past[-1]):
                state["done"], state["reason"] = True, "plateau"
        if stationarity(step) <= (self.tolerance or default_tolerance(step.theta.dtype)):
            state["done"], state["reason"] = True, "converged"
        elif state["evaluations"] >= self.evaluations:
            state["done"], state["reason"] = True, state["reason"] or "limit"

    def iterations(self) -> int:
        """About how many gradient evaluations the phase takes, for time estimates."""
        return self.evaluations


def _two_loops(mixed: Array, changes: Array, with_s: Array, with_y: Array) -> tuple[Array, Array, float]:
    """Weights of the displacements (n,), of the changes (n,) and of the gradient in the L-BFGS direction.

    Both loops of the recursion are triangular systems with R = the upper triangle of `mixed`, D its diagonal:

        R a = -S g,    R^T w = D a + scale (Y g + Y Y^T a),    scale = s_n y_n / y_n y_n

    Args:
        mixed: s_i y_j in its upper triangle, oldest pair first, (n, n).
        changes: y_i y_j, (n, n).
        with_s: s_i g, (n,).
        with_y: y_i g, (n,).
    """
    alphas = _solved(mixed, -with_s)
    scale = mixed[-1, -1] / changes[-1, -1]
    weights = _solved(mixed, mixed.diagonal() * alphas + scale * (with_y + changes @ alphas), transposed=1)
    return weights, -scale * alphas, -float(scale)


def _solved(upper: Array, right: Array, *, transposed: int = 0) -> Array:
    """The solution of a triangular system, by LAPACK itself: the wrappers cost more than 20 unknowns do."""
    return dtrtrs(upper, right, trans=transposed)[0]


def default_tolerance(dtype: torch.dtype) -> float:
    """The stationarity that counts as converged: 1e-6 in float64, 1e-3 below."""
    return 1e-6 if dtype == torch.float64 else 1e-3


def stationarity(step: Step) -> float:
    """|gradient of the objective| / |ridge * gradient of the penalty| at the last evaluation: NaN without ridge.

    Both in the coordinates sqrt(c_i) theta_i, in which the penalty sum c_i theta_i^2 / 2 is Euclidean; a parameter that
    the penalty leaves free counts with the largest c.
    """
    c = step.curvature
    if not isinstance(c, Tensor):  # the same for all parameters: it goes out of the norms
        scale = step.ridge * c * float(step.theta.norm())
        return float(step.gradient.norm()) / scale if scale else math.nan
    scale = step.ridge * float((step.theta * c.sqrt()).norm())
    metric = torch.where(c > 0, c, c.max())
    return float((step.gradient / metric.sqrt()).norm()) / scale if scale else math.nan
