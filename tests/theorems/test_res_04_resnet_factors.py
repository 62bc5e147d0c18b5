import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.theory import optimal_resnet_factors, resnet_growth, spectral_penalty
from theorem_checks import SEEDS, assert_close, with_spectrum

pytestmark = pytest.mark.theorem("RES-04")


@settings(deadline=None, max_examples=60)
@given(
    seed=SEEDS,
    rank=st.integers(0, 3),
    depth=st.integers(1, 12),
    block_depth=st.sampled_from([1, 2]),
    lam=st.sampled_from([0.001, 0.05, 0.5, 2.0]),
)
def test_the_weights_have_the_product_and_the_cost(
    seed: int, rank: int, depth: int, block_depth: int, lam: float
) -> None:
    matrix = with_spectrum(seed, [2.0, 0.5, 0.5][:rank], 4, 5)
    factors = optimal_resnet_factors(matrix, residual_weight=lam, depth=depth, block_depth=block_depth, width=5)
    assert len(factors.blocks) == depth
    assert_close(factors.product(), matrix, absolute=1e-14)
    cost = spectral_penalty(matrix, residual_weight=lam, depth=depth, block_depth=block_depth)
    assert_close(factors.cost(residual_weight=lam), cost, absolute=1e-13)
    if rank:
        with pytest.raises(AssertionError):
            assert_close(factors.cost(residual_weight=1.01 * lam) + 1e-3, cost, absolute=1e-13)


def test_small_directions_do_not_grow_in_blocks_of_two() -> None:
    values = torch.tensor([3.0, 0.5, 0.2, 0.0], dtype=torch.float64)
    growth = resnet_growth(values, residual_weight=0.5, depth=4, block_depth=2)
    assert_close(growth[1:], torch.zeros(3))
    assert float(growth[0]) > 0
    assert bool((resnet_growth(values, residual_weight=0.5, depth=4, block_depth=1)[:3] > 0).all())


def test_a_stream_narrower_than_the_rank_is_refused() -> None:
    with pytest.raises(ValueError, match="needs width >= 2"):
        optimal_resnet_factors(torch.eye(2), residual_weight=1.0, depth=2, block_depth=1, width=1)
