import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.constructions import rank_one_interpolator
from isthmus.networks import enclosed_jacobians
from isthmus.theory import (
    large_singular_value_bound,
    linear_cost,
    optimal_linear_factors,
    piecewise_jacobian,
    schatten_lower_bound,
)
from theorem_checks import SEEDS, assert_at_most, assert_close, linearised, normal, random_network, with_spectrum

pytestmark = pytest.mark.theorem("FC-13")
SLOPES = st.sampled_from([0.0, 0.3, -0.5, 0.9])


@settings(deadline=None, max_examples=60)
@given(seed=SEEDS, slope=SLOPES, depth=st.integers(1, 6), threshold=st.floats(1e-6, 10))
def test_no_network_undercuts_its_jacobians(seed: int, slope: float, depth: int, threshold: float) -> None:
    net = linearised(random_network(seed, [4, *[6] * (depth - 1), 3], slope=slope), normal(seed, 20, 4))
    jacobians = piecewise_jacobian(net.weights, net.derivatives)
    assert_at_most(schatten_lower_bound(jacobians, depth=depth), net.penalty)
    count = (torch.linalg.svdvals(jacobians) >= threshold).sum(1).max()
    assert_at_most(count.double(), large_singular_value_bound(penalty=net.penalty, threshold=threshold, depth=depth))


def test_balanced_factors_meet_the_bound_and_the_misprinted_power_breaks_it() -> None:
    matrix = with_spectrum(0, [0.5, 0.3], 3, 4)
    penalty = sum(float(w.square().sum()) for w in optimal_linear_factors(matrix, depth=4))
    assert_close(schatten_lower_bound(matrix[None], depth=4), penalty)
    assert_at_most(schatten_lower_bound(matrix[None], depth=4), penalty)
    with pytest.raises(AssertionError):  # s^(1/L)
        assert_at_most(schatten_lower_bound(matrix[None], depth=8) / 2, penalty)


def test_the_jacobian_agrees_with_automatic_differentiation() -> None:
    network, x = random_network(3, [4, 6, 5, 3], slope=0.2), normal(4, 7, 4)
    net = linearised(network, x)
    expected = torch.func.vmap(torch.func.jacrev(lambda p: network(p[None])[0]))(x).detach()
    assert_close(piecewise_jacobian(net.weights, net.derivatives), expected)


@pytest.mark.dear(1)
@pytest.mark.parametrize("depth", [300, 1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_rounding_of_the_jacobian_is_no_singular_value(depth: int) -> None:
    """A network of rank 1 has s_2 / s_1 = 2e-15 by the rounding of its products, and (2e-15)^(2/L) is nearly 1."""
    x, y = normal(26, 8, 5), normal(126, 8, 3)
    network = rank_one_interpolator(x, y, depth=depth, num_directions=50).network
    found, penalty = enclosed_jacobians(network, x), float(network.penalty().detach())
    for error in (found.error, None):
        bound = schatten_lower_bound(found.values, depth=depth, error=error)
        assert_at_most(bound, penalty, slack=0)
        assert_at_most(depth, bound)  # rank 1 costs one per layer at least: its Jacobian is steep
    with pytest.raises(AssertionError):  # values above the rounding of the SVD of some Jacobian
        assert_at_most(linear_cost(found.values, depth=depth).max(), penalty)


def test_an_empty_batch_bounds_nothing() -> None:
    assert_close(schatten_lower_bound(torch.zeros(0, 3, 2), depth=3), 0.0)


@pytest.mark.parametrize("threshold", [0.01, 1.0, 7.0])
def test_equal_singular_values_at_the_threshold_meet_the_count(threshold: float) -> None:
    matrix, depth = with_spectrum(0, [threshold] * 3, 4, 5), 6
    penalty = sum(float(w.square().sum()) for w in optimal_linear_factors(matrix, depth=depth))

    def assert_counts_three(bound: float) -> None:
        assert_close(bound, 3.0)

    assert_counts_three(large_singular_value_bound(penalty=penalty, threshold=threshold, depth=depth))
    if threshold != 1:
        with pytest.raises(AssertionError):  # tau^(1/L)
            assert_counts_three(penalty / (depth * threshold ** (1 / depth)))


def test_a_count_within_the_numbers_is_given_though_the_power_of_the_threshold_is_not() -> None:
    assert_close(large_singular_value_bound(penalty=1e-300, threshold=1e-155, depth=1), 1e10, relative=1e-12)
    assert_close(large_singular_value_bound(penalty=1e300, threshold=1e155, depth=2) * 1e-145, 0.5, relative=1e-12)
    assert large_singular_value_bound(penalty=1.0, threshold=1e-200, depth=1) == float("inf")
    assert 0 < large_singular_value_bound(penalty=1e-300, threshold=1e200, depth=1) < 1e-300
