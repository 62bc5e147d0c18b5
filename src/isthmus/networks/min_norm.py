"""Least-norm weights for what each layer does on given data: exact on those data, never a larger penalty.

Without data: `networks.rebalancing`, `networks.pruning`. Moves that may raise the penalty: `networks.folding`.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.networks.fully_connected import FullyConnected
from isthmus.networks.layers import check_samples, walk


def min_norm_projection(
    network: FullyConnected, x: Float[Tensor, "n d_in"], *, relative: float = 1e-12
) -> FullyConnected:
    """The network of least penalty among those with the same preactivations of every layer on `x` (*exact* on `x`).

        [W_l b_l]  <-  [W_l b_l] P_l,     P_l the projection on the row space of [a_{l-1}(x) 1], (n, width_{l-1} + 1)

    The part of the weights orthogonal to every input that the layer receives does nothing on the data and is paid for.
    Nothing changes where the inputs span their space: at a critical point, or with more samples than neurons and
    no dead, constant or repeated neuron. Off the data the function may change.

    Args:
        network: any fully connected network; it is not changed.
        x: samples as rows.
        relative: directions with a singular value below `relative` times the largest count as absent; the
            preactivations move by at most that much, relative to the largest input and the weights.

    Returns:
        A new network. The penalty never rises.

    Raises:
        ShapeError: `x` does not fit the network, or has no rows.
        ValueError: `relative` is not in [0, 1).

    Accuracy: that of a singular value decomposition in float64, whatever the network's type.
    Cost: O(n width^2) per layer.
    Source: ledger LEAKY-04 without leak. Test: laws/test_moves.
    """
    if not 0 <= relative < 1:
        raise ValueError(
            f"min_norm_projection(relative={relative}): needs 0 <= relative < 1. The default 1e-12 drops rounding only."
        )
    check_samples("min_norm_projection(network, x)", x, network.dimensions[0])
    weights, biases = network.written_layers()
    with torch.no_grad():
        inputs = [x, *(state.activation for state in walk(network, x)[:-1])]
        for l, activation in enumerate(inputs):
            bias = biases[l] if biases is not None else None
            weights[l], projected = _projected(weights[l], bias, activation, relative)
            if biases is not None and projected is not None:
                biases[l] = projected
    return network.rewritten(weights, biases)


def _projected(
    weight: Tensor, bias: Tensor | None, activation: Tensor, relative: float
) -> tuple[Tensor, Tensor | None]:
    """The rows of [weight bias] projected on the row space of [activation 1], in float64."""
    rows, augmented = weight, activation
    if bias is not None:
        rows = torch.cat([weight, bias[:, None]], 1)
        augmented = torch.cat([activation, activation.new_ones(len(activation), 1)], 1)
    _, singular_values, basis = torch.linalg.svd(augmented.double(), full_matrices=False)
    basis = basis[singular_values > relative * singular_values[:1]]  # strict: all-zero inputs span nothing
    if len(basis) == rows.shape[1]:
        return weight, bias
    rows = ((rows.double() @ basis.T) @ basis).to(weight.dtype)
    return (rows, None) if bias is None else (rows[:, :-1], rows[:, -1])
