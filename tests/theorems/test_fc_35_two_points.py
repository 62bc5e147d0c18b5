import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.theory import (
    layer_jacobian_bound,
    piecewise_jacobian,
    prefix_jacobians,
    suffix_jacobians,
    two_point_bound,
)
from theorem_checks import SEEDS, assert_at_most, assert_close, linearised, normal, random_network

pytestmark = pytest.mark.theorem("FC-35")


@settings(deadline=None, max_examples=60)
@given(seed=SEEDS, depth=st.integers(2, 5))
def test_a_change_of_jacobian_costs_norm(seed: int, depth: int) -> None:
    net = linearised(random_network(seed, [3, *[5] * (depth - 1), 3]), normal(seed, 2, 3))
    jacobians = piecewise_jacobian(net.weights, net.derivatives)
    before = layer_jacobian_bound(prefix_jacobians(net.weights, net.derivatives))
    after = layer_jacobian_bound(suffix_jacobians(net.weights, net.derivatives))
    bound = two_point_bound(
        jacobians[0], jacobians[1], depth=depth, prefix_norm=float(before[1]), suffix_norm=float(after[0])
    )
    assert_at_most(bound, net.penalty)


@pytest.mark.parametrize("w", [0.3, 0.7, 1.0])
def test_a_scalar_network_with_one_kink_meets_the_bound(w: float) -> None:
    slope, flat = torch.tensor([[w * w]], dtype=torch.float64), torch.zeros(1, 1, dtype=torch.float64)
    found = two_point_bound(slope, flat, depth=2, prefix_norm=1, suffix_norm=1)
    assert_close(found, 2 * w * w)
    assert_at_most(found, 2 * w * w)
    with pytest.raises(AssertionError):  # S/L summed over both points, not averaged
        assert_at_most(found + w * w, 2 * w * w)


def test_the_constants_cover_the_identity() -> None:
    jacobian = torch.eye(2)
    with pytest.raises(ValueError, match="needs prefix_norm >= 1"):
        two_point_bound(jacobian, jacobian, depth=2, prefix_norm=0.5, suffix_norm=1)
