"""Exact gradients of the maps behind tasks, and what they say of the directions that matter.

Jacobians of networks: `networks.jacobians`. The maps themselves: the sibling files.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

Map = Callable[[Tensor], Tensor]


def gradients(function: Map, x: Float[Tensor, "n d_in"]) -> Float[Tensor, "n d_out d_in"]:
    """Jacobians of a map at every sample by automatic differentiation (*exact* up to rounding).

    Args:
        function: from points (..., d_in) to values (..., d_out), differentiable, each row on its own.
        x: samples as rows.

    >>> tasks.gradients(lambda rows: rows.square().sum(1, keepdim=True), torch.tensor([[1.0, 2.0]])).tolist()
    [[[2.0, 4.0]]]
    """
    leaf = x.detach().requires_grad_()
    values = function(leaf)
    rows = [torch.autograd.grad(column.sum(), leaf, retain_graph=True)[0] for column in values.unbind(-1)]
    return torch.stack(rows, 1)


def gradient_covariance(function: Map, x: Float[Tensor, "n d_in"]) -> Float[Tensor, "d_in d_in"]:
    """Mean over samples of the sum over outputs of grad f_j grad f_j^T, the matrix of active subspaces.

        C = 1/n sum_i J(x_i)^T J(x_i)

    Its range is the span of all gradients; its leading eigenvectors are the directions in which the map changes most.
    Both depend on the units of x.

    Args:
        function: as for `gradients`.
        x: samples as rows.

    Returns:
        The *exact* average over these samples, an *estimate* of that over their distribution.

    Source: Constantine, Dow and Wang 2014. Test: tests/tasks/test_gradients.py.

    >>> x = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    >>> int(theory.numerical_rank(tasks.gradient_covariance(lambda rows: rows[:, :1] + rows[:, 1:2], x)))
    1
    """
    jacobians = gradients(function, x)
    return torch.einsum("nqi,nqj->ij", jacobians, jacobians) / len(x)


@dataclass(frozen=True, slots=True)
class Strength:
    """How much of a map would be lost with its weakest direction, outputs scaled to variance 1.

    Attributes:
        slope: smallest eigenvalue of the gradient covariance, relative to their mean.
        share: of the variance, what drawing that eigenvector's coordinate anew changes (half the mean square).
        jacobian: smallest singular value of the Jacobian relative to the largest, at the row where it is largest.
    """

    slope: float
    share: float
    jacobian: float

    @classmethod
    def of(cls, h: Map, z: Float[Tensor, "n k"]) -> "Strength":
        """Read off the exact gradients and the values at these rows, whose coordinates have variance 1."""
        scales = h(z).std(0, correction=0)

        def scaled(z: Tensor) -> Tensor:
            return h(z) / scales

        values, vectors = torch.linalg.eigh(gradient_covariance(scaled, z))
        weakest = vectors[:, :1]
        along = z @ weakest
        moved = scaled(z + (along.roll(1, 0) - along) @ weakest.T)
        share = (moved - scaled(z)).square().mean() / 2
        s = torch.linalg.svdvals(gradients(scaled, z))
        return cls(float(values[0] / values.mean()), float(share), float((s[:, -1] / s[:, 0]).max()))
