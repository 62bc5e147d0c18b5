"""Two halves of a network as a record, and the axes and number of coordinates through which it is cut.

Who cuts: `factorisation`, `chains`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

from isthmus.diagnostics.diagnose import diagnose
from isthmus.diagnostics.judged_rank import LOSSES, least_rank
from isthmus.errors import IsthmusError

LITTLE_LOST = LOSSES[2]  # of the output's spread, that a cut may lose where no number of dimensions stands out

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


def dimensions_of(module: nn.Module, x: Tensor, outputs: int) -> int | None:
    """The number of dimensions that `diagnose` reads, fewer than enter and come out, at a place inside the module.

    None where none stands out, or `diagnose` cannot read the module: as many as come out are proved by Jacobians, and
    no layer need have so few.

    Args:
        module: of one tensor in and one out.
        x: samples.
        outputs: numbers that come out for a sample.
    """
    try:
        found = diagnose(module, x).rank.estimate
    except (IsthmusError, ValueError):  # what may be cut all the same
        return None
    return found if found is not None and found < min(outputs, x[0].numel()) else None


def fewest_coordinates(errors: Sequence[Callable[[int], float]], widths: Sequence[int]) -> int:
    """The fewest coordinates through which a cut at one of some layers loses no more than `LITTLE_LOST`; else all.

    Args:
        errors: what a cut through a number of coordinates loses, for each layer; taken to fall.
        widths: of the layers.
    """
    fewest = max(widths)
    for error, width in zip(errors, widths, strict=True):
        if fewest > 1 and (found := least_rank(error, min(width, fewest - 1), LITTLE_LOST)) is not None:
            fewest = found
    return fewest
