"""What L-BFGS costs beyond its gradients, and how many gradients it saves with more pairs."""

import statistics
import time
from dataclasses import replace
from typing import Any, cast

from isthmus.training.solvers.solver import LBFGS, Adam
from isthmus.training.steps.step import Step
from training_tables.problems import DISCOVERY, W1, W1_SMALL, W2, W2_SMALL, W2_STEP, Problem

SIZES = {
    "W1": W1,
    "W1-small": W1_SMALL,
    "W2": W2,
    "W2-small": W2_SMALL,
    "W2-step": W2_STEP,
    "discovery, N = 300": replace(DISCOVERY, rows=300),
    "discovery, N = 500": DISCOVERY,
    "discovery, N = 1000": replace(DISCOVERY, rows=1000),
    "discovery, N = 2000": replace(DISCOVERY, rows=2000),
}


class TimedStep:
    """A step that adds up the CPU seconds of its gradients."""

    def __init__(self, step: Step) -> None:
        self._step, self.seconds = step, 0.0

    def __getattr__(self, name: str) -> Any:
        """Everything else is the step's."""
        return getattr(self._step, name)

    def __call__(self) -> float:
        """Objective; fills the gradient."""
        began = time.process_time()
        value = self._step()
        self.seconds += time.process_time() - began
        return value


def overhead(problem: Problem, solver: LBFGS, *, seconds: float) -> tuple[float, float, float]:
    """Median over iterations of (time beyond gradients) / (time of gradients); ms of each, all pairs in use."""
    timed = TimedStep(problem.step())
    step = cast(Step, timed)
    warm = Adam(200)
    state = warm.start(step)
    while not state["done"]:
        warm.advance(step, state)
    state = solver.start(step)
    ratios: list[float] = []
    gradients: list[float] = []
    began = time.process_time()
    while not state["done"] and (time.process_time() - began < seconds or len(ratios) < 3):
        timed.seconds, start, before = 0.0, time.process_time(), state["evaluations"]
        solver.advance(step, state)
        whole = time.process_time() - start
        if state["count"] > solver.history:
            ratios.append((whole - timed.seconds) / timed.seconds)
            gradients.append(timed.seconds / (state["evaluations"] - before))
    ratio, gradient = statistics.median(ratios), statistics.median(gradients)
    return ratio, 1e3 * gradient, 1e3 * ratio * gradient


def print_overhead(quick: bool) -> None:
    """The overhead at every size."""
    sizes = {"W1-small": replace(W1_SMALL, rows=20)} if quick else SIZES
    print("lbfgs | overhead beyond the gradient | ms of a gradient, ms beyond")
    for name, problem in sizes.items():
        solver = LBFGS(10**6, plateau=-1.0, tolerance=1e-30)
        ratio, gradient, beyond = overhead(problem, solver, seconds=0.2 if quick else 6.0)
        print(f"{name:>20} | {ratio:.2f} | {gradient:.3f} {beyond:.3f}", flush=True)


def descent(problem: Problem, pairs: int, *, evaluations: int) -> tuple[list[float], float]:
    """Objectives after a quarter, a half and all of the evaluations, after 200 steps of Adam; CPU ms an evaluation."""
    step = problem.step()
    for solver in (Adam(200), LBFGS(evaluations, history=pairs, plateau=-1.0, tolerance=1e-30)):
        state = solver.start(step)
        curve: list[tuple[int, float]] = []
        began = time.process_time()
        while not state["done"]:
            solver.advance(step, state)
            curve.append((state["evaluations"], state["value"]))
        spent = time.process_time() - began
    marks = (evaluations // 4, evaluations // 2, evaluations)
    return [min(v for e, v in curve if e <= mark) for mark in marks], 1e3 * spent / curve[-1][0]


def print_pairs(quick: bool) -> None:
    """Objectives and time against the number of pairs."""
    print("pairs | objective after a quarter, a half, all of the gradients | ms a gradient, all told")
    sizes = {"W1-small": replace(W1_SMALL, rows=20)} if quick else PAIR_SIZES
    for name, problem in sizes.items():
        for pairs in (3, 20) if quick else (3, 5, 8, 12, 20, 40):
            values, each = descent(problem, pairs, evaluations=40 if quick else 1200)
            print(f"{name:>20} {pairs:>3} | {' '.join(f'{v:.5f}' for v in values)} | {each:.3f}", flush=True)


PAIR_SIZES = {name: SIZES[name] for name in ("W1-small", "discovery, N = 500", "W2-small", "W1")}
