"""How many dimensions rows fill around each of them."""

import math

import numpy as np
import pytest

from isthmus import tasks
from isthmus.discovery.data.problem import Problem, pose
from isthmus.discovery.data.scaling import Standardiser
from isthmus.discovery.depth.between_rows import local_dimension
from isthmus.training.losses import SQUARED


def posed(x: np.ndarray) -> Problem:
    inputs, targets = Standardiser.of(x), Standardiser.of(x, total=True)
    return pose(x, x, np.arange(len(x)) % 5 == 2, loss=SQUARED, inputs=inputs, targets=targets)


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (tasks.circle().x, 1),
        (tasks.torus().x, 2),
        (tasks.benchmark_manifold("M11_Moebius").x, 2),
        (np.random.default_rng(0).uniform(size=(1000, 3)), 3),
    ],
    ids=["circle", "torus", "twisted band", "cube"],
)
def test_rows_fill_the_dimension_of_their_manifold_and_not_of_the_space_around_it(x: np.ndarray, expected: int) -> None:
    assert local_dimension(posed(x)) == pytest.approx(expected, abs=0.3)


def test_repeated_rows_count_once_and_two_rows_say_nothing() -> None:
    x = tasks.circle().x
    assert local_dimension(posed(np.concatenate([x, x]))) == pytest.approx(local_dimension(posed(x)), rel=0.1)
    assert math.isnan(local_dimension(posed(np.array([[0.0, 1.0], [1.0, 0.0]] * 5))))
