import mpmath
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.theory import (
    log_pseudo_determinant,
    piecewise_jacobian,
    regularity_lower_bound,
    schatten_lower_bound,
)
from theorem_checks import SEEDS, assert_at_most, assert_close, linearised, normal, random_network, with_spectrum
from tolerances import rounding

pytestmark = pytest.mark.theorem("FC-28")


@settings(deadline=None, max_examples=50)
@given(seed=SEEDS, depth=st.integers(1, 6), rank=st.integers(0, 3))
def test_regularity_bounds_the_schatten_sum_and_the_norm(seed: int, depth: int, rank: int) -> None:
    net = linearised(random_network(seed, [4, *[6] * (depth - 1), 3]), normal(seed, 20, 4))
    jacobians = piecewise_jacobian(net.weights, net.derivatives)
    bound = regularity_lower_bound(jacobians, rank=rank, depth=depth)
    assert_at_most(bound, schatten_lower_bound(jacobians, depth=depth))
    assert_at_most(bound, net.penalty)


@pytest.mark.parametrize("depth", [1, 5])
def test_the_bound_is_the_formula_at_the_best_point(depth: int) -> None:
    """Three points, the best in the middle; 50 digits."""
    spectra = [[4.0, 0.5], [3.0, 3.0], [8.0, 1e-3]]
    jacobians = torch.stack([torch.diag(torch.tensor(values, dtype=torch.float64)) for values in spectra])
    with mpmath.workdps(50):
        exact = float(max(2 * depth + 2 * sum(mpmath.log(s) for s in values) for values in spectra))
        half = float(max(2 * depth + sum(mpmath.log(s) for s in values) for values in spectra))
        worst = float(min(2 * depth + 2 * sum(mpmath.log(s) for s in values) for values in spectra))
    bound = regularity_lower_bound(jacobians, rank=2, depth=depth)
    assert_close(bound, exact)
    at_one = regularity_lower_bound(torch.eye(3, dtype=torch.float64)[None], rank=3, depth=depth, error=0)
    assert 3 * depth * (1 - 1e-12) <= float(at_one) < 3 * depth  # rounded down
    for wrong in (half, worst):
        with pytest.raises(AssertionError):
            assert_close(bound, wrong)


def test_orthonormal_maps_meet_the_bound() -> None:
    jacobians = with_spectrum(0, [1.0, 1.0], 4, 3)[None]
    assert_close(regularity_lower_bound(jacobians, rank=2, depth=9), 18.0)
    with pytest.raises(AssertionError):  # a larger rank is no bound
        assert_at_most(9 * 3, schatten_lower_bound(jacobians, depth=9))


@pytest.mark.parametrize("smallest", [1.0, 1e-3, 1e-7])
def test_the_logarithm_against_fifty_digits(smallest: float) -> None:
    matrix = with_spectrum(7, [2.0, 0.3, smallest], 3, 3)
    with mpmath.workdps(50):
        exact = float(mpmath.log(abs(mpmath.det(mpmath.matrix(matrix.tolist())))))
    found = log_pseudo_determinant(matrix, rank=3)
    assert_close(found, exact, relative=0, absolute=rounding(size=3, condition=2 / smallest))
    with pytest.raises(AssertionError):
        assert_close(found / 2, exact, relative=0, absolute=rounding(size=3, condition=2 / smallest))


def test_extreme_scales_neither_overflow_nor_vanish() -> None:
    for values in ([1e300, 1e299, 1e298], [1e-300, 1e-301, 1e-302], [1e150, 1.0, 1e-150], [1e-5, 1e-200, 1e-300]):
        with mpmath.workdps(50):
            exact = float(sum(mpmath.log(s) for s in values))
        found = log_pseudo_determinant(torch.diag(torch.tensor(values, dtype=torch.float64)), rank=3)
        assert_close(found, exact, absolute=1e-12)


def test_asking_for_more_than_the_rank_gives_minus_infinity_and_rank_zero_gives_zero() -> None:
    matrix = torch.diag(torch.tensor([2.0, 0.0]))
    assert float(log_pseudo_determinant(matrix, rank=2)) == -torch.inf
    assert float(log_pseudo_determinant(matrix, rank=0)) == 0
    assert float(regularity_lower_bound(matrix[None], rank=2, depth=5)) == 0
