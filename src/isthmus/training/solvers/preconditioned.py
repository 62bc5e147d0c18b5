"""L-BFGS for leaky networks, preconditioned by the tangent kernel and led over the kinks of the relu (LEAKY-25).

Plain solvers stall: the data are 1e5 times stiffer than the penalty, and minima sit on kinks. The first is cured by
`training.solvers.curvature_model`, the second by a smoothed relu whose width is lowered in stages.
"""

import math
import statistics
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from isthmus.training.ending import default_tolerance, stationarity
from isthmus.training.fit_result import StopReason
from isthmus.training.solvers.captured_model import captured
from isthmus.training.solvers.curvature_model import Linearisation, linearised, random_mix
from isthmus.training.solvers.minibatches import batch_of
from isthmus.training.solvers.pairs_around import direction, keep, no_pairs
from isthmus.training.solvers.solver import State, end, searched
from isthmus.training.steps.leaky_step import leaky_network
from isthmus.training.steps.step import Step

TO_RELU = (0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 0.0)  # ends at the relu; see `PreconditionedLBFGS`
SHORT, LONG = 0.5, 0.8  # median length of the steps between two linearisations below and above which damping moves
MOST_DAMPING = 1e6
SAMPLED_DAMPING = 1e3  # with which a sampled model begins, see docs/notes/training.md; that of all outputs: 1
PLATEAU = 1e-13  # as good as none: rounding
EARLY = 1e-2  # stationarity at which a stage before the last one ends
LEAST_SAMPLED = 256  # combinations, however little memory there is
SAMPLED_REFRESH = 2  # a sampled kernel serves so many times as long


@dataclass(frozen=True, slots=True)
class PreconditionedLBFGS:
    """L-BFGS whose first guess of the inverse curvature is that of ridge + J^T J at a recent point.

    It leaves the network with the last `smoothing`, also where a limit ends it at an earlier one, whose weights stay:
    stationarity is that of the smoothed network. A last value of 0
    after others, as in `TO_RELU`, puts the relu itself in the place of the narrowest smoothed one, without a step:
    minima sit on kinks, where what vanishes is a gradient with slopes between 0 and 1, which the smoothed relu has and
    no derivative of the relu does. The stationarity is then that of the derivative and stays far from 0; that of the
    best slopes is `diagnostics.kink_stationarity`. Descent at width 0 was tried: 1,000 evaluations more on a net of
    width 5 ended at a higher objective and at 20 times the stationarity of the best slopes.

    Attributes:
        evaluations: gradient evaluations allowed, all stages together.
        smoothing: widths of the smoothed relu, one stage each.
        history: pairs kept.
        refresh: iterations between two linearisations.
        tolerance: stationarity at which the last stage ends; None: 1e-6 in float64, 1e-3 in float32.
        plateau: relative fall of the objective over `window` iterations below which a stage ends.
        window: see `plateau`.
        memory: bytes that the tangent kernel of all outputs may take, (n d_out)^2 numbers. Where it would take more,
            a few random combinations of the outputs of each row stand for all in the model of the curvature, drawn
            anew with every linearisation. So it is done where the step does not hold all rows at once. Where weights
            are fewer than outputs, their curvature is formed in its place, which is smaller.
        sampled: combinations of all rows together; where there are more rows, so many rows are drawn, with one each.
            0: none; the equations of the whole kernel are solved by conjugate gradients, without forming it.
        conjugate: iterations of conjugate gradients at most, each of the cost of a gradient evaluation and counted so.
        residual: relative residual at which they stop.
    """

    evaluations: int = 5000
    smoothing: tuple[float, ...] = (0.1, 0.03)
    history: int = 60
    refresh: int = 8
    tolerance: float | None = None
    plateau: float = PLATEAU
    window: int = 100
    memory: int = 400_000_000
    sampled: int = 2000
    conjugate: int = 200
    residual: float = 1e-3

    def start(self, step: Step) -> State:
        """The state before the first iteration."""
        network = leaky_network(step.network, "PreconditionedLBFGS")
        if not step.ridge > 0:
            raise ValueError(f"PreconditionedLBFGS: needs a ridge > 0, got {step.ridge}: without it nothing is unique.")
        kernel_size = (len(step.x) * network.d_out) ** 2 * step.theta.element_size()
        rows, combined = len(step.x), 0
        if (kernel_size > self.memory or rows > step.at_once) and self.sampled:
            sampled = min(self.sampled, max(math.isqrt(self.memory // step.theta.element_size()), LEAST_SAMPLED))
            rows = min(rows, sampled, step.at_once)
            combined = min(sampled // rows, network.d_out)
        state: State = {"done": False, "reason": "", "evaluations": 0, "stage": 0, "age": 0, "factor": None}
        state |= {
            "matrix_free": kernel_size > self.memory and not self.sampled,
            "rows": rows,
            "combined": combined,
            "anchors": 0,
            **no_pairs(),
            "gradient": None,
            "anchor": None,
            "past": [],
            "value": math.nan,
            "damping": SAMPLED_DAMPING if combined else 1.0,
            "lengths": [],
        }
        self._open_stage(step, state)
        return state

    def advance(self, step: Step, state: State) -> None:
        """One iteration, in place."""
        if not math.isfinite(state["value"]):
            end(state, StopReason.DIVERGED)
            return
        if "order" not in state:  # of an older version, which kept its pairs otherwise
            state |= no_pairs()
        lasts = self.refresh * (SAMPLED_REFRESH if state["combined"] else 1)
        if state["anchor"] is None or state["age"] >= lasts:
            state["damping"], state["lengths"] = damped(state["damping"], state["lengths"]), []
            _anchor(step, state)
        gradient: Tensor = state["gradient"]
        along = self._direction(step, state)
        slope = float(torch.dot(along, gradient))
        moved = self._search(step, state, along, slope) if slope < 0 else None
        if moved is None:
            self._recover(step, state)
            return
        change = step.gradient / _metric(step) - gradient
        if float(torch.dot(moved, change)) > 1e-10 * float(moved.norm() * change.norm()):
            keep(state, moved, change, most=self.history)
        gradient.add_(change)
        state["age"] += 1
        self._judge(step, state)

    def _inverse_curvature(self, step: Step, state: State, v: Tensor) -> Tensor:
        """(r + J^T J)^{-1} v = (v - J^T (r + J J^T)^{-1} J v) / r, r the damped ridge."""
        model, ridge = captured(step, Linearisation(**state["anchor"])), state["damping"] * step.ridge
        if not state["matrix_free"]:
            return model.solved(v, state["factor"], ridge=ridge)
        pushed = model.push(v)
        solved, count = conjugate_gradients(
            model, pushed, ridge=ridge, iterations=self.conjugate, residual=self.residual
        )
        state["evaluations"] += count
        return (v - model.pull(solved)) / ridge

    def _direction(self, step: Step, state: State) -> Tensor:
        """Minus the inverse-Hessian estimate times the gradient, in u."""
        return direction(state, state["gradient"], lambda v: self._inverse_curvature(step, state, v))

    def iterations(self) -> int:
        """About how many gradient evaluations the phase takes, for time estimates."""
        return self.evaluations

    def continued(self, spent: int) -> "PreconditionedLBFGS":
        """This solver from where it ended: its last width that makes steps, and the evaluations left, 1 at least."""
        return replace(
            self, smoothing=self.smoothing[self._last_descent() :], evaluations=max(self.evaluations - spent, 1)
        )

    def settle(self, step: Step, state: State) -> None:  # noqa: ARG002 - whatever it had reached
        """Leave the network with the last width."""
        leaky_network(step.network, "PreconditionedLBFGS").smoothing.fill_(self.smoothing[-1])

    def _open_stage(self, step: Step, state: State) -> None:
        leaky_network(step.network, "PreconditionedLBFGS").smoothing.fill_(self.smoothing[state["stage"]])
        state |= {**no_pairs(), "anchor": None}
        state["value"] = step()
        state["evaluations"] += 1
        state["gradient"], state["past"] = step.gradient / _metric(step), [state["value"]]

    def _search(self, step: Step, state: State, direction: Tensor, slope: float) -> Tensor | None:
        """Move along `direction`, given in u; returns the displacement in u, or None with theta where it was.

        Halving from 1 until the objective falls was tried: twice the evaluations on the small net.
        """
        found = searched(step, state, step.theta.clone(), direction / _metric(step), slope=slope, first=1.0)
        if found is None:
            return None
        state["value"] = found.value
        state["lengths"].append(found.step)
        return direction * found.step

    def _recover(self, step: Step, state: State) -> None:
        """After a failed line search: forget the pairs and linearise anew; if there were none, the stage is over."""
        state["value"] = step()
        state["evaluations"] += 1
        if not state["order"]:
            self._close_stage(step, state, StopReason.PLATEAU)
            return
        state["gradient"] = step.gradient / _metric(step)
        state |= {**no_pairs(), "anchor": None}

    def _judge(self, step: Step, state: State) -> None:
        past: list[float] = state["past"]
        past.append(state["value"])
        del past[: -self.window - 1]
        last = state["stage"] == self._last_descent()
        if stationarity(step) <= ((self.tolerance or default_tolerance(step.theta.dtype)) if last else EARLY):
            self._close_stage(step, state, StopReason.CONVERGED)
        elif len(past) > self.window and past[0] - past[-1] <= self.plateau * abs(past[-1]):
            self._close_stage(step, state, StopReason.PLATEAU)
        elif state["evaluations"] >= self.evaluations:
            end(state, StopReason.LIMIT)
            if state["stage"] + 1 < len(self.smoothing):
                state["stage"] = len(self.smoothing) - 1
                self._open_stage(step, state)

    def _last_descent(self) -> int:
        """Number of the last stage that makes steps: one of width 0 after others makes none."""
        count = len(self.smoothing)
        return count - 2 if count > 1 and self.smoothing[-1] == 0 else count - 1

    def _close_stage(self, step: Step, state: State, ending: StopReason) -> None:
        is_last = state["stage"] == self._last_descent()
        if is_last:
            end(state, ending)
        if state["stage"] + 1 < len(self.smoothing):
            state["stage"] += 1
            self._open_stage(step, state)


def _metric(step: Step) -> Tensor:
    """sqrt(c): u = sqrt(c) theta."""
    assert isinstance(step.curvature, Tensor)
    return step.curvature.sqrt()


def damped(damping: float, lengths: list[float]) -> float:
    """The next factor of the ridge in the model of the curvature, by the lengths of the steps that the last one took.

    Short steps: the model promises too much where the data do not hold the weights, and more damping keeps it there.
    """
    if not lengths:
        return damping
    usual = statistics.median(lengths)
    if usual < SHORT:
        return min(damping / max(usual, 0.1), MOST_DAMPING)
    return max(damping / 2, 1.0) if usual > LONG else damping


def _anchor(step: Step, state: State) -> None:
    """Linearise here, all outputs or combinations of them; the factor of ridge + J J^T serves until the next time."""
    network = leaky_network(step.network, "PreconditionedLBFGS")
    x, data, mix = step.x, step.data, None
    generator = torch.Generator().manual_seed(state["anchors"])
    if state["rows"] < len(x):
        x, data = batch_of(step, torch.randperm(len(x), generator=generator)[: state["rows"]])
    if 0 < state["combined"] < network.d_out:
        mix = random_mix(len(x), state["combined"], network.d_out, generator)
    state["anchors"] += 1
    model = linearised(network, x, data, mix)
    state["anchor"], state["age"] = {field.name: getattr(model, field.name) for field in fields(model)}, 0
    if not state["matrix_free"]:
        state["factor"] = _factor(model, step, state)


def _factor(model: Linearisation, step: Step, state: State) -> Tensor:
    """The factor of ridge + J J^T, with more damping where rounding leaves nothing of so small a ridge."""
    try:
        return model.factor(state["damping"] * step.ridge)
    except torch.linalg.LinAlgError:
        rounding = torch.finfo(step.theta.dtype).eps * model.count() * model.largest()
        state["damping"] = max(state["damping"], rounding / step.ridge)
        return model.factor(state["damping"] * step.ridge)


def conjugate_gradients(
    model: Linearisation, right: Tensor, *, ridge: float, iterations: int, residual: float
) -> tuple[Tensor, int]:
    """Z with (ridge + J J^T) z = right up to the relative residual, and the iterations it took (Hestenes and Stiefel).

    Args:
        model: gives J and J^T.
        right: (n, d_out).
        ridge: > 0.
        iterations: allowed.
        residual: |right - (ridge + J J^T) z| / |right| at which to stop.
    """
    z, rest = torch.zeros_like(right), right.clone()
    along, square = rest.clone(), float(rest.square().sum())
    goal = residual**2 * square
    for count in range(iterations):
        if square <= goal:
            return z, count
        image = torch.add(model.push(model.pull(along)), along, alpha=ridge)
        length = square / float((along * image).sum())
        z.add_(along, alpha=length)
        rest.sub_(image, alpha=length)
        before, square = square, float(rest.square().sum())
        along.mul_(square / before).add_(rest)
    return z, iterations
