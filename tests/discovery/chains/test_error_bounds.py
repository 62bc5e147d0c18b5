"""The bound holds as often as it says, for errors with long tails too; Student's t alone does not."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from isthmus.discovery.chains.error_bounds import RowErrors, upper_limit

DRAWS: dict[str, tuple[Callable[[np.random.Generator, int], np.ndarray], float]] = {
    "normal": (lambda rng, n: 3 + rng.normal(size=n), 3.0),
    "squares": (lambda rng, n: rng.normal(size=n) ** 2, 1.0),
    "four squares": (lambda rng, n: np.square(rng.normal(size=(n, 4))).sum(1), 4.0),
    "squared exponential": (lambda rng, n: rng.exponential(size=n) ** 2, 2.0),
}


def missed(limit: Callable[[np.ndarray], float], name: str, rows: int) -> float:
    """How often the limit is below the mean, of 2,000."""
    draw, mean = DRAWS[name]
    rng = np.random.default_rng(0)
    return float(np.mean([limit(draw(rng, rows)) < mean for _ in range(2000)]))


def student(values: np.ndarray) -> float:
    return float(values.mean() + stats.t.ppf(0.95, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5)


@pytest.mark.parametrize(("name", "rows", "most"), [
    ("normal", 12, 0.065), ("squares", 40, 0.08), ("four squares", 12, 0.08), ("squared exponential", 120, 0.085),
])  # fmt: skip
def test_the_limit_misses_about_one_mean_in_twenty(name: str, rows: int, most: float) -> None:
    found = missed(upper_limit, name, rows)
    assert 0.02 < found < most  # two standard errors of 2,000 draws at 5 % are .01
    if name != "normal":
        assert missed(student, name, rows) > found + 0.01


def test_the_bound_of_a_quotient_is_where_its_limit_is_zero() -> None:
    rng = np.random.default_rng(1)
    found = RowErrors(0.01 * rng.exponential(size=80), rng.exponential(size=80) + 0.1)
    assert found.relative_error == pytest.approx((found.squares.sum() / found.spreads.sum()) ** 0.5)
    assert found.relative_error < found.bound < 2 * found.relative_error
    assert upper_limit(found.squares - found.bound**2 * found.spreads) == pytest.approx(0.0, abs=1e-12)
    assert RowErrors(9 * found.squares, found.spreads).bound == pytest.approx(3 * found.bound)


def test_no_error_is_bounded_by_nothing_and_one_row_proves_nothing() -> None:
    assert RowErrors(np.zeros(5), np.ones(5)).bound == 0.0
    assert RowErrors(np.full(5, 0.04), np.ones(5)).bound == pytest.approx(0.2)
    assert RowErrors(np.full(1, 0.04), np.ones(1)).bound == np.inf
    assert RowErrors(np.array([np.nan, 1.0]), np.ones(2)).bound == RowErrors(np.array([np.nan]), np.ones(1)).bound
