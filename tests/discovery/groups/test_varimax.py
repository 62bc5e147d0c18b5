import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.discovery.groups.varimax import _best_turn, fourth_powers, orthonormal_rows, signed, varimax  # pyright: ignore[reportPrivateUsage]
from tolerances import rounding


def random_rows(seed: int, k: int = 3, d: int = 8) -> np.ndarray:
    return orthonormal_rows(np.random.default_rng(seed).normal(size=(k, d)))


@given(st.integers(0, 10_000), st.integers(1, 4))
def test_the_span_stays_and_the_sum_of_fourth_powers_does_not_fall(seed: int, k: int) -> None:
    rows = random_rows(seed, k)
    turned = varimax(rows)
    np.testing.assert_allclose(turned @ turned.T, np.eye(k), atol=rounding(size=100))
    np.testing.assert_allclose(turned.T @ turned, rows.T @ rows, atol=rounding(size=100))
    assert fourth_powers(turned) >= fourth_powers(rows) - rounding(size=100)


@given(st.integers(0, 10_000))
def test_each_step_is_the_best_turn_of_its_plane(seed: int) -> None:
    rows = random_rows(seed, 2)
    turned, _ = _best_turn(rows[0], rows[1])
    best = fourth_powers(np.array(turned))
    for angle in np.linspace(0, np.pi / 2, 91):
        c, s = np.cos(angle), np.sin(angle)
        assert best >= fourth_powers(np.array([[c, s], [-s, c]]) @ rows) - rounding(size=100)


@given(st.integers(0, 10_000))
def test_it_is_kaisers_criterion(seed: int) -> None:
    """Variance of the squares, summed over rows, and the sum of fourth powers differ by a constant under rotation."""
    rows = random_rows(seed)
    turned = varimax(rows)
    gain = (turned**2).var(1).sum() - (rows**2).var(1).sum()
    assert gain == pytest.approx((fourth_powers(turned) - fourth_powers(rows)) / 8, abs=rounding(size=100))


def test_sparse_rows_are_found_again_whatever_the_basis() -> None:
    sparse = np.array([[0.6, 0.8, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0], [0, 0, 0, 0.48, -0.6, 0.64]])
    mixed = np.random.default_rng(2).normal(size=(3, 3)) @ sparse
    found = varimax(mixed)
    overlap = np.abs(found @ sparse.T)
    np.testing.assert_allclose(np.sort(overlap.max(1)), 1, atol=1e-9)
    np.testing.assert_array_equal(found, signed(found))


def test_a_row_alone_keeps_its_place_and_gets_a_sign() -> None:
    np.testing.assert_allclose(varimax(np.array([[0.0, -2.0, 1.0]])), np.array([[0, 2, -1]]) / np.sqrt(5))


@pytest.mark.parametrize(
    "rows", [np.zeros((0, 3)), np.ones((2, 3)), np.zeros((1, 3)), np.eye(3)[:, :2], np.full((1, 2), np.nan)]
)
def test_rows_that_are_no_basis_are_refused(rows: np.ndarray) -> None:
    with pytest.raises(ValueError, match="directions: "):
        varimax(rows)
