"""Jacobians by hand against automatic differentiation, for every slope and with linear layers; none of rounding."""

from collections.abc import Iterable

import pytest
import torch
from torch import Tensor, nn

from isthmus import diagnose
from isthmus.diagnostics.layer_jacobians import layer_jacobians
from isthmus.networks import FullyConnected, jacobians, walk
from tolerances import rounding

SLOPES = (0.0, 0.3, -0.5)


def make(
    slope: float, *, linear: tuple[int, ...] = (), bias: bool = True, seed: int = 0
) -> tuple[FullyConnected, Tensor]:
    network = FullyConnected(
        5, 3, width=(7, 4, 6), depth=4, negative_slope=slope, linear=linear, bias=bias, seed=seed, dtype=torch.float64
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


def scaled(parameters: Iterable[Tensor], factor: float) -> None:
    with torch.no_grad():
        for parameter in parameters:
            parameter.mul_(factor)


def as_sequential(network: FullyConnected) -> nn.Sequential:
    layers: list[nn.Module] = []
    for weight, bias in zip(network.weights, network.biases, strict=True):
        layer = nn.Linear(weight.shape[1], weight.shape[0], dtype=weight.dtype)
        layer.load_state_dict({"weight": weight.detach(), "bias": bias.detach()})
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


@pytest.mark.parametrize("factor", [1e-9, 1e-17, 1e-40])
@pytest.mark.parametrize("sequential", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 1000])
def test_a_jacobian_that_no_output_shows_certifies_nothing(factor: float, sequential: bool, seed: int) -> None:
    """Weights of 1e-17, all decayed together, had certified ranks of 1 and 2 of a constant.

    At 1e-9 outputs may differ by their rounding, of which cuts of network 1000 kept all through two directions.
    """
    network, x = make(0.0, seed=seed)
    decayed = as_sequential(network) if sequential else network
    scaled(decayed.parameters(), factor)
    outputs = decayed(x).detach()
    assert float(outputs.std(0).max()) <= 1e-15 * float(outputs.abs().max())
    found = diagnose(decayed, x)
    assert found.rank.lower == 0
    assert found.rank.estimate in {None, 0}
    assert any("computes a constant" in sentence for sentence in found.warnings)


@pytest.mark.parametrize("factor", [1e-9, 1e-17, 1e-40, 1e9])
def test_the_size_of_a_map_is_not_its_rank(factor: float) -> None:
    """The control: the same map in other units has the same rank, however small they make its Jacobian."""
    network, x = make(0.0)
    plain = diagnose(network, x)
    scaled([network.weights[-1], network.biases[-1]], factor)
    small = diagnose(network, x)
    assert plain.rank.lower == small.rank.lower > 0
    assert not any("computes a constant" in sentence for sentence in small.warnings)


def test_outputs_that_jump_between_rows_are_no_constant_where_they_are_flat() -> None:
    """The control: a saturated classifier has no slope at any row, and tells the rows apart."""
    x = torch.cat([torch.full((20, 2), -1.0), torch.full((20, 2), 1.0)]).double()
    x = x + 0.1 * torch.randn(40, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    layer = nn.Linear(2, 1, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.fill_(50.0)
        layer.bias.zero_()
    found = diagnose(nn.Sequential(layer, nn.Sigmoid()), x)
    assert not any("computes a constant" in sentence for sentence in found.warnings)
