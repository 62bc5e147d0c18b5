from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from isthmus.theory import numerical_rank
from theorem_checks import SEEDS, assert_at_most, normal

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
    with pytest.raises(AssertionError):  # the printed ratio turned round
        assert_at_most(2.0, 0.5)
