"""What a sheet of an .xlsx tells beside its cells: which are merged, which rows and columns are hidden.

Merged cells hold one value for all rows that they span, and a file has it in the first of them only. The cells
themselves: `spreadsheets`.
"""

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO
from xml.parsers import expat
from zipfile import ZipExtFile

from isthmus.errors import DataError, DataWarning, outside
from isthmus.tasks.arrays import listing
from isthmus.tasks.names import quoted

_RANGE = re.compile(r"([A-Z]{1,3})([1-9]\d{0,6}):([A-Z]{1,3})([1-9]\d{0,6})")
_MOST_HIDDEN = 16_384  # columns of a sheet, by its format
Row = tuple[int, list[object]]


@dataclass(frozen=True, slots=True)
class Merged:
    """A range of merged cells; rows from 1, columns from 0."""

    called: str
    top: int
    bottom: int
    left: int
    right: int


@dataclass(frozen=True, slots=True)
class SheetMarks:
    """What was found.

    Attributes:
        merged: ranges.
        hidden_rows: their numbers.
        hidden_columns: their places.
    """

    merged: tuple[Merged, ...] = ()
    hidden_rows: tuple[int, ...] = ()
    hidden_columns: tuple[int, ...] = ()

    def filled(self, rows: Sequence[Row], names: Sequence[str], where: str) -> list[Row]:
        """Rows of data in which a merged cell counts for each row that it spans; a DataWarning names the columns.

        Raises:
            DataError: cells are merged across columns, or ranges overlap.
        """
        found = {number: list(cells) for number, cells in rows}
        numbers, told, spanned = sorted(found), dict[int, list[str]](), 0
        for one in sorted(self.merged, key=lambda one: (one.left, one.top)):
            if one.left >= len(names) or one.top not in found or found[one.top][one.left] is None:
                continue
            if one.right > one.left:
                raise DataError(
                    f"{where}: cells {one.called} of the sheet are merged across columns; to which of them their value "
                    "belongs is not known. Split them."
                )
            below = [number for number in numbers if one.top < number <= one.bottom]
            spanned += len(below)
            if spanned > len(numbers) * len(names):
                raise DataError(f"{where}: merged cells of the sheet overlap ({one.called}). Save it again.")
            for number in below:
                found[number][one.left] = found[one.top][one.left]
            if below:
                told.setdefault(one.left, []).append(one.called)
        for place, ranges in told.items():
            warnings.warn(
                f"{where}: {listing(ranges, 'range')} of column {quoted(names[place])} {_are(ranges)} merged: the "
                "value counts for each of the rows.",
                DataWarning,
                stacklevel=outside(),
            )
        return [(number, found[number]) for number, _ in rows]

    def say_hidden(self, rows: Sequence[Row], names: Sequence[str], where: str) -> None:
        """Say (DataWarning) which rows and columns of the data nobody sees who opens the file."""
        known = {number for number, _ in rows}
        unseen = [number for number in self.hidden_rows if number in known]
        columns = [quoted(names[place]) for place in self.hidden_columns if place < len(names)]
        hidden = [(unseen, "row"), (columns, "column")]
        for what, noun in hidden:
            if what:
                warnings.warn(
                    f"{where}: {listing(what, noun)} of the sheet {_are(what)} hidden, which makes no difference here.",
                    DataWarning,
                    stacklevel=outside(),
                )


def _are(items: Sequence[object]) -> str:
    return "is" if len(items) == 1 else "are"


def sheet_marks(source: IO[bytes] | ZipExtFile) -> SheetMarks:
    """The marks in the XML of a sheet, which is read by parts and not kept."""
    merged, rows, columns, place = list[Merged](), list[int](), list[int](), 0

    def started(name: str, attributes: dict[str, str]) -> None:
        nonlocal place
        tag = name.rsplit(" ", 1)[-1]
        if tag == "row":
            place = int(attributes.get("r", place + 1))
            if _is_true(attributes):
                rows.append(place)
        elif tag == "col" and _is_true(attributes):
            first, last = int(attributes["min"]) - 1, int(attributes["max"])
            columns.extend(range(max(first, 0), min(last, _MOST_HIDDEN)))
        elif tag == "mergeCell" and (ends := _RANGE.fullmatch(attributes.get("ref", "").replace("$", ""))):
            left, top, right, bottom = ends.groups()
            merged.append(Merged(ends[0], int(top), int(bottom), _place(left), _place(right)))

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler = started
    parser.ParseFile(source)
    return SheetMarks(tuple(merged), tuple(rows), tuple(dict.fromkeys(columns)))


def _is_true(attributes: dict[str, str]) -> bool:
    return attributes.get("hidden") in {"1", "true"}


def _place(letters: str) -> int:
    """Columns from 0 of A, B, ..., Z, AA, ..."""
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number - 1
