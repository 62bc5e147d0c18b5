import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from isthmus.constructions import merged_composition, parallel_sum
from isthmus.networks import FullyConnected
from isthmus.networks import jacobians as jacobians_at
from isthmus.theory import (
    bottleneck_rank_upper_bound,
    jacobian_rank_lower_bound,
    numerical_rank,
    piecewise_jacobian,
)
from theorem_checks import SEEDS, linearised, normal, random_network, with_spectrum

pytestmark = pytest.mark.theorem("FC-03")


def jacobians(network: FullyConnected, x: Tensor) -> Tensor:
    net = linearised(network, x)
    return piecewise_jacobian(net.weights, net.derivatives)


def assert_at_most_each(whole: Tensor, parts: list[Tensor]) -> None:
    assert rank(whole[None]) <= min(rank(part[None]) for part in parts)


def rank(batch: Tensor) -> int:
    return jacobian_rank_lower_bound(batch, tolerance=1e-11).rank


def assert_subadditive(whole: Tensor, parts: list[Tensor]) -> None:
    assert rank(whole) <= sum(rank(part) for part in parts)


@settings(deadline=None, max_examples=12)
@given(seed=SEEDS, inner=st.integers(1, 3))
def test_composition_has_at_most_the_rank_of_each_part(seed: int, inner: int) -> None:
    x, g, f = normal(seed, 20, 4), random_network(seed, [4, 6, inner, 6, 4]), random_network(seed + 1, [4, 6, 2, 7, 5])
    composed, first = jacobians_at(merged_composition(g, f), x), jacobians(g, x)
    second = jacobians(f, g(x).detach())
    for whole, outer, inward in zip(composed, second, first, strict=True):  # at every point, not only at the best
        assert_at_most_each(whole, [outer, inward])


def test_the_control_of_compositions_fails() -> None:
    outer, inward = with_spectrum(0, [1.0, 1.0], 4, 4), with_spectrum(1, [1.0, 1.0, 1.0], 4, 4)
    assert_at_most_each(outer @ inward, [outer, inward])
    with pytest.raises(AssertionError):
        assert_at_most_each(inward, [outer, inward])


@settings(deadline=None, max_examples=12)
@given(seed=SEEDS)
def test_sums_have_at_most_the_sum_of_ranks(seed: int) -> None:
    x, f, g = normal(seed, 20, 4), random_network(seed, [4, 6, 1, 6, 4]), random_network(seed + 1, [4, 6, 2, 6, 4])
    whole = jacobians_at(parallel_sum(f, g).network, x)
    for total, first, second in zip(whole, jacobians(f, x), jacobians(g, x), strict=True):
        assert_subadditive(total[None], [first[None], second[None]])


def test_the_control_of_subadditivity_fails() -> None:
    f, g = with_spectrum(0, [1.0], 4, 4)[None], with_spectrum(1, [1.0, 1.0], 4, 4)[None]
    assert_subadditive(f + g, [f, g])
    with pytest.raises(AssertionError):
        assert_subadditive(f + g, [f])


@given(seed=SEEDS, k=st.integers(0, 4))
def test_affine_maps_have_the_rank_of_their_matrix(seed: int, k: int) -> None:
    assert int(numerical_rank(with_spectrum(seed, [2.0**-i for i in range(k)], 5, 4))) == k


def inner_dimension(network: FullyConnected) -> int:
    return bottleneck_rank_upper_bound([w.detach() for w in network.weights])


@settings(deadline=None, max_examples=12)
@given(seed=SEEDS, first=st.integers(1, 3), second=st.integers(1, 3))
def test_the_bottleneck_rank_obeys_both_rules_on_explicit_networks(seed: int, first: int, second: int) -> None:
    f, g = random_network(seed, [6, 7, first, 7, 6]), random_network(seed + 1, [6, 7, second, 7, 6])
    assert inner_dimension(f) == first
    assert inner_dimension(merged_composition(f, g)) == min(first, second)
    assert inner_dimension(parallel_sum(f, g).network) == first + second
    with pytest.raises(AssertionError):
        assert inner_dimension(parallel_sum(f, g).network) <= max(first, second)


def test_narrow_places_have_to_stand_side_by_side_for_the_sum() -> None:
    f, g = random_network(0, [6, 1, 7, 7, 6]), random_network(1, [6, 7, 7, 1, 6])
    assert inner_dimension(parallel_sum(f, g).network) > inner_dimension(f) + inner_dimension(g)
    beside = random_network(1, [6, 1, 7, 7, 6])
    assert inner_dimension(parallel_sum(f, beside).network) == 2
