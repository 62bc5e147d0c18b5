"""Shares of resamples: certain where the bend is clear, split where two rows decide, and by blocks where rows go on."""

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from isthmus.discovery.choices import UNEVEN
from isthmus.discovery.evidence.confidence import (
    HeldOutCurve,
    bends,
    scree_share,
    start_share,
    weighted_median,
)
from minima import minimum


def losses(*, decisive: int, num_rows: int = 40) -> np.ndarray:
    """Through 0..3 dimensions: a fall at 1; a larger one at 2 that is owed to the first `decisive` rows."""
    table = np.tile(np.array([1.0, 0.5, 0.5, 0.5])[:, None], num_rows)
    table[1, :decisive] = 40.0 * num_rows / max(decisive, 1)
    return table


def share(table: np.ndarray, rank: int, *, ranks: list[int] | None = None, complete: bool = False, **how: Any) -> float:
    """Of the resamples, read by their bends."""
    read = partial(bends, ranks=ranks or list(range(len(table))), complete=complete)
    return scree_share(table, rank, read=read, **how)


def test_a_clear_bend_is_read_in_every_resample() -> None:
    assert share(losses(decisive=0), 1) == 1.0
    assert share(losses(decisive=0), 2) == 0.0


def test_a_bend_owed_to_one_row_comes_back_as_often_as_the_row() -> None:
    # a row is drawn with probability 1 - (1 - 1/n)^n = .637 for n = 40; 200 draws have a standard error of .034
    found = share(losses(decisive=1), 2)
    assert found == pytest.approx(1 - (1 - 1 / 40) ** 40, abs=4 * 0.034)
    assert found == share(losses(decisive=1), 2), "the seed fixes the resamples"


def test_neighbours_are_drawn_together_where_rows_go_on() -> None:
    # four rows of one block of ten: .651; drawn one by one .985 would have at least one of them
    assert share(losses(decisive=4), 2, together=np.arange(40) // 4) == pytest.approx(1 - 0.9**10, abs=4 * 0.034)
    assert share(losses(decisive=4), 2) > 0.9


def test_the_median_row_is_that_of_weighted_rows() -> None:
    rng = np.random.default_rng(0)
    for n in (4, 5, 41):
        values, times = rng.exponential(size=n), rng.integers(1, 4, size=n)
        assert weighted_median(values, np.ones(n)) == pytest.approx(np.median(values), rel=1e-15)
        repeated = np.repeat(values, times)
        assert weighted_median(values, np.array(times, dtype=np.float64)) == pytest.approx(
            np.median(repeated), rel=1e-15
        )
        assert n < 41 or np.median(values) != np.median(repeated)


def test_a_row_of_little_weight_decides_nothing() -> None:
    weight = np.ones(40)
    weight[0] = 1e-9
    assert share(losses(decisive=1), 2, weight=weight) == 0.0


def test_the_last_rank_can_only_be_read_where_the_curve_is_whole() -> None:
    falling = np.tile(np.array([1.0, 0.5, 0.25, 1e-5])[:, None], 40)
    assert share(falling, 3, complete=True) == 1.0
    assert share(falling, 3) == 0.0


def test_starts_are_counted_at_the_ridges_that_were_read() -> None:
    starts = {1e-2: [minimum(jacobian_rank=1)], 1e-3: [minimum(jacobian_rank=3), minimum(jacobian_rank=2)]}
    assert start_share(starts, [1e-3], 3) == 0.5
    assert start_share(starts, [1e-3, 1e-2], 3) == pytest.approx(1 / 3)


def test_a_gap_below_the_bend_does_not_hide_it_from_the_resamples() -> None:
    """A line in the errors themselves is steep at its end in logarithms, and would be read instead."""
    ranks = [*range(9), 10, 12, 15, 18, 22, 27, 33, *range(39, 45)]
    mean = 0.75 ** np.minimum(np.arange(45), 41)
    table = mean[:, None] * np.random.default_rng(0).uniform(0.8, 1.2, size=(45, 60))
    assert share(table, 41) > 0.9
    assert share(table[ranks], 41, ranks=ranks) > 0.9
    straight = np.stack([np.interp(np.arange(45), ranks, row) for row in table[ranks].T]).T
    assert share(straight, 41) < 0.1


def test_one_rank_alone_is_refused() -> None:
    with pytest.raises(ValueError, match="at least two ranks"):
        share(np.ones((1, 5)), 1)


@pytest.mark.other_types
def test_the_median_tells_loss_on_few_rows_from_noise_on_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Squared noise has a median of .455 of its mean in one direction, of .694 in two, by the tables of chi-squared."""
    rng = np.random.default_rng(0)
    few = np.where(rng.random(20_000) < 0.1, 1.0, 0.01)
    noise = [np.square(rng.normal(size=(20_000, m))).sum(1) for m in (1, 2)]
    monkeypatch.setattr(HeldOutCurve, "row_losses", lambda _: np.stack([*noise, few]))
    family: Any = SimpleNamespace(problem=SimpleNamespace(weight_held=None))
    curve = HeldOutCurve(family=family, halves={1: minimum(), 2: minimum()})
    found = curve.medians()
    assert found == pytest.approx({0: 0.455, 1: 0.694, 2: 0.01 / 0.109}, rel=0.05)
    assert found[2] < UNEVEN < found[0]


@pytest.mark.other_types
def test_how_far_beyond_chance_is_counted_in_paired_standard_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    constant = rng.exponential(size=400)
    table = np.stack([constant, constant - 0.05 + 0.3 * rng.normal(size=400), constant])
    monkeypatch.setattr(HeldOutCurve, "row_losses", lambda _: table)
    family: Any = SimpleNamespace(problem=SimpleNamespace(weight_held=None, together_held=None))
    found = HeldOutCurve(family=family, halves={1: minimum(), 2: minimum()}).beyond_chance()
    off = table[0] - table[1]
    assert found == {0: 0.0, 1: pytest.approx(off.mean() / (off.std() / 20)), 2: 0.0}
    assert off.mean() / (constant.std() / 20) < 0.5 * found[1], "what is hard about a row is no noise of the difference"
    family.problem.together_held = np.arange(400) // 40
    grouped = HeldOutCurve(family=family, halves={1: minimum(), 2: minimum()}).beyond_chance()
    assert grouped[1] <= found[1]
