"""Ranks read off curves over the rank: the objective curve and the scree curve, each with its sharpness.

Pure functions of numbers; how the curves are computed is in `discovery.kinds`, how readings combine in
`discovery.decision`.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from isthmus.theory.comparison import Comparison, by_ratio

PLATEAU = 1.05  # error over the least one that is as good: what the training of halves leaves between equal ranks
NOISE = 2.0  # standard errors of a difference that are none
ROUNDING = 1e-12  # relative fall of an error that is none: sums of the same losses in another order


@dataclass(frozen=True, slots=True)
class CurveReading:
    """A rank read off a curve (*estimate*).

    Attributes:
        rank: the reading.
        sharpness: how far the curve rises one rank below (objective curve), or the margin over the second candidate
            (scree curve); infinite where there is nothing below.
    """

    rank: int
    sharpness: float


def with_gaps_filled(known: Mapping[int, float], compared: Comparison = by_ratio) -> list[float]:
    """The values of a curve at ranks 0, 1, ..., K from those at some of them, 0 and K among these.

    A rank between two others lies on the line between them, of ratios in logarithms. Below the least rank above 0 it
    can do what rank 0 can.

        f(r) = f(a)^((b - r) / (b - a)) f(b)^((r - a) / (b - a))   for  0 < a < r < b

    Raises:
        ValueError: nothing is known of rank 0.
    """
    if 0 not in known:
        raise ValueError(f"with_gaps_filled: needs the value at rank 0, got the ranks {sorted(known)}.")
    values: list[float] = []
    for (low, here), (high, there) in pairwise(sorted(known.items())):
        end = there if low else here
        values += [compared.between(here, end, (rank - low) / (high - low)) for rank in range(low, high)]
    return [*values, known[max(known)]]


def running_minimum(objectives: Sequence[float]) -> list[float]:
    """F(r) = min over r' <= r of f(r'): functions of rank at most r contain those of smaller rank."""
    out: list[float] = []
    for value in objectives:
        out.append(min(value, out[-1]) if out else value)
    return out


def objective_reading(objectives: Sequence[float], *, slack: float, compared: Comparison = by_ratio) -> CurveReading:
    """Least rank whose objective is within `slack` of the one through all dimensions.

        rank = least r with F(r) <= slack * F(K),   sharpness = log F(r - 1) / F(r)

    Args:
        objectives: f(0), f(1), ..., f(K) > 0: the least objective reached through exactly r dimensions; f(0) is that of
            the best constant.
        slack: factor allowed, at least 1.
        compared: how objectives are compared.

    Raises:
        ValueError: fewer than two values, or values that are not positive.
    """
    if len(objectives) < 2 or not all(v > 0 for v in objectives):
        raise ValueError(f"objective_reading: needs at least two positive objectives, got {list(objectives)}.")
    best = running_minimum(objectives)
    rank = next(r for r, value in enumerate(best) if value <= compared.raised(best[-1], slack))
    return CurveReading(rank, compared.rise(best[rank - 1], best[rank]) if rank else math.inf)


def scree_reading(
    errors: Sequence[float],
    *,
    complete: bool = False,
    measured: Collection[int] | None = None,
    compared: Comparison = by_ratio,
) -> CurveReading:
    """The rank after which the error stops falling: largest logarithmic drop minus the next one.

        argmax_r [ log e(r-1)/e(r) - max(log e(r)/e(r+1), 0) ],   sharpness = this maximum minus the second largest

    It is 0, with sharpness 0, where no number of dimensions has a smaller error than none, beyond rounding.

    Where ranks were left out, the second largest is what a gap may hide: the error may fall at one of its ranks by as
    much as over the whole gap, or not at all after the rank below it.

    Args:
        errors: e(0), e(1), ..., e(K) >= 0: relative errors through r dimensions; e(0) is that of the best constant.
        complete: no map needs more than K dimensions, so that the fall ends there; else r = K is no answer.
        measured: ranks whose errors were measured, those between them being made up; None: all.
        compared: how errors are compared.

    Raises:
        ValueError: fewer than two values.
    """
    if len(errors) < 2:
        raise ValueError(f"scree_reading: needs at least two errors, got {list(errors)}.")
    if not min(errors[1:]) < errors[0] - ROUNDING * abs(errors[0]):
        return CurveReading(0, 0.0)
    logs = [compared.level(e) for e in errors]
    drops = [a - b for a, b in zip(logs[:-1], logs[1:], strict=True)]
    # a curve that was cut has nothing after its last drop, which cannot be called the end of the fall
    after = [*drops[1:], 0.0] if complete else drops[1:]
    bends = [drop - max(next_drop, 0.0) for drop, next_drop in zip(drops, after, strict=False)] or drops
    order = sorted(range(len(bends)), key=lambda i: -bends[i])
    hidden = _hidden_bends(logs, measured, winner=order[0] + 1) if measured is not None else []
    second = max([bends[i] for i in order[1:2]] + hidden, default=0.0)
    return CurveReading(order[0] + 1, bends[order[0]] - second)


def plateau_reading(
    losses: NDArray[np.float64],
    *,
    ranks: Sequence[int],
    weight: NDArray[np.float64] | None = None,
    together: NDArray[np.int64] | None = None,
    slack: float = PLATEAU,
    noise: float = NOISE,
    compared: Comparison = by_ratio,
) -> CurveReading:
    """The least rank whose error no other betters by more than the noise of the rows, or than a small share.

        least r with  mean_i (l_ri - l_bi) <= max(noise SE_i(l_ri - l_bi), (slack - 1) e_b),   e_b = min e,
        sharpness = log of the error through the next fewer dimensions over that through r

    The differences are of the same rows, so that what is hard to predict about a row cancels. The largest bend of the
    curve, `scree_reading`, is no answer where the first of several directions carries most of the variance.

    Args:
        losses: of each row (columns) through so many dimensions (rows), (len(ranks), n), n >= 1.
        ranks: 0 and those that were measured, ascending.
        weight: of each row, any common factor; None: all the same.
        together: a number of each row, the same for rows that are off together, see `standard_error`.
        slack: factor allowed on the error whatever the noise.
        noise: standard errors of a difference that are none, above 0.
        compared: how errors are compared.

    Returns:
        The reading, 0 with sharpness 0 where no rank betters rank 0.

    Raises:
        ValueError: the shapes do not fit.
    """
    if losses.ndim != 2 or len(losses) != len(ranks) or len(ranks) < 2 or losses.shape[1] < 1:
        raise ValueError(f"plateau_reading: needs a row of losses for each rank, got {losses.shape} for {list(ranks)}.")
    share = np.full(losses.shape[1], 1.0 / losses.shape[1]) if weight is None else weight / weight.sum()
    errors = losses @ share
    excess = losses - losses[int(errors.argmin())]
    mean = excess @ share
    best = float(errors.min())
    enough = mean <= np.maximum(noise * standard_error(excess, share, together), compared.raised(best, slack) - best)
    i = int(np.flatnonzero(enough)[0])
    if i == 0:
        return CurveReading(0, 0.0)
    return CurveReading(ranks[i], compared.rise(max(float(errors[i - 1]), 1e-300), max(float(errors[i]), 1e-300)))


@dataclass(frozen=True, slots=True)
class Gain:
    """What a network of more dimensions saves of the error on the same rows (*estimate*).

    Attributes:
        rank: its number of dimensions.
        error: its mean loss.
        saved: by how much that is lower.
        noise: the standard error of the difference.
        ridge: at which it was trained.
    """

    rank: int
    error: float
    saved: float
    noise: float
    ridge: float

    def counts(self, compared: Comparison = by_ratio, *, slack: float = PLATEAU) -> bool:
        """Whether it is more than what training leaves between equal ranks; the noise of the rows may be larger."""
        return self.error + self.saved > compared.raised(self.error, slack)


@dataclass(frozen=True, slots=True, eq=False)
class RowLosses:
    """Of one network, the losses of rows that it was not trained on.

    Attributes:
        rank: its number of dimensions.
        ridge: at which it was trained.
        values: (n,).
    """

    rank: int
    ridge: float
    values: NDArray[np.float64]


def standard_error(
    values: NDArray[np.float64], share: NDArray[np.float64], together: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """Of weighted means over rows, of which some may be off together: those of one number count as one.

        SE^2 = sum over g (sum over i in g of w_i (v_i - sum_j w_j v_j))^2,   w >= 0 with sum 1

    Args:
        values: (..., n).
        share: w.
        together: the number of the g of each row, n; None: each row is one of its own.

    Returns:
        (...), at least what it would be of rows that have nothing to do with each other: few numbers say little, and
        one row nothing, of which it is infinite.
    """
    if values.shape[-1] == 1:
        return np.full(values.shape[:-1], math.inf)
    off = (values - (values @ share)[..., None]) * share
    alone = np.sqrt(np.square(off).sum(-1))
    if together is None:
        return np.asarray(alone)  # of one mean a number
    numbers = np.unique(together, return_inverse=True)[1]
    of_each = np.stack([np.bincount(numbers, weights=row) for row in off.reshape(-1, off.shape[-1])])
    return np.asarray(np.maximum(alone, np.sqrt(np.square(of_each).sum(-1)).reshape(alone.shape)))


def gain_beyond(
    rank: int,
    networks: Sequence[RowLosses],
    *,
    weight: NDArray[np.float64] | None = None,
    together: NDArray[np.int64] | None = None,
) -> Gain | None:
    """The best network of more dimensions against the best of at most `rank`, row by row.

        saved = mean_i (l_i - l'_i),   noise = SE_i (l_i - l'_i)

    Both may come from any ridge: else what another ridge saves would pass for a gain of dimensions.

    Args:
        rank: how many dimensions.
        networks: of any numbers of dimensions, their losses of the same rows.
        weight: of each row, any common factor; None: all the same.
        together: a number of each row, the same for rows that are off together.

    Returns:
        None where there is nothing on one of the two sides.
    """
    fewer = [one for one in networks if one.rank <= rank]
    larger = [one for one in networks if one.rank > rank]
    if not fewer or not larger:
        return None
    n = len(networks[0].values)
    share = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
    own, best = (min(side, key=lambda one: float(one.values @ share)) for side in (fewer, larger))
    difference = own.values - best.values
    saved, noise = float(difference @ share), float(standard_error(difference, share, together))
    return Gain(best.rank, float(best.values @ share), saved, noise, best.ridge)


def _hidden_bends(logs: Sequence[float], measured: Collection[int], *, winner: int) -> list[float]:
    """The largest bends that ranks between measured ones may have, and the measured ones below them."""
    ranks = sorted({0, *measured})
    found: list[float] = []
    for before, low, high in zip([0, *ranks], ranks, ranks[1:], strict=False):
        if high > low + 1:
            found.append(logs[low] - logs[high])
            if low not in {0, winner}:
                found.append((logs[before] - logs[low]) / (low - before))
    return found
