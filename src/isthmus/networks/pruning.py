"""Deleting and merging neurons: the same function with fewer neurons and never a larger penalty.

First list of moves (exact, the penalty never rises): `rebalance`, `min_norm_projection`, the two functions here,
`caratheodory_prune`, `balance_linear_runs`, and `fold_constant_neurons` as called by default.
Second list (exact at a stated cost, or approximate with a stated error): `networks.folding`, `networks.depth_moves`.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.networks.fully_connected import FullyConnected
from isthmus.networks.layers import check_samples, walk

Layers = tuple[list[Tensor], list[Tensor] | None]


def delete_dead_neurons(network: FullyConnected, x: Float[Tensor, "n d_in"] | None = None) -> FullyConnected:
    """The network without the neurons that contribute nothing (*exact*: everywhere, or on `x` where it is given).

    Dead is a hidden neuron whose activation is zero whatever comes in, whose outgoing weights are all zero or, where
    `x` is given, whose activation is zero on every sample. Deleting one can starve others: repeated until none is left.
    A layer that is dead altogether keeps one neuron of zero weights, so that the depth stays.

    Args:
        network: any fully connected network; it is not changed.
        x: samples as rows; None deletes only what is dead for every input.

    Returns:
        A new network. The penalty falls by the squared norm of what was deleted.

    Raises:
        ShapeError: `x` does not fit the network, or has no rows.

    Source: ours. Test: laws/test_moves.

    >>> network = isthmus.FullyConnected.from_layers([torch.tensor([[1.0], [0.0]]), torch.ones(1, 2)])
    >>> networks.delete_dead_neurons(network).dimensions
    (1, 1, 1)
    """
    layers = network.written_layers()
    if x is not None:
        check_samples("delete_dead_neurons(network, x)", x, network.dimensions[0])
        with torch.no_grad():
            for l, state in enumerate(walk(network, x)[:-1], 1):
                silence(layers, l, (state.activation == 0).all(0))
    while any([_delete_dead(network, layers, l) for l in range(1, network.depth)]):  # noqa: C419 - each must run
        pass
    return network.rewritten(*layers)


def merge_parallel_neurons(network: FullyConnected, *, relative: float = 1e-12) -> FullyConnected:
    """The network with positively parallel neurons of a layer merged into one (*exact* up to `relative`).

        (w_j, b_j) = c (w_i, b_i), c > 0:   o_i sigma(z_i) + o_j sigma(z_j) = (o_i + c o_j) sigma(z_i)

    then balanced: 2 |r_i| |o_i + c o_j| <= |r_i|^2 + |r_j|^2 + |o_i|^2 + |o_j|^2, so the penalty never rises (without
    balancing it can). Neurons of a linear layer are merged for c < 0 too.

    Args:
        network: any fully connected network; it is not changed.
        relative: largest distance between two directions (w, b)/|(w, b)| that count as parallel.

    Returns:
        A new network.

    Raises:
        ValueError: `relative` is not in [0, 1).

    Source: ours. Test: laws/test_moves.

    >>> network = isthmus.FullyConnected.from_layers([torch.tensor([[1.0], [2.0]]), torch.ones(1, 2)])
    >>> networks.merge_parallel_neurons(network).dimensions
    (1, 1, 1)
    """
    if not 0 <= relative < 1:
        raise ValueError(f"merge_parallel_neurons(relative={relative}): needs 0 <= relative < 1; 1e-12 is rounding.")
    layers = network.written_layers()
    for l in range(1, network.depth):
        _merge_parallel(layers, l, relative=relative, either_sign=not network.is_activated(l))
    return delete_dead_neurons(network.rewritten(*layers))


def incoming_rows(layers: Layers, l: int) -> Tensor:
    """[W_l b_l], one row per neuron of hidden layer `l` (W_l alone without biases)."""
    weights, biases = layers
    return weights[l - 1] if biases is None else torch.cat([weights[l - 1], biases[l - 1][:, None]], 1)


def scale_incoming(layers: Layers, l: int, scale: Tensor) -> None:
    """Multiply the incoming weights and the bias of each neuron of hidden layer `l` by its `scale`, in place."""
    weights, biases = layers
    weights[l - 1] = weights[l - 1] * scale[:, None]
    if biases is not None:
        biases[l - 1] = biases[l - 1] * scale


def silence(layers: Layers, l: int, neurons: Tensor) -> None:
    """Set the weights into and out of the marked neurons of hidden layer `l` to zero, in place."""
    scale_incoming(layers, l, (~neurons).to(layers[0][0].dtype))
    layers[0][l] = layers[0][l] * ~neurons


def keep_neurons(layers: Layers, l: int, keep: Tensor) -> None:
    """Keep the marked neurons of hidden layer `l` and no other, in place; the first stays if none is marked."""
    weights, biases = layers
    if not keep.any():
        silence(layers, l, ~keep)
        keep = torch.arange(len(keep), device=keep.device) == 0
    weights[l - 1], weights[l] = weights[l - 1][keep], weights[l][:, keep]
    if biases is not None:
        biases[l - 1] = biases[l - 1][keep]


def _delete_dead(network: FullyConnected, layers: Layers, l: int) -> bool:
    """Delete the dead neurons of hidden layer `l`, in place: whether the layer changed."""
    weights, biases = layers
    silent = (weights[l - 1] == 0).all(1)
    if biases is not None:
        cut = network.is_activated(l) and network.negative_slope == 0
        silent &= (biases[l - 1] <= 0) if cut else (biases[l - 1] == 0)
    keep = ~(silent | (weights[l] == 0).all(0))
    width = len(keep)
    if keep.all() or (width == 1 and not (incoming_rows(layers, l).any() or weights[l].any())):
        return False
    keep_neurons(layers, l, keep)
    return True


def _merge_parallel(layers: Layers, l: int, *, relative: float, either_sign: bool) -> None:
    weights, rows = layers[0], incoming_rows(layers, l).double()
    norms = rows.norm(dim=1)
    directions = rows / torch.where(norms > 0, norms, torch.ones_like(norms))[:, None]
    merged = norms == 0  # dead or already merged away: nobody's partner
    for i in range(len(rows)):
        if merged[i]:
            continue
        # distances of directions, not cosines: a cosine sees only 1e-8
        signs = torch.where((directions @ directions[i] < 0) & either_sign, -1.0, 1.0).to(norms.dtype)
        partners = ((signs[:, None] * directions - directions[i]).norm(dim=1) <= relative) & ~merged
        partners[i] = False
        if partners.any():
            merged |= partners
            ratio = (signs * norms / norms[i])[partners].to(weights[l].dtype)
            weights[l][:, i] += weights[l][:, partners] @ ratio
            weights[l][:, partners] = 0
            _balance_neuron(layers, l, i)


def _balance_neuron(layers: Layers, l: int, neuron: int) -> None:
    """Rescale one neuron of hidden layer `l` so that its incoming and outgoing norms are equal, in place."""
    weights, incoming = layers[0], incoming_rows(layers, l)[neuron].norm()
    outgoing = weights[l][:, neuron].norm()
    if outgoing > 0:
        scale = torch.ones_like(weights[l][0])
        scale[neuron] = (outgoing / incoming).sqrt()
        scale_incoming(layers, l, scale)
        weights[l] = weights[l] / scale
