"""The halves of f = decoder o encoder as objects, and the three ranks of a task by which of them may be curved.

rank:        f = h o g,       both curved: the bottleneck rank
index rank:  f = h o A,       A linear: the dimension of the span of all gradients (structural dimension)
mode rank:   f = B o g + c,   B linear: the dimension of the affine hull of the values of f

rank <= min(index rank, mode rank)
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

import torch
from torch import Tensor

from isthmus.tasks.arrays import counted
from isthmus.theory.spread_rows import median_over_rows


class Side(StrEnum):
    """What a half may be."""

    CURVED = "curved"
    LINEAR = "linear"


@dataclass(frozen=True, slots=True)
class Half:
    """An encoder or a decoder of ReLU layers of one width; without any layer it is a linear map.

    Attributes:
        layers: number of ReLU layers.
        width: of each.
    """

    layers: int
    width: int

    @property
    def widths(self) -> list[int]:
        """Of its hidden layers, in order."""
        return [self.width] * self.layers

    def carries(self) -> int | None:
        """Coordinates that it can hand through its ReLU layers by their two signs; None for any number."""
        return self.width // 2 if self.layers else None

    def add_linear_map(self, weights: Sequence[Tensor], before: Tensor, after: Tensor) -> None:
        """Add `after` @ `before` to what its weights compute, in place.

            h = (relu(B x), relu(-B x)) is carried by identities;   y = A (h_+ - h_-)

        Args:
            weights: its matrices, one more than ReLU layers, from its inputs to its outputs.
            before: B (m, inputs).
            after: A (outputs or the first of them, m).
        """
        m = len(before)
        if not self.layers:
            weights[0][: len(after)] += after @ before
            return
        eye = torch.eye(m, dtype=before.dtype)
        signs = torch.cat([eye, -eye])
        weights[0][: 2 * m] += signs @ before
        for weight in weights[1:-1]:
            weight[: 2 * m, : 2 * m] += torch.eye(2 * m, dtype=before.dtype)
        weights[-1][: len(after), : 2 * m] += after @ signs.T


class RankKind(ABC):
    """One of the ranks."""

    name: ClassVar[str]
    encoder: ClassVar[Side] = Side.CURVED
    decoder: ClassVar[Side] = Side.CURVED
    noun: ClassVar[str]  # of one coordinate
    whose: ClassVar[str] = ""
    title: ClassVar[str]
    plateau: ClassVar[bool] = True  # the held-out error is read by where it becomes flat, not by its largest bend
    held_out_reads: ClassVar[str] = "is flat from {} on"  # what the held-out error does at the rank that it reads,
    held_out_elsewhere: ClassVar[str] = "from {}"  # and where it does not
    held_out_blunt: ClassVar[str] = "hardly rises below the rank that it reads"
    # with a linear half a linear map gives one target one combination, and a random start finds a weak one by chance,
    # one in three times where it is 4 % of the objective
    usual_starts: ClassVar[int] = 3
    starts_linear: ClassVar[bool] = False  # whether the first start is the linear map

    def counted(self, count: int) -> str:
        """A count of its coordinates: "1 dimension", "3 combinations of the inputs"."""
        return counted(count, self.noun) + self.whose

    @abstractmethod
    def most(self, d_in: int, d_out: int) -> int:
        """The rank that no map of so many inputs to so many outputs exceeds."""

    @abstractmethod
    def spectrum(self, jacobians: Tensor) -> Tensor:
        """The singular values whose largest gap lies at this rank, of Jacobians (n, d_out, d_in) at spread points."""


class BottleneckRank(RankKind):
    """f = h o g."""

    name: ClassVar[str] = "rank"
    noun: ClassVar[str] = "dimension"
    title: ClassVar[str] = "bottleneck rank"
    plateau: ClassVar[bool] = False
    held_out_reads: ClassVar[str] = "bends at {}"
    held_out_elsewhere: ClassVar[str] = "at {}"
    held_out_blunt: ClassVar[str] = "has no clear bend"
    usual_starts: ClassVar[int] = 2
    starts_linear: ClassVar[bool] = True

    def most(self, d_in: int, d_out: int) -> int:
        """min(d_in, d_out): f = f o identity = identity o f."""
        return min(d_in, d_out)

    def spectrum(self, jacobians: Tensor) -> Tensor:
        """Medians over the points: the local rank."""
        return median_over_rows(torch.linalg.svdvals(jacobians))


class IndexRank(RankKind):
    """f = h o A."""

    name: ClassVar[str] = "index"
    encoder: ClassVar[Side] = Side.LINEAR
    noun: ClassVar[str] = "combination"
    whose: ClassVar[str] = " of the inputs"
    title: ClassVar[str] = "index rank"

    def most(self, d_in: int, d_out: int) -> int:  # noqa: ARG002
        """d_in."""
        return d_in

    def spectrum(self, jacobians: Tensor) -> Tensor:
        """Of all gradients as rows, n d_out of them, over sqrt(n)."""
        return torch.linalg.svdvals(jacobians.flatten(0, 1)) / len(jacobians) ** 0.5


class ModeRank(RankKind):
    """f = B o g + c."""

    name: ClassVar[str] = "mode"
    decoder: ClassVar[Side] = Side.LINEAR
    noun: ClassVar[str] = "mode"
    whose: ClassVar[str] = " of the outputs"
    title: ClassVar[str] = "mode rank"

    def most(self, d_in: int, d_out: int) -> int:  # noqa: ARG002
        """d_out."""
        return d_out

    def spectrum(self, jacobians: Tensor) -> Tensor:
        """Of all tangents as columns, n d_in of them, over sqrt(n)."""
        return torch.linalg.svdvals(jacobians.movedim(0, -1).flatten(1, 2)) / len(jacobians) ** 0.5


RANK, INDEX, MODE = BottleneckRank(), IndexRank(), ModeRank()
RANK_KINDS: dict[str, RankKind] = {kind.name: kind for kind in (RANK, INDEX, MODE)}


def rank_kind(encoder: str, decoder: str) -> RankKind:
    """The rank that these halves ask for.

    Raises:
        ValueError: no such half, or both linear.
    """
    for name, side in (("encoder", encoder), ("decoder", decoder)):
        if side not in list(Side):
            raise ValueError(f"discover({name}={str(side)[:40]!r}): needs 'curved' or 'linear'.")
    found = next((kind for kind in RANK_KINDS.values() if (kind.encoder, kind.decoder) == (encoder, decoder)), None)
    if found is None:
        raise ValueError(
            "discover(encoder='linear', decoder='linear'): the whole map is linear then, which every discovery fits "
            "beside (linear_error of the scree curve); make one of the two curved."
        )
    return found
