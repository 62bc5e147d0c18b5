"""Which coordinates of the flat parameter vector a process keeps the memory of L-BFGS for: all, or its share.

The memory is by far the largest thing in a fit, 2 m vectors as long as the parameters. What is done with it are inner
products with whole vectors and combinations of its rows, and both split by coordinates. The solver: `solvers`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from isthmus.training.checkpoint import State
from isthmus.training.sharded.team import Team

PIECES = 64  # of the flat vector, whatever the number of processes
ALIGNED = 16  # numbers: the length of a piece is a multiple, so that every piece begins at a multiple of 64 bytes
MEMORY = "pairs"  # what the memory is called in the state of a solver
PRODUCTS = "products"  # and inner products of kept vectors, with which it is computed on the CPU


@runtime_checkable
class Coordinates(Protocol):
    """Rows as long as the flat vector, of which this process keeps its coordinates."""

    def memory(self, rows: int, like: Tensor) -> Tensor:
        """Room for so many rows, zeros of the kind of the flat vector `like`."""
        ...

    def store(self, memory: Tensor, row: int, vector: Tensor, less: Tensor | None = None) -> None:
        """Put a whole vector (P,), or its difference from another, into a row."""

    def exchange(self, memory: Tensor, row: int, vector: Tensor, change: int) -> None:
        """Put a whole vector (P,) into a row, and its difference from what was there into the row `change`."""

    def products(self, memory: Tensor, row: int) -> Tensor:
        """Inner products of all rows with one of them, over all coordinates: (rows,), float64."""
        ...

    def combination(self, memory: Tensor, weights: Tensor) -> Tensor:
        """The whole vector that is the sum of the rows times their weights (rows,)."""
        ...

    def whole(self, memory: Tensor) -> Tensor:
        """The memory of all processes together."""
        ...

    def own(self, memory: Tensor) -> Tensor:
        """The memory of this process, of that of all."""
        ...


class AllCoordinates:
    """One process that keeps everything: a row of the memory is a row of a matrix."""

    def memory(self, rows: int, like: Tensor) -> Tensor:
        """Room for so many rows, zeros of the kind of the flat vector `like`."""
        return like.new_zeros(rows, len(like))

    def store(self, memory: Tensor, row: int, vector: Tensor, less: Tensor | None = None) -> None:
        """Put a whole vector (P,), or its difference from another, into a row."""
        if less is None:
            memory[row] = vector
        else:
            torch.sub(vector, less, out=memory[row])

    def exchange(self, memory: Tensor, row: int, vector: Tensor, change: int) -> None:
        """Put a whole vector (P,) into a row, and its difference from what was there into the row `change`."""
        self.store(memory, change, vector, memory[row])
        self.store(memory, row, vector)

    def products(self, memory: Tensor, row: int) -> Tensor:
        """Inner products of all rows with one of them, over all coordinates: (rows,), float64."""
        return torch.mv(memory, memory[row]).double()

    def combination(self, memory: Tensor, weights: Tensor) -> Tensor:
        """The whole vector that is the sum of the rows times their weights (rows,)."""
        return torch.mm(weights[None], memory)[0]  # faster than the transpose times a vector

    def whole(self, memory: Tensor) -> Tensor:
        """The memory of all processes together."""
        return memory

    def own(self, memory: Tensor) -> Tensor:
        """The memory of this process, of that of all."""
        return memory


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


class InPieces(ABC):
    """The memory as pieces of the flat vector that this process keeps: (own pieces, rows, length of a piece).

    All that is computed is computed piece by piece, on tensors of one shape and alignment: so the number of processes
    changes no bit. What a vector is, the whole of it or its own coordinates, those who inherit say.
    """

    def __init__(self, split: Split) -> None:
        self.split = split

    @abstractmethod
    def own_part(self, vector: Tensor) -> Tensor:
        """The own coordinates (own,) of a vector."""

    def cut(self, vector: Tensor) -> Tensor:
        """The own pieces of a vector, (pieces, length), filled up by zeros."""
        own, count = self.own_part(vector), len(self.split.pieces)
        cut = own.new_zeros(count * self.split.length)
        cut[: len(own)] = own
        return cut.view(count, self.split.length)

    def memory(self, rows: int, like: Tensor) -> Tensor:
        """Room for so many rows, zeros of the kind of the flat vector `like`."""
        return self.own_part(like).new_zeros(len(self.split.pieces), rows, self.split.length)

    def store(self, memory: Tensor, row: int, vector: Tensor, less: Tensor | None = None) -> None:
        """Put a vector, or its difference from another, into a row."""
        memory[:, row] = self.cut(vector if less is None else vector - less)

    def exchange(self, memory: Tensor, row: int, vector: Tensor, change: int) -> None:
        """Put a vector into a row, and its difference from what was there into the row `change`."""
        cut = self.cut(vector)
        memory[:, change] = cut - memory[:, row]
        memory[:, row] = cut

    def products(self, memory: Tensor, row: int) -> Tensor:
        """Inner products of all rows with one of them, over all coordinates: (rows,), float64."""
        found = [torch.mv(kept, kept[row]).double() for kept in memory]
        stacked = torch.stack(found) if found else memory.new_zeros(0, memory.shape[1], dtype=torch.float64)
        return self.split.team.gathered(stacked, self.split.pieces, PIECES).sum(0)

    def own_combination(self, memory: Tensor, weights: Tensor) -> Tensor:
        """The own pieces (pieces, length) of the sum of the rows times their weights (rows,)."""
        own = torch.empty_like(memory[:, 0])
        for kept, out in zip(memory, own, strict=True):
            out.copy_(torch.mv(kept.t(), weights))
        return own


class SharedCoordinates(InPieces):
    """A run of pieces of the flat vector for each process of a team, each of which has the whole vector."""

    def own_part(self, vector: Tensor) -> Tensor:
        """Of a whole vector (P,)."""
        return vector[self.split.own.start : self.split.own.stop]

    def combination(self, memory: Tensor, weights: Tensor) -> Tensor:
        """The whole vector that is the sum of the rows times their weights (rows,)."""
        own = self.own_combination(memory, weights)
        return self._gathered(own).view(-1)[: self.split.size].clone()

    def whole(self, memory: Tensor) -> Tensor:
        """The memory of all processes together."""
        return torch.stack([self._gathered(row) for row in memory.unbind(1)], 1)

    def own(self, memory: Tensor) -> Tensor:
        """The memory of this process, of that of all."""
        return memory[self.split.pieces.start : self.split.pieces.stop].clone()

    def _gathered(self, own: Tensor) -> Tensor:
        return self.split.team.gathered(own, self.split.pieces, PIECES)


def placed(state: State, device: torch.device) -> State:
    """The state of a solver, from a file, on the device where it works, and that of solvers within it.

    Small matrices that are computed with on the CPU stay there: what lies beside pairs, and `PRODUCTS`.
    """

    def there(tensor: Tensor) -> Tensor:
        return tensor if tensor.device == device else tensor.to(device)  # what lies in several processes is there

    moved: State = {}
    for name, value in state.items():
        if isinstance(value, dict):
            moved[name] = placed(value, device)
        else:
            stays = (MEMORY in state and name != MEMORY) or name == PRODUCTS
            moved[name] = value if stays else tree_map_only(Tensor, there, value)
    return moved


def with_memory(state: State, change: Callable[[Tensor], Tensor]) -> State:
    """The state of a solver with its memory, and that of solvers within it, changed."""
    changed: State = {}
    for name, value in state.items():
        if name == MEMORY:
            changed[name] = change(value)
        else:
            changed[name] = with_memory(value, change) if isinstance(value, dict) else value
    return changed
