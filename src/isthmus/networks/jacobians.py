"""Jacobians of a fully connected network at many points at once, from its weights and activation pattern.

Largest rank over whole regions: `networks.segments`, `networks.slices`. Ranks and bounds from Jacobians: `theory`.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.networks.fully_connected import FullyConnected
from isthmus.networks.layers import activation_derivative, walk


def jacobians(network: FullyConnected, x: Float[Tensor, "n d_in"]) -> Float[Tensor, "n d_out d_in"]:
    """Jf(x) = W_L D_{L-1} .. D_1 W_1 at every sample (*exact*; at a kink, slope 1 is taken).

    Args:
        network: any fully connected network.
        x: samples as rows.

    Raises:
        ShapeError: `x` does not fit the network.
    """
    with torch.no_grad():
        product = torch.eye(network.dimensions[0], dtype=x.dtype, device=x.device).expand(len(x), -1, -1)
        for state in walk(network, x):
            product = state.weight @ product
            if network.is_activated(state.position):
                slopes = activation_derivative(state.preactivation, network.negative_slope)
                product = slopes[:, :, None] * product
        return product
