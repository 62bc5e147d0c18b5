from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from isthmus.theory import numerical_rank
from theorem_checks import SEEDS, assert_at_most, normal, with_spectrum

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
