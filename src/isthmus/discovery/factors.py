"""Two halves of a network as a record, and the axes through which it is cut. Who cuts: `factorisation`, `chains`."""

import math
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

M = TypeVar("M", bound=nn.Module, covariant=True)


@dataclass(frozen=True, slots=True)
class Factorisation(Generic[M]):
    """Two halves of a network.

    Attributes:
        encoder: x -> coordinates (n, rank): centred, decorrelated on the data, by decreasing variance, sign fixed.
        decoder: coordinates -> outputs.
        rank: number of coordinates.
        layer: number of the layer that was cut; of a module that is not ours, its name.
        relative_error: |decoder(encoder(x)) - f(x)|_F / |f(x) - mean|_F on the rows that the halves were fitted to.
        heldout_error: the same on rows that had no say (see `factorise`); NaN where there are none.

    >>> isthmus.factorise(network, x, 2).rank
    2
    """

    encoder: M
    decoder: M
    rank: int
    layer: int | str
    relative_error: float
    heldout_error: float = math.nan


def principal_axes(centred: Tensor, rank: int) -> Tensor:
    """Orthonormal columns by decreasing variance, each with its entry of largest magnitude positive."""
    axes = torch.linalg.svd(centred, full_matrices=False).Vh[:rank].T
    if axes.shape[1] < rank:  # fewer samples than coordinates: complete the basis
        axes = torch.linalg.qr(torch.cat([axes, torch.eye(len(axes)).to(axes)], 1)).Q[:, :rank]
    sign = axes.gather(0, axes.abs().argmax(0, keepdim=True)).sign() if rank else axes[:1]
    return axes * sign
