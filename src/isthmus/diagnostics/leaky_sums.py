"""Sums over the samples from which all energies of a leaky network follow, gathered from blocks of rows.

Products of width x width per layer, never samples x samples; the working memory is that of one block. What they say:
`leaky`. Sums of any other module: `layer_sums`. The whole path: `leaky_path`.
"""

from dataclasses import dataclass

import torch
from scipy.linalg.blas import dsyrk  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType] - compiled
from torch import Tensor

from isthmus.networks import LeakyResNet, walk
from isthmus.training.losses import SQUARED, Loss

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
        data_loss: averaged over samples.
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


def leaky_sums(network: LeakyResNet, x: Tensor, y: Tensor, *, ridge: float, loss: Loss = SQUARED) -> LeakySums:
    """One pass forward and one backward over the samples, block by block.

    Six products of a layer's size in all, and as few other passes as there can be: at width 200 each of those takes a
    tenth of a product.

    Args:
        network: in float64, without gradients.
        x: samples as rows, float64.
        y: targets.
        ridge: that of the training.
        loss: of the data.
    """
    L, w, p = network.depth, network.width, network.weights.shape[2]

    def zeros(*shape: int) -> Tensor:
        return torch.zeros(*shape, dtype=torch.float64)

    sums = LeakySums(
        zeros(L, p, p), zeros(L, p, w), zeros(L, p, w), zeros(L + 1, p, w), zeros(L + 1), zeros(L + 1), zeros(L),
        zeros(L + 1), torch.zeros((), dtype=torch.float64),
    )  # fmt: skip
    walker = _Blocks(network, min(len(x), BLOCK), loss)
    for start in range(0, len(x), BLOCK):
        rows = slice(start, start + BLOCK)
        walker.add(sums, x[rows], y[rows], num_samples=len(x), ridge=ridge)
    sums.gram.copy_(sums.gram.tril() + sums.gram.tril(-1).mT)  # one triangle was summed
    _complete(sums, network)
    return sums


def stream_and_gradients(
    network: LeakyResNet, x: Tensor, y: Tensor, *, num_samples: int, loss: Loss = SQUARED
) -> tuple[list[Tensor], tuple[Tensor, ...], Tensor]:
    """A_0 .. A_L of some rows, the gradients of their share of the data loss there, and that share."""
    with torch.enable_grad():
        states = walk(network, x.clone().requires_grad_())  # so that A_0 has a gradient
        stream = [state.activation for state in states[:-1]]
        value = loss.summed(states[-1].activation, y) / num_samples
        gradients = torch.autograd.grad(value, stream)
    return [a.detach() for a in stream], gradients, value.detach()


class _Blocks:
    """Stream and momenta of one block of rows at a time, on buffers that all blocks share."""

    def __init__(self, network: LeakyResNet, size: int, loss: Loss) -> None:
        w, p = network.width, network.weights.shape[2]
        self.network, self.rho, self.loss = network, network.layer_steps().tolist(), loss
        self._pull = network.layer_steps()[:, None, None] * network.weights[:, :, :w]
        self._stream = [network.weights.new_empty(size, w) for _ in range(network.depth + 1)]
        self._features = network.weights.new_ones(size, p)  # the last column of a network with biases stays 1
        self._rest = [network.weights.new_empty(size, w) for _ in range(4)]

    def add(self, sums: LeakySums, x: Tensor, y: Tensor, *, num_samples: int, ridge: float) -> None:
        """Add the rows x, y of `num_samples` in all."""
        n, U = len(x), self.network.unembedding
        stream, S = [a[:n] for a in self._stream], self._features[:n]
        momentum, above, below, roots = (buffer[:n] for buffer in self._rest)
        self._forward(x, stream, S, roots)
        with torch.enable_grad():
            outputs = (stream[-1] @ U.mT).detach().requires_grad_()
            total = self.loss.summed(outputs, y)
            (pull,) = torch.autograd.grad(total, outputs)
        sums.data_loss.add_(total.detach() / num_samples)
        torch.mm(pull, U, out=momentum).mul_(-1 / (num_samples * ridge))
        for level in range(self.network.depth, -1, -1):
            A = stream[level]
            self._see(A, S, roots)
            if level < self.network.depth:
                momentum, above = above, momentum
                waist = self.network.waist
                if waist is not None and waist.layer == level + 1:
                    above = above @ waist.projection  # a layer adds to the stream in front of the waist
                _add_pair(sums, level, (S, A, above))
                self._backward(level, (S, A, roots), above=above, below=below, out=momentum)
            _add_level(sums, level, (S, momentum))
            if _starts(self.network, level):
                sums.activation[level].add_(torch.dot(A.view(-1), A.view(-1)))
                sums.same[level].add_(torch.dot(A.view(-1), momentum.view(-1)))

    def _forward(self, x: Tensor, stream: list[Tensor], S: Tensor, roots: Tensor) -> None:
        network, Lt = self.network, self.network.effective_depth
        stream[0].copy_(network.behind(0, x @ network.embedding.mT))
        for l, rho in enumerate(self.rho):
            self._see(stream[l], S, roots)
            torch.addmm(stream[l], S, network.weights[l].mT, beta=1 - rho * Lt, alpha=rho, out=stream[l + 1])
            if network.waist is not None:
                stream[l + 1].copy_(network.behind(l + 1, stream[l + 1]))

    def _see(self, A: Tensor, S: Tensor, roots: Tensor) -> None:
        """Features of A into S, and the root that a smoothed relu divides by."""
        positive, eps = S[:, : A.shape[1]], float(self.network.smoothing)
        if not eps:
            torch.clamp_min(A, 0.0, out=positive)
            return
        torch.mul(A, A, out=roots).add_(eps * eps).sqrt_()
        torch.add(A, roots, out=positive).mul_(0.5)

    def _backward(
        self, level: int, here: tuple[Tensor, Tensor, Tensor], *, above: Tensor, below: Tensor, out: Tensor
    ) -> None:
        """B of a level from that of the level above, in front of a waist."""
        (S, A, roots), network = here, self.network
        w = network.width
        torch.mm(above, self._pull[level], out=below)
        if float(network.smoothing):
            below.mul_(S[:, :w]).div_(roots)  # the slope (1 + A / r) / 2 is relu / r
        else:
            torch.ops.aten.threshold_backward.grad_input(below, A, 0.0, grad_input=below)
        torch.add(below, above, alpha=1 - self.rho[level] * network.effective_depth, out=out)


def _add_pair(sums: LeakySums, level: int, terms: tuple[Tensor, Tensor, Tensor]) -> None:
    """Sums of A and S of a level, and B of the level above."""
    S, A, above = terms
    # half of a symmetric product: a third of its time saved, measured. BLAS counts columns first, so its upper triangle
    # is the lower one here
    dsyrk(1.0, S.numpy().T, beta=1.0, c=sums.gram[level].numpy().T, overwrite_c=1)
    sums.by_activation[level].addmm_(S.mT, A)
    sums.by_momentum[level].addmm_(S.mT, above)
    sums.mixed[level].add_(torch.dot(A.view(-1), above.view(-1)))


def _add_level(sums: LeakySums, level: int, terms: tuple[Tensor, Tensor]) -> None:
    """Sums of S and B of one level."""
    S, B = terms
    sums.by_level[level].addmm_(S.mT, B)
    sums.momentum[level].add_(torch.dot(B.view(-1), B.view(-1)))


def _starts(network: LeakyResNet, level: int) -> bool:
    """Whether A of this level is not k A + rho S W^T of the level below: the first, and one behind a waist."""
    return level == 0 or (network.waist is not None and network.waist.layer == level)


def _complete(sums: LeakySums, network: LeakyResNet) -> None:
    """|A_l|^2 and <A_l, B_l> of all other levels, from the sums below them instead of two more passes over A_l.

    A_l = k A_{l-1} + rho S_{l-1} W_l^T with k = 1 - rho Lt:
    <A_l, B_l> = k <A_{l-1}, B_l> + rho <W_l^T, S_{l-1}^T B_l>,   and |A_l|^2 likewise
    """
    for l, rho in enumerate(network.layer_steps().tolist()):
        if _starts(network, l + 1):
            continue
        k, W = 1 - rho * network.effective_depth, network.weights[l]
        sums.same[l + 1] = k * sums.mixed[l] + rho * (W.mT * sums.by_momentum[l]).sum()
        added = rho * (2 * k * sums.by_activation[l] + rho * sums.gram[l] @ W.mT)
        sums.activation[l + 1] = k * k * sums.activation[l] + (W.mT * added).sum()
