"""What `theory.certificates` and `theory.costs` ask of networks whose layers are known, in float64.

Registered with `theory.network_facts`, which knows of no network. The bounds themselves: `theory.ledger`.
"""

import copy
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from isthmus.networks.departures import departure
from isthmus.networks.enclosed import enclosed_jacobians
from isthmus.networks.fully_connected import FullyConnected
from isthmus.networks.layers import activation_derivative, walk
from isthmus.networks.leaky import LeakyResNet
from isthmus.networks.network import Network
from isthmus.networks.residual_rewriting import as_fully_connected, stream_departure
from isthmus.networks.resnet import ResNet
from isthmus.theory.enclosures import rounded_up
from isthmus.theory.network_facts import ConnectedLayers, LeakyStream, NetworkFacts, ResidualBlocks, facts_of

AnyNetwork = TypeVar("AnyNetwork", bound=Network)


def _double(network: AnyNetwork) -> AnyNetwork:
    return copy.deepcopy(network).double().requires_grad_(False)


def _as_function(network: object, x: Tensor | None, why: str = "") -> NetworkFacts:
    """Of what may compute something else than its weights say: f(x) and Jf(x), by calling it."""
    return replace(facts_of.dispatch(object)(network, x), departure=why)


def _weights(network: FullyConnected) -> tuple[Tensor, ...]:
    return tuple(w.detach() for w in network.weights)


def _penalty(network: Network) -> float:
    """No less than the exact one: it bounds norms, and bounds rest on it."""
    return float(rounded_up(network.penalty(), sum(p.numel() for p in network.parameters())))


def _at(network: FullyConnected, x: Tensor | None, **parts: Any) -> NetworkFacts:
    """Values and Jacobians at the samples, with what rounding can have done to them."""
    chain = _weights(network)
    if x is None:
        return NetworkFacts(chain=chain, **parts)
    found = enclosed_jacobians(network, x)
    return NetworkFacts(x, network(x), found.values, found.error, chain, **parts)


def _off_kinks(network: FullyConnected, x: Tensor | None) -> tuple[Tensor | None, tuple[int, ...]]:
    """The samples whose Jacobians are certainly those of the function, and which the others are."""
    if x is None:
        return None, ()
    x = x.double()
    certain = enclosed_jacobians(network, x).certain
    if not bool(certain.any()):
        raise ValueError(
            f"certificates: needs a sample where the function has a derivative. All {len(x)} lie on kinks as far as "
            "float64 can tell: move them a little. In very deep networks its rounding hides on which side they lie: "
            "then take fewer layers; `costs` needs no samples."
        )
    return x[certain], tuple((~certain).nonzero()[:, 0].tolist())


def _connected(
    network: FullyConnected, x: Tensor | None, *, without_bias: frozenset[int] = frozenset()
) -> NetworkFacts:
    """With the numbers of layers whose biases are no parameters: zeros that `_as_connected` wrote."""
    if why := departure(network, FullyConnected):
        return _as_function(network, x, why)
    own = _double(network)
    x, passed_over = _off_kinks(own, x)
    layers = ConnectedLayers(
        penalty=_penalty(own),
        weights=_weights(own),
        biases=tuple(None if l in without_bias else own.bias_of(l) for l in range(1, own.depth + 1)),
        negative_slope=own.negative_slope,
        linear=not any(own.is_activated(l) for l in range(1, own.depth)),
        activated=tuple(own.is_activated(l) for l in range(1, own.depth)),
        **_states(own, x),
    )
    return _at(own, x, layers=layers, passed_over=passed_over)


def _states(network: FullyConnected, x: Tensor | None) -> dict[str, tuple[Tensor, ...]]:
    if x is None:
        return {}
    hidden = walk(network, x)[:-1]
    slopes = {s.position: network.negative_slope if network.is_activated(s.position) else 1.0 for s in hidden}
    return {
        "enters": (x, *(s.activation for s in hidden)),
        "preactivations": tuple(s.preactivation for s in hidden),
        "derivatives": tuple(activation_derivative(s.preactivation, slopes[s.position]) for s in hidden),
    }


def _residual(network: ResNet, x: Tensor | None) -> NetworkFacts:
    if why := departure(network, ResNet) or stream_departure(network):
        return _as_function(network, x, why)
    own = _double(network)
    chain = as_fully_connected(own)
    x, passed_over = _off_kinks(chain, x)
    blocks = ResidualBlocks(_penalty(own), own.residual_weight, own.depth, own.block_depth, own.linear)
    # no theorem knows of a waist; and that the chain is the network up to rounding is not proved
    return replace(_at(chain, x, blocks=None if own.waist else blocks, passed_over=passed_over), error=None)


def _leaky(network: LeakyResNet, x: Tensor | None) -> NetworkFacts:
    if why := departure(network, LeakyResNet) or stream_departure(network):
        return _as_function(network, x, why)
    own = _double(network)
    chain = as_fully_connected(own)
    x, passed_over = _off_kinks(chain, x)
    activations = None if x is None else torch.stack([state.activation for state in walk(own, x)[:-1]])
    stream = LeakyStream(_penalty(own), own.effective_depth, own.has_bias, activations)
    return replace(_at(chain, x, stream=stream, passed_over=passed_over), error=None)


def _sequential(network: nn.Sequential, x: Tensor | None) -> NetworkFacts:
    """Of linear layers with relus between them, as a fully connected network; of anything else as a function."""
    why = departure(network, nn.Sequential)
    same = None if why else _as_connected(network)
    return _as_function(network, x, why) if same is None else _connected(same[0], x, without_bias=same[1])


def _one_layer(layer: nn.Linear, x: Tensor | None) -> NetworkFacts:
    why = departure(layer, nn.Linear)
    return _as_function(layer, x, why) if why else _sequential(nn.Sequential(layer), x)


def _passes(step: nn.Module) -> bool:
    return not departure(step, nn.Identity) or (not departure(step, nn.Dropout) and not step.training)


def _as_connected(network: nn.Sequential) -> tuple[FullyConnected, frozenset[int]] | None:
    """The network, with zeros for biases of layers that have none; and the numbers of these."""
    linears: list[nn.Linear] = []
    slopes: dict[int, float] = {}  # by the number of the layer before
    for step in network:
        if _passes(step):
            continue
        if isinstance(step, nn.Linear) and not departure(step, nn.Linear):
            linears.append(step)
        elif not departure(step, nn.ReLU, nn.LeakyReLU) and linears and len(linears) not in slopes:
            slopes[len(linears)] = float(getattr(step, "negative_slope", 0.0))
        else:
            return None
    if (
        not linears
        or len(linears) in slopes
        or len(set(slopes.values())) > 1
        or not all(abs(slope) < 1 for slope in slopes.values())
    ):
        return None
    found: list[Tensor | None] = [getattr(step, "bias", None) for step in linears]
    biases = [
        step.weight.new_zeros(step.out_features) if b is None else b for step, b in zip(linears, found, strict=True)
    ]
    same = FullyConnected.from_layers(
        [step.weight.detach() for step in linears], [b.detach() for b in biases],
        negative_slope=next(iter(slopes.values()), 0.0), linear=set(range(1, len(linears))) - set(slopes),
    )  # fmt: skip
    return same, frozenset(l for l, b in enumerate(found, 1) if b is None)


facts_of.register(nn.Sequential)(_sequential)
facts_of.register(nn.Linear)(_one_layer)
facts_of.register(FullyConnected)(_connected)
facts_of.register(ResNet)(_residual)
facts_of.register(LeakyResNet)(_leaky)
