from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from isthmus.networks import FullyConnected
from isthmus.theory import (
    curvature_lower_bound,
    piecewise_jacobian,
    prefix_jacobians,
    segment_kernel_bound,
    suffix_jacobians,
    tangent_kernel,
    tangent_kernel_curvature,
)
from theorem_checks import SEEDS, assert_at_most, assert_close, linearised, normal, random_network

pytestmark = pytest.mark.theorem("FC-42")


def curvature_and_jacobians(network: FullyConnected, x: Tensor) -> tuple[Tensor, Tensor]:
    net = linearised(network, x)
    prefix, suffix = prefix_jacobians(net.weights, net.derivatives), suffix_jacobians(net.weights, net.derivatives)
    return tangent_kernel_curvature(prefix, suffix), piecewise_jacobian(net.weights, net.derivatives)


@settings(deadline=None, max_examples=40)
@given(seed=SEEDS, slope=st.sampled_from([0.0, 0.3, -0.6]), depth=st.integers(2, 5))
def test_the_kernel_is_curved_where_the_jacobian_is_large(seed: int, slope: float, depth: int) -> None:
    network = random_network(seed, [3, *[4] * (depth - 1), 2], slope=slope)
    curvature, jacobians = curvature_and_jacobians(network, normal(seed, 5, 3))
    norms = torch.linalg.eigvalsh(curvature)[:, -1]
    assert_at_most(curvature_lower_bound(jacobians, depth=depth, negative_slope=slope), norms, slack=1e-10)


def test_scalar_linear_networks_meet_the_constant_and_twice_it_is_false() -> None:
    weights, depth = [torch.tensor([[1.3]], dtype=torch.float64)] * 5, 5
    ones = [torch.ones(1, 1, dtype=torch.float64)] * 4
    curvature = tangent_kernel_curvature(prefix_jacobians(weights, ones), suffix_jacobians(weights, ones))[0, 0, 0]
    bound = curvature_lower_bound(torch.tensor([[[1.3**5]]], dtype=torch.float64), depth=depth)[0]
    assert_close(curvature, bound)
    with pytest.raises(AssertionError):  # 2 L, as printed
        assert_at_most(2 * bound, curvature)


def test_the_curvature_is_the_mixed_derivative_of_the_kernel() -> None:
    network, x = random_network(0, [2, 4, 2]), normal(3, 1, 2)
    curvature = curvature_and_jacobians(network, x)[0][0]
    step = 1e-4  # the kernel is bilinear in (x, y) inside one region, so differences are exact up to rounding

    def kernel(dx: Tensor, dy: Tensor) -> Tensor:
        left, right = linearised(network, x + dx), linearised(network, x + dy)
        sides = [(n.activations, suffix_jacobians(n.weights, n.derivatives)) for n in (left, right)]
        return tangent_kernel(sides[0], sides[1])[0, 0]

    none, first = torch.zeros(2, dtype=torch.float64), step * torch.eye(2, dtype=torch.float64)
    for a in range(2):
        for b in range(2):
            mixed = kernel(first[a], first[b]) - kernel(first[a], none) - kernel(none, first[b]) + kernel(none, none)
            assert_close(curvature[2 * a : 2 * a + 2, 2 * b : 2 * b + 2], mixed / step**2, relative=1e-6, absolute=1e-6)


@settings(deadline=None, max_examples=40)
@given(seed=SEEDS, depth=st.integers(2, 5))
def test_one_end_of_a_linear_segment_has_a_large_kernel(seed: int, depth: int) -> None:
    network = random_network(seed, [3, *[4] * (depth - 1), 2])
    x = normal(seed, 1, 3)
    ends = torch.cat([x, x + 0.05 * normal(seed + 1, 1, 3)])
    net = linearised(network, ends)
    if any(bool((d[0] != d[1]).any()) for d in net.derivatives):
        return  # the pattern changes on the way: the statement is silent
    kernel = tangent_kernel((net.activations, suffix_jacobians(net.weights, net.derivatives)))
    largest = max(float(torch.linalg.eigvalsh(kernel[i, i])[-1]) for i in range(2))
    jacobian = piecewise_jacobian(net.weights, net.derivatives)[:1]
    assert_at_most(segment_kernel_bound(jacobian, ends[1:] - ends[:1], depth=depth), largest)


def test_a_segment_of_no_length_says_nothing() -> None:
    assert_close(segment_kernel_bound(torch.eye(2)[None], torch.zeros(1, 2), depth=3), torch.zeros(1))


def assert_sharp(curvature: Tensor, bound: Tensor) -> None:
    assert_close(curvature, bound)


@pytest.mark.parametrize("a", [0.3, -0.6])
def test_scalar_leaky_networks_meet_the_factor_of_the_slope(a: float) -> None:
    # all preactivations but the first on the side of slope a when a > 0; every other one when a < 0
    weights, depth = [torch.tensor([[1.3]], dtype=torch.float64)] * 5, 5
    slopes = [torch.tensor([[a]], dtype=torch.float64)] * 4
    curvature = tangent_kernel_curvature(prefix_jacobians(weights, slopes), suffix_jacobians(weights, slopes))[:, 0, 0]
    jacobian = piecewise_jacobian(weights, slopes)
    assert_sharp(curvature, curvature_lower_bound(jacobian, depth=depth, negative_slope=a))
    with pytest.raises(AssertionError):  # |a| instead of |a|^(2 - 2/L)
        assert_sharp(curvature, abs(a) * curvature_lower_bound(jacobian, depth=depth))
    along = segment_kernel_bound(jacobian, torch.tensor([[2.0]]).double(), depth=depth, negative_slope=a)
    assert_sharp(curvature, along)  # |y - x|^2 / 4 = 1


@pytest.mark.parametrize(("w", "depth"), [(1.0, 3), (1.4, 5), (0.5, 2)])
def test_a_segment_centred_at_zero_meets_its_bound_without_biases(w: float, depth: int) -> None:
    weights = [torch.tensor([[w]], dtype=torch.float64)] * depth
    ones = [torch.ones(2, 1, dtype=torch.float64)] * (depth - 1)
    ends = torch.tensor([[3.0], [-3.0]], dtype=torch.float64)
    activations = [ends * w**l for l in range(depth)]
    kernel = tangent_kernel((activations, suffix_jacobians(weights, ones)), bias=False)
    jacobian = piecewise_jacobian(weights, ones)[:1]
    bound = segment_kernel_bound(jacobian, ends[1:] - ends[:1], depth=depth)
    assert_sharp(kernel[0, 0, 0], bound)
    with pytest.raises(AssertionError):  # |y - x|^2 / 2
        assert_sharp(kernel[0, 0, 0], 2 * bound)


@pytest.mark.parametrize(("depth", "power"), [(2, 1), (7, 12), (21, 15), (39, 8)])
def test_no_rounding_of_a_tiny_slope_lifts_the_bound_above_what_a_network_attains(depth: int, power: int) -> None:
    """All are powers of 2: slope 2^(-m L), weights 2^(m (L - 1)), Jacobian 1, prefixes and suffixes 2^(-m l)."""
    slope, step = 2.0 ** (-power * depth), Fraction(1, 2**power)
    attained = sum((step**l * step ** (depth - 1 - l)) ** 2 for l in range(depth))
    double = torch.ones(1, 1, 1).double()
    bound = float(curvature_lower_bound(double, depth=depth, negative_slope=slope, error=0.0))
    assert (1 - 1e-12) * attained < Fraction(bound) <= attained
    along = segment_kernel_bound(double, 2 * double[0], depth=depth, negative_slope=slope, error=0.0)
    assert Fraction(float(along)) <= attained  # |y - x|^2 / 4 = 1
