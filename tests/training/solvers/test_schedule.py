"""The schedule of the papers: its two phases, one after the other, and what they end at."""

import torch

from isthmus import FullyConnected, fit, tasks
from isthmus.training.solvers import Adam, GradientDescent, papers_schedule


def test_the_papers_train_with_adam_and_then_tighten_by_descent() -> None:
    adam, descent = papers_schedule()
    assert isinstance(adam, Adam)
    assert isinstance(descent, GradientDescent)
    assert (adam.steps, descent.steps) == (20_000, 10_000)
    assert adam.rate > descent.rate


def test_it_is_a_schedule_like_any_other() -> None:
    task = tasks.composed_teacher((4, 1, 3), num_samples=60, seed=0)
    x, y = torch.from_numpy(task.x), torch.from_numpy(task.target)

    def trained(schedule: tuple[Adam | GradientDescent, ...]) -> float:
        network = FullyConnected(4, 3, width=10, depth=3, seed=0, dtype=torch.float64)
        return fit(network, x, y, ridge=0.01, solver=schedule).objective

    adam, descent = papers_schedule(400, 200)
    assert isinstance(adam, Adam)
    assert isinstance(descent, GradientDescent)
    both, first = trained((adam, descent)), trained((adam,))
    assert both < first < trained((Adam(40, rate=1e-3, decay_from=1.0),))
    found = fit(FullyConnected(4, 3, width=10, depth=3, seed=0).double(), x, y, ridge=0.01,
                solver=papers_schedule(400, 200))  # fmt: skip
    assert found.gradient_evaluations >= 600
