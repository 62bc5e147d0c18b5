"""Tables in .xlsx files as data frames: the first sheet, values as last computed. What columns mean: `columns`.

openpyxl is an extra; without it the refusal says how to install it. Nothing of a file is run, and no link is followed.
"""

import importlib
import warnings
import zipfile
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import pandas as pd

from isthmus.errors import DataError, DataWarning, outside
from isthmus.processes.shared_state import silenced
from isthmus.tasks.arrays import NAMELESS, listing
from isthmus.tasks.door import through_door
from isthmus.tasks.first_rows import has_header, has_title, unit_row, units_in_words
from isthmus.tasks.memory import check_memory
from isthmus.tasks.names import checked_names, quoted
from isthmus.tasks.sheet_marks import Row, SheetMarks, sheet_marks
from isthmus.tasks.text_tables import Lines, without_row_numbers
from isthmus.tasks.written_units import units_below

_BYTES_PER_CELL = 60  # a number as Python has it, and its place
_UNPACKED = 4  # texts of the file as Python has them
_MOST_ROWS = 2**20  # of a sheet, by its format
_ERRORS = {"#N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NULL!", "#NUM!"}
# what stands for a missing cell in text tables, by pandas
_NO_VALUE = {"#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA", "NULL",
             "NaN", "None", "n/a", "nan", "null"}  # fmt: skip


def read_spreadsheet(path: Path, *, keep: Collection[str] = (), has_units: bool = False) -> tuple[pd.DataFrame, Lines]:
    """The columns of the first sheet that is not hidden, and where its rows stand; a DataWarning says which of several.

    Args:
        path: of an .xlsx.
        keep: names of columns that are wanted also where they hold numbers of rows.
        has_units: whether it is known to hold units below its header.

    Raises:
        DataError: openpyxl is missing, the file cannot be read, or there is no memory for it.
    """
    return through_door(path, lambda place: _read(place, keep, has_units=has_units), kind=".xlsx")


def _read(path: Path, keep: Collection[str], *, has_units: bool) -> tuple[pd.DataFrame, Lines]:
    rows, marks = _rows(path)
    if not rows:
        raise DataError(f"{path}: its first sheet is empty. Put the table into the first sheet.")
    for number, title in _titles(rows):
        what = f"row {number} of the sheet holds a title, {quoted(title)}, and is left out"
        warnings.warn(f"{path}: {what}.", DataWarning, stacklevel=outside())
        del rows[0]
    first = ["" if cell is None else str(cell).strip() for cell in rows[0][1]]
    written = [["" if c is None else str(c) for c in cells] for _, cells in rows[:1000]]
    is_named = has_header(written, str(path))
    header = [name or NAMELESS.format(place) for place, name in enumerate(first)]
    names = checked_names(header, str(path)) if is_named else tuple(f"c{i}" for i in range(1, len(first) + 1))
    if longer := [number for number, cells in rows if len(cells) > len(names)]:
        raise DataError(
            f"{path}: row {longer[0]} of the sheet has cells beyond the first row. Name every column there; delete "
            "titles and names of groups above these names, and hide sheets before that of the table."
        )
    units = None
    if is_named and (found := unit_row(written, are_said=has_units)):
        place, what = f"row {rows[1][0]} of the sheet", units_in_words(found, are_used=has_units)
        warnings.warn(f"{path}: {place} holds {what}.", DataWarning, stacklevel=outside())
        units = units_below(names, found, f"{path}, {place}")
        del rows[1]
    rows = [(number, cells + [None] * (len(names) - len(cells))) for number, cells in rows]
    rows[is_named:] = marks.filled(rows[is_named:], names, str(path))
    marks.say_hidden(rows[is_named:], names, str(path))
    if len(rows) == is_named:
        raise DataError(
            f"{path}: has column names but no rows in the sheet that is read, the first not hidden. Pass a file "
            "with at least one row, or hide the sheets before that of the table."
        )
    table = pd.DataFrame([cells for _, cells in rows[is_named:]], columns=list(names), dtype=object).infer_objects()
    if is_named and not first[0] and header[0] not in keep:
        table = without_row_numbers(table, str(path))
    return table, Lines(lambda: rows, is_named, "row", units)


def _titles(rows: Sequence[Row]) -> list[tuple[int, object]]:
    """The rows above the names of columns that are one cell of text, each with its number; none where it is not so."""
    top = next((place for place, (_, cells) in enumerate(rows) if len(cells) > 1), 0)
    width = len(rows[top][1])
    written = [[str(c) for c in (*cells, *[""] * (width - len(cells)))] for _, cells in rows[: top + 2]]
    are_titles = all(has_title([title, *written[top:]]) for title in written[:top])
    return [(number, cells[0]) for number, cells in rows[:top]] if are_titles else []


def _rows(path: Path) -> tuple[list[Row], SheetMarks]:
    """The rows of the first sheet that are not empty, with their numbers, without empty cells at their ends."""
    try:
        importlib.import_module("openpyxl")
    except ImportError:
        raise DataError(
            f"{path}: reading .xlsx needs openpyxl. Install isthmus[excel], or save the sheet as .csv."
        ) from None
    with zipfile.ZipFile(path) as archive:
        check_memory(_UNPACKED * sum(member.file_size for member in archive.infolist()), str(path))
    titles, seen, rows, marks = _cells(path)
    width = max((len(cells) for _, cells in rows), default=0)
    is_whole = len(rows) > 1 and all(len(cells) == width and None not in cells for _, cells in rows)
    if not is_whole and (formulas := _formulas(path, rows)):
        raise DataError(
            f"{path}: holds formulas without values ({formulas}), which no program has computed. Open and save it "
            "in one that does, or write the values."
        )
    if len(titles) > 1:
        hidden = " that is not hidden" if seen else ""
        warnings.warn(
            f"{path}: sheet {quoted(titles[seen])} was read, of {len(titles)}{', the first' if seen else ''}{hidden}.",
            DataWarning,
            stacklevel=outside(),
        )
    return rows, marks


def _cells(path: Path, *, as_formulas: bool = False) -> tuple[list[str], int, list[Row], SheetMarks]:
    """The titles of the sheets, which of them is the first that is not hidden, its rows and what is marked there."""
    from openpyxl.reader.excel import ExcelReader

    class Reader(ExcelReader):
        def read_chartsheet(self, sheet: object, rel: object) -> None:
            """Nothing: it holds no cells, and openpyxl stumbles over it."""

    # openpyxl leaves its own file open where it fails, and tells what it leaves out (rules, pictures): no cells
    with path.open("rb") as file, silenced():
        reader = Reader(file, read_only=True, data_only=not as_formulas, keep_links=False)
        reader.read()
        sheets = reader.wb.worksheets
        seen = next((place for place, sheet in enumerate(sheets) if sheet.sheet_state == "visible"), 0)
        if not sheets:
            raise DataError(f"{path}: has no sheet of cells. Put the table into a sheet.")
        sheets[seen].reset_dimensions()  # what a file says of its own size is not believed
        rows = _filled(sheets[seen].iter_rows(values_only=True), str(path))
        # openpyxl has no other way to what it leaves out
        with sheets[seen]._get_source() as source:  # pyright: ignore[reportAttributeAccessIssue]
            marks = sheet_marks(source)
        return [sheet.title for sheet in sheets], seen, rows, marks


def _formulas(path: Path, rows: Sequence[Row]) -> str:
    """The places of formulas, if none of those in the sheet has a value: one that gives empty text has none either."""
    known = {(number, place) for number, cells in rows for place, cell in enumerate(cells) if cell is not None}
    _, _, written, _ = _cells(path, as_formulas=True)
    places = [(n, i) for n, cells in written for i, cell in enumerate(cells) if str(cell).startswith("=")]
    if not places or known & set(places):
        return ""
    return listing([f"{_letters(place)}{number}" for number, place in places], "cell")


def _letters(place: int) -> str:
    """A, B, ..., Z, AA, ... for columns from 0."""
    return (_letters(place // 26 - 1) if place >= 26 else "") + chr(ord("A") + place % 26)  # noqa: PLR2004


def _filled(rows: Iterable[tuple[object, ...]], where: str) -> list[Row]:
    found: list[Row] = []
    cells = 0
    for number, row in enumerate(rows, start=1):
        if number > _MOST_ROWS:  # a row may call itself any number, and openpyxl makes the empty ones before it
            raise DataError(f"{where}: has a row beyond the {_MOST_ROWS} of a sheet. Save it again.")
        absent = _ERRORS | _NO_VALUE if found else _ERRORS  # the first row may name a column NA
        values = [None if isinstance(cell, str) and (not cell.strip() or cell in absent) else cell for cell in row]
        while values and values[-1] is None:
            values.pop()
        if values:
            cells += len(values)
            check_memory(_BYTES_PER_CELL * cells, where)
            found.append((number, values))
    return found
