import math

import pytest
import torch
from hypothesis import given, settings
from torch import Tensor

from isthmus.networks import FullyConnected, rebalance
from isthmus.theory import (
    activation_norm_bound,
    log_pseudo_determinant,
    piecewise_jacobian,
    suffix_jacobians,
    tangent_kernel_trace,
)
from theorem_checks import SEEDS, assert_at_most, assert_close, linearised, normal, random_network

pytestmark = pytest.mark.theorem("FC-39")


@settings(deadline=None, max_examples=20)
@given(seed=SEEDS)
def test_balanced_networks_have_bounded_activations(seed: int) -> None:
    network = rebalance(random_network(seed, [3, 4, 4, 2], bias=0.2), tolerance=1e-9)
    net = linearised(network, normal(seed, 4, 3))
    jacobians = piecewise_jacobian(net.weights, net.derivatives)
    regular = torch.linalg.svdvals(jacobians)[:, 1] > 1e-3
    traces = tangent_kernel_trace((net.activations, suffix_jacobians(net.weights, net.derivatives)))
    total = torch.stack([a.square().sum(1) + 1 for a in net.activations]).sum(0)
    for i in regular.nonzero()[:, 0]:
        logarithm = log_pseudo_determinant(jacobians[i : i + 1], rank=2)
        bound = activation_norm_bound(logarithm, rank=2, excess=net.penalty - 2 * 3, tangent_scale=float(traces[i]) / 3)
        assert_at_most(total[i], 3 * bound)


def test_the_formula_and_its_flat_part() -> None:
    def bound(excess: float) -> Tensor:
        logarithm = torch.tensor([math.log(8.0)], dtype=torch.float64)
        return activation_norm_bound(logarithm, rank=3, excess=excess, tangent_scale=6.0)

    assert_close(bound(0.0), torch.tensor([0.5]))
    assert_close(bound(-5.0), torch.tensor([0.5]))  # max{1, .}
    assert_close(bound(3.0), torch.tensor([0.5 * math.e], dtype=torch.float64))
    with pytest.raises(AssertionError):
        assert_close(bound(3.0), torch.tensor([0.5]))


def test_scalar_identity_networks_meet_it() -> None:
    # f(x) = x through L unit weights: Tr Theta = L (x^2 + 1) and |a_l|^2 + 1 = x^2 + 1 in each layer
    depth, network = 7, FullyConnected.from_layers([torch.eye(1)] * 7, [torch.zeros(1)] * 7)
    net = linearised(network, torch.tensor([[3.0]], dtype=torch.float64))
    jacobian = piecewise_jacobian(net.weights, net.derivatives)
    trace = tangent_kernel_trace((net.activations, suffix_jacobians(net.weights, net.derivatives)))
    bound = activation_norm_bound(
        log_pseudo_determinant(jacobian, rank=1),
        rank=1,
        excess=net.penalty - depth,
        tangent_scale=float(trace) / depth,
    )
    total = torch.stack([a.square().sum(1) + 1 for a in net.activations]).sum(0)
    assert_close(total, depth * bound)
    assert_close(total, torch.tensor([70.0]))
    with pytest.raises(AssertionError):
        assert_at_most(total, 0.99 * depth * bound)
