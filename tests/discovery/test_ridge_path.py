"""The walk along the ridges ends with the least error between two larger ones, whatever the errors are."""

import math
from itertools import permutations

import pytest

from isthmus.discovery.ridge_path import next_ridge


def walked(errors: list[float], *, patience: int = 1) -> list[int]:
    known: dict[int, float] = {}
    while (i := next_ridge(known, len(errors), patience=patience)) is not None:
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


def test_ridges_at_which_everything_diverged_are_walked_past() -> None:
    assert walked([3.0, 2.0, math.inf, 1.0]) == [2, 3]
    assert walked([1.0, math.inf, math.inf, math.inf]) == [2, 3, 1, 0]
    assert walked([math.inf] * 4) == [2, 3, 1, 0]
