import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from isthmus.theory import optimal_resnet_factors, resnet_cost, resnet_jacobian_lower_bound, spectral_penalty
from theorem_checks import SEEDS, assert_at_most, assert_close, normal, with_spectrum

pytestmark = pytest.mark.theorem("RES-12")


def random_resnet(seed: int, depth: int, block_depth: int, lam: float) -> tuple[Tensor, float]:
    """Jacobians at 8 points, and the cost, of a random ReLU residual network of width 5."""
    embedding, unembedding = normal(seed, 5, 3), normal(seed + 1, 4, 5)
    state = normal(seed + 2, 8, 3) @ embedding.mT
    jacobian, squares = embedding.expand(8, 5, 3), 0.0
    for i in range(depth):
        inner, bias = 0.7 * normal(seed + 10 * i + 3, 5, 5), normal(seed + 10 * i + 4, 5)
        outer = torch.eye(5, dtype=torch.float64) if block_depth == 1 else 0.7 * normal(seed + 10 * i + 5, 5, 5)
        z = state @ inner.mT + bias
        jacobian = jacobian + outer @ ((z > 0)[:, :, None] * (inner @ jacobian))
        state = state + z.relu() @ outer.mT
        squares += float(inner.square().sum()) + (float(outer.square().sum()) if block_depth == 2 else 0.0)
    ends = float(embedding.square().sum() + unembedding.square().sum()) / 2
    return unembedding @ jacobian, ends + lam * squares * (depth if block_depth == 1 else 0.5)


@settings(deadline=None, max_examples=60)
@given(seed=SEEDS, depth=st.integers(1, 5), block_depth=st.sampled_from([1, 2]), lam=st.floats(1e-3, 10))
def test_no_residual_network_undercuts_its_jacobians(seed: int, depth: int, block_depth: int, lam: float) -> None:
    jacobians, cost = random_resnet(seed, depth, block_depth, lam)
    bound = resnet_jacobian_lower_bound(jacobians, residual_weight=lam, depth=depth, block_depth=block_depth)
    limit = resnet_jacobian_lower_bound(jacobians, residual_weight=lam, block_depth=block_depth)
    assert_at_most(bound, cost)
    assert_at_most(limit, bound)


def test_optimal_linear_networks_meet_the_bound() -> None:
    matrix = with_spectrum(0, [4.0, 1.0], 3, 3)
    cost = optimal_resnet_factors(matrix, residual_weight=0.1, depth=3, block_depth=2).cost(residual_weight=0.1)
    bound = resnet_jacobian_lower_bound(matrix[None], residual_weight=0.1, depth=3, block_depth=2)
    assert_close(bound, cost)
    with pytest.raises(AssertionError):  # a bound at depth 1 is not one at depth 3
        assert_at_most(resnet_jacobian_lower_bound(matrix[None], residual_weight=0.1, depth=1, block_depth=2), cost)


@pytest.mark.parametrize("lam", [1e-16, 1e-20, 1e-100, 1e-300])
@pytest.mark.parametrize("block_depth", [1, 2])
def test_rounding_of_a_product_is_no_singular_value(lam: float, block_depth: int) -> None:
    matrix = normal(5, 4, 1) @ normal(6, 1, 4)
    factors = optimal_resnet_factors(matrix, residual_weight=lam, depth=3000, block_depth=block_depth)
    cost = factors.cost(residual_weight=lam)
    for error in (None, 1e-13):
        bound = resnet_jacobian_lower_bound(
            factors.product()[None], residual_weight=lam, depth=3000, block_depth=block_depth, error=error
        )
        assert float(cost) * (1 - 1e-11) <= float(bound) <= float(cost)
    as_matrix = spectral_penalty(matrix, residual_weight=lam, depth=3000, block_depth=block_depth)
    assert_close(as_matrix / lam, cost / lam)
    computed = torch.linalg.svdvals(matrix)  # 1e-17 beside 4.6
    if lam < 1e-17:
        with pytest.raises(AssertionError):
            assert_at_most(
                resnet_cost(computed, residual_weight=lam, depth=3000, block_depth=block_depth), cost, slack=0
            )


def test_the_rank_of_a_penalty_can_be_asked_for() -> None:
    matrix = torch.diag(torch.tensor([2.0, 1e-3, 1e-18], dtype=torch.float64))

    def penalty(rank: int | None) -> float:
        return float(spectral_penalty(matrix, residual_weight=1e-30, block_depth=2, rank=rank))

    one, two, three = (penalty(rank) for rank in (1, 2, 3))
    assert penalty(None) == two
    assert 1e-29 < one < two < three


def test_an_empty_batch_bounds_nothing() -> None:
    found = resnet_jacobian_lower_bound(torch.zeros(0, 3, 2), residual_weight=1.0, block_depth=1)
    assert_close(found, 0.0)
