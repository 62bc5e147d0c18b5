"""Between which values each input of a run lay, and which new rows lie far outside: there a network says nothing known.

Rows that cannot be used at all: `arrays`; how each input was made: `input_columns`.
"""

import re
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64

from isthmus.errors import DataError, DataWarning, outside
from isthmus.tasks.arrays import counted, in_parts, listing
from isthmus.tasks.names import quoted

FAR = 1.0  # widths of a range beyond its ends
_ROUNDING = 1e-9  # of a value, by which a column that stood still may differ
_MOST_TOLD = 3  # columns

Range = tuple[Float64[np.ndarray, " d"], Float64[np.ndarray, " d"]]


@dataclass(slots=True)
class _Outlying:
    """Of one column the rows that lie far outside, from 1, and the value farthest off."""

    rows: list[int]
    value: float
    excess: float


def column_range(x: Float64[np.ndarray, "n d"]) -> Range:
    """The least and the largest value of each column."""
    ends = [(part.min(axis=0), part.max(axis=0)) for part in in_parts(x)]
    return np.min([low for low, _ in ends], axis=0), np.max([high for _, high in ends], axis=0)


def recorded_range(x: Float64[np.ndarray, "n d"]) -> dict[str, tuple[float, ...]]:
    """`column_range` as a record of a run holds it, read back or not."""
    low, high = column_range(x)
    return {"low": tuple(low.tolist()), "high": tuple(high.tolist())}


def say_far_off(
    rows: Float64[np.ndarray, "n d"], names: Sequence[str], record: object, *, logged: Sequence[bool] = ()
) -> None:
    """Name the columns of new rows that lie beyond what a run saw by more than the width of that.

        x > high + w  or  x < low - w,   w = max(high - low, median of high - low over columns of one kind)

    Args:
        rows: as the encoder takes them.
        names: of the columns.
        record: what `recorded_range` gave of those of the run; None for a run from before there was a record.
        logged: which columns are logarithms; numbers themselves are told.

    Raises:
        DataError: the record does not fit the columns.

    Warns:
        DataWarning: some do.
    """
    if record is None:
        return
    low, high = _range_of(record, len(names))
    rounding = _ROUNDING * np.maximum(np.abs(low), np.abs(high))
    found = _outlying(rows, low, high, np.maximum(usual_widths(high - low, names), rounding))
    if not found:
        return
    told = list[str]()
    for place in list(found)[:_MOST_TOLD]:
        of = np.exp if any(logged) and logged[place] else np.asarray
        ends = [f"{float(of(end[place])):.6g}" for end in (low, high)]
        was = f"{ends[0]} in every row" if ends[0] == ends[1] else " to ".join(ends)
        rows_there, value = listing(found[place].rows, "row"), float(of(found[place].value))
        told.append(f"column {quoted(names[place])} ({was}) is {value:.6g} in {rows_there}")
    more = len(found) - _MOST_TOLD
    rest = f"; {counted(more, 'more column')}" if more > 0 else ""
    warnings.warn(
        f"new rows lie far outside of what the run saw: {'; '.join(told)}{rest}. What is told of them is extrapolated "
        "and may be off by anything. Check units and columns.",
        DataWarning,
        stacklevel=outside(),
    )


def _outlying(
    rows: Float64[np.ndarray, "n d"], low: np.ndarray, high: np.ndarray, widths: np.ndarray
) -> dict[int, _Outlying]:
    """By column, in order."""
    found: dict[int, _Outlying] = {}
    start = 0
    for part in in_parts(rows):
        excess = np.maximum(part - high, low - part)
        is_far = excess > FAR * widths
        for place in np.flatnonzero(is_far.any(axis=0)).tolist():
            _add(found, place, is_far[:, place], excess[:, place], part[:, place], start)
        start += len(part)
    return dict(sorted(found.items()))


def _add(
    found: dict[int, _Outlying],
    place: int,
    is_far: Bool[np.ndarray, " n"],
    excess: Float64[np.ndarray, " n"],
    values: Float64[np.ndarray, " n"],
    start: int,
) -> None:
    worst = int(np.where(is_far, excess, -np.inf).argmax())
    known = found.setdefault(place, _Outlying([], float(values[worst]), float(excess[worst])))
    known.rows += (np.flatnonzero(is_far) + start + 1).tolist()
    if excess[worst] > known.excess:
        known.value, known.excess = float(values[worst]), float(excess[worst])


def usual_widths(widths: Float64[np.ndarray, " d"], names: Sequence[str]) -> Float64[np.ndarray, " d"]:
    """Of the range of each column its width, or that of most columns of its kind where this is more.

    Columns are of one kind where their names differ in numbers alone, as those of pixels do: one of those that is dark
    in all pictures but for a speck may well be bright in the next.
    """
    kinds: defaultdict[str, list[int]] = defaultdict(list)
    for place, name in enumerate(names):
        kinds[re.sub(r"\d+", "", name)].append(place)
    usual = np.zeros(len(widths))
    for places in kinds.values():
        usual[places] = np.median(widths[places])
    return np.maximum(widths, usual)


def _range_of(record: object, width: int) -> Range:
    try:
        assert isinstance(record, Mapping)
        low, high = (np.array(record[end], dtype=np.float64) for end in ("low", "high"))
        assert low.shape == high.shape == (width,)
        assert (low <= high).all()
    except (AssertionError, KeyError, TypeError, ValueError) as error:
        raise DataError("the record of the ranges of inputs in this run is damaged; run again.") from error
    return low, high
