"""Sums of networks side by side, and ReLU networks written with another nonlinearity (FC-16, FC-18).

Compositions: `constructions.composition`.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from isthmus.constructions.composition import biased_layers
from isthmus.errors import ShapeError
from isthmus.networks import FullyConnected, insert_identity_layers


@dataclass(frozen=True, slots=True)
class ParallelSum:
    """f + g as one network, and what its penalty has beyond the sum of theirs.

    Attributes:
        network: the sum.
        cross_term: 2 <b_{f,L}, b_{g,L}>, so that penalty = penalty(f) + penalty(g) + cross_term (after padding).
        padding: identity layers that were inserted into f and into g to make their depths equal.

    >>> double = isthmus.FullyConnected.from_layers([torch.eye(2), 2 * torch.eye(2)])
    >>> constructions.parallel_sum(double, double).network.depth
    2
    """

    network: FullyConnected
    cross_term: float
    padding: tuple[int, int]


def parallel_sum(first: FullyConnected, second: FullyConnected) -> ParallelSum:
    """The sum first + second, layers side by side (*exact* everywhere).

        W_1 stacked,  W_2 .. W_{L-1} block-diagonal,  W_L side by side,  b_L = b_{f,L} + b_{g,L}
        penalty = penalty(f) + penalty(g) + 2 <b_{f,L}, b_{g,L}>      (the paper forgets the last term)

    The shallower one is padded: with identity layers at its thinnest ReLU layer, or (no such layer) at its output with
    t = (sigma_a(t) - sigma_a(-t)) / (1 + a).

    Raises:
        ShapeError: different numbers of inputs or outputs.
        ValueError: different slopes, or layers of which one has an activation and the other not.

    Source: Jacot 2023a, proof of Theorem 4. Test: FC-16.

    >>> double = isthmus.FullyConnected.from_layers([torch.eye(2), 2 * torch.eye(2)])
    >>> made = constructions.parallel_sum(double, double)
    >>> made.network(torch.tensor([[1.0, 2.0]], dtype=torch.float64)).tolist()
    [[4.0, 8.0]]
    """
    if (first.dimensions[0], first.dimensions[-1]) != (second.dimensions[0], second.dimensions[-1]):
        raise ShapeError(
            "parallel_sum: needs networks with the same inputs and outputs; got "
            f"{first.dimensions[0]} -> {first.dimensions[-1]} and {second.dimensions[0]} -> {second.dimensions[-1]}."
        )
    depth = max(first.depth, second.depth)
    padding = (depth - first.depth, depth - second.depth)
    first, second = _padded(first, padding[0]), _padded(second, padding[1])
    if depth > 1 and (first.negative_slope != second.negative_slope or first.linear != second.linear):
        raise ValueError(
            "parallel_sum: needs the same activation in each layer (after padding); got slopes "
            f"{first.negative_slope} and {second.negative_slope}, linear layers {sorted(first.linear)} and "
            f"{sorted(second.linear)}. Insert identity layers elsewhere, or convert with leaky_from_relu."
        )
    (f_weights, f_biases), (g_weights, g_biases) = biased_layers(first), biased_layers(second)
    weights = [_side_by_side(f, g, l, depth) for l, (f, g) in enumerate(zip(f_weights, g_weights, strict=True), 1)]
    biases = [torch.cat(pair) for pair in zip(f_biases[:-1], g_biases[:-1], strict=True)]
    network = FullyConnected.from_layers(
        weights, [*biases, f_biases[-1] + g_biases[-1]], negative_slope=first.negative_slope, linear=first.linear
    )
    cross_term = 2 * float(f_biases[-1] @ g_biases[-1])
    if depth == 1:  # one matrix: its cross term counts too
        cross_term += 2 * float((f_weights[0] * g_weights[0]).sum())
    return ParallelSum(network, cross_term, padding)


def leaky_from_relu(network: FullyConnected, negative_slope: float) -> FullyConnected:
    """A ReLU network written with sigma_a (*exact* everywhere), hidden layers doubled.

        relu(t) = (sigma_a(t) + a sigma_a(-t)) / (1 - a^2)        (the paper prints a minus sign)
        rows [W; -W], biases [b; -b], columns of the next layer [W, a W] / (1 - a^2)

    Squared norms are multiplied by 2 in the first layer, by (1 + a^2)/(1 - a^2)^2 in the last, by both in between:
    rebalance afterwards. Linear layers are kept as they are.

    Args:
        network: a ReLU network.
        negative_slope: a, with |a| < 1; the weights grow without bound as |a| goes to 1.

    Raises:
        ValueError: the network is not a ReLU network, or |a| >= 1.

    Source: Jacot 2023a, proof of Corollary 1, with the sign corrected. Test: FC-18.

    >>> network = isthmus.FullyConnected.from_layers([torch.eye(2), torch.ones(1, 2)])
    >>> leaky = constructions.leaky_from_relu(network, 0.5)
    >>> x = torch.tensor([[-1.0, 2.0]], dtype=torch.float64)
    >>> network(x).item(), round(leaky(x).item(), 6)
    (2.0, 2.0)
    """
    a = negative_slope
    if network.negative_slope != 0:
        raise ValueError(
            f"leaky_from_relu(network): needs a ReLU network; got negative slope {network.negative_slope}. "
            "Nothing to do if this is the slope you want."
        )
    if not abs(a) < 1:
        raise ValueError(f"leaky_from_relu(negative_slope={a}): needs |a| < 1; sigma_1 is linear, sigma_-1 even.")
    weights, biases = biased_layers(network)
    for l in range(1, network.depth):
        if network.is_activated(l):
            weights[l - 1] = torch.cat([weights[l - 1], -weights[l - 1]], 0)
            biases[l - 1] = torch.cat([biases[l - 1], -biases[l - 1]])
            weights[l] = torch.cat([weights[l], a * weights[l]], 1) / (1 - a * a)
    kept = biases if network.has_bias else None
    return FullyConnected.from_layers(weights, kept, negative_slope=a, linear=network.linear)


def _padded(network: FullyConnected, count: int) -> FullyConnected:
    """The same function with `count` more layers, all with an activation."""
    relu_layers = [l for l in range(1, network.depth) if network.is_activated(l) and network.negative_slope == 0]
    if count == 0 or relu_layers:
        thinnest = min(relu_layers, key=lambda l: network.dimensions[l], default=0)
        return insert_identity_layers(network, count, position=thinnest)
    weights, biases = biased_layers(network)
    eye = torch.eye(network.dimensions[-1], dtype=torch.float64)
    doubled, joined = torch.cat([eye, -eye]), torch.cat([eye, -eye], 1) / (1 + network.negative_slope)
    last, bias = weights.pop(), biases.pop()
    weights += [doubled @ last, *[doubled @ joined] * (count - 1), joined]
    biases += [doubled @ bias, *[torch.zeros_like(doubled[:, 0])] * (count - 1), torch.zeros_like(bias)]
    return FullyConnected.from_layers(weights, biases, negative_slope=network.negative_slope, linear=network.linear)


def _side_by_side(f: Tensor, g: Tensor, l: int, depth: int) -> Tensor:
    if depth == 1:
        return f + g
    if l == 1:
        return torch.cat([f, g], 0)
    return torch.cat([f, g], 1) if l == depth else torch.block_diag(f, g)
