import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import lambertw

from isthmus.theory import resnet_cost, resnet_growth
from theorem_checks import assert_at_most, assert_close

pytestmark = pytest.mark.theorem("RES-05")


@settings(deadline=None, max_examples=60)
@given(sigma=st.floats(1e-6, 1e6), lam=st.floats(1e-6, 1e6))
def test_the_limit_is_lambert_for_one_matrix_and_logarithmic_for_two(sigma: float, lam: float) -> None:
    values = torch.tensor([sigma], dtype=torch.float64)
    alpha = float(lambertw(sigma / (2 * lam)).real)
    assert_close(resnet_growth(values, residual_weight=lam, block_depth=1)[0], alpha)
    assert_close(resnet_cost(values, residual_weight=lam, block_depth=1), lam * (alpha**2 + 2 * alpha))
    expected = sigma if sigma <= lam else lam * (1 + math.log(sigma / lam))
    assert_close(resnet_cost(values, residual_weight=lam, block_depth=2), expected)
    if alpha > 1e-3:
        with pytest.raises(AssertionError):  # (lam / 2) alpha^2, as printed
            assert_close(resnet_cost(values, residual_weight=lam, block_depth=1), lam * (alpha**2 / 2 + 2 * alpha))


@pytest.mark.parametrize("block_depth", [1, 2])
def test_costs_fall_to_the_limit_like_one_over_depth(block_depth: int) -> None:
    values = torch.tensor([3.0, 1.0, 0.3], dtype=torch.float64)
    limit = resnet_cost(values, residual_weight=0.05, block_depth=block_depth)
    depths = [2**i for i in range(4, 12)]
    costs = [resnet_cost(values, residual_weight=0.05, depth=d, block_depth=block_depth) for d in depths]
    for shallow, deep in zip(costs[:-1], costs[1:], strict=True):
        assert_at_most(limit, deep)
        assert_at_most(deep, shallow)
    slope = math.log(float((costs[-1] - limit) / (costs[-2] - limit))) / math.log(2)
    assert abs(slope + 1) < 0.01
