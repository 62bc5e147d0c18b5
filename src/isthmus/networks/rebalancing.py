"""Neuron rescalings that keep the function and lower the penalty (FC-23)."""

import copy

import torch

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

    Source: Prop. 12 and Remark 6 of the paper; ledger FC-23.
    """
    balanced = copy.deepcopy(network)
    with torch.no_grad():
        for _ in range(sweeps):
            if balance_sweep(balanced) <= tolerance:
                break
    return balanced


def balance_sweep(network: FullyConnected) -> float:
    """One pass of exact coordinate descent over the neuron scales, in place: returns the largest log-scale moved."""
    moved = 0.0
    for l in range(1, network.depth):
        weight, outgoing, bias = network.weights[l - 1], network.weights[l], network.bias_of(l)
        incoming_norm = weight.square().sum(1) + (bias.square() if bias is not None else 0.0)
        outgoing_norm = outgoing.square().sum(0)
        alive = (incoming_norm > 0) & (outgoing_norm > 0)
        scale = torch.where(alive, (outgoing_norm / incoming_norm).pow(0.25), torch.ones_like(incoming_norm))
        # a subnormal norm overflows the ratio: such a neuron is beyond rounding, leave it as it is
        scale = torch.where(torch.isfinite(scale) & (scale > 0), scale, torch.ones_like(scale))
        weight.mul_(scale[:, None])
        if bias is not None:
            bias.mul_(scale)
        outgoing.div_(scale)
        moved = max(moved, float(scale.log().abs().max()))
    return moved
