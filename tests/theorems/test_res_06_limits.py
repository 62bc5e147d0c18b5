import math

import pytest
import torch

from isthmus.theory import resnet_cost
from theorem_checks import assert_close

pytestmark = pytest.mark.theorem("RES-06")
VALUES = torch.tensor([3.0, 1.0, 0.3], dtype=torch.float64)


def test_heavy_residual_weights_give_the_nuclear_norm() -> None:
    for depth in (None, 5):
        assert_close(resnet_cost(VALUES, residual_weight=3.0, depth=depth, block_depth=2), VALUES.sum())
    gap = resnet_cost(VALUES, residual_weight=1e4, block_depth=1) - VALUES.sum()
    assert_close(gap, -VALUES.square().sum() / 4e4, relative=1e-3)
    with pytest.raises(AssertionError):
        assert_close(gap, -VALUES.square().sum() / 2e4, relative=1e-3)


@pytest.mark.parametrize("lam", [1e-2, 1e-16, 1e-300])
def test_light_weights_count_the_rank_at_infinite_depth_up_to_a_logarithm(lam: float) -> None:
    ratio = resnet_cost(VALUES, residual_weight=lam, block_depth=2) / (lam * math.log(1 / lam))
    assert_close(ratio, 3 + (1 + VALUES.log()).sum() / math.log(1 / lam))


def test_light_weights_of_blocks_of_one_matrix_approach_the_rank_from_below() -> None:
    ratios = [
        float(resnet_cost(VALUES, residual_weight=lam, block_depth=1)) / (lam * math.log(1 / lam) ** 2)
        for lam in (1e-2, 1e-16, 1e-300)
    ]
    assert ratios == sorted(ratios)
    assert_close(ratios[2], 2.95, relative=0.002)


def test_at_fixed_depth_the_limit_is_a_schatten_sum_not_the_rank() -> None:
    lam, L = 1e-250, 3
    cost = resnet_cost(VALUES, residual_weight=lam, depth=L, block_depth=2)
    schatten = (L + 1) * lam ** (L / (L + 1)) * (VALUES ** (1 / (L + 1))).sum()
    assert_close(cost, schatten, relative=1e-9)
    with pytest.raises(AssertionError):  # (2.4) with the subscript L
        assert_close(cost, torch.tensor(3 * lam * math.log(1 / lam)), relative=0.5)


def test_at_fixed_depth_blocks_of_one_matrix_have_a_schatten_sum_too() -> None:
    lam, L = 1e-250, 3
    cost = resnet_cost(VALUES, residual_weight=lam, depth=L, block_depth=1)

    def assert_limit(power: float) -> None:
        scale = (1 + 2 / L) * lam ** (L / (L + 2)) * (L ** (L + 1) / 2) ** (2 / (L + 2))
        assert_close(cost, scale * (VALUES**power).sum(), relative=1e-9)

    assert_limit(2 / (L + 2))
    with pytest.raises(AssertionError):  # the power of blocks of two
        assert_limit(1 / (L + 1))
