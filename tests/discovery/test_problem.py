"""What every stage of a discovery asks of its data."""

import math

import numpy as np
import pytest

from isthmus.discovery.problem import Problem, pose
from isthmus.discovery.scaling import Standardiser
from isthmus.training.losses import Loss

X = np.random.default_rng(0).normal(size=(60, 3))
HELD = np.arange(60) % 5 == 2


def classes(y: np.ndarray) -> Problem:
    return pose(X, y, HELD, loss=Loss.CROSS_ENTROPY, inputs=Standardiser.of(X), targets=None)


def test_the_best_constant_of_classes_has_their_entropy() -> None:
    y = np.zeros(60)
    y[~HELD] = np.arange(48) % 2
    assert classes(y).constant_loss() == pytest.approx(math.log(2))


def test_rows_of_one_class_alone_leave_a_loss_that_has_a_logarithm() -> None:
    """The other class lies among the held-out rows alone; weights that add up to 1 + 3e-8 gave -3e-8."""
    y = np.zeros(60)
    y[np.flatnonzero(HELD)[0]] = 1
    loss = classes(y).constant_loss()
    assert 0 < loss < 1e-6


def test_targets_that_vary_among_held_out_rows_alone_leave_one_too() -> None:
    y = np.where(HELD, 1.0, 0.0)[:, None] * X[:, :1]
    targets = Standardiser.of(y, total=True)
    problem = pose(X, y, HELD, loss=Loss.SQUARED, inputs=Standardiser.of(X), targets=targets)
    assert 0 < problem.constant_loss() < 1e-6
