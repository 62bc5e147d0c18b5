"""Numbers that stand for missing cells by custom, as -999 does: found where one lies far outside of all others.

They are named, and left as they are. Cells that are empty or hold text: `cells`, `missing`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Integer

from isthmus.tasks.arrays import listing
from isthmus.tasks.names import quoted
from isthmus.tasks.seen_ranges import column_range, usual_widths

FAR = 2.0  # widths of the others' range between it and a code
_REPEATED, _LEAST = "789", 99.0  # 99, -999, 9999.0, 99.99, 8888: one digit again and again
# of well logs; of netCDF and its kin; the ends of whole numbers of 16 and 32 bits
_FILLS = (999.25, 1e20, 1e30, 1e35, 1e36, 9.96921e36, 3.4028235e38, 32767, 32768, 65535, 2147483647, 2147483648)
_SAME = 1e-6  # relative: float32 has them no better


def said_codes(
    x: Float64[np.ndarray, "n d"],
    names: Sequence[str],
    numbers: Integer[np.ndarray, " n"] | None = None,
    *,
    logged: Sequence[bool] = (),
) -> list[str]:
    """A sentence for each column in which a usual code lies farther from all other values than twice their range.

    Of columns whose names differ in numbers alone, as of pixels, the range is at least that of most of them.

    Args:
        x: the columns.
        names: theirs.
        numbers: of the rows as the user has them, from 0; None: as they stand.
        logged: which columns are logarithms; the numbers of which they are may be codes.
    """
    found = missing_codes(x, names, logged=logged)
    return [codes.told(names[codes.place], numbers) for codes in found]


@dataclass(frozen=True, slots=True, eq=False)
class Codes:
    """Of one column.

    Attributes:
        place: of the column.
        values: the codes.
        rows: that hold one, from 0.
        others: the least and the largest of the other values.
    """

    place: int
    values: tuple[float, ...]
    rows: Integer[np.ndarray, " n"]
    others: tuple[float, float]

    def told(self, name: str, numbers: Integer[np.ndarray, " n"] | None) -> str:
        """A sentence and what to do."""
        codes, (low, high) = " and ".join(f"{value:.10g}" for value in self.values), self.others
        rows = self.rows if numbers is None else numbers[self.rows]
        return (
            f"Column {quoted(name)} holds {codes} in {listing((rows + 1).tolist(), 'row')}, far outside of its other "
            f"values ({low:.6g} to {high:.6g}): a code for missing cells perhaps, but taken for a number. If it is "
            "one, leave these rows out, or empty the cells and have them filled in (--impute)."
        )


def missing_codes(x: Float64[np.ndarray, "n d"], names: Sequence[str], *, logged: Sequence[bool] = ()) -> list[Codes]:
    """The columns in which a usual code lies farther from all other values than twice their range."""

    def numbers_of(values: np.ndarray, place: int) -> np.ndarray:
        return np.exp(values) if any(logged) and logged[place] else values

    ends = np.array(column_range(x))
    for place in np.flatnonzero(logged).tolist():
        ends[:, place] = np.exp(ends[:, place])
    coded = [place for place in range(x.shape[1]) if is_code(ends[0, place]) or is_code(ends[1, place])]
    different = {place: np.unique(numbers_of(x[:, place], place)) for place in coded}
    for place, values in different.items():
        ends[:, place] = _inner(values)
    widths = usual_widths(ends[1] - ends[0], names)
    found: list[Codes] = []
    for place, values in different.items():
        low, high = ends[:, place].tolist()
        far = np.maximum(low - values, values - high) > FAR * widths[place]
        if far.any() and low < high:  # one other value has no range
            rows = np.flatnonzero(np.isin(numbers_of(x[:, place], place), values[far]))
            found.append(Codes(place, tuple(values[far].tolist()), rows, (values[~far][0], values[~far][-1])))
    return found


def is_code(value: float) -> bool:
    """Whether this number is one of those that usually stand for a missing cell."""
    size = abs(float(value))
    written = [set(text.replace(".", "")) for text in (f"{size:.6g}", f"{size:.9g}")]  # the first also of float32
    is_repeated = size >= _LEAST and any(len(digits) == 1 and digits <= set(_REPEATED) for digits in written)
    return is_repeated or any(abs(size - fill) <= _SAME * fill for fill in _FILLS)


def _inner(different: Float64[np.ndarray, " k"]) -> tuple[float, float]:
    """The least and the largest of sorted values, but for codes at both ends; of codes alone no range."""
    coded = np.array([is_code(value) for value in different])
    inner = different[~(np.logical_and.accumulate(coded) | np.logical_and.accumulate(coded[::-1])[::-1])]
    return (float(inner[0]), float(inner[-1])) if len(inner) else (0.0, 0.0)
