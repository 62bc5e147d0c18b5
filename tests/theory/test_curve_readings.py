"""Ranks read off curves whose answer is known by construction."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.theory.curve_readings import objective_reading, running_minimum, scree_reading

KNEE = [1.0, 0.5, 0.3, 0.1, 0.1002, 0.1, 0.0998]  # falls up to 3, flat to a fraction of a per cent after it


def test_the_knee_is_read_with_its_sharpness() -> None:
    reading = objective_reading(KNEE)
    assert reading.rank == 3
    assert reading.sharpness == pytest.approx(math.log(3))


def test_a_curve_that_keeps_falling_has_its_rank_at_the_end() -> None:
    assert objective_reading([1.0, 0.5, 0.25, 0.125]).rank == 3


def test_a_flat_curve_has_rank_zero_and_nothing_below() -> None:
    reading = objective_reading([1.0, 1.0, 0.999])
    assert reading.rank == 0
    assert math.isinf(reading.sharpness)


def test_slack_decides_what_counts_as_flat() -> None:
    assert objective_reading([1.0, 0.5, 0.49], slack=1.01).rank == 2
    assert objective_reading([1.0, 0.5, 0.49], slack=1.03).rank == 1


@given(st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=12))
def test_the_reading_is_the_least_that_is_good_enough(values: list[float]) -> None:
    best = running_minimum(values)
    rank = objective_reading(values).rank
    assert best[rank] <= 1.01 * best[-1]
    assert all(b > 1.01 * best[-1] for b in best[:rank])


@given(st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=12), st.floats(1e-3, 1e3))
def test_readings_do_not_depend_on_units(values: list[float], unit: float) -> None:
    scaled = [unit * v for v in values]
    # at the edge of the slack rounding may decide either way: shift it off the edge
    assert objective_reading(scaled, slack=1.0100001).rank in {
        objective_reading(values, slack=s).rank for s in (1.01, 1.0100001, 1.0100002)
    }
    assert scree_reading(scaled).sharpness == pytest.approx(scree_reading(values).sharpness, abs=1e-9)


def test_the_scree_bends_where_the_error_stops_falling() -> None:
    reading = scree_reading([1.0, 0.5, 0.25, 0.01, 0.0099, 0.0098])
    assert reading.rank == 3
    assert reading.sharpness > 2


def test_an_even_fall_has_no_margin() -> None:
    assert scree_reading([2.0**-k for k in range(8)]).sharpness == pytest.approx(0, abs=1e-12)


def test_a_whole_curve_may_fall_to_its_end() -> None:
    falling = [1.0, 0.5, 0.25, 1e-5]
    assert scree_reading(falling, complete=True).rank == 3
    assert scree_reading(falling).rank != 3, "more dimensions might have made it fall on"
    flat = [1.0, 0.01, 0.0099, 0.0098]
    assert scree_reading(flat, complete=True).rank == 1


@pytest.mark.parametrize("bad", [[1.0], [1.0, 0.0], [1.0, -1.0], [1.0, math.nan]])
def test_objectives_that_cannot_be_are_refused(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="at least two positive"):
        objective_reading(bad)
