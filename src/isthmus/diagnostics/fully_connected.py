"""Derivatives of a fully connected network in closed form: the derivative of the activation at 0 is 1.

Of any other module, by automatic differentiation: `derivatives`.
"""

import torch
from torch import Tensor

from isthmus.diagnostics.derivatives import Derivatives
from isthmus.diagnostics.jacobians import layer_jacobians
from isthmus.networks import FullyConnected, walk
from isthmus.networks.layers import activation_derivative


def derivatives_of_layers(network: FullyConnected, points: Tensor) -> Derivatives:
    """Jacobians by layer and tangent kernel traces, (|a_{l-1}|^2 + 1) |df/dz_l|_F^2 (FC-38; no 1 without bias)."""
    jacobians = layer_jacobians(network, points)
    spectra = [torch.linalg.svdvals(j) for j in jacobians]
    return Derivatives(spectra=spectra, traces=_traces(network, points, jacobians), by_input=spectra[0])


def _traces(network: FullyConnected, points: Tensor, jacobians: list[Tensor]) -> list[Tensor]:
    states = walk(network, points)
    inputs = [points, *(s.activation for s in states[:-1])]
    traces: list[Tensor] = []
    for l in range(1, network.depth + 1):
        if l < network.depth:
            by_preactivation = jacobians[l]
            if network.is_activated(l):
                derivative = activation_derivative(states[l - 1].preactivation, network.negative_slope)
                by_preactivation = by_preactivation * derivative[:, None, :]
            square = by_preactivation.square().sum((1, 2))
        else:
            square = torch.full((len(points),), float(network.dimensions[-1]), dtype=torch.float64)
        features = inputs[l - 1].square().sum(1) + (1.0 if network.has_bias else 0.0)
        traces.append(features * square)
    return traces
