"""Question: how many gradient evaluations does `fit` need to reach the lower branch that the papers' recipe misses?

Small reference problem: L = 9, width 64, 256 samples, true rank 5, E|y|^2 = 1, ridge 0.05/9; five initialisations, one
start each. The papers' recipe is Adam at 1e-3 for 20,000 steps, then gradient descent for 10,000.

    python benchmarks/training.py [--quick]

Answer: 3,204, or 0.107 of the recipe's 30,000; each of three starts measured ends at rank 5 with an objective of 0.3489
to 0.3498, within 1 % of 0.3474 (one core of a busy Intel Xeon, torch 2.13.0 CPU, November 2026).
"""

import argparse
import time

import torch

from isthmus import FullyConnected, fit, tasks
from isthmus.training.losses import DataLoss, Loss
from isthmus.training.moves import middle_rank
from isthmus.training.solvers import Adam
from isthmus.training.steps import FullyConnectedStep, Step

RIDGE, LOWER_BRANCH = 0.05 / 9, 0.3474
RECIPE = (20_000, 10_000)
DESCENT_RATE = 1e-4  # 1e-3 diverges here: the network is sharper than 2 / 1e-3


def network(seed: int) -> FullyConnected:
    """The network of the reference problem."""
    return FullyConnected(50, 50, width=64, depth=9, seed=seed)


def recipe(step: Step, adam_steps: int, descent_steps: int) -> float:
    """The papers' recipe; returns the objective."""
    solver = Adam(adam_steps, rate=1e-3, decay_from=1.0)
    state = solver.start(step)
    while not state["done"]:
        solver.advance(step, state)
    for _ in range(descent_steps):
        step()
        step.theta.add_(step.gradient, alpha=-DESCENT_RATE)
    return step()


def main() -> None:
    """Run both on each initialisation and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one initialisation, a twentieth of the recipe")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    steps = [n // 20 for n in RECIPE] if quick else RECIPE
    task = tasks.teacher_reference()
    x, y = (torch.from_numpy(a).float() for a in (task.x, task.target))
    print("start |   fit: objective rank evaluations seconds | recipe: objective rank evaluations seconds | ratio")
    reached, ratios = 0, list[float]()
    for seed in range(1 if quick else 5):
        found = fit(network(seed), x, y, ridge=RIDGE)
        other = network(seed)
        began = time.perf_counter()
        objective = recipe(FullyConnectedStep(other, x, DataLoss(Loss.SQUARED, y), RIDGE), *steps)
        seconds = time.perf_counter() - began
        ratios.append(found.gradient_evaluations / sum(steps))
        reached += found.rank == 5 and found.objective <= 1.01 * LOWER_BRANCH
        print(
            f"{seed:>5} | {found.objective:>16.5f} {found.rank:>4} {found.gradient_evaluations:>11} "
            f"{found.seconds:>7.1f} "
            f"| {objective:>17.5f} {middle_rank(other):>4} {sum(steps):>11} {seconds:>7.1f} | {ratios[-1]:.4f}",
            flush=True,
        )
    most = max(ratios)
    print(f"{reached} starts within 1 % of {LOWER_BRANCH} at rank 5; evaluations over the recipe's: {most:.4f} at most")


if __name__ == "__main__":
    main()
