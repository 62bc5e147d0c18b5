"""Jacobians by the input of every layer and traces of tangent kernels of fully connected networks, in closed form.

At a kink the derivative is 1. Of any other module, by automatic differentiation: `derivatives`.
"""

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.diagnostics.derivatives import Derivatives
from isthmus.diagnostics.movement import Movement
from isthmus.networks import FullyConnected, LayerState, walk
from isthmus.networks.jacobians import without_excess
from isthmus.networks.layers import activation_derivative


def derivatives_of_layers(network: FullyConnected, points: Tensor, movement: Movement) -> Derivatives:
    """Jacobians by layer and tangent kernel traces, (|a_{l-1}|^2 + 1) |df/dz_l|_F^2 (FC-38; no 1 without bias)."""
    first, last = network.weights[0].detach(), network.weights[-1].detach()
    moved = movement.along(first[None])[0]
    if network.depth > 1:  # of many inputs or outputs only what has the same singular values
        (last, _), (first, _), (moved, _) = without_excess(last), without_excess(first.mT), without_excess(moved.mT)
        first, moved = first.mT, moved.mT
    both = torch.cat([first, moved], 1)  # one pass for the Jacobian and for what it is along the movement
    jacobians, squares, states = _through_layers(network, points, {network.depth: last, 1: both})
    jacobians[0], by_input = jacobians[0].split([first.shape[1], moved.shape[1]], 2)
    sizes = [min(width, network.dimensions[-1]) for width in network.dimensions[:-1]]
    values = [torch.linalg.svdvals(j) for j in jacobians]
    # what was left out has singular values of 0
    spectra = [torch.nn.functional.pad(s, (0, size - s.shape[-1])) for s, size in zip(values, sizes, strict=True)]
    one = 1.0 if network.has_bias else 0.0
    features = [a.square().sum(1) + one for a in (points, *(s.activation for s in states[:-1]))]
    traces = [feature * square for feature, square in zip(features, squares, strict=True)]
    return Derivatives(spectra=spectra, traces=traces, by_input=torch.linalg.svdvals(by_input))


def layer_jacobians(network: FullyConnected, x: Float[Tensor, "n d_in"]) -> list[Float[Tensor, "n d_out width"]]:
    """df/da_{l-1} for l = 1..L: the Jacobian of the outputs with respect to the input of each weight layer.

    The first is df/dx, the last W_L repeated. The derivative of the activation at 0 is 1.
    """
    return _through_layers(network, x, {})[0]


def _through_layers(
    network: FullyConnected, x: Tensor, ends: Mapping[int, Tensor]
) -> tuple[list[Tensor], list[Tensor], list[LayerState]]:
    """df/da_{l-1} and |df/dz_l|_F^2 of every layer l, (n, d_out, width) and (n,), and the layers on the way forward.

    Other matrices stand for the layers that have one in `ends`.
    """
    with torch.no_grad():
        states = walk(network, x)
        weights = [ends.get(l, weight.detach()) for l, weight in enumerate(network.weights, 1)]
        jacobians = [weights[-1].expand(len(x), -1, -1)]
        squares = [x.new_full((len(x),), float(network.dimensions[-1]), dtype=torch.float64)]
        for l in range(network.depth - 1, 0, -1):
            product = jacobians[-1]
            if network.is_activated(l):
                derivative = activation_derivative(states[l - 1].preactivation, network.negative_slope)
                product = product * derivative[:, None, :]
            squares.append(product.square().sum((1, 2)))
            jacobians.append(product @ weights[l - 1])
    return jacobians[::-1], squares[::-1], states
