"""Which coordinates of the flat parameter vector a process keeps the memory of L-BFGS for: all, or its share.

The memory is by far the largest thing in a fit, 2 m vectors as long as the parameters. What is done with it are inner
products with whole vectors and combinations of its rows, and both split by coordinates. The solver: `solvers`.
"""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from isthmus.training.team import Team

PIECES = 64  # inner products are sums over so many pieces, whatever the number of processes
MEMORY = "pairs"  # what the memory is called in the state of a solver


@runtime_checkable
class Coordinates(Protocol):
    """The coordinates of this process."""

    @property
    def part(self) -> slice:
        """Where they lie in the flat vector."""
        ...

    def products(self, rows: Tensor, vectors: Tensor) -> Tensor:
        """Inner products over all coordinates, float64, of kept rows (k, part) with whole vectors (P,) or (P, j)."""
        ...

    def joined(self, part: Tensor) -> Tensor:
        """The whole vector, of which each process has its part."""
        ...


class AllCoordinates:
    """One process that keeps everything."""

    @property
    def part(self) -> slice:
        """Where they lie in the flat vector."""
        return slice(None)

    def products(self, rows: Tensor, vectors: Tensor) -> Tensor:
        """Inner products over all coordinates, float64, of kept rows (k, part) with whole vectors (P,) or (P, j)."""
        return (rows @ vectors).double()

    def joined(self, part: Tensor) -> Tensor:
        """The whole vector, of which each process has its part."""
        return part


class SharedCoordinates:
    """A run of pieces of the flat vector for each process of a team."""

    def __init__(self, team: Team, size: int) -> None:
        self._team, self._size = team, size
        self._own = self._pieces(team.rank)

    def _pieces(self, rank: int) -> range:
        return range(PIECES * rank // self._team.size, PIECES * (rank + 1) // self._team.size)

    def _start(self, piece: int) -> int:
        return self._size * piece // PIECES

    @property
    def part(self) -> slice:
        """Where they lie in the flat vector."""
        return slice(self._start(self._own.start), self._start(self._own.stop))

    def products(self, rows: Tensor, vectors: Tensor) -> Tensor:
        """Inner products over all coordinates, float64, of kept rows (k, part) with whole vectors (P,) or (P, j)."""
        first = self.part.start
        found = torch.zeros(len(self._own), len(rows), *vectors.shape[1:], dtype=torch.float64, device=rows.device)
        for i, piece in enumerate(self._own):
            low, high = self._start(piece), self._start(piece + 1)
            found[i] = (rows[:, low - first : high - first] @ vectors[low:high]).double()
        return self._team.gathered(found, self._own, PIECES).sum(0)

    def joined(self, part: Tensor) -> Tensor:
        """The whole vector, of which each process has its part."""
        return self._team.gathered(part, range(self.part.start, self.part.stop), self._size)


def whole_state(state: dict[str, Any], coordinates: Coordinates) -> dict[str, Any]:
    """The state of a solver with the memory of all processes in it, as a checkpoint holds it."""
    if isinstance(coordinates, AllCoordinates):
        return state
    return _with_memory(state, lambda rows: torch.stack([coordinates.joined(row) for row in rows]))


def own_state(state: dict[str, Any], coordinates: Coordinates) -> dict[str, Any]:
    """The inverse: only the memory of this process."""
    if isinstance(coordinates, AllCoordinates):
        return state
    return _with_memory(state, lambda rows: rows[:, coordinates.part].clone())


def _with_memory(state: dict[str, Any], change: Callable[[Tensor], Tensor]) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    for name, value in state.items():
        if name == MEMORY:
            changed[name] = change(value)
        else:
            changed[name] = _with_memory(value, change) if isinstance(value, dict) else value
    return changed
