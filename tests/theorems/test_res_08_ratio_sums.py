from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from isthmus.theory import ResnetFactors, numerical_rank, optimal_resnet_factors, resnet_cost
from theorem_checks import SEEDS, assert_at_most, assert_close, normal, with_spectrum

pytestmark = pytest.mark.theorem("RES-08")
CONVEX: list[Callable[[Tensor], Tensor]] = [
    lambda t: t,
    lambda t: t.square(),
    lambda t: (t - 0.5).clamp_min(0),
    lambda t: t.sqrt(),  # not convex, but g(e^t) is, which is all that the proof needs
]


def assert_inequality(g: Callable[[Tensor], Tensor], left: Tensor, right: Tensor) -> None:
    product = left @ right
    k = int(numerical_rank(product))
    ratios = torch.linalg.svdvals(product)[:k] / torch.linalg.svdvals(right)[:k]
    assert_at_most(g(ratios).sum(), g(torch.linalg.svdvals(left)[:k]).sum(), slack=1e-10)


@settings(deadline=None, max_examples=60)
@given(seed=SEEDS, g=st.sampled_from(CONVEX))
def test_a_factor_costs_at_least_the_ratios_it_makes(seed: int, g: Callable[[Tensor], Tensor]) -> None:
    assert_inequality(g, normal(seed, 3, 4), normal(seed + 1, 4, 5))
    assert_inequality(g, normal(seed, 3, 3), torch.linalg.qr(normal(seed + 1, 3, 3)).Q)


def test_without_convexity_of_g_of_exp_the_inequality_fails() -> None:
    def hook(t: Tensor) -> Tensor:
        return (t - 0.5).clamp_min(0).sqrt()

    broken = 0
    for seed in range(300):
        try:
            assert_inequality(hook, normal(seed, 2, 2), normal(seed + 1, 2, 2))
        except AssertionError:
            broken += 1
    assert broken > 0


@settings(deadline=None, max_examples=30)
@given(seed=SEEDS, g=st.sampled_from(CONVEX), rank=st.integers(1, 2))
def test_it_holds_for_the_right_factor_and_at_low_rank(seed: int, g: Callable[[Tensor], Tensor], rank: int) -> None:
    left, right = with_spectrum(seed, [3.0, 0.2][:rank], 3, 4), normal(seed + 2, 4, 5)
    assert_inequality(g, left, right)
    assert_inequality(g, right.mT, left.mT)  # s(B) against s(AB) / s(A)


def test_the_printed_ratio_is_upside_down() -> None:
    left, right = 0.1 * torch.eye(2, dtype=torch.float64), normal(0, 2, 2)
    assert_inequality(torch.square, left, right)
    printed = torch.linalg.svdvals(right) / torch.linalg.svdvals(left @ right)
    with pytest.raises(AssertionError):
        assert_at_most(printed.square().sum(), torch.linalg.svdvals(left).square().sum())


def blocks_by_ratios(factors: ResnetFactors, weight: float) -> tuple[Tensor, Tensor]:
    """sum_l sum_i lam L g(ratio) with g(t) = (t - 1)_+^2, by the ratios each block makes, and by its own values."""
    state, by_ratios, by_values = factors.embedding, torch.zeros(()).double(), torch.zeros(()).double()
    for (block,) in factors.blocks:
        moved, step = state + block @ state, torch.eye(len(block), dtype=torch.float64) + block
        k = int(numerical_rank(moved))
        ratios = torch.linalg.svdvals(moved)[:k] / torch.linalg.svdvals(state)[:k]
        by_ratios = by_ratios + (ratios - 1).clamp_min(0).square().sum()
        by_values = by_values + (torch.linalg.svdvals(step)[:k] - 1).clamp_min(0).square().sum()
        state = moved
    return weight * len(factors.blocks) * by_ratios, weight * len(factors.blocks) * by_values


def test_the_least_residual_weights_pay_their_ratios_and_no_more() -> None:
    matrix, weight = with_spectrum(0, [5.0, 1.0, 0.2], 4, 5), 0.3
    best = optimal_resnet_factors(matrix, residual_weight=weight, depth=4, block_depth=1)
    ends = (best.embedding.square().sum() + best.unembedding.square().sum()) / 2
    by_ratios, by_values = blocks_by_ratios(best, weight)
    assert_close(by_values, best.cost(residual_weight=weight) - ends, relative=1e-10)
    assert_close(by_ratios, by_values, relative=1e-10)
    assert_close(
        ends + by_ratios, resnet_cost(torch.linalg.svdvals(matrix), residual_weight=weight, depth=4, block_depth=1)
    )
    with pytest.raises(AssertionError):  # blocks without their factor L
        assert_close(ends + by_ratios / 4, best.cost(residual_weight=weight), relative=1e-3)


@settings(deadline=None, max_examples=20)
@given(seed=SEEDS)
def test_any_residual_weights_pay_at_least_the_ratios_they_make(seed: int) -> None:
    blocks = tuple((0.4 * normal(seed + l, 4, 4),) for l in range(3))
    factors = ResnetFactors(normal(seed + 5, 4, 4), blocks, normal(seed + 6, 3, 4))
    by_ratios, by_values = blocks_by_ratios(factors, 0.3)
    ends = (factors.embedding.square().sum() + factors.unembedding.square().sum()) / 2
    assert_at_most(by_ratios, by_values, slack=1e-10)
    assert_at_most(ends + by_values, factors.cost(residual_weight=0.3))
    s = torch.linalg.svdvals(factors.product())
    assert_at_most(resnet_cost(s, residual_weight=0.3, depth=3, block_depth=1), factors.cost(residual_weight=0.3))
