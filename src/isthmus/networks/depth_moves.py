"""Changing the depth: identity layers inserted at a stated cost, near-linear layers merged with a stated error.

The second list of moves, with `fold_constant_neurons(..., allow_rise=True)`. The first list: `networks.pruning`.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.networks.fully_connected import FullyConnected
from isthmus.networks.layers import check_samples, relative_error, walk


@dataclass(frozen=True, slots=True)
class MergedNetwork:
    """A network of smaller depth and how far it is from the one it came from.

    Attributes:
        network: the new network.
        relative_error: |new(x) - old(x)|_F / |old(x)|_F on the samples given (*exact* there, *estimate* elsewhere).
        merged: numbers of the hidden layers of the old network that went, in the order of merging.
        is_exact: whether every neuron merged away had one sign on all the samples, so that nothing changed on them.

    >>> network = isthmus.FullyConnected.from_layers([torch.eye(2)] * 3)
    >>> networks.merge_layers(network, 1, torch.ones(4, 2).double()).network.depth
    2
    """

    network: FullyConnected
    relative_error: float
    merged: tuple[int, ...]
    is_exact: bool


def insert_identity_layers(network: FullyConnected, count: int, *, position: int | None = None) -> FullyConnected:
    """The network with `count` identity layers after layer `position` (*exact* everywhere; costs their width each).

        a_l  ->  I a_l  ->  ..  ->  I a_l,     penalty + count * width_l

    After a ReLU layer the new layers are ReLU layers, since activations are non-negative there; elsewhere (a leaky or
    linear layer, the input, the output) they are linear ones.

    Args:
        network: any fully connected network; it is not changed.
        count: number of layers to insert, at least 0.
        position: 0 is the input, depth the output; by default the thinnest of all representations.

    Returns:
        A new network of depth L + count.

    Raises:
        ValueError: `count` < 0 or `position` outside 0..L.

    Source: Jacot 2023a, proof of Theorem 1 (FC-15). Test: laws/test_moves.

    >>> network = isthmus.FullyConnected.from_layers([torch.eye(2), torch.ones(1, 2)])
    >>> networks.insert_identity_layers(network, 3).depth
    5
    """
    if count < 0 or (position is not None and not 0 <= position <= network.depth):
        raise ValueError(
            f"insert_identity_layers(count={count}, position={position}): needs count >= 0 and a position in "
            f"0..{network.depth}; 0 is the input, {network.depth} the output."
        )
    if position is None:
        places = [l for l in range(network.depth + 1) if network.dimensions[l] > 0]
        position = min(places, key=lambda l: (network.dimensions[l], not _keeps_signs(network, l)))
    weights, biases = network.written_layers()
    width, like = network.dimensions[position], weights[0]
    weights[position:position] = [torch.eye(width, dtype=like.dtype, device=like.device) for _ in range(count)]
    if biases is not None:
        biases[position:position] = [torch.zeros(width, dtype=like.dtype, device=like.device) for _ in range(count)]
    linear = {l if l <= position else l + count for l in network.linear}
    if not _keeps_signs(network, position):
        # the output stays the last layer: what was layer L becomes linear and the last inserted one has no activation
        first = position if position == network.depth else position + 1
        linear |= set(range(max(first, 1), first + count))
    return network.rewritten(weights, biases, linear=linear)


def merge_layers(network: FullyConnected, position: int, x: Float[Tensor, "n d_in"]) -> MergedNetwork:
    """The network without hidden layer `position`, each of its neurons replaced by a fixed gain (*approximate*).

        W_{l+1} sigma_a(W_l a + b_l) + b_{l+1}  ~  W_{l+1} G (W_l a + b_l) + b_{l+1},   G = diag(1 or a)

    The gain of a neuron is the slope of the side on which more of its squared preactivation lies. Nothing changes on
    `x` where no neuron changes its sign on it. The penalty may rise or fall.

    Args:
        network: a fully connected network of depth 2 at least; it is not changed.
        position: number of the hidden layer to merge, 1..L-1.
        x: samples as rows.

    Returns:
        The new network of depth L - 1 and its relative error on `x`.

    Raises:
        ValueError: `position` outside 1..L-1.
        ShapeError: `x` does not fit the network, or has no rows.

    Source: ours. Test: laws/test_moves.

    >>> network = isthmus.FullyConnected.from_layers([torch.eye(2)] * 3)
    >>> networks.merge_layers(network, 1, torch.ones(4, 2).double()).relative_error
    0.0
    """
    if not 1 <= position < network.depth:
        raise ValueError(
            f"merge_layers(position={position}): needs a hidden layer, 1..{network.depth - 1}. "
            "A network of depth 1 is affine: there is nothing to merge."
        )
    check_samples("merge_layers(network, x)", x, network.dimensions[0])
    with torch.no_grad():
        states = walk(network, x)
        z, output = states[position - 1].preactivation, states[-1].activation
        merged, is_exact = _without_layer(network, position, z)
        error = relative_error(merged(x), output)
    return MergedNetwork(merged, error, (position,), is_exact)


def compress_depth(network: FullyConnected, x: Float[Tensor, "n d_in"], *, tolerance: float) -> MergedNetwork:
    """The network with layers merged one by one, cheapest first, while the error on `x` stays below `tolerance`.

    Greedy (*heuristic*): each step merges the layer whose removal leaves the smallest error against the original
    network. The error that comes back is measured, not bounded.

    Args:
        network: any fully connected network; it is not changed.
        x: samples as rows.
        tolerance: largest relative error |new(x) - old(x)|_F / |old(x)|_F.

    Returns:
        The smallest network reached, its error, and the layers that went (numbers of the original network).

    Raises:
        ValueError: `tolerance` < 0 or not finite.
        ShapeError: `x` does not fit the network, or has no rows.

    Source: ours; measured in a trial: 20 layers to 9 at 1 % error. Test: networks/test_depth_moves.

    >>> network = isthmus.FullyConnected.from_layers([torch.eye(2)] * 4)
    >>> networks.compress_depth(network, torch.ones(4, 2).double(), tolerance=1e-6).network.depth
    1
    """
    if not 0 <= tolerance < float("inf"):
        raise ValueError(f"compress_depth(tolerance={tolerance}): needs a finite tolerance >= 0, relative to |f(x)|.")
    check_samples("compress_depth(network, x)", x, network.dimensions[0])
    with torch.no_grad():
        output = network(x)
    best = MergedNetwork(network.rewritten(*network.written_layers()), 0.0, (), is_exact=True)
    numbers = list(range(1, network.depth))
    while best.network.depth > 1:
        position, candidate, error = _cheapest_merge(best.network, x, output)
        if error > tolerance:
            break
        merged = (*best.merged, numbers.pop(position - 1))
        best = MergedNetwork(candidate.network, error, merged, best.is_exact and candidate.is_exact)
    return best


def _cheapest_merge(network: FullyConnected, x: Tensor, output: Tensor) -> tuple[int, MergedNetwork, float]:
    candidates = [merge_layers(network, l, x) for l in range(1, network.depth)]
    with torch.no_grad():
        errors = [relative_error(candidate.network(x), output) for candidate in candidates]
    best = min(range(len(errors)), key=errors.__getitem__)
    return best + 1, candidates[best], errors[best]


def _keeps_signs(network: FullyConnected, position: int) -> bool:
    """Whether layer `position` hands on non-negative numbers, so that a ReLU after the identity does nothing."""
    return position > 0 and network.is_activated(position) and network.negative_slope == 0


def _without_layer(network: FullyConnected, position: int, z: Tensor) -> tuple[FullyConnected, bool]:
    weights, biases = network.written_layers()
    if network.is_activated(position):
        positive, negative = z.clamp(min=0).square().sum(0), z.clamp(max=0).square().sum(0)
        one = torch.ones_like(positive)
        gain = torch.where(positive >= negative, one, network.negative_slope * one)
        is_exact = bool(torch.minimum(positive, negative).max() == 0)
    else:
        gain, is_exact = torch.ones_like(z[0]), True
    outer = weights[position] * gain
    weights[position - 1 : position + 1] = [outer @ weights[position - 1]]
    if biases is not None:
        biases[position - 1 : position + 1] = [outer @ biases[position - 1] + biases[position]]
    linear = {l if l < position else l - 1 for l in network.linear if l != position}
    return network.rewritten(weights, biases, linear=linear), is_exact
