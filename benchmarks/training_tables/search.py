"""How many gradients `fit` needs to pass the final objective of the papers' recipe, and where both end.

The recipe is Adam at 1e-3 for 20,000 steps, then gradient descent for 10,000.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from isthmus import FitResult, FullyConnected, fit
from isthmus.training.fitting import without_denormals
from isthmus.training.moves import middle_rank
from isthmus.training.solvers.schedule import Schedule, papers_schedule
from isthmus.training.solvers.solver import LBFGS, Adam
from training_tables.problems import W1, W1_SMALL, W2, W2_SMALL, Problem

RECIPE = (20_000, 10_000)
PLAIN: Schedule = (Adam(200, rate=1e-3), LBFGS(2800))  # leaky: the preconditioned solver factors (20 N)^2 numbers


@dataclass(frozen=True)
class End:
    """Where a training ended: objective, rank of the middle (None for leaky networks), gradients, CPU seconds."""

    objective: float
    rank: int | None
    gradients: int
    seconds: float


@without_denormals()  # as `fit` does: 20,000 steps of Adam on W1 take several times as long with them
def recipe(problem: Problem, seed: int, scale: int = 1) -> End:
    """The papers' recipe, or one part in `scale` of it."""
    began, step = time.process_time(), problem.step(seed)
    adam, descent = (count // scale for count in RECIPE)
    for solver in papers_schedule(adam, descent):
        state = solver.start(step)
        while not state["done"]:
            solver.advance(step, state)
    network = step.network
    rank = middle_rank(network) if isinstance(network, FullyConnected) else None
    return End(step(), rank, adam + descent, time.process_time() - began)


def ours(problem: Problem, seed: int, scale: int = 1) -> tuple[End, FitResult]:
    """`fit` with its default schedule; plain L-BFGS for leaky networks."""
    began = time.process_time()
    solver: Schedule | None = None if problem.leak is None else PLAIN
    if scale > 1:
        solver = (Adam(2000 // scale), LBFGS(2000 // scale))
    found = fit(problem.network(seed), *problem.data(), ridge=problem.ridge, solver=solver)
    return End(found.objective, found.rank, found.gradient_evaluations, time.process_time() - began), found


def passed(found: FitResult, objective: float) -> int | None:
    """Gradients after which the objective was at most this, if ever."""
    curve = found.history
    below = np.flatnonzero(curve.objective.to_numpy() <= objective)
    return int(curve.evaluation.to_numpy()[below[0]]) if len(below) else None


def print_search(name: str, problem: Problem, quick: bool) -> None:
    """Five initialisations, one start each."""
    scale = 100 if quick else 1
    print(
        f"{name} | start | recipe: objective rank CPU s | fit: objective rank gradients CPU s "
        "| gradients to pass the recipe, of its own | lower by"
    )
    for seed in range(1 if quick else 5):
        other = recipe(problem, seed, scale)
        mine, found = ours(problem, seed, scale)
        count = passed(found, other.objective)
        share = "never" if count is None else f"{count} {count / other.gradients:.3f}"
        print(
            f"{name} | {seed} | {other.objective:.5f} {other.rank} {other.seconds:.0f} "
            f"| {mine.objective:.5f} {mine.rank} {mine.gradients} {mine.seconds:.0f} "
            f"| {share} | {100 * (1 - mine.objective / other.objective):.2f} %",
            flush=True,
        )


SMALLEST = {"W1": Problem(5, 16, 60), "W2": Problem(5, 24, 60, leak=2.0)}


def searches() -> dict[str, Callable[[bool], None]]:
    """One table for each reference problem, by name."""
    sizes = {"W1": W1, "W1-small": W1_SMALL, "W2": W2, "W2-small": W2_SMALL}

    def table(name: str) -> Callable[[bool], None]:
        return lambda quick: print_search(name, SMALLEST[name[:2]] if quick else sizes[name], quick)

    return {name: table(name) for name in sizes}
