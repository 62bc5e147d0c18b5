"""The formats of files that hold tables: what reads each, in one registry. What is made of the columns: `files`."""

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd

from isthmus.errors import DataError, DataWarning, outside
from isthmus.tasks.array_files import check_what_is_left, is_archive, names_in_words, opened_arrays, say_flattened
from isthmus.tasks.arrays import as_samples, check_same_length
from isthmus.tasks.cells import CellProblem
from isthmus.tasks.columns import ColumnError, check_present, input_columns
from isthmus.tasks.dialects import TEXT_EXTENSIONS
from isthmus.tasks.door import through_door
from isthmus.tasks.input_columns import pixels_of
from isthmus.tasks.large_tables import Inputs, LargeArray, LargeTable, large_table
from isthmus.tasks.missing import complete_rows, filled
from isthmus.tasks.names import checked_names, found_names
from isthmus.tasks.parquet import read_parquet
from isthmus.tasks.picture_files import PICTURES
from isthmus.tasks.spreadsheets import read_spreadsheet
from isthmus.tasks.table_options import AS_IT_COMES, TableOptions
from isthmus.tasks.text_lines import PACKED
from isthmus.tasks.text_tables import Lines, read_text_table, with_plain_numbers
from isthmus.tasks.zarr_folders import EXTENSION, checked_data, is_zarr


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """What stands in a file.

    Attributes:
        table: its columns.
        apart: the targets that it keeps apart from them (`y` of an .npz, or of a group of zarr).
        lines: where its rows stand, if it is text or a sheet.
        rows: which of the rows of the file these are; None for all.
        total: how many rows the file has, where some are left out.
        pixels: what its columns are where they were pictures in an array, "row 2 column 5".
    """

    table: pd.DataFrame
    apart: pd.DataFrame | None = None
    lines: Lines | None = None
    rows: np.ndarray | None = None
    total: int = 0
    pixels: Mapping[str, str] = field(default_factory=dict[str, str])

    def complete(self, where: str, targets: Sequence[str] = ()) -> "Content":
        """Without the rows in which a cell is missing, of the targets as of the columns; a DataWarning counts them.

        `targets` are those among the columns.
        """
        if self.apart is not None:
            check_same_length(len(self.table), len(self.apart), name=where)
        rows = complete_rows(self.table, self.apart, where, targets=targets)
        apart = None if self.apart is None else self.apart.iloc[rows].reset_index(drop=True)
        table = self.table.iloc[rows].reset_index(drop=True)
        places, total = rows if self.rows is None else self.rows[rows], self.total or len(self.table)
        return replace(self, table=table, apart=apart, rows=places, total=total)

    @property
    def names(self) -> tuple[str, ...]:
        """Of its columns."""
        return tuple(str(name) for name in self.table.columns)

    def whole(self, names: Sequence[str]) -> pd.DataFrame:
        """Some columns."""
        return cast(pd.DataFrame, self.table[list(names)])

    def inputs(self, names: Sequence[str], where: str, problems: list[CellProblem], *, impute: bool) -> Inputs:
        """Some columns as numbers, and how each was made; what cannot be used is added to the problems."""
        table, fills = filled(self.whole(names), where) if impute else (self.whole(names), {})
        x, made = input_columns(table, where, problems)
        told = ((fills.get(column.source, ""), self.pixels.get(column.name, "")) for column in made)
        return x, tuple(replace(c, filled=fill, pixel=pixel) for c, (fill, pixel) in zip(made, told, strict=True))


@dataclass(frozen=True, slots=True)
class WantedColumns:
    """How a table is read, and which of its columns are known before it is.

    Attributes:
        options: how it is written, what of it is left out.
        as_text: columns whose cells are kept as they are written, also where they look like numbers.
        keep: names of columns that are wanted also where they hold numbers of rows.
    """

    options: TableOptions = AS_IT_COMES
    as_text: Collection[str] = ()
    keep: Collection[str] = field(default_factory=tuple[str, ...])


def _text(path: Path, wanted: WantedColumns) -> Content:
    table, lines = read_text_table(path, options=wanted.options, as_text=wanted.as_text, keep=wanted.keep)
    return _without_empty_end(Content(table, lines=lines))


def _without_empty_end(content: Content) -> Content:
    """Without lines of separators alone at the end, which spreadsheets write for rows that were cleared."""
    table, total = content.table, len(content.table)
    if table.shape[1] == 1 or not total or not table.iloc[-1].isna().all():
        return content
    kept = np.flatnonzero(table.notna().to_numpy().any(axis=1))
    if not len(kept):
        return content
    rows = np.arange(kept[-1] + 1)
    return replace(content, table=table.iloc[rows].infer_objects(), rows=rows, total=total)


def _spreadsheet(path: Path, wanted: WantedColumns) -> Content:
    table, lines = read_spreadsheet(path, keep=wanted.keep, has_units=wanted.options.units)
    return Content(_with_plain_numbers(table, path, wanted, lines), lines=lines)


def _parquet(path: Path, wanted: WantedColumns) -> Content:
    return Content(_with_plain_numbers(read_parquet(path), path, wanted))


def _with_plain_numbers(
    table: pd.DataFrame, path: Path, wanted: WantedColumns, lines: Lines | None = None
) -> pd.DataFrame:
    texts = [place for place, name in enumerate(table.columns) if name in wanted.as_text]
    return with_plain_numbers(table, str(path), wanted.options.decimal, as_text=texts, lines=lines)


def _array(path: Path, wanted: WantedColumns) -> Content:
    may_lack = wanted.options.drop_missing or wanted.options.impute
    return through_door(
        path, lambda place: _read_arrays(place, may_lack=may_lack), kind=extension_of(path), check=checked_data
    )


FORMATS: dict[str, Callable[[Path, WantedColumns], Content]] = {
    **dict.fromkeys(TEXT_EXTENSIONS, _text),
    **dict.fromkeys((extension + PACKED for extension in TEXT_EXTENSIONS), _text),
    ".xlsx": _spreadsheet,
    ".parquet": _parquet,
    EXTENSION: _array,
    ".npy": _array,
    ".npz": _array,
}
EXTENSIONS = tuple(FORMATS)
_HINT = "Check the path, or use builtin:NAME for data that come along."


def extension_of(path: Path) -> str:
    """`.csv`, or `.csv.gz` of a packed file; `.zarr` also of an array in a folder of any name."""
    if is_zarr(path):
        return EXTENSION
    return "".join(path.suffixes[-2:] if path.suffix.lower() == PACKED else path.suffixes[-1:]).lower()


def opened_content(path: Path, wanted: WantedColumns) -> Content | LargeTable:
    """The same, left on disk where it is too large to be read whole.

    Raises:
        DataError: as for `read_content`.
    """
    options = wanted.options
    # which rows and values are missing, and what texts are numbers, only the whole table says
    if options.drop_missing or options.impute or (options.decimal and extension_of(path) == ".parquet"):
        return read_content(path, wanted)
    large = large_table(checked_data(path, hint=_HINT), extension_of(path))
    if large is None:
        return read_content(path, wanted)
    if isinstance(large, LargeArray) and is_archive(path):
        large.apart = through_door(path, _targets_beside, kind=EXTENSION, check=checked_data)
    left = found_names(options.leave_out, large.names)
    check_present(large.names, left, str(path))
    return large


def say_unused(path: Path, options: TableOptions) -> None:
    """Say (DataWarning) which options were given that only text has."""
    extension = extension_of(path)
    if FORMATS.get(extension) is _text or not (names := options.of_text):
        return
    warnings.warn(
        f"{path}: {' and '.join(names)} tell how text is written, and change nothing in {extension}.",
        DataWarning,
        stacklevel=outside(),
    )


def read_content(path: Path, wanted: WantedColumns) -> Content:
    """What stands in a file, without the columns that are left out; `Content.complete` leaves out rows.

    Raises:
        DataError: it is no file of a known format, cannot be read, or has no rows.
    """
    checked = checked_data(path, hint=_HINT)
    extension = extension_of(path)
    if extension not in FORMATS:
        stack = " Of pictures pass the folder in which they lie." if extension in PICTURES else ""
        raise DataError(f"{path}: unknown extension {extension!r}. Use one of {', '.join(EXTENSIONS)}.{stack}")
    if extension != EXTENSION and checked.stat().st_size == 0:
        raise DataError(f"{path}: the file is empty. Pass a file with at least one row.")
    content = FORMATS[extension](path, wanted)
    if len(content.table) == 0:
        raise DataError(f"{path}: has column names but no rows. Pass a file with at least one row.")
    left = found_names(wanted.options.leave_out, content.table.columns)
    check_present(list(content.table.columns), left, str(path))
    return replace(content, table=content.table.drop(columns=list(left)))


def _read_arrays(path: Path, *, may_lack: bool) -> Content:
    with opened_arrays(path) as file:
        if "x" not in file.names:
            raise DataError(f"{path}: holds no array x, but {names_in_words(file.names)}. {file.instead}.")
        check_what_is_left(file, path)
        # an archive tells which of its arrays it is
        x = file.read("x")
        y = file.read("y") if "y" in file.names else None
        where = f"{path}, x" if len(file.names) > 1 or is_archive(path) else str(path)
        say_flattened(x.shape, where)
        table = pd.DataFrame(_samples(x, where, may_lack=may_lack))
    table.columns = [f"c{i}" for i in range(1, table.shape[1] + 1)]
    targets = None if y is None else _targets(y, f"{path}, y", may_lack=may_lack)
    return Content(table, targets, pixels=dict(zip(table.columns, pixels_of(x.shape), strict=False)))


def _samples(array: np.ndarray, where: str, *, may_lack: bool) -> np.ndarray:
    """Rows of numbers, among them NaN where cells may be missing."""
    absent = np.isnan(array) if array.dtype.kind == "f" else np.zeros(array.shape, dtype=bool)
    if not absent.any():
        samples = as_samples(array, where)
        # beyond that float64 has not every whole number: `cells` looks whether it tells them apart
        return array.reshape(samples.shape) if array.dtype.kind in "iu" and np.abs(samples).max() > 2**53 else samples
    if not may_lack:
        try:
            return as_samples(array, where)
        except DataError as error:  # told as of a column of text, so that whoever asked is told of the remedies
            raise error from ColumnError(where, [CellProblem(str(error), "", is_missing=not np.isinf(array).any())])
    samples = as_samples(np.where(absent, 0, array), where)
    samples[absent.reshape(samples.shape)] = np.nan
    return samples


def _targets_beside(path: Path) -> pd.DataFrame | None:
    """The array y beside an x that stays on disk."""
    with opened_arrays(path) as file:
        check_what_is_left(file, path)
        return _targets(file.read("y"), f"{path}, y", may_lack=False) if "y" in file.names else None


def _targets(y: np.ndarray, where: str, *, may_lack: bool) -> pd.DataFrame:
    """The array y of an .npz, or of a group of zarr, as columns."""
    if y.dtype.kind in "US":
        if y.ndim == 0 or y.size != len(y):
            raise DataError(f"{where}: needs one text per row, got shape {y.shape}. Save it as one column.")
        texts = [str(text) for text in y.reshape(-1).tolist()]
        checked_names(sorted(set(texts)), where, what="class")
        return pd.DataFrame({"y": pd.Series(texts, dtype=object)})
    say_flattened(y.shape, where)
    y = _samples(y, where, may_lack=may_lack)
    names = ["y"] if y.shape[1] == 1 else [f"y{i}" for i in range(1, y.shape[1] + 1)]
    return pd.DataFrame(y, columns=names)
