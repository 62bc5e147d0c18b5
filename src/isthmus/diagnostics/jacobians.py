"""Jacobians of a network's outputs by the input of every layer. By the network's input only: `networks.jacobians`."""

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.networks import FullyConnected, walk
from isthmus.networks.layers import activation_derivative


def layer_jacobians(network: FullyConnected, x: Float[Tensor, "n d_in"]) -> list[Float[Tensor, "n d_out width"]]:
    """df/da_{l-1} for l = 1..L: the Jacobian of the outputs with respect to the input of each weight layer.

    The first is df/dx, the last W_L repeated. The derivative of the activation at 0 is 1.
    """
    with torch.no_grad():
        states = walk(network, x)
        product = network.weights[-1].detach().expand(len(x), -1, -1)
        out = [product]
        for l in range(network.depth - 1, 0, -1):
            if network.is_activated(l):
                derivative = activation_derivative(states[l - 1].preactivation, network.negative_slope)
                product = product * derivative[:, None, :]
            product = product @ network.weights[l - 1].detach()
            out.append(product)
    return out[::-1]
