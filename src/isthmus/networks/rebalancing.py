"""Neuron rescalings that keep the function and lower the penalty (FC-23)."""

import copy
import itertools
from collections.abc import Sequence

import torch
from torch import Tensor

from isthmus.networks.departures import check_as_written
from isthmus.networks.fully_connected import FullyConnected


def rebalance(network: FullyConnected, *, tolerance: float = 1e-13, sweeps: int = 10_000) -> FullyConnected:
    """The same function with the least penalty over all rescalings of hidden neurons (*exact*).

        minimise sum e^{2(t_i - t_j)} W_ij^2 + e^{2 t_i} b_i^2 over log-scales t: convex, so sweeps find the minimum

    At the minimum each hidden neuron obeys |W_l[i, :]|^2 + b_l[i]^2 = |W_{l+1}[:, i]|^2. A neuron whose incoming or
    outgoing weights vanish contributes only its (constant) output and is set to zero on its useless side.

    Args:
        network: any fully connected network; it is not changed.
        tolerance: sweeps end when no log-scale moves by more than this.
        sweeps: bound on the number of passes over the layers.

    Returns:
        A new network, equal as a function up to rounding; the penalty never rises.

    Raises:
        ValueError: the weights need not say what the network computes, as with a hook.

    Source: Jacot 2023a, Proposition 12 and Remark 6. Test: FC-23.

    >>> net = isthmus.FullyConnected.from_layers([torch.eye(2) * 4, torch.eye(2)])
    >>> round(isthmus.rebalance(net).penalty().item(), 6)  # 2 * (4 + 4) in place of 34
    16.0
    """
    check_as_written("rebalance", network, FullyConnected)
    balanced = copy.deepcopy(network)
    with torch.no_grad():
        _clear_useless(balanced)
        for _ in range(sweeps):
            if balance_sweep(balanced) <= tolerance:
                break
    return balanced


def _clear_useless(network: FullyConnected) -> None:
    """Set to zero what comes into neurons that nobody reads, then what goes out of those that are always zero.

    The limit of the rescalings for such a neuron. Not part of a sweep: in training nobody may read a neuron yet.
    """
    layers = list(enumerate(itertools.pairwise(network.weights), 1))
    for l, (weight, outgoing) in layers[::-1]:
        unread = (outgoing == 0).all(0)
        for incoming in (weight, network.bias_of(l)):
            if incoming is not None:
                incoming[unread] = 0.0
    for l, (weight, outgoing) in layers:
        bias = network.bias_of(l)
        silent = (weight == 0).all(1)
        outgoing[:, silent if bias is None else silent & (bias == 0)] = 0.0


def balance_sweep(network: FullyConnected) -> float:
    """One pass of exact coordinate descent over the neuron scales, in place: returns the largest log-scale moved."""
    return balance_layers(list(network.weights), list(network.biases) if network.has_bias else None)


def balance_layers(weights: Sequence[Tensor], biases: Sequence[Tensor] | None) -> float:
    """`balance_sweep` on W_1 .. W_L, each (..., width_l, width_{l-1}), and b_1 .. b_L, each (..., width_l), in place.

    Leading dimensions number networks of one shape that are balanced side by side.
    """
    moved = 0.0
    for l, (weight, outgoing) in enumerate(itertools.pairwise(weights)):
        bias = biases[l] if biases is not None else None
        incoming_norm = weight.square().sum(-1) + (bias.square() if bias is not None else 0.0)
        outgoing_norm = outgoing.square().sum(-2)
        alive = (incoming_norm > 0) & (outgoing_norm > 0)
        scale = torch.where(alive, (outgoing_norm / incoming_norm).pow(0.25), torch.ones_like(incoming_norm))
        # a subnormal norm overflows the ratio: such a neuron is beyond rounding, leave it as it is
        scale = torch.where(torch.isfinite(scale) & (scale > 0), scale, torch.ones_like(scale))
        weight.mul_(scale[..., None])
        if bias is not None:
            bias.mul_(scale)
        outgoing.div_(scale[..., None, :])
        moved = max(moved, float(scale.log().abs().max()))
    return moved
