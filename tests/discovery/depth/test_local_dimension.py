"""How many dimensions rows fill around each of them."""

import math

import numpy as np
import pytest
import torch

from isthmus import tasks
from isthmus.discovery.data.problem import Problem, pose
from isthmus.discovery.data.scaling import Standardiser
from isthmus.discovery.depth.between_rows import filled_dimension, local_dimension
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


@pytest.mark.parametrize("columns", range(1, 9))
def test_a_cloud_fills_all_its_columns_whatever_their_spread_and_number(columns: int) -> None:
    """Neighbours alone would say 6.5 of 8."""
    rng = np.random.default_rng(columns)
    rows = rng.uniform(-1, 1, size=(400, columns)) * 10.0 ** -rng.uniform(0, 1, size=columns)
    assert filled_dimension(torch.from_numpy(rows)) == pytest.approx(columns, rel=0.12)
    assert filled_dimension(1e9 * torch.from_numpy(rows)) == pytest.approx(filled_dimension(torch.from_numpy(rows)))


@pytest.mark.parametrize("columns", [2, 3, 4])
def test_a_curved_surface_fills_one_dimension_less(columns: int) -> None:
    flat = np.random.default_rng(columns).normal(size=(600, columns - 1))
    bent = np.column_stack([flat, (flat**2).sum(1)])
    assert filled_dimension(torch.from_numpy(bent)) == pytest.approx(columns - 1, rel=0.1)


def test_too_few_distinct_rows_fill_nothing_that_is_known() -> None:
    rows = torch.from_numpy(np.random.default_rng(0).normal(size=(20, 2)))
    assert math.isnan(filled_dimension(torch.cat([rows, rows, rows])))
