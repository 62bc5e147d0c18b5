"""Sums over the samples from which all energies of a leaky network follow, gathered from blocks of rows.

Products of width x width per layer, never samples x samples; the working memory is that of one block. What they say:
`leaky`. Sums of any other module: `layer_sums`.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from isthmus.networks import LeakyResNet, walk
from isthmus.theory.representation_costs import lifted

BLOCK = 1024  # rows at a time; 256 and 4096 were up to a fifth slower at width 200


@dataclass(frozen=True, slots=True)
class LeakySums:
    """Sums over all samples; S_l = sigma(A_l).

    Attributes:
        gram: S_{l-1}^T S_{l-1} of the layers l = 1..L, (L, p, p).
        by_activation: S_{l-1}^T A_{l-1}, (L, p, width).
        by_momentum: S_{l-1}^T B_l, (L, p, width).
        by_level: S_l^T B_l of the levels 0..L, (L + 1, p, width).
        activation: |A_l|^2 of the levels.
        momentum: |B_l|^2 of the levels.
        mixed: <A_{l-1}, B_l> of the layers.
        same: <A_l, B_l> of the levels.
        data_loss: squared error summed over outputs, averaged over samples.
    """

    gram: Tensor
    by_activation: Tensor
    by_momentum: Tensor
    by_level: Tensor
    activation: Tensor
    momentum: Tensor
    mixed: Tensor
    same: Tensor
    data_loss: Tensor


def leaky_sums(network: LeakyResNet, x: Tensor, y: Tensor, *, ridge: float) -> LeakySums:
    """One pass forward and one backward over the samples, block by block.

    Args:
        network: in float64, without gradients.
        x: samples as rows, float64.
        y: targets.
        ridge: that of the training.
    """
    L, w, p = network.depth, network.width, network.weights.shape[2]

    def zeros(*shape: int) -> Tensor:
        return torch.zeros(*shape, dtype=torch.float64)

    sums = LeakySums(
        zeros(L, p, p), zeros(L, p, w), zeros(L, p, w), zeros(L + 1, p, w), zeros(L + 1), zeros(L + 1), zeros(L),
        zeros(L + 1), torch.zeros((), dtype=torch.float64),
    )  # fmt: skip
    for start in range(0, len(x), BLOCK):
        rows = slice(start, start + BLOCK)
        stream, gradients, loss = stream_and_gradients(network, x[rows], y[rows], num_samples=len(x))
        sums.data_loss.add_(loss)
        _add(sums, network, stream, gradients, -1 / ridge)
    return sums


def stream_and_gradients(
    network: LeakyResNet, x: Tensor, y: Tensor, *, num_samples: int
) -> tuple[list[Tensor], tuple[Tensor, ...], Tensor]:
    """A_0 .. A_L of some rows, the gradients of their share of the data loss there, and that share."""
    with torch.enable_grad():
        states = walk(network, x.clone().requires_grad_())  # so that A_0 has a gradient
        stream = [state.activation for state in states[:-1]]
        loss = (states[-1].activation - y).square().sum() / num_samples
        gradients = torch.autograd.grad(loss, stream)
    return [a.detach() for a in stream], gradients, loss.detach()


def _add(sums: LeakySums, network: LeakyResNet, stream: list[Tensor], gradients: tuple[Tensor, ...], by: float) -> None:
    """Add one block; its momenta are `by` times the gradients."""
    for level, (A, g) in enumerate(zip(stream, gradients, strict=True)):
        S = lifted(A, bias=network.has_bias, smoothing=float(network.smoothing))
        flat, flat_g = A.reshape(-1), g.reshape(-1)
        sums.by_level[level].addmm_(S.mT, g, alpha=by)
        sums.activation[level].add_(torch.dot(flat, flat))
        sums.momentum[level].add_(torch.dot(flat_g, flat_g), alpha=by * by)
        sums.same[level].add_(torch.dot(flat, flat_g), alpha=by)
        if level < network.depth:
            above = gradients[level + 1]
            sums.gram[level].addmm_(S.mT, S)
            sums.by_activation[level].addmm_(S.mT, A)
            sums.by_momentum[level].addmm_(S.mT, above, alpha=by)
            sums.mixed[level].add_(torch.dot(flat, above.reshape(-1)), alpha=by)
