import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from isthmus.networks import FullyConnected
from isthmus.theory import (
    suffix_jacobians,
    tangent_kernel,
    tangent_kernel_by_layer,
    tangent_kernel_trace,
    tangent_kernel_trace_by_layer,
)
from theorem_checks import SEEDS, assert_close, linearised, normal, random_network

pytestmark = pytest.mark.theorem("FC-38")


def gradients(network: FullyConnected, x: Tensor) -> Tensor:
    """df(x)/dW by automatic differentiation, shape (n, d_out, number of parameters)."""
    parameters = list(network.parameters())
    rows = [
        torch.cat([g.flatten() for g in torch.autograd.grad(out, parameters, retain_graph=True)])
        for outputs in network(x)
        for out in outputs
    ]
    return torch.stack(rows).unflatten(0, (len(x), -1))


@settings(deadline=None, max_examples=20)
@given(seed=SEEDS, slope=st.sampled_from([0.0, 0.2, -0.4]), depth=st.integers(1, 4))
def test_the_kernel_is_the_product_of_gradients(seed: int, slope: float, depth: int) -> None:
    network, x = random_network(seed, [3, *[4] * (depth - 1), 2], slope=slope), normal(seed, 5, 3)
    net = linearised(network, x)
    layers = (net.activations, suffix_jacobians(net.weights, net.derivatives))
    rows = gradients(network, x)
    expected = torch.einsum("nip,mjp->nmij", rows, rows)
    assert_close(tangent_kernel(layers), expected)
    assert_close(tangent_kernel_trace(layers), rows.square().sum((1, 2)))
    assert_close(tangent_kernel_trace_by_layer(layers).sum(0), rows.square().sum((1, 2)))
    with pytest.raises(AssertionError):  # the +1 belongs to the biases
        assert_close(tangent_kernel(layers, bias=False), expected)


def test_two_batches_and_layers() -> None:
    network = random_network(0, [3, 4, 2])
    first, second = linearised(network, normal(1, 5, 3)), linearised(network, normal(2, 3, 3))
    sides = [(net.activations, suffix_jacobians(net.weights, net.derivatives)) for net in (first, second)]
    by_layer = tangent_kernel_by_layer(sides[0], sides[1])
    assert by_layer.shape == (2, 5, 3, 2, 2)
    expected = torch.einsum(
        "nip,mjp->nmij", gradients(network, first.activations[0]), gradients(network, second.activations[0])
    )
    assert_close(by_layer.sum(0), expected)
