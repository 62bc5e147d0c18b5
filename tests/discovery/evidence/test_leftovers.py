"""What residuals still say of other combinations: linear and square ones are seen, chance and unequal rows are not."""

import numpy as np
import pytest

import isthmus
from isthmus import Limits, Verdict
from isthmus.discovery.evidence.leftovers import leftover

RNG = np.random.default_rng(0)
N, D = 400, 12
X = RNG.normal(size=(N, D))
A = np.eye(D)[:1]
NOISE = RNG.normal(size=(N, 2))


def test_noise_of_unequal_rows_is_chance_and_so_is_what_the_coordinate_itself_left() -> None:
    unequal = NOISE * (1 + X[:, 1:2] ** 2)
    curved = 0.5 * (X[:, :1] ** 3 - X[:, :1]) + NOISE
    for residuals in (NOISE, unequal, curved):
        found = leftover(X, A, residuals)
        assert found is not None
        assert found.deviations < 4
        assert not found.counts


@pytest.mark.parametrize("weak", [X[:, 3:5].sum(1, keepdims=True), X[:, 3:4] ** 2 - 1], ids=["linear", "square"])
def test_a_weak_combination_that_was_not_found_is_seen(weak: np.ndarray) -> None:
    found = leftover(X, A, 0.5 * weak + NOISE)
    assert found is not None
    assert found.counts
    assert found.deviations > 8
    theirs = leftover(X, np.vstack([A, np.eye(D)[3:5]]), 0.5 * weak + NOISE)
    assert theirs is not None
    assert not theirs.counts, "it is one of the combinations"


def test_its_share_is_that_of_the_residuals() -> None:
    found = leftover(X, A, X[:, 3:4] + NOISE[:, :1])
    assert found is not None
    assert found.share == pytest.approx(0.5, abs=0.08)


def test_what_is_small_does_not_count_however_sure_it_is() -> None:
    x = RNG.normal(size=(20_000, 3))
    found = leftover(x, np.eye(3)[:1], 0.15 * x[:, 1:2] + RNG.normal(size=(20_000, 1)))
    assert found is not None
    assert found.deviations > 6
    assert not found.counts


def test_few_rows_nothing_left_and_exact_fits_say_nothing() -> None:
    assert leftover(X[:40], A, NOISE[:40]) is None
    assert leftover(X, np.eye(D), NOISE) is None
    assert leftover(X, A, np.zeros((N, 1))) is None
    doubled = leftover(np.hstack([X, X]), np.hstack([A, A]), NOISE)
    assert doubled is not None
    assert not doubled.counts


@pytest.mark.slow
def test_an_answer_that_misses_a_weak_combination_is_in_doubt_and_says_so() -> None:
    y = X[:, 0] ** 2 + 0.35 * X[:, 3] + 0.6 * NOISE[:, 0]
    asked = {"ridge": 0.03, "starts": 1, "effort": "quick", "workers": 1, "limits": Limits(evaluations=250)}
    found = isthmus.discover(X, y, **asked)  # pyright: ignore[reportArgumentType]
    assert (found.rank, found.verdict) == (1, Verdict.DOUBTFUL)
    assert "depends on other combinations of the inputs too" in found.reasons[-1]
    weighted = isthmus.discover(X, y, sample_weight=np.ones(N), **asked)  # pyright: ignore[reportArgumentType]
    assert "other combinations" not in " ".join(weighted.reasons), "residuals of weighted rows are not asked"
