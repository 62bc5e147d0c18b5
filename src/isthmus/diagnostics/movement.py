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
COARSE = 1e-6  # eps of types whose rounding is no longer small beside directions that count
ROWS_ASKED = 256  # of which it is asked how large rounding is
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
        """J D for each point, (points, outputs, directions), float64; columns behind those of the inputs stay.

        Args:
            jacobians: (points, outputs, at least `numbers`).
        """
        wide = jacobians.double()
        if not self.numbers:
            return wide
        by_inputs, others = wide.split([self.numbers, wide.shape[2] - self.numbers], 2)
        return torch.cat([*(by_inputs @ part.mT for part in self._factor(wide.device)), others], 2)

    def most(self) -> int | None:
        """How many directions the rows can show, where these are fewer than inputs; None where they can show all."""
        directions = len(self._chosen) - 1
        return directions if self._is_all and directions < self.numbers else None

    def rank(self) -> int | None:
        """In how many directions the inputs vary beyond the rounding of their type; None where that is not known.

        So it is where rows were left out, or are no more than inputs; where others enter that are no numbers, or are
        masks; and of half precision, whose rounding hides weak directions. Every column counts in its own units: of
        columns that are divided by their spread, values up to the root of the sum of (eps max |x| / spread)^2 are none.
        """
        if not self._is_all or self.most() is not None or len(self._chosen) < self.samples.num:
            return None
        rows, eps = self._rows(self._chosen, torch.device("cpu")), self._eps()
        if float(eps.max()) > COARSE:
            return None
        centred = rows - rows.mean(0)
        spread = centred.square().mean(0).sqrt()
        rounding = eps * rows.abs().amax(0)
        moves = spread > rounding  # constant columns are rounding of their mean
        scaled = torch.linalg.qr(centred[:, moves] / spread[moves] / len(rows) ** 0.5, mode="r").R
        floor = float((rounding[moves] / spread[moves]).square().sum().sqrt())
        return int((torch.linalg.svdvals(scaled) > floor).sum())

    def rounding(self) -> float:
        """The largest share of the spread of a column that the rounding of its type is: eps max |x| / spread."""
        if not self.numbers:
            return 0.0
        rows = self._rows(self._chosen[:: max(len(self._chosen) // ROWS_ASKED, 1)], torch.device("cpu"))
        spread, largest = rows.std(0, correction=0), self._eps() * rows.abs().amax(0)
        moves = spread > largest
        return float((largest[moves] / spread[moves]).max()) if bool(moves.any()) else 0.0

    def _eps(self) -> Tensor:
        """Of the type of each input as it was given."""
        inputs = self.samples.floats()
        return torch.cat([torch.full((t[0].numel(),), torch.finfo(t.dtype).eps, dtype=torch.float64) for t in inputs])

    @property
    def _is_all(self) -> bool:
        """Whether numbers are all that differs from row to row."""
        return self.numbers > 0 and len(self.samples.by_rows()) == len(self.samples.floats())

    @property
    def _chosen(self) -> Tensor:
        if self.numbers > MOST_COLUMNS:
            return spread_rows(self.samples.num, MOST_COLUMNS)
        cheap = int(EXACT_WORK / max(self.numbers, FEWEST_COLUMNS) ** 2)
        return spread_rows(self.samples.num, max(cheap, ROWS_A_COLUMN * self.numbers))

    def _factor(self, device: torch.device) -> Iterator[Tensor]:
        """The rows of D^T, in parts where the inputs are wide."""
        rows = self._chosen
        parts = rows.split(AT_ONCE if self.numbers > MOST_COLUMNS else len(rows))
        total = torch.zeros(self.numbers, dtype=torch.float64, device=device)
        for part in parts:
            total += self._rows(part, device).sum(0)
        for part in parts:
            centred = (self._rows(part, device) - total / len(rows)) / len(rows) ** 0.5
            yield torch.linalg.qr(centred, mode="r").R if len(part) > self.numbers else centred

    def _rows(self, rows: Tensor, device: torch.device) -> Tensor:
        part = self.samples.at(rows, torch.float64, device)
        return torch.cat([t.reshape(len(rows), -1) for t in part.floats()], 1)
