import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from isthmus.theory import jacobian_rank_lower_bound, numerical_rank, piecewise_jacobian
from theorem_checks import SEEDS, linearised, normal, random_network, with_spectrum

pytestmark = pytest.mark.theorem("FC-03")


def jacobians(seed: int, dimensions: list[int], x: Tensor) -> Tensor:
    net = linearised(random_network(seed, dimensions), x)
    return piecewise_jacobian(net.weights, net.derivatives)


def rank(batch: Tensor) -> int:
    return jacobian_rank_lower_bound(batch, tolerance=1e-11).rank


def assert_subadditive(whole: Tensor, parts: list[Tensor]) -> None:
    assert rank(whole) <= sum(rank(part) for part in parts)


@settings(deadline=None, max_examples=30)
@given(seed=SEEDS, inner=st.integers(1, 3))
def test_composition_has_at_most_the_rank_of_each_part(seed: int, inner: int) -> None:
    x = normal(seed, 20, 4)
    g = random_network(seed, [4, 6, inner, 6, 4])
    first = jacobians(seed, [4, 6, inner, 6, 4], x)
    second = jacobians(seed + 1, [4, 7, 5], g(x).detach())
    assert rank(second @ first) <= min(rank(second), rank(first))


@settings(deadline=None, max_examples=30)
@given(seed=SEEDS)
def test_sums_have_at_most_the_sum_of_ranks(seed: int) -> None:
    x = normal(seed, 20, 4)
    f, g = jacobians(seed, [4, 6, 1, 6, 4], x), jacobians(seed + 1, [4, 6, 2, 6, 4], x)
    assert_subadditive(f + g, [f, g])
    generic = f + normal(seed, 4, 4)
    if rank(generic) > rank(f) + rank(g):
        with pytest.raises(AssertionError):
            assert_subadditive(generic, [f, g])


def test_the_control_of_subadditivity_fails() -> None:
    f, g = with_spectrum(0, [1.0], 4, 4)[None], with_spectrum(1, [1.0, 1.0], 4, 4)[None]
    assert_subadditive(f + g, [f, g])
    with pytest.raises(AssertionError):
        assert_subadditive(f + g, [f])


@given(seed=SEEDS, k=st.integers(0, 4))
def test_affine_maps_have_the_rank_of_their_matrix(seed: int, k: int) -> None:
    assert int(numerical_rank(with_spectrum(seed, [2.0**-i for i in range(k)], 5, 4))) == k
