"""When a gap of a spectrum stands out, so that it is a number of directions: one rule for tables, monitors and ranks.

Where the largest ratio is: `theory.spectra`. Whose spectra these are: `readings`, `recurrent_columns`, `rank`.
"""

import math

from torch import Tensor

from isthmus.theory.inputs import Real
from isthmus.theory.spectra import spectral_gap, spectral_gap_rank

LEAST_GAP = 2.0  # ratio of neighbours: spectra of transformers fall by less from value to value, and jump by no more
# least share that a gap has of the fall before it, in logarithms: behind convolutions of one channel each spectra fall
# ever faster, as those of products of square matrices; by the ratio alone 24 of 24 random ones had a number
OF_THE_FALL = 0.5
# drops below the floor of a hundredth, as between weak directions that are used and noise: at least so large, with so
# many values behind: of 3,319 products of random square matrices without a gap none has one, 36 with two values behind.
# The lower floor stands above what is lost when squares are summed
STEEP, LEAST_BEHIND, SHARE_BEHIND, ROUNDING_FLOOR = 10.0, 4, 1 / 8, 1e-6
NO_GAP = (
    f"no singular value is {LEAST_GAP:g} times the next after a fall of less than the square of that, nor are all "
    f"above a tenth of the first, nor does one below a hundredth of it drop by "
    f"{STEEP:g}; or rows are fewer than neurons: no number of directions stands out"
)


def standing_gap(spectrum: Tensor) -> int | None:
    """The number of values before the largest gap, 0 for a zero spectrum; None where that gap does not stand out.

    The last value before a gap is twice the next, and more than the root of the first over itself times the next.
    Behind the last of all stands only a floor, a hundredth of the first: all count where none is less than a tenth.
    Where nothing stands out above that floor, a drop by ten below it does, as far as a millionth, if an eighth of the
    values lie behind it: the last few of a random square matrix fall as steeply.

    Args:
        spectrum: singular values, falling.
    """
    gap, ratio = int(spectral_gap_rank(spectrum)), float(spectral_gap(spectrum))
    fallen = float(spectrum[0] / spectrum[gap - 1]) if gap else 1.0
    needed = fallen if gap == len(spectrum) else fallen**OF_THE_FALL
    return _drop_below_the_floor(spectrum) if ratio < max(LEAST_GAP, needed) else gap


def _drop_below_the_floor(spectrum: Tensor) -> int | None:
    last = len(spectrum) - math.ceil(max(LEAST_BEHIND, SHARE_BEHIND * len(spectrum)))
    if last < 1:
        return None
    raised = spectrum.clamp_min(ROUNDING_FLOOR * float(spectrum[0]))
    ratio, place = (raised[:last] / raised[1 : last + 1]).max(0)
    return int(place) + 1 if ratio >= max(STEEP, float(spectrum[0] / raised[place]) ** OF_THE_FALL) else None


def gap_integer(spectrum: Tensor, *, rows: int, width: int) -> Real:
    """The same of activations: NaN where no value stands out, or where it only counts rows fewer than neurons."""
    gap = standing_gap(spectrum)
    return math.nan if gap is None or (rows - 1 <= gap and rows <= width) else gap
