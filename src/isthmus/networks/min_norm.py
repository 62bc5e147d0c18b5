"""Least-norm weights for what each layer does on given data: exact on those data, never a larger penalty.

Without data: `networks.rebalancing`, `networks.pruning`. Moves that may raise the penalty: `networks.folding`.
"""

from collections.abc import Sequence

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
    Source: Jacot and Kaiser 2024, section 1.3 (without leak; LEAKY-04). Test: laws/test_moves.

    >>> network = isthmus.FullyConnected.from_layers([torch.ones(1, 2)])
    >>> x = torch.tensor([[1.0, 0.0]]).double()  # on which the second weight does nothing
    >>> networks.min_norm_projection(network, x).weights[0].round(decimals=6).tolist()
    [[1.0, 0.0]]
    """
    if not 0 <= relative < 1:
        raise ValueError(
            f"min_norm_projection(relative={relative}): needs 0 <= relative < 1. The default 1e-12 drops rounding only."
        )
    check_samples("min_norm_projection(network, x)", x, network.dimensions[0])
    with torch.no_grad():
        return projected_on(network, layer_inputs(network, x), relative=relative)


def layer_inputs(network: FullyConnected, x: Float[Tensor, "n d_in"]) -> list[Float[Tensor, "n _"]]:
    """What each layer receives, in float64: [a_{l-1}(x) 1], without the 1 in a network without biases."""
    inputs = [x, *(state.activation for state in walk(network, x)[:-1])]
    if not network.has_bias:
        return [a.double() for a in inputs]
    return [torch.cat([a, a.new_ones(len(a), 1)], 1).double() for a in inputs]


def projected_on(
    network: FullyConnected, inputs: Sequence[Float[Tensor, "_ _"]], *, relative: float = 1e-12
) -> FullyConnected:
    """The network with [W_l b_l] projected on the row space of `inputs[l - 1]`; see `min_norm_projection`.

    Args:
        network: it is not changed.
        inputs: as `layer_inputs`, or any matrices R_l with R_l^T R_l = A_l^T A_l, A_l what layer l receives.
        relative: as for `min_norm_projection`.
    """
    weights, biases = network.written_layers()
    for l, received in enumerate(inputs):
        rows = weights[l] if biases is None else torch.cat([weights[l], biases[l][:, None]], 1)
        projected = _projected(rows, received, relative)
        weights[l] = projected if biases is None else projected[:, :-1]
        if biases is not None:
            biases[l] = projected[:, -1]
    return network.rewritten(weights, biases)


def _projected(rows: Tensor, received: Tensor, relative: float) -> Tensor:
    """The rows projected on the row space of what the layer receives, in float64."""
    _, singular_values, basis = torch.linalg.svd(received, full_matrices=False)
    basis = basis[singular_values > relative * singular_values[:1]]  # strict: all-zero inputs span nothing
    if len(basis) == rows.shape[1]:
        return rows
    return ((rows.double() @ basis.T) @ basis).to(rows.dtype)
