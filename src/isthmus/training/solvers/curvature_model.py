"""A leaky network to first order in its weights, and the curvature of its objective that follows (LEAKY-25).

In the coordinates u = sqrt(c) theta, in which the penalty is |u|^2 / 2, the Gauss-Newton curvature is ridge + J^T J.
Its inverse needs one solve on the smaller side: with ridge + J^T J itself, or, where outputs are fewer than weights,
with ridge + J J^T between one derivative along a direction and one pull-back.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from isthmus.networks import LeakyResNet, walk
from isthmus.theory.representation_costs import lifted, lifted_slope
from isthmus.training.losses import DataLoss


@dataclass(frozen=True, slots=True)
class Linearisation:
    """What the derivative of the outputs in u needs: plain fields, so that a checkpoint can hold them as a dictionary.

    Attributes:
        V: weights without biases (L, w, w).
        S: features that enter each layer (L, n, w [+ 1]).
        D: slopes of the relu (L, n, w).
        ends: x, A_L and U.
        rho: steps of explicit Euler (L,).
        scale: root of the data loss's curvature per sample (n, 1).
        effective_depth: Lt.
        learned: whether the maps are parameters.
        waist: number of the layer behind which the stream is projected and the projection, or None.
        mix: combinations of the outputs that stand for all of them, other ones in each sample (n, q, d_out), or None.
            What is said of d_out then holds of q.
    """

    V: Tensor
    S: Tensor
    D: Tensor
    ends: tuple[Tensor, Tensor, Tensor]
    rho: tuple[float, ...]
    scale: Tensor
    effective_depth: float
    learned: bool
    waist: tuple[int, Tensor] | None = None
    mix: Tensor | None = None

    def push(self, u: Tensor) -> Tensor:
        """J u: change of the outputs (n, d_out), weighted by `scale`."""
        x, last, U = self.ends
        W, E, dU = self._split(u)
        dA = self._projected(0, x @ E.mT if E is not None else torch.zeros_like(last))
        for l, rho in enumerate(self.rho):
            added = torch.addmm((self.D[l] * dA) @ self.V[l].mT * rho, self.S[l], W[l].mT, alpha=self._gain(rho))
            dA = self._projected(l + 1, torch.add(added, dA, alpha=1 - rho * self.effective_depth))
        out = dA @ U.mT
        out = self.scale * (out + last @ dU.mT if dU is not None else out)
        return out if self.mix is None else (self.mix @ out[:, :, None])[:, :, 0]

    def pull(self, r: Tensor) -> Tensor:
        """J^T r, one flat vector."""
        _, last, U = self.ends
        r = self.scale * (r if self.mix is None else (r[:, None] @ self.mix)[:, 0])
        parts: list[Tensor] = []
        for gain, S, g in self._adjoints((r @ U)[:, None]):
            parts.insert(0, gain * (g[:, 0].mT @ S))
        if self.learned:
            parts += [parts.pop(0), r.mT @ last]
        return torch.cat([part.reshape(-1) for part in parts])

    def count(self) -> int:
        """Number of rows of J: n d_out."""
        return len(self.scale) * (len(self.ends[2]) if self.mix is None else self.mix.shape[1])

    def factor(self, ridge: float) -> Tensor:
        """Cholesky factor of ridge + J^T J or ridge + J J^T, whichever is smaller."""
        few = self.jacobian() if self.weights() < self.count() else None
        gram = self.gram() if few is None else few.mT @ few
        gram.diagonal().add_(ridge)
        return torch.linalg.cholesky(gram)

    def largest(self) -> float:
        """Largest entry of the diagonal of J J^T; its largest eigenvalue is at most `count` times as large."""
        return float(self.gram().diagonal().max())

    def solved(self, v: Tensor, factor: Tensor, *, ridge: float) -> Tensor:
        """(ridge + J^T J)^{-1} v = (v - J^T (ridge + J J^T)^{-1} J v) / ridge."""
        if len(factor) < self.count():
            return torch.cholesky_solve(v[:, None], factor)[:, 0]
        pushed = self.push(v)
        return (v - self.pull(torch.cholesky_solve(pushed.reshape(-1, 1), factor).view_as(pushed))) / ridge

    def weights(self) -> int:
        """Number of columns of J."""
        x, _, U = self.ends
        inner = self.D.shape[0] * self.D.shape[2] * self.S.shape[2]
        return inner + (U.shape[1] * x.shape[1] + U.numel() if self.learned else 0)

    def jacobian(self) -> Tensor:
        """J, (n d_out, weights), samples first."""
        last, mix = self.ends[1], self._mixes()
        parts: list[Tensor] = []
        for gain, S, g in self._adjoints((self.scale[:, None] * mix) @ self.ends[2]):
            parts.insert(0, gain * (g[..., None] * S[:, None, None]))
        if self.learned:
            parts += [parts.pop(0), mix[..., None] * (self.scale * last)[:, None, None]]
        return torch.cat([part.reshape(self.count(), -1) for part in parts], 1)

    def gram(self) -> Tensor:
        """J J^T, (n d_out, n d_out): the tangent kernel in u of the outputs, samples first."""
        _, last, U = self.ends
        mix = self._mixes()
        n, d = mix.shape[:2]
        total = mix.new_zeros(n, d, n, d)
        for gain, S, g in self._adjoints((self.scale[:, None] * mix) @ U):
            g = g.reshape(n * d, -1)
            kernel = gain**2 * (S @ S.mT)
            total.addcmul_((g @ g.mT).view(n, d, n, d), kernel[:, None, :, None])
        if self.learned:
            ends, rows = (self.scale * last) @ (self.scale * last).mT, mix.reshape(n * d, -1)
            total.addcmul_((rows @ rows.mT).view(n, d, n, d), ends[:, None, :, None])
        return total.view(n * d, n * d)

    def _adjoints(self, g: Tensor) -> Iterator[tuple[float, Tensor, Tensor]]:
        """From the last layer to the first, and to a learned map of x: gain, what enters, derivatives by what it adds.

        Args:
            g: derivatives of q numbers of each sample by the end of the stream (n, q, w); those that come are as large.
        """
        for l in range(len(self.rho) - 1, -1, -1):
            rho, g = self.rho[l], self._projected(l + 1, g)
            yield self._gain(rho), self.S[l], g
            g = (1 - rho * self.effective_depth) * g + rho * self.D[l][:, None] * (g @ self.V[l])
        if self.learned:
            yield 1.0, self.ends[0], self._projected(0, g)

    def _mixes(self) -> Tensor:
        """Combinations of the outputs, (n, q, d_out)."""
        U = self.ends[2]
        every = torch.eye(len(U), dtype=U.dtype, device=U.device).expand(len(self.scale), -1, -1)
        return every if self.mix is None else self.mix

    def _projected(self, layer: int, rows: Tensor) -> Tensor:
        """Rows through the waist, where it stands behind `layer`; the projection is its own transpose."""
        return rows @ self.waist[1] if self.waist is not None and self.waist[0] == layer else rows

    def _gain(self, rho: float) -> float:
        """Rho dW / du = rho / sqrt(rho / Lt), or / sqrt(rho) without a leak."""
        return (rho * (self.effective_depth or 1.0)) ** 0.5

    def _split(self, u: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None]:
        x, last, U = self.ends
        L, width, p = len(self.rho), last.shape[1], self.S.shape[2]
        size = L * width * p
        W = u[:size].view(L, width, p)
        if not self.learned:
            return W, None, None
        edge = size + width * x.shape[1]
        return W, u[size:edge].view(width, -1), u[edge:].view(U.shape)


def random_mix(rows: int, count: int, outputs: int, generator: torch.Generator) -> Tensor:
    """In each row `count` orthonormal combinations of the outputs, float64, scaled to be all outputs on the mean.

    R^T R = (outputs / count) * a projection, whose expectation is the identity
    """
    drawn = torch.randn(rows, outputs, count, dtype=torch.float64, generator=generator)
    return torch.linalg.qr(drawn).Q.mT * (outputs / count) ** 0.5


def linearised(network: LeakyResNet, x: Tensor, data: DataLoss, mix: Tensor | None = None) -> Linearisation:
    """The linearisation at the weights that the network has now; `mix` as in `Linearisation`."""
    eps = float(network.smoothing)
    with torch.no_grad():
        stream = torch.stack([s.activation for s in walk(network, x)[:-1]])
    weight = data.weight if data.weight is not None else x.new_full((len(x),), 1 / len(x))
    curvature = weight * data.loss.curvature(stream[-1] @ network.unembedding.detach().T, data.y)
    return Linearisation(
        V=network.weights.detach()[:, :, : network.width].clone(),
        S=lifted(stream[:-1], bias=network.has_bias, smoothing=eps),
        D=lifted_slope(stream[:-1], smoothing=eps),
        ends=(x, stream[-1].clone(), network.unembedding.detach().clone()),
        rho=tuple(network.layer_steps().tolist()),
        scale=curvature.sqrt()[:, None],
        effective_depth=network.effective_depth,
        learned=network.maps == "learned",
        waist=None if network.waist is None else (network.waist.layer, network.waist.projection.clone()),
        mix=None if mix is None else mix.to(x),
    )
