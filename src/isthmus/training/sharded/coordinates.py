"""Which coordinates of the flat parameter vector a process keeps the memory of L-BFGS for: all, or its share.

The memory is by far the largest thing in a fit, 2 m vectors as long as the parameters. What is done with it are inner
products with whole vectors and combinations of its rows, and both split by coordinates. The solver: `solvers`.
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from isthmus.training.checkpoint import State
from isthmus.training.sharded.team import Team

PIECES = 64  # of the flat vector, whatever the number of processes
ALIGNED = 16  # numbers: the length of a piece is a multiple, so that every piece begins at a multiple of 64 bytes
MEMORY = "pairs"  # what the memory is called in the state of a solver


@runtime_checkable
class Coordinates(Protocol):
    """Rows as long as the flat vector, of which this process keeps its coordinates."""

    def memory(self, rows: int, like: Tensor) -> Tensor:
        """Room for so many rows, zeros of the kind of the flat vector `like`."""
        ...

    def store(self, memory: Tensor, row: int, vector: Tensor, less: Tensor | None = None) -> None:
        """Put a whole vector (P,), or its difference from another, into a row."""
        ...

    def exchange(self, memory: Tensor, row: int, vector: Tensor, change: int) -> None:
        """Put a whole vector (P,) into a row, and its difference from what was there into the row `change`."""
        ...

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


class InPieces:
    """The memory as pieces of the flat vector that this process keeps: (own pieces, rows, length of a piece).

    All that is computed is computed piece by piece, on tensors of one shape and alignment: so the number of processes
    changes no bit. What a vector is, the whole of it or its own coordinates, those who inherit say in `cut`.
    """

    def __init__(self, team: Team, pieces: range) -> None:
        self.team, self.pieces = team, pieces

    def cut(self, vector: Tensor) -> Tensor:
        """The own pieces of a vector, (pieces, length), filled up by zeros."""
        raise NotImplementedError

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
        return self.team.gathered(stacked, self.pieces, PIECES).sum(0)

    def own_combination(self, memory: Tensor, weights: Tensor) -> Tensor:
        """The own pieces (pieces, length) of the sum of the rows times their weights (rows,)."""
        own = torch.empty_like(memory[:, 0])
        for kept, out in zip(memory, own, strict=True):
            out.copy_(torch.mv(kept.t(), weights))
        return own


class SharedCoordinates(InPieces):
    """A run of pieces of the flat vector for each process of a team, each of which has the whole vector."""

    def __init__(self, team: Team, size: int) -> None:
        super().__init__(team, range(PIECES * team.rank // team.size, PIECES * (team.rank + 1) // team.size))
        self._size, self._length = size, -(-size // (PIECES * ALIGNED)) * ALIGNED

    def cut(self, vector: Tensor) -> Tensor:
        """A whole vector (P,) as own pieces (pieces, length), filled up by zeros."""
        own = vector[self.pieces.start * self._length : self.pieces.stop * self._length]
        cut = vector.new_zeros(len(self.pieces) * self._length)
        cut[: len(own)] = own
        return cut.view(len(self.pieces), self._length)

    def memory(self, rows: int, like: Tensor) -> Tensor:
        """Room for so many rows, zeros of the kind of the flat vector `like`."""
        return like.new_zeros(len(self.pieces), rows, self._length)

    def combination(self, memory: Tensor, weights: Tensor) -> Tensor:
        """The whole vector that is the sum of the rows times their weights (rows,)."""
        own = self.own_combination(memory, weights)
        return self.team.gathered(own, self.pieces, PIECES).view(-1)[: self._size].clone()

    def whole(self, memory: Tensor) -> Tensor:
        """The memory of all processes together."""
        rows = [self.team.gathered(row, self.pieces, PIECES) for row in memory.unbind(1)]
        return torch.stack(rows, 1)

    def own(self, memory: Tensor) -> Tensor:
        """The memory of this process, of that of all."""
        return memory[self.pieces.start : self.pieces.stop].clone()


def with_memory(state: State, change: Callable[[Tensor], Tensor]) -> State:
    """The state of a solver with its memory, and that of solvers within it, changed."""
    changed: State = {}
    for name, value in state.items():
        if name == MEMORY:
            changed[name] = change(value)
        else:
            changed[name] = with_memory(value, change) if isinstance(value, dict) else value
    return changed
