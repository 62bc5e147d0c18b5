"""A flat vector of which each process keeps its own coordinates: solvers see one vector, sums go over all processes.

How the coordinates are cut into pieces: `coordinates`. What the vector holds, layer by layer: `sharded.layer_shares`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from isthmus.training.sharded.coordinates import InPieces, Split

# what acts on each coordinate alone, so that own coordinates are enough; anything else is refused rather than guessed
_BY_COORDINATE = frozenset({
    "__get__", "__len__", "__repr__", "abs", "add", "add_", "addcdiv_", "addcmul_", "clone", "copy_", "div", "isfinite",
    "lerp_", "mul", "mul_", "neg", "sqrt_", "sub", "to", "zeros_like",
})  # fmt: skip


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

    def own_part(self, vector: Tensor) -> Tensor:
        """All that this process has of it."""
        return plain(vector)

    def combination(self, memory: Tensor, weights: Tensor) -> Tensor:
        """The vector that is the sum of the rows times their weights (rows,)."""
        own = self.own_combination(memory, weights)
        return SplitVector.of(own.view(-1)[: len(self.split.own)].clone(), self.split)

    def whole(self, memory: Tensor) -> Tensor:
        """The memory of this process: no process holds that of all."""
        return memory

    def own(self, memory: Tensor) -> Tensor:
        """The memory of this process."""
        return memory
