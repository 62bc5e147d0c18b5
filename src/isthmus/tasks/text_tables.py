"""Tables in .csv and .tsv files as data frames, and which line of the file a row of them is. Columns: `columns`."""

import csv
import io
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from isthmus.errors import DataError, DataWarning
from isthmus.tasks.arrays import listing
from isthmus.tasks.csv_cells import as_written, unguarded
from isthmus.tasks.door import through_door
from isthmus.tasks.memory import check_memory
from isthmus.tasks.names import checked_names

_SAMPLE = 2**20
# before 3.1 pandas reads decimals wrong in the last bit unless told so; later it does not want to be told
_EXACT = {"float_precision": "round_trip"} if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1) else {}
_NAMELESS = "Unnamed: {}"  # as pandas calls it, and as older runs know it


@dataclass(frozen=True, slots=True)
class Lines:
    """Where in a file its rows stand: read a second time, when something is wrong with them.

    Attributes:
        path: the file.
        separator: of its cells.
        has_header: whether the first line is names.
    """

    path: Path
    separator: str
    has_header: bool

    def of(self, rows: Sequence[int], *, most: int) -> dict[int, tuple[int, int]]:
        """For rows counted from 0, the line of the file (from 1) and its number of cells; nothing beyond row `most`."""
        wanted, found = set(rows), dict[int, tuple[int, int]]()
        count = -int(self.has_header)
        try:
            with self.path.open(encoding="utf-8-sig", newline="") as stream:
                for number, cells in _records(stream, self.separator):
                    if count in wanted:
                        found[count] = (number, len(cells))
                    count += 1
        except (csv.Error, OSError, UnicodeDecodeError):
            return {}
        return found if count == most else {}  # else pandas splits this file otherwise: better no line than a wrong one

    @property
    def width(self) -> int:
        """Number of cells of the first line."""
        with self.path.open(encoding="utf-8-sig", newline="") as stream:
            return next((len(cells) for _, cells in _records(stream, self.separator)), 0)


def _records(stream: io.TextIOBase, separator: str) -> Iterator[tuple[int, list[str]]]:
    """The line on which each record begins, and its cells, without blank lines."""
    reader = csv.reader(stream, delimiter=separator, skipinitialspace=True)
    begins = 1
    for cells in reader:
        if cells and (len(cells) > 1 or cells[0].strip()):
            yield begins, cells
        begins = reader.line_num + 1


def read_text_table(
    path: Path, *, as_text: Collection[str] = (), keep: Collection[str] = ()
) -> tuple[pd.DataFrame, Lines]:
    """The columns of a file, and where its rows stand.

    Args:
        path: .tsv for tabs, anything else for commas.
        as_text: columns whose cells are kept as they are written, also where they look like numbers.
        keep: names of columns that are wanted also where they hold numbers of rows.

    Raises:
        DataError: the file cannot be read, two columns share a name, or there is no memory for it.
    """
    separator = "\t" if path.suffix.lower() == ".tsv" else ","
    return through_door(path, lambda place: _read(place, separator, as_text, keep), kind=path.suffix.lower())


def _read(path: Path, separator: str, as_text: Collection[str], keep: Collection[str]) -> tuple[pd.DataFrame, Lines]:
    _check_bytes(path)
    with path.open(encoding="utf-8-sig", newline="") as stream:
        first = next((cells for _, cells in _records(stream, separator)), None)
    if first is None or not any(cell.strip() for cell in first):
        raise DataError(f"{path}: the file has no first row. Pass a file with at least one row.")
    if len(first) == 1 and (other := next((c for c in ";\t," if c in first[0]), None)):
        raise DataError(
            f"{path}: its columns are separated by {other!r}, not {separator!r}. Save it with {separator!r}."
        )
    has_header = not _is_data(first)
    if has_header and (odd := [cell for cell in first if "." in cell and _is_data([cell])]):
        warnings.warn(
            f"{path}: the first row was taken as column names although it holds the {listing(odd, 'number')}. If it is "
            "data, put a row of names above it.",
            DataWarning,
            stacklevel=6,
        )
    stripped = [cell.strip() for cell in first]
    header = [str(unguarded(name)) or _NAMELESS.format(i) for i, name in enumerate(stripped)]
    names = checked_names(header, str(path)) if has_header else tuple(f"c{i}" for i in range(1, len(first) + 1))
    texts = {i: str for i, name in enumerate(names) if name in as_text}
    options: Any = {"names": range(len(names)), "dtype": texts or None, **_EXACT}
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # rows longer than the header would be cut
        try:
            table = pd.read_csv(
                path, sep=separator, header=0 if has_header else None, index_col=False,
                skipinitialspace=True, encoding="utf-8-sig", low_memory=False,
                **options,
            )  # fmt: skip
        except pd.errors.ParserWarning:
            raise DataError(f"{path}: rows have more cells than the first row. Name every column.") from None
    table = as_written(table) if has_header else table
    table.columns = list(names)
    if has_header and not stripped[0] and header[0] not in keep:
        table = _without_row_numbers(table, str(path))
    return table, Lines(path, separator, has_header)


def _check_bytes(path: Path) -> None:
    """Refuse what is no text, and more cells than memory has room for, judged by three samples."""
    size = path.stat().st_size
    cells = 0.0
    with path.open("rb") as stream:
        start = stream.read(4)
        if start[:2] in {b"\xff\xfe", b"\xfe\xff"}:
            raise DataError(f"{path}: is UTF-16, not UTF-8. Save it as UTF-8.")
        for place in sorted({0, max(0, size // 2 - _SAMPLE), max(0, size - _SAMPLE)}):
            stream.seek(place)
            sample = stream.read(_SAMPLE)
            separators = sum(sample.count(byte) for byte in (b",", b"\t", b"\n"))
            cells = max(cells, size * (separators + 1) / max(1, len(sample)))
        check_memory(size + 16 * cells, str(path))
        stream.seek(0)
        place = 0
        while block := stream.read(_SAMPLE):
            if (nul := block.find(b"\0")) >= 0:  # pandas would end a cell there, and change its number
                raise DataError(f"{path}: holds a NUL byte at byte {place + nul + 1}: is no text. Save it as UTF-8.")
            place += len(block)


def _is_data(first: Sequence[str]) -> bool:
    """Whether a first row is numbers; 0, 1, 2, ... are the names that pandas gives to columns."""
    try:
        numbers = [float(cell) for cell in first]
    except ValueError:
        return False
    return len(numbers) == 1 or numbers != list(range(len(numbers)))


def _without_row_numbers(table: pd.DataFrame, where: str) -> pd.DataFrame:
    """Drop a nameless first column that numbers the rows, as pandas and R write it: it is no measurement.

    Rows that were left out, and samples that were sorted, leave gaps in such numbers; then it is said.
    """
    values = table.iloc[:, 0]
    if table.shape[1] < 2 or not len(table) or not pd.api.types.is_integer_dtype(values.dtype):
        return table
    numbers = values.to_numpy()
    steps = np.diff(numbers)
    if not (steps > 0).all():
        return table
    if numbers[0] not in {0, 1} or (steps > 1).any():
        warnings.warn(
            f"{where}: the first column has no name and counts upwards, {numbers[0]} to {numbers[-1]}: taken for "
            f"numbers of rows and left out. If it is a measurement, give it a name.",
            DataWarning,
            stacklevel=6,
        )
    return table.iloc[:, 1:]


def short_rows(lines: Lines, rows: Sequence[int], *, most: int) -> str:
    """A sentence about the first of these rows that has fewer cells than the first line; empty where none has."""
    width = lines.width
    for number, cells in lines.of(rows, most=most).values():
        if cells < width:
            return f"line {number} has {cells} cells, the first line {width}"
    return ""


def place_in_words(lines: Lines, rows: Sequence[int], *, most: int) -> str:
    """`Row 4 is line 5 of the file.`, for rows counted from 0; empty where lines cannot be told."""
    found = lines.of(rows, most=most)
    parts = [f"row {row + 1} is line {found[row][0]}" for row in rows if row in found]
    text = ", ".join(dict.fromkeys(parts))
    return f"{text[0].upper()}{text[1:]} of the file." if text else ""
