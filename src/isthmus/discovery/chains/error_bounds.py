"""Relative errors row by row, and a bound on what the error of fresh rows is from those of a few.

Which rows may be asked: those that neither fitted nor chose what is measured (`compression`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import stdtrit  # scipy.stats takes a tenth of the time in which a command starts
from torch import Tensor, nn

from isthmus.discovery.chains.rows import BATCH
from isthmus.networks.stage_kinds import Stage

CONFIDENCE = 0.95
LEAST_ROWS = 2
_HALVINGS, _WIDEST = 60, 1e8  # of the search for the root, from the squared error on the rows up


@dataclass(frozen=True, slots=True, eq=False)
class RowErrors:
    """What a network is off on rows that it has not seen, row by row.

    Attributes:
        squares: |new(x_i) - old(x_i)|^2.
        spreads: |old(x_i) - mean|^2; ones over the number of rows where the old output does not vary.
    """

    squares: NDArray[np.float64]
    spreads: NDArray[np.float64]

    @property
    def relative_error(self) -> float:
        """|new(x) - old(x)|_F / |old(x) - mean|_F on these rows (*exact*); infinite where it is not finite."""
        total = float(self.squares.sum())
        return (total / float(self.spreads.sum())) ** 0.5 if np.isfinite(total) else float("inf")

    @property
    def bound(self) -> float:
        """What the same quotient over all fresh rows is below with 95 % confidence (*upper bound*, approximately).

            tau with   upper limit of mean(e_i - tau^2 v_i) = 0,   sqrt(E e / E v) <= tau

        The limit is that of Student's t with Hall's correction for skewness: squared errors have long right tails, for
        which t alone is too low. Holds for independent rows of one distribution, in the sense in which a t interval
        does: the mean of so many rows is nearly normal once its skewness is taken out. Infinite for fewer than 2 rows.
        """
        e, v = self.squares, self.spreads
        if len(e) < LEAST_ROWS or not np.isfinite(e).all():
            return float("inf")
        low = max(self.relative_error**2, 1e-300)  # the limit is positive there, unless all rows are off alike
        high = low * _WIDEST
        if not e.any():
            return 0.0
        if upper_limit(e - high * v) > 0:
            return float("inf")
        for _ in range(_HALVINGS):
            middle = (low * high) ** 0.5
            low, high = (middle, high) if upper_limit(e - middle * v) > 0 else (low, middle)
        return high**0.5


def upper_limit(values: NDArray[np.float64], confidence: float = CONFIDENCE) -> float:
    """One-sided upper confidence limit of the mean, by Hall's transformation of Student's t (*estimate* of one).

        mean - s g^-1(-t / sqrt n),   g^-1(u) = 3/c ((1 + c (u - c / (6 n)))^(1/3) - 1),   c the skewness

    Source: Hall, On the removal of skewness by transformation, 1992. Test: discovery/chains/test_error_bounds.
    """
    n = len(values)
    centred = values - values.mean()
    deviation = float(np.sqrt(np.square(centred).sum() / (n - 1)))
    if not deviation > 0:
        return float(values.mean())
    skewness = float((centred**3).mean() / np.square(centred).mean() ** 1.5)
    u = -float(stdtrit(n - 1, confidence)) / n**0.5
    if abs(skewness) > 1e-6:
        u = 3 / skewness * float(np.cbrt(1 + skewness * (u - skewness / (6 * n))) - 1)
    return float(values.mean()) - deviation * u


def errors_against(target: Tensor, x: Tensor) -> Callable[[Sequence[Stage]], RowErrors]:
    """The errors of a chain of steps on these rows, row by row, in float64."""
    wanted = target.double()
    spreads = (wanted - wanted.mean(0)).flatten(1).square().sum(1) if wanted.ndim > 1 else (wanted - wanted.mean()) ** 2
    spreads = spreads if bool(spreads.any()) else torch.full_like(spreads, 1 / len(spreads))
    by_row = spreads.cpu().numpy()

    def of(stages: Sequence[Stage]) -> RowErrors:
        module = nn.Sequential(*(stage.module for stage in stages))
        squares: list[Tensor] = []
        with torch.no_grad():
            for rows, part in zip(x.split(BATCH), wanted.split(BATCH), strict=True):
                squares.append((module(rows).double() - part).reshape(len(part), -1).square().sum(1))
        return RowErrors(torch.cat(squares).cpu().numpy(), by_row)

    return of
