"""Relative errors row by row, and a bound on what the error of fresh rows is from those of a few.

Which rows may be asked: those that neither fitted nor chose what is measured (`compression`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtr  # scipy.stats takes a tenth of the time in which a command starts
from torch import Tensor, nn

from isthmus.discovery.chains.rows import batches
from isthmus.networks.copies import on_copy
from isthmus.networks.stage_kinds import Stage

CONFIDENCE = 0.95
LEAST_ROWS = 2
_SMALL = 1e-8
# times the tolerance: further off no fresh row is taken to be (measured: `compress`)
UNSEEN = 2.0
_HALVINGS, _STEPS = 26, 60  # of the search for the root, to 1e-8, and of Newton's for the saddle point, at most


@dataclass(frozen=True, slots=True, eq=False)
class RowErrors:
    """What a network is off on rows that it has not seen, row by row.

    Attributes:
        squares: |new(x_i) - old(x_i)|^2.
        spreads: |old(x_i) - mean|^2; ones over the number of rows where the old output does not vary.
        unseen: what no row is taken to be further off than, over the root of the mean spread; 0: than the worst here.
        reach: how many times further off than the worst here one may be (see `rows.Spacing`).
    """

    squares: NDArray[np.float64]
    spreads: NDArray[np.float64]
    unseen: float = 0.0
    reach: float = 1.0

    @property
    def relative_error(self) -> float:
        """|new(x) - old(x)|_F / |old(x) - mean|_F on these rows (*exact*); infinite where it is not finite."""
        total = float(self.squares.sum())
        return (total / float(self.spreads.sum())) ** 0.5 if np.isfinite(total) else float("inf")

    @property
    def bound(self) -> float:
        """What the same quotient over all fresh rows is below with 95 % confidence (*upper bound*, by a premise).

            tau with   P(sum_i E_i (e_i - tau^2 v_i) > 0) = 5 %,   sqrt(E e / E v) <= tau

        E_i are independent exponential draws, and one row is added to those that were seen: of mean spread, as far off
        as the worst of them times `reach` or as `unseen`, whichever is more. No bound on a mean is one without a
        premise on what was not seen (Bahadur and Savage 1956): n rows do not show what happens on one row in n / 3.
        Ours is that no row is further off than the one that was added; then the bound holds for so many independent
        rows, not only for many (a conjecture to which no counterexample is known). Where nothing was off it is `unseen`
        times sqrt(1 - .05^(1/n)), the rule of three. Infinite for fewer than 2 rows.

        Source: Gaffke 2005; Learned-Miller and Thomas, A new confidence interval for the mean of a bounded random
        variable, 2019. Test: discovery/chains/test_error_bounds.
        """
        e, v = self.squares, self.spreads
        if len(e) < LEAST_ROWS or not np.isfinite(e).all():
            return float("inf")
        worst = max(self.reach**2 * float(e.max()), self.unseen**2 * float(v.mean()))
        return upper_ratio(np.append(e, worst), np.append(v, v.mean())) ** 0.5


def upper_ratio(e: NDArray[np.float64], v: NDArray[np.float64], confidence: float = CONFIDENCE) -> float:
    """The r at which sum_i E_i (e_i - r v_i) > 0 with probability 1 - confidence, E_i exponential; 0 where no e is > 0.

    Args:
        e: numbers >= 0.
        v: numbers >= 0, not all of them 0.
        confidence: above one half.
    """
    low = float(e.sum() / v.sum())
    if not low > 0:
        return 0.0
    e, high = e / low, 2.0  # in units of the quotient that was seen: squares of 1e-20 and of 1e20 alike
    while exceeding(e - high * v) > 1 - confidence:
        high *= 2
    least = max(high / 2, 1.0)
    for _ in range(_HALVINGS):
        middle = (least + high) / 2
        least, high = (middle, high) if exceeding(e - middle * v) > 1 - confidence else (least, middle)
    return high * low


def exceeding(y: NDArray[np.float64]) -> float:
    """P(sum_i E_i y_i > 0) for independent exponential E_i, of a sum of y that is negative (*estimate*, to about 1 %).

    The tail of a saddle point: with K(s) = -sum log(1 - s y_i), its least value at s, w = sqrt(-2 K), u = s sqrt(K''),

        1 - Phi(w) + phi(w) (1/u - 1/w)

    Source: Lugannani and Rice, Saddle point approximation for the distribution of the sum, 1980.
    """
    if not (largest := float(y.max())) > 0:
        return 0.0
    y = y / largest
    s = _saddle_point(y) if y.sum() < 0 else 0.0
    square = float(2 * np.log1p(-s * y).sum())
    if square < _SMALL:  # the mean is not told from zero: no root is there, and 1/u - 1/w is a difference of infinities
        return 0.5
    u, w = s * float(np.square(y / (1 - s * y)).sum()) ** 0.5, square**0.5
    return float(ndtr(-w)) + float(np.exp(-square / 2)) / (2 * np.pi) ** 0.5 * (1 / u - 1 / w)


def _saddle_point(y: NDArray[np.float64]) -> float:
    """Where the slope of K is 0, by Newton's method in a bracket: it rises from below zero at 0 to infinity at 1."""
    s, low, high = 0.5, 0.0, 1.0
    for _ in range(_STEPS):
        parts = y / (1 - s * y)
        slope = float(parts.sum())
        low, high = (low, s) if slope > 0 else (s, high)
        step = s - slope / float(np.square(parts).sum())
        step = step if low < step < high else (low + high) / 2
        if abs(step - s) <= 1e-12 * (1 - s):
            return step
        s = step
    return s


def errors_against(
    target: Tensor, x: Tensor, unseen: float = 0.0, reach: float = 1.0
) -> Callable[[Sequence[Stage]], RowErrors]:
    """The errors of a chain of steps on these rows, row by row, in float64; the others as in `RowErrors`."""
    wanted = target.double()
    spreads = (wanted - wanted.mean(0)).flatten(1).square().sum(1) if wanted.ndim > 1 else (wanted - wanted.mean()) ** 2
    spreads = spreads if bool(spreads.any()) else torch.full_like(spreads, 1 / len(spreads))
    by_row = spreads.cpu().numpy()

    def of(stages: Sequence[Stage]) -> RowErrors:
        module = nn.Sequential(*(stage.module for stage in stages))
        squares: list[Tensor] = []
        with torch.no_grad():
            for rows, part in zip(batches(x), batches(wanted), strict=True):
                squares.append((on_copy(module, rows).double() - part).reshape(len(part), -1).square().sum(1))
        return RowErrors(torch.cat(squares).cpu().numpy(), by_row, unseen, reach)

    return of
