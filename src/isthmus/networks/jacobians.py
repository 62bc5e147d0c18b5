"""Jacobians of a fully connected network at many points at once, and how far rounding can have moved them.

Largest rank over whole regions: `networks.segments`, `networks.slices`. Ranks and bounds from Jacobians: `theory`.
"""

from dataclasses import dataclass

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
            product = _next(network, state.position, state.weight, state.preactivation, product)
        return product


@dataclass(frozen=True, slots=True)
class EnclosedJacobians:
    """Jacobians of a network with bounds on their rounding.

    Attributes:
        values: as `jacobians` returns them.
        error: for each sample, a bound on the operator norm of (values - the exact product of the weights).
    """

    values: Float[Tensor, "n d_out d_in"]
    error: Float[Tensor, " n"]


def enclosed_jacobians(network: FullyConnected, x: Float[Tensor, "n d_in"]) -> EnclosedJacobians:
    """`jacobians` with what their rounding can be: pass `error` on to the bounds of `theory` (*upper bound*).

        e_l = |W_l|_op e_{l-1} + (n + 2) eps |W_l|_F |P_{l-1}|_F,    P_l = D_l W_l P_{l-1} as computed

    a sum of n products errs by at most (n + 2) eps times the sum of their magnitudes. The patterns D_l are those that
    were computed: where a preactivation rounds to the other side of 0 this is the Jacobian of a neighbour.

    Args:
        network: any fully connected network.
        x: samples as rows.

    Raises:
        ShapeError: `x` does not fit the network.

    Accuracy: the bound is first order in eps, with one part in a hundred to spare. Test: FC-13.
    """
    with torch.no_grad():
        product = torch.eye(network.dimensions[0], dtype=x.dtype, device=x.device).expand(len(x), -1, -1)
        error = product.new_zeros(len(x))
        number = torch.finfo(x.dtype)
        for state in walk(network, x):
            unit = (state.weight.shape[1] + 2) * number.eps
            total = torch.linalg.matrix_norm(state.weight)
            # no smaller than the largest singular value, whatever its rounding
            reach = torch.linalg.matrix_norm(state.weight, 2) * (1 + 8 * unit) if state.weight.numel() else total
            sizes = torch.linalg.matrix_norm(product)
            error = reach * error + unit * total * sizes + number.tiny * max(state.weight.shape)
            product = _next(network, state.position, state.weight, state.preactivation, product)
        return EnclosedJacobians(product, 1.01 * error)


def _next(network: FullyConnected, position: int, weight: Tensor, preactivation: Tensor, product: Tensor) -> Tensor:
    """D_l W_l P of the product P of the layers before."""
    product = weight @ product
    if not network.is_activated(position):
        return product
    return activation_derivative(preactivation, network.negative_slope)[:, :, None] * product
