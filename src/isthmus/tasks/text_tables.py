"""Tables in text files as data frames, and which line of the file a row of them is. Columns: `columns`.

How a file is written: `dialects`. Its lines: `text_lines`.
"""

import csv
import itertools
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from isthmus.errors import DataError, DataWarning, outside
from isthmus.processes.shared_state import raised
from isthmus.tasks.arrays import NAMELESS, listing
from isthmus.tasks.cells import CellProblem, as_number, as_numbers
from isthmus.tasks.csv_cells import as_written, unguarded
from isthmus.tasks.dialects import dialect_of
from isthmus.tasks.door import in_one_line, through_door
from isthmus.tasks.first_rows import has_header
from isthmus.tasks.names import checked_names, quoted
from isthmus.tasks.table_options import AS_IT_COMES, TableOptions
from isthmus.tasks.text_lines import PACKED, TextLines, checked_encoding
from isthmus.tasks.written_numbers import MaybeThousands, maybe_thousands, plain_numbers
from isthmus.tasks.written_units import WrittenUnits, units_below

_HEAD = 1000  # lines that the guesses look at
# before 3.1 pandas reads decimals wrong in the last bit unless told so; later it does not want to be told
_EXACT = {"float_precision": "round_trip"} if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1) else {}


@dataclass(frozen=True, slots=True)
class Lines:
    """Where in a file its rows stand: looked up when something is wrong with them.

    Attributes:
        rows: the line of the file (from 1) and the cells of each row, read once more.
        has_header: whether the first is names.
        called: what a line is called.
        units: of the columns, where a row below the header tells them.
        decimal: the decimal sign, where it is proven or said.
    """

    rows: Callable[[], Iterable[tuple[int, Sequence[object]]]]
    has_header: bool
    called: str = "line"
    units: WrittenUnits | None = None
    decimal: str | None = None

    def of(self, rows: Sequence[int], *, most: int) -> dict[int, tuple[int, int]]:
        """For rows counted from 0, the line of the file and its number of cells; nothing beyond row `most`."""
        wanted, found = set(rows), dict[int, tuple[int, int]]()
        count = -int(self.has_header)
        try:
            for number, cells in self.rows():
                if count in wanted:
                    found[count] = (number, len(cells))
                count += 1
        except (csv.Error, OSError, UnicodeDecodeError):
            return {}
        return found if count == most else {}  # else pandas splits this file otherwise: better no line than a wrong one

    @property
    def width(self) -> int:
        """Number of cells of the first line."""
        return next((len(cells) for _, cells in self.rows()), 0)


def read_text_table(
    path: Path,
    *,
    options: TableOptions = AS_IT_COMES,
    as_text: Collection[str] = (),
    keep: Collection[str] = (),
) -> tuple[pd.DataFrame, Lines]:
    """The columns of a file, and where its rows stand; a DataWarning says what was guessed of how it is written.

    Args:
        path: .csv, .tsv, .txt or .dat, or one of them packed by gzip (.csv.gz).
        options: how it is written, as far as that is known.
        as_text: columns whose cells are kept as they are written, also where they look like numbers.
        keep: names of columns that are wanted also where they hold numbers of rows.

    Raises:
        DataError: the file cannot be read, two columns share a name, or there is no memory for it.
    """
    extension = text_extension(path)
    return through_door(path, lambda place: _read(place, options, as_text, keep), kind=extension)


def text_extension(path: Path) -> str:
    """The extension of a text file, without that of its packing."""
    return (path.with_suffix("") if path.suffix.lower() == PACKED else path).suffix.lower()


def _read(
    path: Path, options: TableOptions, as_text: Collection[str], keep: Collection[str]
) -> tuple[pd.DataFrame, Lines]:
    encoding, told = checked_encoding(path, options.encoding)
    head = list(itertools.islice(TextLines(path, encoding), _HEAD))
    found = dialect_of(head, text_extension(path), options)
    _check_usual(path, found.decimal, options)
    lines = TextLines(path, encoding, found.separator, found.comment, found.width, found.names, found.left_out)
    clauses = [*([told] if told else []), *found.told]
    if found.comment and options.comment is None and (comments := lines.num_comments):
        clauses.append(f"lines that begin with {quoted(found.comment)} are comments, {comments} in all")
    if clauses:
        warnings.warn(f"{path}: {'; '.join(clauses)}.", DataWarning, stacklevel=outside())
    rows = [cells for _, cells in itertools.islice(lines.rows(), _HEAD)]
    first = rows[0] if rows else []
    if not any(cell.strip() for cell in first):
        raise DataError(f"{path}: the file has no first row. Pass a file with at least one row.")
    is_named = bool(found.names) or has_header(rows, str(path), decimal=found.decimal)
    stripped = [cell.strip() for cell in first]
    header = [str(unguarded(name)) or NAMELESS.format(i) for i, name in enumerate(stripped)]
    names = checked_names(header, str(path)) if is_named else tuple(f"c{i}" for i in range(1, len(first) + 1))
    texts = {i: str for i, name in enumerate(names) if name in as_text}
    units = units_below(names, found.units, f"{path}, line {found.units_line}") if found.units else None
    where = Lines(lines.rows, is_named, units=units, decimal=found.decimal)
    table = _parsed(lines, texts, len(names), found.decimal, where)
    table.columns = list(names)
    table = as_written(table, str(path)).set_axis(list(names), axis=1) if is_named else table
    if found.decimal is None:
        _put_back_doubtful(table, lines, is_named=is_named)
    table = with_plain_numbers(
        table, str(path), found.decimal, as_text=texts, lines=where, is_said=bool(options.decimal)
    )
    if is_named and not stripped[0] and header[0] not in keep:
        table = without_row_numbers(table, str(path))
    return table, where


def _check_usual(path: Path, found: str | None, options: TableOptions) -> None:
    """Refuse numbers that are written otherwise than those of earlier rows, unless it was said how they are."""
    usual = options.usual_decimal
    if options.decimal is None and usual is not None and found is not None and found != usual:
        called = {".": "points", ",": "commas"}
        raise DataError(
            f"{path}: its numbers have decimal {called[found]}, and those of earlier rows had "
            f"{called[usual]}. If that is right say --decimal {found}; else write them alike."
        )


def _parsed(lines: TextLines, texts: Mapping[int, type], width: int, decimal: str | None, where: Lines) -> pd.DataFrame:
    """What pandas makes of the lines, with numbers for names."""
    options: Any = {"names": range(width), "dtype": texts or None, **_EXACT}
    with raised(pd.errors.ParserWarning), lines.open() as stream:  # rows longer than the header would be cut
        try:
            return pd.read_csv(
                stream, sep=lines.separator, header=0 if where.has_header else None, index_col=False,
                skipinitialspace=True, low_memory=False, decimal=decimal or ".",
                **options,
            )  # fmt: skip
        except (pd.errors.ParserWarning, pd.errors.ParserError) as error:
            longer = [str(number) for number, cells in lines.rows() if len(cells) > width]
            if not longer:
                raise DataError(f"{lines.path}: cannot be read ({in_one_line(error)}). Write the file again.") from None
            one = len(longer) == 1
            titles = "Delete titles above the names of columns. " if width == 1 else ""
            raise DataError(
                f"{lines.path}: {listing(longer, 'line', shown=10)} {'has' if one else 'have'} more cells than the "
                f"first row, which has {width}. {titles}Name every column, or correct {'it' if one else 'them'}."
            ) from None


def _put_back_doubtful(table: pd.DataFrame, lines: TextLines, *, is_named: bool) -> None:
    """Columns whose decimals could be thousands as they are written, for `cells` to refuse where they are used."""
    places = [place for place, kind in enumerate(table.dtypes) if pd.api.types.is_float_dtype(kind)]
    looked = {
        place: (MaybeThousands(), list[str]()) for place in places if maybe_thousands(table.iloc[:, place].to_numpy())
    }
    for _, cells in itertools.islice(lines.rows() if looked else (), int(is_named), None):
        for place, (looks, texts) in list(looked.items()):
            texts.append(cells[place] if place < len(cells) else "")
            looks.look(texts[-1])
            if looks.is_ruled_out:
                del looked[place]
        if not looked:
            return
    for place, (looks, texts) in looked.items():
        if looks.holds and len(texts) == len(table):
            written = pd.Series(texts, dtype=object).where(table.iloc[:, place].notna().to_numpy(), None)
            table.isetitem(place, written)


def with_plain_numbers(
    table: pd.DataFrame,
    where: str,
    decimal: str | None,
    *,
    as_text: Collection[int] = (),
    lines: Lines | None = None,
    is_said: bool = True,
) -> pd.DataFrame:
    """The table with numbers of its text columns as Python writes them: without signs between thousands.

    Args:
        table: with text as objects.
        where: what an error calls it.
        decimal: the sign that is proven or said; None where it is not.
        as_text: places of columns that are left as they are.
        lines: where its rows stand.
        is_said: whether the user said the sign.

    Raises:
        DataError: a column has decimal commas, and a point in a number where no thousands end.
    """
    found, told = table.copy(deep=False), list[str]()
    for place, kind in enumerate(found.dtypes):
        if place in as_text or not pd.api.types.is_string_dtype(kind):
            continue
        column = cast(pd.Series, found.iloc[:, place])
        plain = plain_numbers(column, decimal)
        same = (plain == column).to_numpy(dtype=bool, na_value=False)
        numbers = as_numbers(plain)
        if numbers is None:
            continue  # text, of which no cell is changed
        odd = [row for row in same.nonzero()[0].tolist() if decimal == "," and "." in _text(column.iloc[row])]
        if odd and not isinstance(numbers, CellProblem):
            why, remedy = ("decimal commas elsewhere", "Write one of them.")
            if is_said:
                why, remedy = "a comma was said to be the decimal sign", "Say a point, or correct these rows."
            line = place_in_words(lines, odd[:1], most=len(table)) if lines else ""
            raise DataError(
                f"{where}: column {quoted(column.name)} holds {str(column.iloc[odd[0]])[:40]!r} in "
                f"{listing([row + 1 for row in odd], 'row')}, and {why}. {remedy} {line}".strip()
            )
        if decimal is None and not same[column.notna().to_numpy()].all():
            told.append(quoted(column.name))
        is_known = decimal is not None and (not isinstance(numbers, CellProblem) or numbers.is_missing)
        found.isetitem(place, plain.map(_known, na_action="ignore").infer_objects() if is_known else plain)
    if told:
        said = "are written with blanks, apostrophes or a typeset minus, and were read without"
        warnings.warn(f"{where}: numbers in {listing(told, 'column')} {said}.", DataWarning, stacklevel=outside())
    return found


def _text(cell: object) -> str:
    return cell if isinstance(cell, str) else ""


def _known(cell: object) -> object:
    """A text that is a number as that number: how it is written is no question any more."""
    number = as_number(cell) if isinstance(cell, str) else float("nan")
    return cell if np.isnan(number) else number


def without_row_numbers(table: pd.DataFrame, where: str) -> pd.DataFrame:
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
            stacklevel=outside(),
        )
    return table.iloc[:, 1:]


def short_rows(lines: Lines, rows: Sequence[int], *, most: int) -> str:
    """A clause about those of these rows that have fewer cells than the first line; empty where none has."""
    width = lines.width
    short = [(number, cells) for number, cells in lines.of(rows, most=most).values() if cells < width]
    if not short:
        return ""
    others = f" ({listing([n for n, _ in short[1:]], 'line', shown=10)} also too few)" if short[1:] else ""
    return f"line {short[0][0]} has {short[0][1]} cells, the first line {width}{others}"


def place_in_words(lines: Lines, rows: Sequence[int], *, most: int) -> str:
    """`Row 4 is line 5 of the file.`, for rows counted from 0; empty where lines cannot be told."""
    found = lines.of(rows, most=most)
    parts = [f"row {row + 1} is {lines.called} {found[row][0]}" for row in rows if row in found]
    text = ", ".join(dict.fromkeys(parts))
    return f"{text[0].upper()}{text[1:]} of the file." if text else ""
