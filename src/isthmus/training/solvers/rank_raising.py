"""Adding a rank to the run of linear layers: the way out of a minimum whose rank is too low.

There the missing direction has no gradient, since it is zero in several matrices at once. Trials that keep such a
change only when the objective falls: `trials`.
"""

import torch
from torch import Tensor

from isthmus.networks import FullyConnected
from isthmus.networks.folding import merge_linear_runs, with_linear_run
from isthmus.training.losses import DataLoss
from isthmus.training.moves import best_of_rank, middle_rank, movable, take_over
from isthmus.training.steps.step import Step

SIZES = (0.03, 0.1, 0.3, 1.0)  # of the new singular value, relative to the largest of the product


def raise_rank(step: Step) -> bool:
    """Add to the product P of the linear run the direction in which the data loss falls fastest, balanced; in place.

        P <- P_r - t u v^T,   u v^T the first singular pair of dC/dP at the truncation P_r,   t of the least data loss

    Args:
        step: of a `FullyConnected` with one run of linear hidden layers.

    Returns:
        False, with nothing changed, where there is no such run, no neuron left for another rank, or a part is frozen.
    """
    network = movable(step.network)
    if network is None or not network.linear:
        return False
    first, last = min(network.linear), max(network.linear)
    width = min(network.dimensions[first - 1 : last + 2])
    rank = middle_rank(network)
    widths = network.dimensions[first : last + 1]
    if rank >= width or len(network.linear) != len(widths) or len(set(widths)) != 1:
        return False
    with torch.no_grad():
        take_over(network, _raised(network, step.x, step.data, first, rank))
    return True


def _raised(network: FullyConnected, x: Tensor, data: DataLoss, first: int, rank: int) -> FullyConnected:
    """The network with one rank more in its linear run, the new direction written into neurons that were free."""
    merged = merge_linear_runs(network).double()
    x, data = x.double(), data.to(torch.float64)
    product = merged.weights[first - 1]
    product.copy_(best_of_rank(product, rank))
    u, _, vh = torch.linalg.svd(_loss_gradient(merged, x, data, first))
    direction = -torch.outer(u[:, 0], vh[0])
    kept = product.detach().clone()
    largest = float(torch.linalg.matrix_norm(kept, 2))
    losses: list[tuple[float, float]] = []
    for size in SIZES:
        product.copy_(kept + size * largest * direction)
        losses.append((data.value(merged(x)), size))
    product.copy_(kept + min(losses)[1] * largest * direction)
    weights, biases = merged.written_layers()
    return _written_like(network, with_linear_run(_one_linear(merged, weights, biases, first), rank=rank + 1,
                                                  middle=len(network.linear)))  # fmt: skip


def _one_linear(
    merged: FullyConnected, weights: list[Tensor], biases: list[Tensor] | None, first: int
) -> FullyConnected:
    """The merged network with an identity before its product, so that it has a linear run again."""
    assert biases is not None
    size = weights[first - 1].shape[0]
    eye, zero = torch.eye(size, dtype=torch.float64), torch.zeros(size, dtype=torch.float64)
    return merged.rewritten(
        [*weights[:first], eye, *weights[first:]],
        [*biases[: first - 1], zero, *biases[first - 1 :]],
        linear=[first],
    )


def _loss_gradient(merged: FullyConnected, x: Tensor, data: DataLoss, first: int) -> Tensor:
    """dC/dP of the data loss by the product of the linear run."""
    with torch.enable_grad():
        outputs = merged(x)
        _, gradient = data.value_and_gradient(outputs.detach().clone())
        # of a sum: a gradient that is handed over as such has torch load its symbolic shapes, and sympy with them
        (found,) = torch.autograd.grad((outputs * gradient).sum(), merged.weights[first - 1])
    return found


def _written_like(network: FullyConnected, narrow: FullyConnected) -> FullyConnected:
    """The narrower network in the shape and precision of `network`, zeros in the neurons that it lacks."""
    weights, biases = narrow.written_layers()
    assert biases is not None
    padded = [torch.zeros_like(w) for w in network.weights]
    offsets = [torch.zeros_like(w[:, 0]) for w in network.weights]
    for target, weight in zip(padded, weights, strict=True):
        target[: weight.shape[0], : weight.shape[1]] = weight
    for target, bias in zip(offsets, biases, strict=True):
        target[: len(bias)] = bias
    return network.rewritten(padded, offsets if network.has_bias else None)
