"""The walk along the ridges ends with the least error between two larger ones, whatever the errors are."""

import math
from itertools import permutations
from typing import Any

import pytest

from isthmus.discovery.choices import choose_ridge, next_ridge, ridges_at_once, ridges_beside


def walked(errors: list[float], *, patience: int = 1, useless: float = math.inf) -> list[int]:
    known: dict[int, float] = {}
    while (i := next_ridge(known, len(errors), patience=patience, useless=useless)) is not None:
        assert i not in known
        known[i] = errors[i]
    return list(known)


@pytest.mark.parametrize(
    ("errors", "order"),
    [
        ([4.0, 3.0, 1.0, 2.0], [2, 3, 1]),
        ([4.0, 1.0, 2.0, 3.0], [2, 3, 1, 0]),
        ([1.0, 2.0, 3.0, 4.0], [2, 3, 1, 0]),
        ([4.0, 3.0, 2.0, 1.0], [2, 3]),
        ([6.0, 5.0, 2.0, 1.0, 3.0, 4.0], [3, 4, 2]),
        ([5.0], [0]),
        ([2.0, 1.0], [1, 0]),
        ([1.0, 2.0, 3.0], [1, 2, 0]),
        ([1.0, 2.0, 2.0, 2.0], [2, 3, 1, 0]),  # equal errors: the larger ridge counts as the better one
    ],
)
def test_it_begins_in_the_middle_and_goes_where_the_error_falls(errors: list[float], order: list[int]) -> None:
    assert walked(errors) == order


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("patience", [1, 2])
def test_the_best_ridge_has_its_neighbours(count: int, patience: int) -> None:
    for errors in permutations(map(float, range(count))):
        tried = walked(list(errors), patience=patience)
        best = min(tried, key=lambda i: errors[i])
        near = {i for i in range(best - patience, best + patience + 1) if 0 <= i < count}
        assert near <= set(tried)
        assert sorted(tried) == list(range(min(tried), max(tried) + 1))


@pytest.mark.parametrize("least", range(6))
def test_errors_that_fall_and_rise_once_lead_to_the_least(least: int) -> None:
    errors = [abs(i - least) + 1.0 for i in range(6)]
    assert min(walked(errors), key=lambda i: errors[i]) == least


@pytest.mark.parametrize(
    ("count", "workers", "expected"),
    [(6, 1, [3]), (6, 2, [3, 4]), (6, 4, [3, 4]), (6, 6, [3, 4, 2]), (6, 64, [3, 4, 2]), (2, 2, [1, 0]), (1, 8, [0])],
)
def test_ridges_are_handed_out_together_where_workers_stand_idle(count: int, workers: int, expected: list[int]) -> None:
    assert ridges_at_once(count, patience=1, starts=2, workers=workers) == expected


def test_beside_the_ridges_that_are_known_lie_those_at_their_ends() -> None:
    path = [0.1, 0.03, 0.01, 0.003, 0.001]
    assert ridges_beside(path, [0.01]) == [0.003, 0.03]
    assert ridges_beside(path, [0.003, 0.01, 0.001]) == [0.03]
    assert ridges_beside(path, path) == []


def test_ridges_at_which_everything_diverged_are_walked_past() -> None:
    assert walked([3.0, 2.0, math.inf, 1.0]) == [2, 3]
    assert walked([1.0, math.inf, math.inf, math.inf]) == [2, 3, 1, 0]
    assert walked([math.inf] * 4) == [2, 3, 1, 0]


def test_no_better_than_the_constant_all_larger_ridges_are_tried() -> None:
    """Errors of classes that were learnt by heart go up and down; the way out is a larger ridge."""
    errors = [1.04, 0.8, 2.0, 8.6, 3.3, 13.6]
    assert walked(errors, useless=1.0) == [3, 4, 5, 2, 1, 0]
    assert walked(errors) == [3, 4, 5]
    assert walked([1.1, 1.05, 0.9, 2.0, 3.0], useless=1.0) == [2, 3, 1]  # it is better: its neighbours are enough
    assert walked([1.0] * 4, useless=1.0) == [2, 3, 1, 0]  # noise alone: equal to the constant is no better


CONSTANT: dict[str, Any] = {"constant_error": 1.0, "constant_objective": 1.25}


def test_a_ridge_at_which_the_constant_is_the_least_minimum_is_passed_over() -> None:
    errors, objectives = {0.1: 1.05, 0.03: 0.32, 0.01: 0.33, 0.003: 0.4}, {0.1: 1.3, 0.03: 1.3, 0.01: 0.5, 0.003: 0.2}
    assert choose_ridge(errors, objectives, **CONSTANT) == 0.01
    assert choose_ridge(errors, objectives | {0.03: 1.2}, **CONSTANT) == 0.03


@pytest.mark.parametrize(
    ("errors", "objectives", "chosen"),
    [
        ({0.1: 1.0, 0.03: 1.2}, {0.1: 1.25, 0.03: 1.0}, 0.1),  # noise: the rows are learnt by heart at 0.03
        ({0.1: 1.0, 0.03: 0.97}, {0.1: 1.25, 0.03: 1.3}, 0.03),  # next to nothing is predicted anywhere
        ({0.1: 0.4, 0.03: 0.3}, {0.1: 1.4, 0.03: 1.3}, 0.03),  # too large, all of them
        ({0.1: 0.5, 0.03: 0.56}, {0.1: 1.3, 0.03: 0.9}, 0.1),  # the other predicts less
    ],
)
def test_without_a_better_one_the_least_error_decides(
    errors: dict[float, float], objectives: dict[float, float], chosen: float
) -> None:
    assert choose_ridge(errors, objectives, **CONSTANT) == chosen
