"""A flat vector of which each process keeps its own coordinates: solvers see one vector, sums go over all processes.

How the coordinates are cut into pieces: `coordinates`. What the vector holds, layer by layer: `sharded.layer_shares`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isthmus.training.sharded.coordinates import ALIGNED, PIECES, InPieces
from isthmus.training.sharded.team import Team

# what acts on each coordinate alone, so that own coordinates are enough; anything else is refused rather than guessed
_BY_COORDINATE = frozenset({
    "__get__", "__len__", "__repr__", "abs", "add", "add_", "addcdiv_", "addcmul_", "clone", "copy_", "div", "isfinite",
    "lerp_", "mul", "mul_", "neg", "sqrt_", "sub", "to", "zeros_like",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Split:
    """How the coordinates of a flat vector are shared out: a run of its 64 pieces for each process.

    Attributes:
        size: number of coordinates P.
        team: the processes.
    """

    size: int
    team: Team

    @property
    def length(self) -> int:
        """Coordinates of a piece; the last piece that has any may have fewer."""
        return -(-self.size // (PIECES * ALIGNED)) * ALIGNED

    @property
    def pieces(self) -> range:
        """The pieces of this process."""
        return range(PIECES * self.team.rank // self.team.size, PIECES * (self.team.rank + 1) // self.team.size)

    @property
    def own(self) -> range:
        """The coordinates of this process."""
        return range(min(self.pieces.start * self.length, self.size), min(self.pieces.stop * self.length, self.size))

    def added(self, term: Callable[..., Tensor], *own: Tensor) -> Tensor:
        """The sum over all pieces, in their order, of a number for each: the same bits whatever the team, float64."""
        values = torch.zeros(len(self.pieces), dtype=torch.float64, device=own[0].device)
        for i, pieces in enumerate(zip(*(vector.split(self.length) for vector in own), strict=True)):
            if len(pieces[0]):  # a process without coordinates has one piece of nothing
                values[i] = term(*pieces)
        return self.team.gathered(values, self.pieces, PIECES).sum(0)


class SplitVector(Tensor):
    """The own coordinates of a vector that lies in several processes.

    What acts by coordinate acts on the own ones. `dot`, `norm`, `sum` and `all` go over all processes, which have to
    call them together; each gets the same bits, whatever the number of processes. All else is refused: a sum over the
    own coordinates, taken for that of the vector, would part the processes.
    """

    split_by: Split

    @classmethod
    def of(cls, own: Tensor, split: Split) -> "SplitVector":
        """The vector with these own coordinates, (len(split.own),); it shares their memory."""
        vector = own.as_subclass(cls)
        vector.split_by = split
        return vector

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Act by coordinate, or on all processes."""
        name = func.__name__
        if name in _OVER_ALL:
            return _OVER_ALL[name](*args, **(kwargs or {}))
        if name == "__getitem__":
            return func(plain(args[0]), args[1])  # a part is no vector of the team any more
        if name not in _BY_COORDINATE:
            raise TypeError(f"{name} of a vector that lies in several processes: not known to act by coordinate.")
        with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            found = func(*args, **(kwargs or {}))
        if type(found) is Tensor and isinstance(args[0], SplitVector) and name != "__get__":
            return cls.of(found, args[0].split_by)
        return found


def plain(vector: Tensor) -> Tensor:
    """The own coordinates as a tensor like any other, of the same memory."""
    with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        return vector.as_subclass(Tensor)


def _dot(a: SplitVector, b: SplitVector) -> Tensor:
    return a.split_by.added(torch.dot, plain(a), plain(b))


def _norm(a: SplitVector, *, p: object = "fro", dim: object = None, **_written_out: object) -> Tensor:
    if (p, dim) != ("fro", None):
        raise TypeError("norm of a vector that lies in several processes: only the Euclidean one is known.")
    return _dot(a, a).sqrt()


def _sum(a: SplitVector) -> Tensor:
    return a.split_by.added(torch.sum, plain(a))


def _all(a: SplitVector) -> bool:
    (some_not,) = a.split_by.team.agreed(not bool(plain(a).all()))
    return not some_not


_OVER_ALL: Mapping[str, Callable[..., object]] = {"dot": _dot, "norm": _norm, "sum": _sum, "all": _all}


class SplitCoordinates(InPieces):
    """The memory of L-BFGS for split vectors, of which no process has more than its own coordinates.

    Combining rows takes no message, and a checkpoint keeps the parts as they are.
    """

    def __init__(self, split: Split) -> None:
        super().__init__(split.team, split.pieces)
        self._split = split

    def cut(self, vector: Tensor) -> Tensor:
        """Own coordinates (own,) as (pieces, length), filled up by zeros."""
        own, count, length = plain(vector), len(self.pieces), self._split.length
        cut = own.new_zeros(count * length)
        cut[: len(own)] = own
        return cut.view(count, length)

    def memory(self, rows: int, like: Tensor) -> Tensor:
        """Room for so many rows, zeros of the kind of `like`."""
        return plain(like).new_zeros(len(self.pieces), rows, self._split.length)

    def combination(self, memory: Tensor, weights: Tensor) -> Tensor:
        """The vector that is the sum of the rows times their weights (rows,)."""
        own = self.own_combination(memory, weights)
        return SplitVector.of(own.view(-1)[: len(self._split.own)].clone(), self._split)

    def whole(self, memory: Tensor) -> Tensor:
        """The memory of this process: no process holds that of all."""
        return memory

    def own(self, memory: Tensor) -> Tensor:
        """The memory of this process."""
        return memory
