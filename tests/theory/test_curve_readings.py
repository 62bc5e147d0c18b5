"""Ranks read off curves whose answer is known by construction."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.theory.comparison import by_ratio, in_nats
from isthmus.theory.curve_readings import (
    PLATEAU,
    CurveReading,
    Gain,
    RowLosses,
    gain_beyond,
    objective_reading,
    plateau_reading,
    running_minimum,
    scree_reading,
    with_gaps_filled,
)

SLACK = 1.01
KNEE = [1.0, 0.5, 0.3, 0.1, 0.1002, 0.1, 0.0998]  # falls up to 3, flat to a fraction of a per cent after it


def test_the_knee_is_read_with_its_sharpness() -> None:
    reading = objective_reading(KNEE, slack=SLACK)
    assert reading.rank == 3
    assert reading.sharpness == pytest.approx(math.log(3))


def test_a_curve_that_keeps_falling_has_its_rank_at_the_end() -> None:
    assert objective_reading([1.0, 0.5, 0.25, 0.125], slack=SLACK).rank == 3


def test_a_flat_curve_has_rank_zero_and_nothing_below() -> None:
    reading = objective_reading([1.0, 1.0, 0.999], slack=SLACK)
    assert reading.rank == 0
    assert math.isinf(reading.sharpness)


def test_slack_decides_what_counts_as_flat() -> None:
    assert objective_reading([1.0, 0.5, 0.49], slack=1.01).rank == 2
    assert objective_reading([1.0, 0.5, 0.49], slack=1.03).rank == 1


@given(st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=12))
def test_the_reading_is_the_least_that_is_good_enough(values: list[float]) -> None:
    best = running_minimum(values)
    rank = objective_reading(values, slack=SLACK).rank
    assert best[rank] <= SLACK * best[-1]
    assert all(b > SLACK * best[-1] for b in best[:rank])


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
        objective_reading(bad, slack=SLACK)


def test_losses_in_nats_are_read_by_differences_wherever_their_zero_lies() -> None:
    """A tenth of a nat is worth as much as a fifth in the logarithm of a squared error."""
    falls = np.array([0.4, 0.25, 0.003, 0.002, 0.0015, 0.001])
    squared, nats = np.exp(2 * falls), falls
    read = objective_reading(list(squared), slack=SLACK)
    for zero in (1e-3, 0.1, 3.0, 50.0):
        shifted = list(nats + zero)
        found = objective_reading(shifted, slack=SLACK, compared=in_nats)
        assert (found.rank, found.sharpness) == (read.rank, pytest.approx(read.sharpness))
        bend, here = scree_reading(list(squared)), scree_reading(shifted, compared=in_nats)
        assert (here.rank, here.sharpness) == (bend.rank, pytest.approx(bend.sharpness))
    assert objective_reading(list(nats + 50.0), slack=SLACK).rank == 0, "by ratios, which depend on where 0 lies"
    assert in_nats.raised(-0.3, SLACK) > -0.3, "of losses below 0 too"


def test_losses_that_were_divided_are_compared_as_they_were_before() -> None:
    """Errors of a discovery are relative to that of the best constant."""
    unit = 1.7
    curves = losses([1.0, 0.8, 0.76, 0.7601], 90, own=0.01)
    whole = plateau_reading(curves, ranks=range(4), compared=in_nats)
    divided = plateau_reading(curves / unit, ranks=range(4), compared=in_nats.of_errors(unit))
    assert (divided.rank, divided.sharpness) == (whole.rank, pytest.approx(whole.sharpness))
    assert (whole.rank, whole.sharpness) == (2, pytest.approx(0.08))
    assert plateau_reading(curves + 3.0, ranks=range(4), compared=in_nats).rank == 2
    assert plateau_reading(curves + 3.0, ranks=range(4)).rank == 1, "a share of an error with an offset"
    assert by_ratio.of_errors(unit) is by_ratio
    compared = in_nats.of_errors(unit)
    assert compared.rise(compared.raised(0.3, 1.1), 0.3) == pytest.approx(math.log(1.1))
    assert with_gaps_filled({0: 3.0, 1: 2.0, 3: -1.0}, in_nats) == [3.0, 2.0, 0.5, -1.0]


def test_gaps_are_filled_by_lines_in_logarithms() -> None:
    assert with_gaps_filled({0: 5.0, 1: 8.0, 4: 1.0, 5: 1.0}) == pytest.approx([5, 8, 4, 2, 1, 1])
    assert with_gaps_filled({0: 5.0, 3: 1.0}) == [5, 5, 5, 1], "what fewer dimensions could do is not known"
    assert with_gaps_filled({0: 1.0, 1: 1e-3, 3: 0.0}) == [1.0, 1e-3, 1e-3, 0.0]
    with pytest.raises(ValueError, match="needs the value at rank 0"):
        with_gaps_filled({1: 0.5})


def falling_curve(rng: np.random.Generator) -> list[float]:
    """Errors that fall at every rank, at two or three of them by much."""
    drops = rng.exponential(0.05, size=40)
    drops[rng.choice(40, size=int(rng.integers(2, 4)), replace=False)] += rng.uniform(0.2, 1.5)
    return [1.0, *np.exp(-np.cumsum(drops)).tolist()]


def test_what_a_gap_may_hide_is_no_margin() -> None:
    """Where the margin is positive, the curve with all its ranks reads the same; it need not without what gaps hide."""
    rng = np.random.default_rng(0)
    clear, wrong = 0, 0
    for _ in range(400):
        whole = falling_curve(rng)
        ranks = {0, 40, *rng.choice(40, size=18, replace=False).tolist()}
        while True:  # as the search does: what is read, and its neighbours, are measured
            filled = with_gaps_filled({rank: whole[rank] for rank in ranks})
            read = scree_reading(filled).rank
            if (around := {read - 1, read, read + 1}) <= ranks:
                break
            ranks |= around
        truth = scree_reading(whole)
        if scree_reading(filled, measured=ranks).sharpness > 1e-9:
            clear += 1
            assert truth.rank == read
        wrong += truth.rank != read and scree_reading(filled).sharpness > 0.2
    assert clear > 20
    assert wrong > 20, "a margin that ignores gaps is believed where it should not be"


def test_a_curve_without_gaps_hides_nothing() -> None:
    whole = falling_curve(np.random.default_rng(1))
    assert scree_reading(whole, measured=range(41)) == scree_reading(whole)


def test_errors_that_no_dimension_lowers_have_rank_zero() -> None:
    """With one dimension at most the curve could read nothing else than 1, whatever it does."""
    assert scree_reading([1.0, 1.2], complete=True) == CurveReading(0, 0.0)
    assert scree_reading([1.0, 1.0]) == CurveReading(0, 0.0)
    assert scree_reading([1.0, 1.2, 1.1]).rank == 0
    assert scree_reading([1.0, 0.9], complete=True).rank == 1
    assert scree_reading([1.0, 1.2, 0.9, 0.9]).rank == 2


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_rounding_lowers_no_error(unit: float) -> None:
    """The same losses summed in another order differ by a last digit."""
    assert scree_reading([unit, np.nextafter(unit, 0), unit]) == CurveReading(0, 0.0)
    assert scree_reading([unit, unit * (1 - 1e-9), unit]).rank == 1


def losses(errors: list[float], n: int, *, shared: float = 0.0, own: float = 0.0, seed: int = 0) -> np.ndarray:
    """Losses of n rows through 0, 1, ... dimensions of these means, with noise that is shared by all curves or not."""
    rng = np.random.default_rng(seed)
    noise = shared * rng.exponential(size=n) + own * rng.normal(size=(len(errors), n))
    return np.array(errors)[:, None] + noise - noise.mean(axis=-1, keepdims=True)


def test_a_plateau_begins_where_no_more_dimensions_help() -> None:
    """The largest bend of this curve is at 1, though the error falls by half again and again."""
    errors = [1.0, 0.1, 0.05, 0.025, 0.0251, 0.0249]
    found = plateau_reading(losses(errors, 50), ranks=range(6))
    assert (found.rank, found.sharpness) == (3, pytest.approx(math.log(2)))
    assert scree_reading(errors).rank == 1


def test_what_is_hard_about_a_row_hides_nothing_and_noise_of_each_curve_does() -> None:
    errors = [1.0, 0.5, 0.42, 0.42]
    shared = losses(errors, 60, shared=3.0)
    assert plateau_reading(shared, ranks=range(4)).rank == 2
    assert shared[1].std() / 60**0.5 > 0.2, "the same noise, not paired, would hide the second dimension"
    assert plateau_reading(losses(errors, 60, own=1.0), ranks=range(4)).rank == 1


def test_a_plateau_of_ranks_with_gaps_and_of_weighted_rows() -> None:
    errors = [1.0, 0.5, 0.1, 0.1]
    assert plateau_reading(losses(errors, 40), ranks=[0, 1, 4, 9]).rank == 4
    rows = np.where(np.arange(40) < 20, np.array(errors)[:, None], np.array([1.0, 0.1, 0.1, 0.1])[:, None])
    weight = np.where(np.arange(40) < 20, 0.0, 2.0)
    assert plateau_reading(rows, ranks=range(4)).rank == 2
    assert plateau_reading(rows, ranks=range(4), weight=weight).rank == 1


def test_what_more_dimensions_save_is_told_with_its_noise_row_by_row() -> None:
    table = losses([0.5, 0.42, 0.45], 60, shared=3.0, own=0.2)
    networks = [RowLosses(1, 0.1, table[0]), RowLosses(3, 0.1, table[2]), RowLosses(2, 0.3, table[1])]
    found = gain_beyond(1, networks)
    assert found is not None
    assert found.ridge == 0.3
    assert (found.rank, found.error, found.saved) == (2, pytest.approx(0.42), pytest.approx(0.08))
    assert found.noise == pytest.approx((table[0] - table[1]).std() / 60**0.5)
    assert found.noise < 0.1 < table[0].std() / 60**0.5, "what is hard about a row is no noise of the difference"
    weight = np.where(np.arange(60) < 30, 0.0, 5.0)
    half = gain_beyond(1, [RowLosses(one.rank, 0.1, one.values[30:]) for one in networks[::2]])
    weighted = gain_beyond(1, networks[::2], weight=weight)
    assert half is not None
    assert weighted is not None
    assert weighted.noise == pytest.approx(half.noise)


def test_what_another_ridge_saves_is_no_gain_of_dimensions() -> None:
    table = losses([0.5, 0.42, 0.41], 60, shared=3.0, own=0.2)
    networks = [RowLosses(2, 0.1, table[0]), RowLosses(3, 0.3, table[1])]
    alone, fair = (gain_beyond(2, [*networks, *more]) for more in ([], [RowLosses(2, 0.3, table[2])]))
    assert alone is not None
    assert fair is not None
    assert (alone.saved, fair.saved) == (pytest.approx(0.08), pytest.approx(-0.01))
    assert gain_beyond(3, networks) is None
    assert gain_beyond(1, networks) is None


def test_a_gain_counts_where_it_is_more_than_training_leaves_whatever_its_noise() -> None:
    small, large = Gain(2, 1.0, PLATEAU - 1.001, 0.0, 0.1), Gain(2, 1.0, PLATEAU - 0.999, 9.0, 0.1)
    assert [small.counts(), large.counts()] == [False, True]
    nats = math.log(PLATEAU) / 2
    assert not Gain(2, 1.0, 0.99 * nats, 0.0, 0.1).counts(in_nats)
    assert Gain(2, 50.0, 1.01 * nats, 0.0, 0.1).counts(in_nats), "wherever their zero lies"
    assert not Gain(2, 1.0, -0.3, 0.1, 0.1).counts()


def test_no_plateau_below_the_constant_reads_0() -> None:
    assert plateau_reading(losses([1.0, 1.2, 1.1], 30), ranks=range(3)) == CurveReading(0, 0.0)
    assert plateau_reading(np.array([[1.0], [0.1]]), ranks=[0, 1]) == CurveReading(0, 0.0), "one row has no error"
    for wrong, ranks in ((np.ones((2, 0)), [0, 1]), (np.ones((1, 9)), [0]), (np.ones((2, 9)), [0, 1, 2])):
        with pytest.raises(ValueError, match="a row of losses for each rank"):
            plateau_reading(wrong, ranks=ranks)


@given(st.floats(0, 1e300), st.floats(0, 1e300))
def test_losses_of_0_and_all_others_are_compared_and_said(above: float, below: float) -> None:
    """Classes that are told apart exactly leave a loss of 0."""
    rise = by_ratio.rise(above, below)
    assert by_ratio.said(rise)
    a, b = max(above, 1e-300), max(below, 1e-300)
    assert rise == pytest.approx(math.log(a) - math.log(b), abs=1e-9, rel=1e-9)


def test_factors_are_written_out() -> None:
    told = {2.04: "2", 12.34: "12", 99.4: "99", 139.2: "139", 1234.5: "1.23e+03"}
    assert {x: by_ratio.said(math.log(x)).removeprefix("a factor of ") for x in told} == told
