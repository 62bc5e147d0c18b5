"""Which rank cuts of the module confirm: a number of dimensions is a rank only where a cut through so many holds.

The cuts: `narrow_places`. What suggests a rank before them, and the interval: `rank`, `streaming`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import xarray as xr

from isthmus.theory import RankEstimate

LOSSES = (0.1, 0.05, 0.01, 0.001)  # of the output's spread
NOTHING = 1e-4  # of it, below which nothing is lost: rounding of float32 and of sums over rows
STILL = 8  # times eps |f|, what outputs of a network that computes a constant vary by: rounding of its sums
# heuristic: in random networks without a narrow place the loss falls by a factor of 1 to 3 from one direction to the
# next, behind planted ones by 5 to 1e8
CLIFF = 5.0
# as many directions as this of a layer's are no narrow place: a LayerNorm leaves all but one of every token's
NEARLY_ALL = 7 / 8
NO_CUT_HOLDS = "no cut found a number of dimensions that keep the output while one fewer loses much of it"
NO_WAY_THROUGH = "no cut has judged one, since no layer lets everything pass"


def standing(ranks: Sequence[int | None], lost: Callable[[int], float]) -> int | None:
    """The number of directions behind one layer at which what is lost falls from much to little; None without one.

    As many directions at 1 % lost as at 5 %, or as many with nothing lost as at 1 %.

    Args:
        ranks: the fewest directions that lose at most `LOSSES`, None where the rows cannot tell so many.
        lost: what is lost through a number of directions.
    """
    _, few, less, least = ranks
    if few is not None and few == less:
        return less
    return least if least is not None and least == less and lost(least) <= NOTHING else None


def is_confirmed(suggested: int | None, lost: Callable[[int], float]) -> bool:
    """Whether a cut through so many loses a tenth at most, and one fewer five times as much, 5 % at least."""
    if suggested is None or not lost(suggested) <= LOSSES[0]:
        return False
    return not suggested or lost(suggested - 1) >= max(CLIFF * lost(suggested), LOSSES[1])


def least_rank(lost: Callable[[int], float], most: int, allowed: float) -> int | None:
    """The fewest directions, of 0 to `most`, through which no more than this is lost; None where `most` lose more.

    By bisection, that is, as if what is lost fell.
    """
    low, high = -1, most
    if lost(high) > allowed:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if lost(middle) <= allowed else (middle, high)
    return high


def judged(reading: RankEstimate, cuts: xr.Dataset | None, *, hindrance: str, narrower_than: int) -> RankEstimate:
    """What readings suggest, held to the cuts: an estimate only where one holds, or where the interval is one number.

    The least number that stands out behind a layer comes first, then what the readings suggest where a cut confirms it.

    Args:
        reading: of spectra or of a Jacobian.
        cuts: of `narrow_places`; None where none was made.
        hindrance: why none was made; empty where no layer lets everything pass.
        narrower_than: numbers per sample that enter or come out, whichever are fewer: as many are no narrow place.
    """
    if reading.estimate is not None and reading.lower == reading.upper:
        return reading
    if cuts is None:
        missing = f"no cut has judged one: {hindrance}" if hindrance else NO_WAY_THROUGH
        return replace(reading, estimate=None, missing=missing)
    widths = [int(width) for width in cuts["width"].values]
    found = {int(k) for k in cuts["stands"].values if not math.isnan(k)}
    if not found and reading.estimate is not None and bool(cuts["is_confirmed"].any()):
        found = {reading.estimate}
    numbers = [k for k in found if reading.lower <= k <= reading.upper and _is_narrow(k, [narrower_than, *widths])]
    if numbers:
        return replace(reading, estimate=min(numbers), missing="")
    return replace(reading, estimate=None, missing=reading.missing or NO_CUT_HOLDS)


def _is_narrow(k: int, widths: Sequence[int]) -> bool:
    """Whether a layer has as many numbers, fewer than enter and come out, or all have many more; those are first."""
    room = min((width for width in widths if width >= k), default=k)
    return k < widths[0] and (k == room or k < NEARLY_ALL * room)
