"""How the inputs move from row to row: a Jacobian counts for the data only in directions in which they move.

What a network makes of other directions is what was drawn at its start. Who takes the Jacobians: `derivatives`,
`layer_jacobians`. What is read off their singular values: `rank`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from isthmus.diagnostics.covariance_factor import EXACT_WORK
from isthmus.diagnostics.samples import Samples
from isthmus.theory.spread_rows import spread_rows

MOST_COLUMNS = 1024  # of inputs, up to which all directions are told apart; of more, those that as many rows show
FEWEST_COLUMNS = 16  # for which rows are counted: of fewer columns no more rows are read
ROWS_A_COLUMN = 4  # that are read at least, where there are so many
AT_ONCE = 64  # rows of wide inputs that are held in float64


@dataclass(frozen=True, slots=True)
class Movement:
    """A factor D with D D^T = covariance of the inputs: J D is what the outputs do as the inputs move (*exact*).

    Its singular values are those of J Sigma^(1/2), in units of the outputs per standard deviation of the inputs: the
    same in any units and coordinates of these, and 0 in directions in which no row moves.

    Attributes:
        samples: all rows; of more than 2e8 products D is that of rows spread over them.
        numbers: of a sample's inputs that can be differentiated; 0 for tokens, of which D is the identity.
    """

    samples: Samples
    numbers: int

    @classmethod
    def of(cls, samples: Samples) -> "Movement":
        """That of these rows."""
        return cls(samples, sum(t[0].numel() for t in samples.floats()))

    def along(self, jacobians: Tensor) -> Tensor:
        """J D for each point, (points, outputs, directions); columns behind those of the inputs stay as they are.

        Args:
            jacobians: (points, outputs, at least `numbers`).
        """
        if not self.numbers:
            return jacobians
        by_inputs, others = jacobians.split([self.numbers, jacobians.shape[2] - self.numbers], 2)
        parts = [by_inputs @ part.mT for part in self._factor(jacobians.dtype, jacobians.device)]
        return torch.cat([*parts, others], 2)

    def most(self) -> int | None:
        """How many directions the rows can show, where these are fewer than inputs; None where they can show all."""
        directions = len(self._chosen) - 1
        return directions if self.numbers and directions < self.numbers else None

    def rank(self) -> int | None:
        """The numerical rank of the centred inputs, to 10 max(n, d) roundings of their type.

        None where rows were left out, where it only counts rows, or where tokens enter.
        """
        if not self.numbers or self.most() is not None or len(self._chosen) < self.samples.num:
            return None
        inputs = self.samples.floats()
        (factor,) = self._factor(torch.float64, inputs[0].device)
        rounding = 10 * max(self.samples.num, self.numbers) * max(torch.finfo(t.dtype).eps for t in inputs)
        return int(torch.linalg.matrix_rank(factor, rtol=min(rounding, 1.0)))

    @property
    def _chosen(self) -> Tensor:
        if self.numbers > MOST_COLUMNS:
            return spread_rows(self.samples.num, MOST_COLUMNS)
        cheap = int(EXACT_WORK / max(self.numbers, FEWEST_COLUMNS) ** 2)
        return spread_rows(self.samples.num, max(cheap, ROWS_A_COLUMN * self.numbers))

    def _factor(self, dtype: torch.dtype, device: torch.device) -> Iterator[Tensor]:
        """The rows of D^T, in parts where the inputs are wide."""
        rows = self._chosen
        parts = rows.split(AT_ONCE if self.numbers > MOST_COLUMNS else len(rows))
        total = torch.zeros(self.numbers, dtype=dtype, device=device)
        for part in parts:
            total += self._rows(part, dtype, device).sum(0)
        for part in parts:
            centred = (self._rows(part, dtype, device) - total / len(rows)) / len(rows) ** 0.5
            yield torch.linalg.qr(centred, mode="r").R if len(part) > self.numbers else centred

    def _rows(self, rows: Tensor, dtype: torch.dtype, device: torch.device) -> Tensor:
        part = self.samples.at(rows, dtype, device)
        return torch.cat([t.reshape(len(rows), -1) for t in part.floats()], 1)
