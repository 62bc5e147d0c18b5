"""Tables on disk of which a process reads some rows and never the whole: .npy (memory-mapped), zarr and .parquet.

Whole tables of every kind, with text in their columns: `files`. Who reads which rows: `training.sharded.team`.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol, cast, runtime_checkable

import numpy as np
import pandas as pd
from jaxtyping import Float64

from isthmus.errors import DataError
from isthmus.tasks.array_files import kind_of_array, mapped_array, names_in_words
from isthmus.tasks.arrays import as_samples
from isthmus.tasks.cells import unusable_type
from isthmus.tasks.columns import ColumnError, check_present, sortable
from isthmus.tasks.door import through_door
from isthmus.tasks.memory import check_memory
from isthmus.tasks.names import checked_names
from isthmus.tasks.parquet import as_series, opened_parquet
from isthmus.tasks.zarr_folders import EXTENSION, ZarrFolder, checked_data

ROWS_AT_ONCE = 65_536  # of a memory-mapped array: what is copied before the next pages are touched


@runtime_checkable
class RowSource(Protocol):
    """A table that can be read by rows."""

    @property
    def rows(self) -> int:
        """Number of rows."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        ...

    def pieces(self, rows: slice, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """The rows, in order, in pieces of some rows."""
        ...


class MappedArray:
    """A .npy of samples as rows; columns are called c1, c2, ..."""

    def __init__(self, path: Path) -> None:
        array = mapped_array(path)
        if array.ndim == 0 or array.size == 0:
            raise DataError(f"{path}: is empty, shape {array.shape}. Pass at least one row and one column.")
        self._array = array.reshape(len(array), -1)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self._array)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(f"c{i}" for i in range(1, self._array.shape[1] + 1))

    def pieces(self, rows: slice, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """The rows, in order, in pieces of some rows."""
        places = [int(name[1:]) - 1 for name in columns]
        for low in range(rows.start, rows.stop, ROWS_AT_ONCE):
            piece = self._array[low : min(low + ROWS_AT_ONCE, rows.stop)]
            yield pd.DataFrame(np.array(piece[:, places]), columns=list(columns))


class ZarrRows:
    """A zarr array of samples as rows; of its chunks those are read in which wanted rows lie."""

    def __init__(self, path: Path) -> None:
        folder = ZarrFolder(path)
        if folder.is_archive:
            raise DataError(f"{path}: is a group of {names_in_words(folder.names)}. Name one of them: {path}/NAME.")
        self._path, self._array = path, folder.array("x")
        if 0 in self._array.shape:
            raise DataError(f"{path}: is empty, shape {self._array.shape}. Pass at least one row and one column.")
        self._array.say_missing()

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self._array.shape[0]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(f"c{i}" for i in range(1, math.prod(self._array.shape[1:]) + 1))

    def pieces(self, rows: slice, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """The rows, in order, in pieces of whole chunks."""
        places, step = [int(name[1:]) - 1 for name in columns], self._array.rows_at_once
        for low in range(rows.start // step * step, rows.stop, step):
            own = slice(max(low, rows.start), min(low + step, rows.stop))
            yield through_door(
                self._path, partial(self._piece, own, places, columns), kind=EXTENSION, check=checked_data
            )

    def _piece(self, rows: slice, places: list[int], columns: Sequence[str], _path: Path) -> pd.DataFrame:
        piece = self._array.read(rows)
        return pd.DataFrame(piece.reshape(len(piece), -1)[:, places], columns=list(columns))


class ParquetRows:
    """A .parquet file; of its row groups only those are read in which wanted rows lie."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = opened_parquet(path, memory_map=True, whole=False)
        metadata = self._file.metadata
        sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        self._ends = np.cumsum([0, *sizes]).tolist()

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self._ends[-1]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self._file.schema_arrow.names)

    def pieces(self, rows: slice, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """The rows, in order, in pieces of some rows."""
        for i, (low, high) in enumerate(zip(self._ends[:-1], self._ends[1:], strict=True)):
            first, last = max(low, rows.start), min(high, rows.stop)
            if first < last:
                piece = partial(self._piece, group=i, first=first - low, count=last - first, columns=columns)
                yield through_door(self._path, piece, kind=".parquet")

    def _piece(self, path: Path, *, group: int, first: int, count: int, columns: Sequence[str]) -> pd.DataFrame:
        """Some rows of a row group, which is unpacked whole."""
        check_memory(16 * len(columns) * (self._ends[group + 1] - self._ends[group]), str(path))
        table = self._file.read_row_group(group, columns=list(columns)).slice(first, count)
        return pd.DataFrame({name: as_series(table.column(name)) for name in columns})


class FrameRows:
    """A table in memory."""

    def __init__(self, table: pd.DataFrame) -> None:
        self._table = table

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self._table)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(map(str, self._table.columns))

    def pieces(self, rows: slice, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """The rows, in one piece."""
        yield self._table[list(columns)].iloc[rows]


_OPENED: dict[str, Callable[[Path], RowSource]] = {".npy": MappedArray, ".parquet": ParquetRows, EXTENSION: ZarrRows}


def open_rows(path: Path) -> RowSource:
    """The table in a file, nothing of which is read yet but its head.

    Raises:
        DataError: no such file, a file of another kind, or one that cannot be read.
    """
    checked_data(path, hint=f"Pass a file ({', '.join(_OPENED)}), or builtin:NAME.")
    extension = kind_of_array(path)
    if extension not in _OPENED:
        raise DataError(
            f"{path}: a file of which each process reads its own rows is needed ({', '.join(_OPENED)}), "
            f"not {path.suffix or 'one without extension'}. Save the table as one of them."
        )
    source: RowSource = through_door(path, _OPENED[extension], kind=extension, check=checked_data)
    if source.rows == 0:
        raise DataError(f"{path}: has no rows. Pass a file with at least one row.")
    return source


def read_numbers(source: RowSource, rows: slice, columns: Sequence[str], where: str) -> Float64[np.ndarray, "n d"]:
    """Some rows and columns as numbers.

    Args:
        source: the table.
        rows: start and stop, both given.
        columns: names of columns.
        where: what an error calls the table.

    Raises:
        DataError: no such column, text, NaN or infinity in these rows; the line counts rows from 1 in the whole table.
    """
    check_present(source.names, columns, where)
    found = np.empty((rows.stop - rows.start, len(columns)))
    done = 0
    for piece in source.pieces(rows, columns):
        found[done : done + len(piece)] = as_samples(piece, where, first_row=rows.start + done)
        done += len(piece)
    return found


def read_labels(source: RowSource, rows: slice, column: str, where: str) -> np.ndarray:
    """Some rows of one column of classes, numbers or text.

    Raises:
        DataError: no such column, or a missing value in these rows.
    """
    check_present(source.names, (column,), where)
    pieces = [piece[column] for piece in source.pieces(rows, (column,))]
    labels = cast(pd.Series, pd.concat(pieces, ignore_index=True))
    if missing := np.flatnonzero(labels.isna().to_numpy()).tolist():
        raise DataError(
            f"{where}: column {column!r} holds a missing value or NaN in row {rows.start + missing[0] + 1}. "
            "Fill in or remove these rows."
        )
    problem = unusable_type(labels)
    if problem is not None:
        raise ColumnError(where, [problem])
    values = sortable(labels)
    checked_names(np.unique(values).tolist(), where, what="class")
    return values
