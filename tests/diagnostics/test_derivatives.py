"""Jacobians by hand against automatic differentiation, for every kind of slope and with linear layers."""

import pytest
import torch
from torch import Tensor

from isthmus.diagnostics.layer_jacobians import layer_jacobians
from isthmus.networks import FullyConnected, jacobians, walk
from tolerances import rounding

SLOPES = (0.0, 0.3, -0.5)


def make(slope: float, *, linear: tuple[int, ...] = (), bias: bool = True) -> tuple[FullyConnected, Tensor]:
    network = FullyConnected(
        5, 3, width=(7, 4, 6), depth=4, negative_slope=slope, linear=linear, bias=bias, seed=0, dtype=torch.float64
    )
    with torch.no_grad():
        for b in network.biases:
            b.copy_(torch.linspace(-0.5, 0.5, len(b), dtype=torch.float64))
    return network, torch.randn(20, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def automatic(network: FullyConnected, x: Tensor) -> Tensor:
    return torch.vmap(torch.func.jacrev(lambda row: network(row[None])[0]))(x).detach()


def scale_of(network: FullyConnected) -> float:
    product = 1.0
    for weight in network.weights:
        product *= float(torch.linalg.matrix_norm(weight.detach(), 2))
    return product


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("linear", [(), (2,), (1, 2, 3)])
@pytest.mark.parametrize("slope", SLOPES)
def test_the_jacobian_is_the_automatic_one(slope: float, linear: tuple[int, ...], bias: bool) -> None:
    network, x = make(slope, linear=linear, bias=bias)
    expected, allowed = automatic(network, x), rounding(size=30, condition=scale_of(network))
    assert float((jacobians(network, x) - expected).abs().max()) <= allowed
    wrong = network.rewritten(*network.written_layers(), linear=(1, 3) if 1 not in linear else ())
    assert float((jacobians(wrong, x) - expected).abs().max()) > 1e6 * allowed


@pytest.mark.parametrize("slope", SLOPES)
def test_every_layer_has_the_jacobian_of_what_follows_it(slope: float) -> None:
    network, x = make(slope, linear=(2,))
    with torch.no_grad():
        inputs = [x, *(s.activation for s in walk(network, x)[:-1])]
    found = layer_jacobians(network, x)
    weights, biases = network.written_layers()
    assert len(found) == network.depth
    for l, (jacobian, a) in enumerate(zip(found, inputs, strict=True)):
        rest = network.rewritten(weights[l:], None if biases is None else biases[l:], linear=[2 - l] if l < 2 else [])
        expected = automatic(rest, a)
        assert jacobian.shape == expected.shape
        assert float((jacobian - expected).abs().max()) <= rounding(size=30, condition=scale_of(rest))


def test_the_derivative_at_0_is_1() -> None:
    one = torch.ones(1, 1, dtype=torch.float64)
    network = FullyConnected.from_layers([one, one])
    x = torch.tensor([[-1.0], [0.0], [1.0]], dtype=torch.float64)
    assert jacobians(network, x).flatten().tolist() == [0.0, 1.0, 1.0]


def test_the_batch_of_no_row_has_no_jacobian() -> None:
    network, x = make(0.0)
    assert jacobians(network, x[:0]).shape == (0, 3, 5)
