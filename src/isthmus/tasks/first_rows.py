"""What the first rows of a table are: names of columns, units, a title, or data. Where rows come from: `dialects`."""

import warnings
from collections.abc import Sequence

from isthmus.errors import DataWarning, outside
from isthmus.tasks.arrays import listing
from isthmus.tasks.written_numbers import is_number, plain_number

_PURE_NUMBER = "1"
_NO_VALUE = {"", "-", "?", "na", "n/a", "nan", "null", "none", "<na>", "#n/a"}
_LEAST_WIDTH = 3  # of a table with a title: of two columns the second may have no name
Cells = Sequence[Sequence[str]]  # of the first rows


def has_header(rows: Cells, where: str, *, decimal: str | None = None) -> bool:
    """Whether the first of these rows is names; a DataWarning says which way it was taken where it could be either."""
    first, below = rows[0], rows[1:]
    if _is_data(first, decimal):
        counts = [_number(cell, decimal) or 0.0 for cell in first]
        if _counts(counts) and _are_unlike(below, decimal):
            warnings.warn(
                f"{where}: the first row was taken as data although it counts, {first[0]} to {first[-1]}, as names of "
                "columns may. If they are names, put letters into them.",
                DataWarning,
                stacklevel=outside(),
            )
        return False
    odd = [cell.strip() for place, cell in enumerate(first) if is_number(cell) and _are_numbers(below, place)]
    is_numbered = odd == [str(number) for number in range(len(odd))]  # as pandas numbers columns
    if odd and not (is_numbered and not _are_whole(below, decimal)):
        warnings.warn(
            f"{where}: the first row was taken as column names although it holds the {listing(odd, 'number')}. If it "
            "is data, put a row of names above it.",
            DataWarning,
            stacklevel=outside(),
        )
    return True


def _is_data(first: Sequence[str], decimal: str | None) -> bool:
    """Whether a first row is numbers; 0, 1, 2, ... are the names that pandas gives to columns."""
    numbers = [_number(cell, decimal) for cell in first]
    return None not in numbers and (len(numbers) == 1 or numbers != list(range(len(numbers))))


def _number(cell: str, decimal: str | None) -> float | None:
    try:
        return float(str(plain_number(cell, decimal) if decimal else cell))
    except ValueError:
        return None


def _counts(numbers: Sequence[float]) -> bool:
    return len(numbers) > 1 and all(after - before == 1 for before, after in zip(numbers, numbers[1:], strict=False))


def _are_whole(rows: Cells, decimal: str | None) -> bool:
    return all((_number(cell, decimal) or 0.0).is_integer() for row in rows for cell in row)


def _are_unlike(below: Cells, decimal: str | None) -> bool:
    """Whether these rows are measurements, or do not count as the first of them does."""
    if not _are_whole(below, decimal):
        return True
    count = [_counts([_number(cell, decimal) or 0.0 for cell in row]) for row in below]
    return bool(below) and len(below[0]) >= _LEAST_WIDTH and not all(count)


def is_row_of_data(rows: Cells) -> bool:
    """Whether the first of these rows has numbers in it, and no text where the others have nothing but numbers."""
    if not rows or not any(map(is_number, rows[0])):
        return False
    return not any(
        not is_number(cell) and cell.strip().lower() not in _NO_VALUE and _are_numbers(rows[1:], place)
        for place, cell in enumerate(rows[0])
    )


def _are_numbers(rows: Cells, place: int) -> bool:
    """Whether a column has numbers, and nothing else but what is missing."""
    below = [cells[place] for cells in rows if place < len(cells) and cells[place].strip().lower() not in _NO_VALUE]
    return bool(below) and all(map(is_number, below))


def has_title(rows: Cells) -> bool:
    """Whether the first row is one cell of text and the second names of columns: a title of a spreadsheet."""
    if len(rows) < 3 or len(rows[0]) < _LEAST_WIDTH or len(rows[1]) != len(rows[0]):  # noqa: PLR2004 - with data
        return False
    is_alone = bool(rows[0][0].strip()) and not any(cell.strip() for cell in rows[0][1:])
    return is_alone and all(cell.strip() and not is_number(cell) for cell in rows[1])


def unit_row(rows: Cells, *, are_said: bool = False) -> tuple[str, ...]:
    """The cells of a second row that is text above numbers; none where it is not so.

    A 1 among them is the unit of a pure number; any other number is a value.

    Args:
        rows: cells of the first rows, the names on top.
        are_said: the table is known to hold units, so that text in one column is enough; else in half of them.
    """
    if len(rows) < 3 or len(rows[1]) != len(rows[0]):
        return ()
    if any(is_number(cell) and cell.strip() != _PURE_NUMBER for cell in rows[1]):
        return ()
    above = 0
    for place, unit in enumerate(rows[1]):
        if _are_numbers(rows[2:], place):
            above += unit.strip().lower() not in {*_NO_VALUE, _PURE_NUMBER}
    return tuple(rows[1]) if (above if are_said else 2 * above >= len(rows[1])) else ()


def units_in_words(units: Sequence[str], *, are_used: bool) -> str:
    """What is said of such a row."""
    listed = ", ".join(repr(cell[:20]) for cell in units[:5]) + (", ..." if are_used and len(units) > 5 else "")
    if are_used:
        return f"the units of the columns ({listed})"
    return f"text above numbers ({listed}), units perhaps, and is left out"
