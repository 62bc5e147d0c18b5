"""Jacobians of networks and functions at many points at once.

How far rounding can have moved them: `enclosed`. Largest rank over whole regions: `networks.segments`,
`networks.slices`. Ranks and bounds from Jacobians: `theory`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from isthmus.networks.departures import check_as_written, departure
from isthmus.networks.fully_connected import FullyConnected
from isthmus.networks.layers import activation_derivative, walk
from isthmus.theory.bridge import as_torch
from isthmus.theory.differentiation import Function, function_jacobians, in_precision_of
from isthmus.theory.inputs import check_tensor

WIDE = 4  # times as many inputs (outputs) as neurons beside them, from which they are reduced where that says as much


def jacobians(network: Function, x: Float[Tensor, "n ..."] | NDArray[Any] | list[Any]) -> Float[Tensor, "n d_out p"]:
    """Jf(x) at every sample (*exact*), of a fully connected network as the product W_L D_{L-1} .. D_1 W_1.

    At a kink the slope is 1 there. Of everything else it is torch's, by automatic differentiation in chunks, forward or
    backward as takes fewer passes; so too where a hook or a forward of its own may let a network compute something else
    than its weights say.

    Args:
        network: a network, any module or any function of rows of tensors whose rows stand alone.
        x: samples as rows, a tensor, an array or lists, taken in the precision of the network's parameters; of several
            axes, the inputs are flattened in the result.

    Raises:
        ShapeError: `x` does not fit the network, or does not get one row of outputs each.
        TypeError: no function of tensors, or one that leaves torch or detaches.
        ValueError: rows that depend on one another, or on chance.

    >>> network = isthmus.FullyConnected.from_layers([torch.eye(2), torch.ones(1, 2)])
    >>> networks.jacobians(network, torch.tensor([[1.0, -1.0]], dtype=torch.float64)).tolist()
    [[[1.0, 0.0]]]
    """
    rows = samples_of("jacobians", network, x)
    if isinstance(network, FullyConnected) and not departure(network, FullyConnected):
        return _product(network, rows, {})
    return function_jacobians(network, rows)


def samples_of(call: str, network: Function, x: object) -> Tensor:
    """Tensors, arrays and lists as tensors, in the precision of the network."""
    return in_precision_of(network, check_tensor(call, "x", as_torch(x)))


@dataclass(frozen=True, slots=True)
class ReducedJacobians:
    """Jacobians up to orthonormal maps of the inputs and of the outputs, the same at all samples.

        Jf(x) = U J(x) V^T,   U^T U = 1,   V^T V = 1

    J(x) has the singular values of Jf(x) but for zeros; so have all of them stacked by rows or by columns.

    Attributes:
        values: J.
        outputs: U, or None for the identity.
        inputs: V, or None for the identity.

    >>> network = isthmus.FullyConnected.from_layers([torch.ones(1, 40), torch.ones(30, 1)])
    >>> networks.reduced_jacobians(network, torch.ones(2, 40).double()).values.shape
    torch.Size([2, 1, 1])
    """

    values: Float[Tensor, "n reduced_out reduced_in"]
    outputs: Float[Tensor, "d_out reduced_out"] | None
    inputs: Float[Tensor, "d_in reduced_in"] | None


def reduced_jacobians(
    network: FullyConnected,
    x: Float[Tensor, "n d_in"] | NDArray[Any] | list[Any],
    *,
    first: Tensor | None = None,
    last: Tensor | None = None,
) -> ReducedJacobians:
    """Jacobians where only singular values count: none is larger than four times the widths beside it (*exact*).

    Inputs four times as many as neurons of the first layer, or outputs as of the last, are reduced by the QR
    factorisation of that weight matrix; fewer stay as they are.

    Args:
        network: any fully connected network.
        x: samples as rows, a tensor, an array or lists, in any precision.
        first: what stands for W_1, such as this with scaled columns; None: the network's own.
        last: what stands for W_L of a network of two layers or more.

    Raises:
        ShapeError: `x` does not fit the network. ValueError: its weights need not say what it computes, as with a hook.

    Accuracy: that of a QR factorisation. Test: networks/test_jacobians.

    >>> network = isthmus.FullyConnected.from_layers([torch.ones(1, 40), torch.ones(30, 1)])
    >>> made = networks.reduced_jacobians(network, torch.ones(2, 40).double())
    >>> made.values.shape[-1] < 40
    True
    """
    check_as_written("reduced_jacobians", network, FullyConnected)
    rows = samples_of("reduced_jacobians", network, x)
    with torch.no_grad():
        inner, inputs = without_excess((network.weights[0] if first is None else first).mT)
        ends = {1: inner.mT}
        outer = ends.get(network.depth, network.weights[-1] if last is None else last)
        ends[network.depth], outputs = without_excess(outer)
        return ReducedJacobians(_product(network, rows, ends), outputs, inputs)


def without_excess(tall: Tensor) -> tuple[Tensor, Tensor | None]:
    """R, and Q with orthonormal columns, of a matrix Q R of many rows; itself where there are few."""
    if len(tall) < WIDE * tall.shape[1]:
        return tall, None
    Q, R = torch.linalg.qr(tall.detach())
    return R, Q


def _product(network: FullyConnected, x: Tensor, ends: Mapping[int, Tensor]) -> Tensor:
    """W_L D_{L-1} .. D_1 W_1 at every sample, with other matrices for layers that have one in `ends`."""
    with torch.no_grad():
        first, *others = walk(network, x)
        product = ends.get(1, first.weight).detach().expand(len(x), -1, -1)
        product = activated(network, 1, first.preactivation, product)
        for state in others:
            product = ends.get(state.position, state.weight) @ product
            product = activated(network, state.position, state.preactivation, product)
        return product.contiguous()


def activated(network: FullyConnected, position: int, preactivation: Tensor, product: Tensor) -> Tensor:
    """D_l P of the product P of the layers up to this one."""
    if not network.is_activated(position):
        return product
    return activation_derivative(preactivation, network.negative_slope)[:, :, None] * product
