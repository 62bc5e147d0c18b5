"""Samples that lie in several processes, each with its own run of rows, and sums over all of them.

Who owns which rows: `team`. The objective on them: `sharded.row_step`.
"""

import hashlib
from collections.abc import Callable

import torch
from torch import Tensor

from isthmus.training.losses import DataLoss, Digest, identify
from isthmus.training.sharded.team import Leaves, Team

ROWS_AT_ONCE = 4096  # activations are kept for so many rows only
Values = Callable[[Tensor, DataLoss], Tensor]  # one row for each sample


class SharedRows:
    """The rows of this process among those of a team.

    Attributes:
        x: inputs of this process.
        data: the loss on its rows.
        team: the processes.
        leaves: how all rows are cut.
        own: the leaves of this process.
        at_once: most rows of a run.
    """

    def __init__(self, x: Tensor, data: DataLoss, *, total: int, team: Team, at_once: int = ROWS_AT_ONCE) -> None:
        self.x, self.data, self.team, self.leaves, self.at_once = x, data, team, Leaves(total), at_once
        self.own = team.leaves(self.leaves)
        self._first = self.leaves.start(self.own.start)
        self._weight = torch.full((min(len(x), at_once),), 1 / total, dtype=x.dtype, device=x.device)
        rows = team.rows(total)
        assert len(x) == len(data.y) == rows.stop - rows.start, "these are not the rows of this process"

    def at(self, low: int, high: int) -> tuple[Tensor, DataLoss]:
        """Rows low..high-1, counted over all processes but lying in this one, with 1/n or their own weights: a run."""
        own = slice(low - self._first, high - self._first)
        # copies: where rows begin in memory decides by which instructions they are added, and depends on the team
        x, y = self.x[own].clone(), self.data.y[own].clone()
        weight = self._weight[: len(x)] if self.data.weight is None else self.data.weight[own].clone()
        return x, DataLoss(self.data.loss, y, weight)

    def runs(self, leaf: int) -> list[tuple[int, int]]:
        """The rows of a leaf, so many at once that their activations fit."""
        low, high = self.leaves.start(leaf), self.leaves.start(leaf + 1)
        return [(start, min(start + self.at_once, high)) for start in range(low, high, self.at_once)]

    def added(self, of_leaves: Tensor) -> Tensor:
        """The sum over all leaves of a small tensor for each, (own leaves, ...) here; the same in all processes."""
        return self.team.gathered(of_leaves, self.own, self.leaves.count).sum(0)

    def over_rows(self, term: Callable[[Tensor, DataLoss], Tensor]) -> Tensor:
        """The sum of a small tensor over runs of rows, in an order that does not depend on the team."""
        return self.added(
            torch.stack([torch.stack([term(*self.at(*run)) for run in self.runs(i)]).sum(0) for i in self.own])
        )

    def spread(self, values: Values) -> float:
        """Mean squared distance of values from their mean, over all rows, in float64."""
        total = self.leaves.rows
        mean = self.over_rows(lambda x, data: values(x, data).double().sum(0)) / total
        squares = self.over_rows(lambda x, data: (values(x, data).double() - mean).square().sum())
        return float(squares) / total

    def target_spread(self) -> float:
        """As `Loss.spread` of the targets of all processes."""
        return self.data.loss.spread(self.spread(lambda _, data: data.loss.scatter(data.y)))

    def identify(self, digest: Digest) -> None:
        """Add all rows to a digest, which does not depend on the team."""
        sums: list[Tensor] = []
        for leaf in self.own:
            of_leaf = hashlib.sha256()
            for run in self.runs(leaf):
                identify(of_leaf, *self.at(*run))
            sums.append(torch.tensor(list(of_leaf.digest()), dtype=torch.int32))
        whole = self.team.gathered(torch.stack(sums), self.own, self.leaves.count)
        digest.update(bytes(whole.reshape(-1).tolist()))
