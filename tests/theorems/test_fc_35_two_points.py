import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from isthmus.networks import FullyConnected
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


def kinked(depth: int, w: float, ends: tuple[float, float]) -> tuple[Tensor, Tensor, float, float, float]:
    """Jacobians at x and y, C1 at y, C2 at x and the norm of x -> w^depth relu(x), two such neurons side by side."""
    network = FullyConnected.from_layers([w * torch.eye(2)] * depth)
    net = linearised(network, torch.tensor(ends, dtype=torch.float64)[:, None].expand(2, 2))
    jacobians = piecewise_jacobian(net.weights, net.derivatives)
    before = layer_jacobian_bound(prefix_jacobians(net.weights, net.derivatives))
    after = layer_jacobian_bound(suffix_jacobians(net.weights, net.derivatives))
    return jacobians[0], jacobians[1], float(before[1]), float(after[0]), net.penalty


# C1 C2 = 1 * 4; and 4 * 2, since the second hidden layer is at its kink where the first is dead: derivative 1
@pytest.mark.parametrize(("ends", "constants"), [((1.0, -1.0), 4), ((-1.0, 1.0), 8)])
def test_without_the_lipschitz_constants_a_steep_kink_would_break_the_bound(
    ends: tuple[float, float], constants: int
) -> None:
    at_x, at_y, prefix, suffix, penalty = kinked(3, 2.0, ends)
    bound = two_point_bound(at_x, at_y, depth=3, prefix_norm=prefix, suffix_norm=suffix)
    assert_close(bound, 2 * (1.5 * 4 + 8 / constants))  # (L/2) w^2 + w^3 / (C1 C2) for each neuron
    assert_at_most(bound, penalty)
    with pytest.raises(AssertionError):
        assert_at_most(two_point_bound(at_x, at_y, depth=3, prefix_norm=1, suffix_norm=1), penalty)


@pytest.mark.parametrize("w", [0.4, 1.0])
def test_two_kinked_neurons_meet_the_bound_in_the_nuclear_norm(w: float) -> None:
    at_x, at_y, prefix, suffix, penalty = kinked(2, w, (1.0, -1.0))
    bound = two_point_bound(at_x, at_y, depth=2, prefix_norm=prefix, suffix_norm=suffix)
    assert_close(bound, penalty)
    with pytest.raises(AssertionError):  # the Frobenius norm of the change
        assert_close(bound - 2 * w * w + 2**0.5 * w * w, penalty)


def test_a_leaky_network_is_refused() -> None:
    jacobian = torch.eye(2)
    with pytest.raises(ValueError, match=r"needs a ReLU network.*got negative_slope=0\.1"):
        two_point_bound(jacobian, jacobian, depth=2, prefix_norm=1, suffix_norm=1, negative_slope=0.1)


def test_the_difference_has_the_errors_of_both_jacobians() -> None:
    """3 and 1, each up to .1, at depth 2: (2.9 + .9) + (2 - .2) / (2 * 1.5)."""
    x, y = torch.full((1, 1), 3.0).double(), torch.full((1, 1), 1.0).double()
    assert_close(two_point_bound(x, y, depth=2, prefix_norm=2.0, suffix_norm=1.5, error=0.1), 4.4, relative=1e-12)
