"""What residuals still say of other combinations: linear and square ones are seen, chance and unequal rows are not."""

import numpy as np
import pytest

import isthmus
from isthmus import Limits, Verdict
from isthmus.discovery.data.scaling import MOST_COMPARED
from isthmus.discovery.evidence.leftovers import leftover, told_by_others

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


def linear_map(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A of the least squares, and what they leave."""
    lifted = np.column_stack([x, np.ones(len(x))])
    found = np.linalg.lstsq(lifted, y, rcond=None)[0]
    return found[:-1].T, y - lifted @ found


@pytest.mark.parametrize("frequency", [1.5, 3.0, 5.0])
@pytest.mark.parametrize("turned", [False, True])
def test_a_weak_wave_of_a_column_that_a_linear_map_leaves_is_seen(frequency: float, turned: bool) -> None:
    """y = 2 x0 + .1 cos 3 x1 had been linear, for sure; the rows that are searched may be turned."""
    a, residuals = linear_map(X, 2 * X[:, :1] + 0.1 * np.cos(frequency * X[:, 1:2]) + 0.02 * NOISE[:, :1])
    turn = np.linalg.qr(RNG.normal(size=(D, D)))[0] if turned else np.eye(D)
    found = leftover(X @ turn, a @ turn, residuals, columns=X)
    assert found is not None
    assert found.counts


@pytest.mark.parametrize("kind", ["noise", "unequal", "its own wave", "rounded"])
@pytest.mark.parametrize("inputs", ["normal", "uniform", "whole numbers"])
def test_what_a_linear_map_may_leave_is_no_other_combination(kind: str, inputs: str) -> None:
    rng = np.random.default_rng(3)
    draw = {"normal": rng.normal, "uniform": rng.uniform, "whole numbers": lambda size: rng.integers(0, 4, size) * 1.0}
    x = np.asarray(draw[inputs](size=(N, 6)))
    z = x @ (rng.normal(size=(6, 1)) + 6 * np.eye(6)[:, :1])  # nearly one column: waves of it are near those of z
    left = {
        "noise": 0.1 * rng.normal(size=(N, 1)),
        "unequal": 0.1 * rng.normal(size=(N, 1)) * (1 + np.abs(x[:, :1])),
        "its own wave": 0.05 * np.cos(3 * z / z.std()) + 0.01 * rng.normal(size=(N, 1)),
        "rounded": np.round(z, 1) - z,
    }
    a, residuals = linear_map(x, z + left[kind])
    found = leftover(x, a, residuals, columns=x)
    assert found is None or not found.counts


@pytest.mark.slow
def test_a_task_with_a_weak_wave_is_not_called_linear_for_sure() -> None:
    """Of 600 rows of 8 columns; without the wave it is, and a bent coordinate is none."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 8))
    wave = isthmus.discover(x, 2 * x[:, 0] + 0.1 * np.cos(3 * x[:, 1]), effort="quick", workers=1)
    assert wave.verdict is not Verdict.CONFIDENT
    assert any("linear map leaves over depends on other combinations" in reason for reason in wave.reasons)
    plain = isthmus.discover(x, 2 * x[:, 0] + 0.02 * rng.normal(size=600), effort="quick", workers=1)
    assert plain.verdict is Verdict.CONFIDENT


@pytest.mark.parametrize("seed", range(4))
def test_a_weak_direction_of_a_linear_map_is_seen_across_its_outputs(seed: int) -> None:
    """Rank 3 in noise, the third a hundredth of the first, was 2, sure: it explains but .13 to .2 of what 2 leave."""
    rng = np.random.default_rng(seed)
    x, sides = rng.normal(size=(400, 8)), [np.linalg.qr(rng.normal(size=(size, 3)))[0] for size in (8, 6)]

    def left(third: float, *, across: bool = True) -> bool:
        y = x @ sides[0] @ np.diag([1.0, 0.9, third]) @ sides[1].T + 0.08 * rng.normal(size=(400, 6))
        fitted = x @ np.linalg.lstsq(x, y - y.mean(0), rcond=None)[0]
        outputs = np.linalg.svd(fitted, full_matrices=False)[2][:2]
        rows = (np.linalg.lstsq(x, fitted @ outputs.T, rcond=None)[0]).T
        residuals = (y - y.mean(0)) - (y - y.mean(0)) @ outputs.T @ outputs
        found = leftover(x, rows, residuals, columns=x, across=across)
        assert found is not None
        return found.counts

    assert left(0.07)
    assert not left(0.0), "control: noise alone"
    assert not left(0.07, across=False), "a single bent coordinate may leave as much"


def test_columns_tell_of_each_other_where_they_share_factors_and_noise_tells_of_none() -> None:
    rng = np.random.default_rng(1)
    factors, noise = rng.normal(size=(400, 5)), rng.normal(size=(400, 28))
    waves = np.sin(0.7 * factors @ rng.normal(size=(5, 28)) + rng.uniform(0, 6, 28))
    assert told_by_others(waves + 0.25 * noise).sum() > 20
    assert told_by_others(np.hstack([waves, noise])).tolist()[28:] == [False] * 28
    assert not told_by_others(noise).any()
    assert not told_by_others(noise[:60]).any(), "nor of as few rows as that, in halves of 30"
    assert told_by_others(np.hstack([noise[:, :1]] * 2)).all()
    assert not told_by_others(noise[:, :1]).any(), "one has no others"
    assert not told_by_others(noise[:, :0]).any()
    assert told_by_others(np.hstack([waves, np.zeros((400, 1))])).tolist()[-1] is False, "nor does what is constant"
    many = np.hstack([waves[:, :1] + 0.1 * noise[:, :1]] * (MOST_COMPARED + 1))
    assert 0 < told_by_others(many).sum() <= MOST_COMPARED
