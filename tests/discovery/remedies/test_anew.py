"""Whose columns may be scaled together: names that differ in numbers alone, variances that differ, many of them."""

import numpy as np
import pytest
import torch

from isthmus.discovery.data.problem import Problem, pose
from isthmus.discovery.data.scaling import Standardiser
from isthmus.discovery.remedies.anew import are_numbered, are_unequal
from isthmus.training.losses import SQUARED


def autoencoded(deviations: list[float]) -> Problem:
    x = np.random.default_rng(0).normal(size=(50, len(deviations))) * deviations
    inputs = Standardiser.of(x)
    held = np.arange(50) % 5 == 0
    return pose(x, x, held, loss=SQUARED, inputs=inputs, targets=Standardiser.of(x, total=True))


@pytest.mark.parametrize("names", [["x1", "x2", "x10"], ["pixel 0,0", "pixel 0,1"], ["0", "1"]])
def test_names_of_one_kind_differ_in_their_numbers(names: list[str]) -> None:
    assert are_numbered(names)


@pytest.mark.parametrize("names", [["x1", "y1"], ["length", "mass"], ["p1", "p2", "temperature"]])
def test_other_names_are_of_several_kinds(names: list[str]) -> None:
    assert not are_numbered(names)


def test_pixels_of_which_many_vary_and_some_hardly_do_are_unequal() -> None:
    assert are_unequal(autoencoded([1.0] * 6 + [0.05] * 10))


@pytest.mark.parametrize(
    "deviations",
    [[1.0] * 16, [1.0, 0.01], [1000.0] + [1.0] * 15],
    ids=["equal", "few", "one column in other units"],
)
def test_equal_few_or_ruled_by_one_column_they_stay_as_they_are(deviations: list[float]) -> None:
    assert not are_unequal(autoencoded(deviations))


def test_the_rule_is_of_the_columns_and_not_of_their_unit() -> None:
    problem = autoencoded([1e-200] * 6 + [1e-202] * 10)
    assert are_unequal(problem)
    assert torch.isfinite(problem.x).all()
