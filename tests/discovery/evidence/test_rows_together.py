"""Rows of one group, or of one stretch of a series, are off together: many of them say no more than one.

The law of all statistics over rows: each row repeated, its copies in one group, changes nothing. Without groups, the
control, the copies pass for rows of their own.
"""

from functools import partial

import numpy as np
import pytest
import torch

from isthmus.discovery.accuracy import read
from isthmus.discovery.data.checking import checked_data
from isthmus.discovery.data.problem import Problem
from isthmus.discovery.data.sample import Sample
from isthmus.discovery.data.splitting import STRETCHES, stretches
from isthmus.discovery.evidence.confidence import scree_share
from isthmus.discovery.kinds.connected import Connected
from isthmus.discovery.settings import Settings
from isthmus.theory.curve_readings import RowLosses, gain_beyond, plateau_reading, standard_error

COPIES = 9
RNG = np.random.default_rng(3)
SETTINGS = Settings()
WEIGHT = RNG.uniform(0.5, 2.0, size=40)
NOISE = 0.4 * RNG.normal(size=(4, 40))
LOSSES = np.array([1.0, 0.5, 0.42, 0.41])[:, None] + NOISE - (NOISE @ WEIGHT / WEIGHT.sum())[:, None]
GROUPS = np.repeat(np.arange(40), COPIES)


def copied(values: np.ndarray) -> np.ndarray:
    """Each row nine times."""
    return np.repeat(values, COPIES, axis=-1)


def test_the_standard_error_of_copies_is_that_of_the_rows() -> None:
    share = WEIGHT / WEIGHT.sum()
    alone = standard_error(LOSSES, share)
    kept = standard_error(copied(LOSSES), copied(share) / COPIES, GROUPS)
    blind = standard_error(copied(LOSSES), copied(share) / COPIES)
    np.testing.assert_allclose(kept, alone, rtol=1e-12)
    np.testing.assert_allclose(blind, alone / COPIES**0.5, rtol=1e-12)
    equal = np.full(40, 1 / 40)
    np.testing.assert_allclose(standard_error(LOSSES, equal), LOSSES.std(axis=1) / 40**0.5, rtol=1e-12)


def test_as_many_groups_as_rows_take_no_more_memory_than_the_rows() -> None:
    """A table of rows by groups would be 320 GB."""
    n = 200_000
    values, share = np.random.default_rng(0).normal(size=(2, n)), np.full(n, 1 / n)
    np.testing.assert_allclose(standard_error(values, share, np.arange(n)[::-1]), standard_error(values, share), 1e-12)
    for together in (None, np.arange(n)):  # of one mean, an array too
        assert isinstance(alone := standard_error(values[0], share, together), np.ndarray)
        assert alone.shape == ()


def test_few_groups_never_say_more_than_rows_that_are_independent() -> None:
    share = np.full(40, 1 / 40)
    for numbers in (np.zeros(40, dtype=np.int64), np.arange(40) % 2):
        assert (standard_error(LOSSES, share, numbers) >= standard_error(LOSSES, share)).all()


def test_no_more_dimensions_are_read_off_copies() -> None:
    ranks = range(4)
    alone = plateau_reading(LOSSES, ranks=ranks, weight=WEIGHT)
    kept = plateau_reading(copied(LOSSES), ranks=ranks, weight=copied(WEIGHT), together=GROUPS)
    assert kept.rank == alone.rank == 1
    assert plateau_reading(copied(LOSSES), ranks=ranks, weight=copied(WEIGHT)).rank > alone.rank


def test_the_noise_of_a_gain_is_that_of_the_rows() -> None:
    networks, many = (
        [RowLosses(rank, 0.1, values) for rank, values in enumerate(table)] for table in (LOSSES, copied(LOSSES))
    )
    alone, kept, blind = gain_beyond(1, networks), gain_beyond(1, many, together=GROUPS), gain_beyond(1, many)
    assert alone is not None
    assert kept is not None
    assert blind is not None
    assert kept.noise == pytest.approx(alone.noise, rel=1e-12)
    assert blind.noise == pytest.approx(alone.noise / COPIES**0.5, rel=1e-12)


def test_resamples_draw_whole_groups() -> None:
    read_off = partial(plateau_reading, ranks=range(4))
    alone = scree_share(LOSSES, 1, read=read_off)
    assert scree_share(copied(LOSSES), 1, read=partial(read_off, together=GROUPS), together=GROUPS) == alone
    assert 0 < alone < 1
    assert scree_share(copied(LOSSES), 1, read=read_off) != alone


def test_the_interval_of_the_accuracy_rank_is_that_of_the_rows() -> None:
    right = (RNG.uniform(size=(4, 40)) < np.array([0.3, 0.6, 0.7, 0.75])[:, None]).astype(float)
    alone = read([right[:, :15], right[:, 15:]], [WEIGHT[:15], WEIGHT[15:]])
    parts = [copied(right[:, :15]), copied(right[:, 15:])], [copied(WEIGHT[:15]), copied(WEIGHT[15:])]
    kept, blind = read(*parts, GROUPS), read(*parts)
    assert (kept.rank, kept.low, kept.high) == (alone.rank, alone.low, alone.high)
    np.testing.assert_allclose(kept.error, alone.error, rtol=1e-12)
    np.testing.assert_allclose(blind.error, alone.error / COPIES**0.5, rtol=1e-12)


def posed(rows: int, *, ordered: bool = False, groups: np.ndarray | None = None) -> Problem:
    """Random rows, split."""
    x = np.random.default_rng(0).normal(size=(rows, 3))
    settings = Settings(ordered=ordered)
    found = Sample.of(checked_data(x, x[:, :2], None), settings, groups=groups).posed(settings)
    assert found is not None
    return found


def test_halves_of_the_rows_are_halves_of_the_groups() -> None:
    groups = np.random.default_rng(1).permutation(np.arange(200) // 10)
    problem = posed(200, groups=groups)
    own = groups[list(problem.rows)]
    halves = [Connected(problem, SETTINGS).half_of_rows(number) for number in range(4)]
    for half in halves:
        inside = np.isin(np.arange(len(own)), half.numpy())
        assert not set(own[inside]) & set(own[~inside])
        assert len({*own[inside].tolist()}) == len({*own.tolist()}) // 2
        assert half.tolist() == sorted(half.tolist())
    assert len({tuple(half.tolist()) for half in halves}) == 4
    alone = posed(200)
    assert alone.together is None
    assert len(Connected(alone, SETTINGS).half_of_rows(0)) == 80


def test_rows_of_a_series_are_taken_by_stretches_of_neighbours() -> None:
    problem = posed(200, ordered=True)
    for numbers, rows in ((problem.together, 160), (problem.together_held, 40)):
        assert numbers is not None
        counts = np.unique(numbers, return_counts=True)[1]
        assert counts.tolist() == [rows // STRETCHES] * STRETCHES
        assert (np.diff(numbers) >= 0).all()
    held = np.zeros(5, dtype=bool)
    assert stretches(held).tolist() == [0, 2, 4, 6, 8]
    half = Connected(problem, SETTINGS).half_of_rows(0)
    assert int((half.diff() > 1).sum()) < STRETCHES // 2


def test_some_of_the_rows_keep_their_groups_and_numbers() -> None:
    problem = posed(60, groups=np.arange(60) // 3)
    some = problem.at_rows(torch.tensor([0, 5, 7]))
    assert problem.together is not None
    assert some.together is not None
    assert some.together.tolist() == problem.together[[0, 5, 7]].tolist()
    assert some.rows == tuple(problem.rows[i] for i in (0, 5, 7))
    assert problem.on_all_rows().rows == ()
    assert problem.on_all_rows().together is None
