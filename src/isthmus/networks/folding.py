"""Folding constant neurons into the next bias and balancing linear runs: same function, another division of the norm.

By default both keep the penalty from rising; `fold_constant_neurons(..., allow_rise=True)` belongs to the second list
of moves. Changing the depth: `networks.depth_moves`.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.networks.fully_connected import FullyConnected
from isthmus.networks.layers import activation, check_samples, walk
from isthmus.networks.pruning import Layers, incoming_rows, keep_neurons


def fold_constant_neurons(
    network: FullyConnected, x: Float[Tensor, "n d_in"] | None = None, *, allow_rise: bool = False
) -> FullyConnected:
    """The network with constant neurons written into the next bias (*exact*: everywhere, or on `x` where given).

        o_i a_i = const:   b_{l+1} <- b_{l+1} + o_i a_i,  and neuron i goes

    The penalty changes by |b_{l+1} + o_i a_i|^2 - |b_{l+1}|^2 - |o_i|^2 - |(w_i, b_i)|^2, which can be positive: a bias
    is cheaper made by a neuron when it is large (t of it costs 2t through a balanced neuron, t^2 as a bias).

    Args:
        network: any fully connected network; it is not changed. Without biases nothing can be folded.
        x: samples as rows; None folds only neurons with zero incoming weights.
        allow_rise: fold also where that raises the penalty (for fewer neurons).

    Returns:
        A new network. The penalty never rises unless `allow_rise`.

    Raises:
        ShapeError: `x` does not fit the network, or has no rows.

    Source: ours, and FC-29. Test: laws/test_moves.

    >>> layers = [torch.tensor([[1.0], [0.0]]), torch.ones(1, 2)], [torch.tensor([0.0, 5.0]), torch.zeros(1)]
    >>> network = networks.fold_constant_neurons(isthmus.FullyConnected.from_layers(*layers))
    >>> network.dimensions, network.biases[-1].tolist()
    ((1, 1, 1), [5.0])
    """
    if x is not None:
        check_samples("fold_constant_neurons(network, x)", x, network.dimensions[0])
    layers = network.written_layers()
    values = _constants_on_data(network, x) if x is not None else None
    if layers[1] is None:
        return network.rewritten(*layers)
    for l in range(1, network.depth):
        constant, value = values[l - 1] if values is not None else _structural_constants(network, layers, l)
        _fold_layer(layers, l, constant=constant, value=value, allow_rise=allow_rise)
    return network.rewritten(*layers)


def balance_linear_runs(network: FullyConnected) -> FullyConnected:
    """The network with every run of linear layers replaced by balanced factors of its product (*exact*).

        W_m .. W_l = U S V^T  ->  U S^{1/p}, S^{1/p}, .., S^{1/p} V^T,    p = m - l + 1,  cost p sum s^{2/p}

    The offset of the run moves to its last bias; where that would cost more than the balancing gains, the run stays.

    Args:
        network: any fully connected network; it is not changed. Hidden widths of the runs shrink to the product's rank.

    Returns:
        A new network. The penalty never rises.

    Accuracy: to rounding of the largest singular value of a run. Smaller ones that other layers weigh up by as much as
    rounding weighs down are lost.
    Source: FC-09. Test: laws/test_moves.

    >>> network = isthmus.FullyConnected.from_layers([4 * torch.eye(2), torch.eye(2)], linear=[1])
    >>> [round(w.max().item(), 6) for w in networks.balance_linear_runs(network).weights]
    [2.0, 2.0]
    """
    layers = network.written_layers()
    start = 1
    for l in range(1, network.depth + 1):
        if network.is_activated(l) or l == network.depth:
            if l > start:
                _balance_run(layers, start, l)
            start = l + 1
    return network.rewritten(*layers)


def balanced_factors(matrix: Float[Tensor, "d_out d_in"], depth: int, *, rank: int | None = None) -> list[Tensor]:
    """W_1 .. W_depth with product `matrix` and the least sum of squared norms, inner widths equal to the rank (FC-09).

    Args:
        matrix: the product A = U S V^T.
        depth: number of factors, at least 1.
        rank: singular values kept; by default those above rounding, at least one.

    >>> [float(w) for w in networks.balanced_factors(torch.tensor([[9.0]]), 2)]
    [3.0, 3.0]
    """
    if depth == 1:
        return [matrix.clone()]
    u, s, vh = torch.linalg.svd(matrix, full_matrices=False)
    if rank is None:
        rank = int((s > torch.finfo(s.dtype).eps * max(matrix.shape) * s[:1]).sum())
    root = s[: max(rank, 1)].pow(1.0 / depth)
    first, last = root[:, None] * vh[: len(root)], u[:, : len(root)] * root
    return [first, *(torch.diag(root) for _ in range(depth - 2)), last]


def merge_linear_runs(network: FullyConnected) -> FullyConnected:
    """The same function with every run of linear layers multiplied into one (*exact* up to rounding)."""
    weights, biases = network.written_layers()
    biases = [torch.zeros_like(w[:, 0]) for w in weights] if biases is None else biases
    for l in sorted(network.linear, reverse=True):
        biases[l] = biases[l] + weights[l] @ biases[l - 1]
        weights[l] = weights[l] @ weights[l - 1]
        del weights[l - 1], biases[l - 1]
    return network.rewritten(weights, biases, linear=())


def with_linear_run(network: FullyConnected, *, rank: int, middle: int) -> FullyConnected:
    """The network with its run of linear layers written anew as `middle` layers of `rank` neurons, balanced.

        W_m .. W_l = U S V^T  ->  U S^{1/p}, S^{1/p}, .., S^{1/p} V^T,    p = middle + 1,  cost p sum s^{2/p}

    The same function up to rounding where the run has at most that rank, else that of its closest run of that rank. The
    run's offset moves to its last bias.

    Args:
        network: one with a single run of linear hidden layers; it is not changed.
        rank: singular values kept, the width of the new layers.
        middle: number of new linear layers, at least 1.

    Source: FC-09, FC-31. Test: discovery/test_rank_starts.
    """
    first = min(network.linear)
    weights, biases = merge_linear_runs(network).written_layers()
    assert biases is not None  # a missing bias was written as zero
    factors = [w.to(weights[0].dtype) for w in balanced_factors(weights[first - 1].double(), middle + 1, rank=rank)]
    zeros = [torch.zeros(rank, dtype=weights[0].dtype) for _ in range(middle)]
    return network.rewritten(
        [*weights[: first - 1], *factors, *weights[first:]],
        [*biases[: first - 1], *zeros, *biases[first - 1 :]],
        linear=range(first, first + middle),
    )


def _constants_on_data(network: FullyConnected, x: Tensor) -> list[tuple[Tensor, Tensor]]:
    """For each hidden layer: which neurons are constant on `x` up to rounding, and their values.

    The rounding is that of its own sum, |W_l| |a_{l-1}| + |b_l|: what follows may weigh a small one up.
    """
    found: list[tuple[Tensor, Tensor]] = []
    with torch.no_grad():
        entering = x
        for state in walk(network, x)[:-1]:
            a, terms = state.activation, entering.abs() @ state.weight.abs().T
            terms = terms if state.bias is None else terms + state.bias.abs()
            found.append((a.amax(0) - a.amin(0) <= 4 * torch.finfo(a.dtype).eps * terms.amax(0), a.mean(0)))
            entering = a
    return found


def _structural_constants(network: FullyConnected, layers: Layers, l: int) -> tuple[Tensor, Tensor]:
    weights, biases = layers
    assert biases is not None
    bias = biases[l - 1]
    value = activation(bias, network.negative_slope) if network.is_activated(l) else bias
    return (weights[l - 1] == 0).all(1), value


def _fold_layer(layers: Layers, l: int, *, constant: Tensor, value: Tensor, allow_rise: bool) -> None:
    weights, biases = layers
    assert biases is not None
    keep = torch.ones_like(constant)
    for i in torch.nonzero(constant).flatten().tolist():
        bias = biases[l] + weights[l][:, i] * value[i]
        freed = weights[l][:, i].square().sum() + incoming_rows(layers, l)[i].square().sum()
        if allow_rise or bias.square().sum() <= biases[l].square().sum() + freed:
            biases[l] = bias
            keep[i] = False
    if keep.all():
        return
    weights[l] = weights[l] * keep
    keep_neurons(layers, l, keep)


def _balance_run(layers: Layers, first: int, last: int) -> None:
    weights, biases = layers
    product, offset = weights[first - 1], None if biases is None else biases[first - 1]
    for l in range(first + 1, last + 1):
        product = weights[l - 1] @ product
        offset = None if biases is None or offset is None else weights[l - 1] @ offset + biases[l - 1]
    factors = balanced_factors(product, last - first + 1)
    run = slice(first - 1, last)
    old, new = sum(w.square().sum() for w in weights[run]), sum(w.square().sum() for w in factors)
    if biases is not None and offset is not None:
        old, new = old + sum(b.square().sum() for b in biases[run]), new + offset.square().sum()
    if new > old:
        return
    weights[run] = factors
    if biases is not None and offset is not None:
        biases[run] = [*(torch.zeros_like(f[:, 0]) for f in factors[:-1]), offset]
