"""What keeps the numbers that leave a layer, and what lets only some directions of them through: for cuts.

Which layers are cut, and what is lost: `narrow_places`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from isthmus.diagnostics.listener import Listener
from isthmus.diagnostics.samples import Samples


@dataclass(slots=True, eq=False)
class Keeping(Listener):
    """Keeps what leaves some layers, one flat row for each sample.

    Attributes:
        places: indices of these layers.
    """

    places: Sequence[int]
    _part: Samples | None = None
    _kept: dict[int, list[Tensor]] = field(default_factory=dict[int, list[Tensor]])
    _real: dict[int, list[Tensor]] = field(default_factory=dict[int, list[Tensor]])
    _index: int = -1

    def begin(self, part: Samples) -> None:
        """Before a batch."""
        self._part, self._index = part, -1

    def produced(self, z: Tensor) -> None:
        """Keep it, where it is one of these layers."""
        self._index += 1
        if self._index in self.places and self._part is not None:
            self._kept.setdefault(self._index, []).append(z.reshape(self._part.num, -1).clone())
            real = numbers_of_tokens(z, self._part)
            if real is not None:
                self._real.setdefault(self._index, []).append(real)

    def rows(self, place: int) -> Tensor:
        """What left a layer, (n, numbers); where a token is padding its mean over samples that have it."""
        kept = torch.cat(self._kept.pop(place))
        if place not in self._real:
            return kept
        real = torch.cat(self._real.pop(place))
        mean = (kept * real).sum(0) / real.sum(0).clamp_min(1)
        return torch.where(real, kept, mean.to(kept.dtype))


@dataclass(slots=True, eq=False)
class Projecting(Listener):
    """Lets through only some directions of what leaves one layer, around the mean.

    Attributes:
        place: index of the layer.
        mean: of what leaves it, flat.
        axes: the directions as columns.
        part: the samples that pass; what their padding is made of counts nothing.
    """

    place: int
    mean: Tensor
    axes: Tensor
    part: Samples
    _index: int = -1

    def produced(self, z: Tensor) -> Tensor | None:
        """The same cut, where it is this layer."""
        self._index += 1
        if self._index != self.place:
            return None
        flat, real = z.reshape(self.part.num, -1).double() - self.mean, numbers_of_tokens(z, self.part)
        flat = flat if real is None else flat * real
        return (self.mean + flat @ self.axes @ self.axes.T).to(z.dtype).reshape(z.shape)


def numbers_of_tokens(z: Tensor, part: Samples) -> Tensor | None:
    """Which numbers of every sample are of tokens that are no padding, (n, numbers); None where all are."""
    real = part.real_tokens
    if real is None or (z.shape[:2] != real.shape and len(z) != real.numel()):
        return None
    return real.to(z.device).repeat_interleave(z.numel() // real.numel(), 1)
