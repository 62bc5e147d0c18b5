"""Tables too large for memory, .npy, zarr and .parquet, whose inputs stay on disk. Tables that fit: `formats`.

Inputs are mapped, or written as they are read (zarr: unpacked) to a file without a name. Targets, labels and columns of
text are read whole, one column at a time; what is refused, and what is said, is that of a table that fits.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd

from isthmus.tasks.array_files import checked_header, mapped_array, say_flattened
from isthmus.tasks.arrays import NUMBERS_AT_ONCE, check_finite, in_parts
from isthmus.tasks.cells import CellProblem, as_numbers
from isthmus.tasks.columns import made_column, one_hot_as, said_columns
from isthmus.tasks.door import through_door
from isthmus.tasks.input_columns import InputColumn, Made, pixels_of
from isthmus.tasks.mapped import mapped, on_disk
from isthmus.tasks.memory import check_memory, memory_limit
from isthmus.tasks.parquet import as_series, opened_parquet, plain_columns, row_names, say_left_out
from isthmus.tasks.zarr_folders import EXTENSION, ZarrFolder, checked_data

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

FITS = 2**27  # bytes of numbers that are read whole, where there is memory for them
PACKED = 100  # times as many bytes of numbers as of the file: more of them, and it was made to fill a disk
_BUFFER = 2**20  # bytes of a column that are read at once
_TABLE = 2  # dimensions

Inputs = tuple[np.ndarray, tuple[InputColumn, ...]]


def large_table(path: Path, extension: str) -> "LargeTable | None":
    """The table in a file, if it is of a kind that is read by parts and too large to be read whole.

    Raises:
        DataError: the file cannot be read.
    """
    opened = {".npy": _opened_array, ".parquet": _opened_table, EXTENSION: _opened_zarr}.get(extension)
    if not opened or not (extension == EXTENSION or path.stat().st_size):
        return None
    return through_door(path, opened, kind=extension, check=checked_data)


def is_large(rows: int, columns: int) -> bool:
    """Whether a table of numbers stays on disk."""
    return 8 * rows * columns > min(FITS, memory_limit() / 2)


def _opened_array(path: Path) -> "LargeArray | None":
    with path.open("rb") as stream:
        shape, dtype = checked_header(stream, path.stat().st_size, str(path))
    if not shape or dtype.kind not in "biuf" or not is_large(shape[0], int(np.prod(shape[1:], dtype=float))):
        return None  # what is no table of numbers is refused by those who read it whole
    found = mapped_array(path)
    if not isinstance(found, np.memmap) or not (found.flags.c_contiguous or found.ndim <= _TABLE):
        return None
    with path.open("rb") as stream:
        order = "C" if found.flags.c_contiguous else "F"
        return LargeArray(path, mapped(stream, found.dtype, found.shape, offset=found.offset, order=order))


def _opened_zarr(path: Path) -> "LargeArray | None":
    folder = ZarrFolder(path)
    if "x" not in folder.names:
        return None
    array = folder.array("x")
    rows, columns = array.shape[0], math.prod(array.shape[1:])
    is_packed = math.prod(array.shape) * array.dtype.itemsize > PACKED * array.packed_size
    if not rows or not is_large(rows, columns) or is_packed:
        return None
    array.say_missing()
    return LargeArray(path, array.on_disk(), member="x" if folder.is_archive else "")


class LargeArray:
    """A .npy or zarr of samples as rows; columns are called c1, c2, ...

    Attributes:
        apart: the targets that it keeps apart from them.
    """

    def __init__(self, path: Path, array: np.ndarray, *, member: str = "") -> None:
        self.apart: pd.DataFrame | None = None
        self._array, self._pixels = array.reshape(len(array), -1), pixels_of(array.shape)
        where = f"{path}, {member}" if member else str(path)
        say_flattened(array.shape, where)
        check_finite(self._array, where)

    @property
    def names(self) -> tuple[str, ...]:
        """Of its columns."""
        return tuple(f"c{i}" for i in range(1, self._array.shape[1] + 1))

    def whole(self, names: Sequence[str]) -> pd.DataFrame:
        """Some columns."""
        places = [int(name[1:]) - 1 for name in names]
        check_memory(16 * len(self._array) * len(places), "targets and labels")
        found = np.concatenate([np.array(part[:, places], dtype=np.float64) for part in in_parts(self._array)])
        return pd.DataFrame(found, columns=list(names))

    def inputs(self, names: Sequence[str], where: str, problems: list[CellProblem], *, impute: bool) -> Inputs:
        """Mapped where they stand together as float64, else written."""
        places = [int(name[1:]) - 1 for name in names]
        made = tuple(
            InputColumn(name, pixel=self._pixels[place] if self._pixels else "")
            for name, place in zip(names, places, strict=True)
        )
        if self._array.dtype == np.float64 and places == list(range(places[0], places[-1] + 1)):
            return self._array[:, places[0] : places[-1] + 1], made
        parts = (part[:, places] for part in in_parts(self._array))
        return on_disk(parts, (len(self._array), len(places)), where), made


def _opened_table(path: Path) -> "LargeParquet | None":
    file = opened_parquet(path, whole=False, buffer=_BUFFER)
    rows, columns = file.metadata.num_rows, len(file.schema_arrow.names)
    is_packed = 8 * rows * columns > PACKED * path.stat().st_size
    if not rows or not is_large(rows, columns) or is_packed:
        return None
    say_left_out(path, file.schema_arrow.metadata)
    return LargeParquet(path, file)


class LargeParquet:
    """A .parquet file, read by so many rows at a time.

    Attributes:
        apart: None, as it keeps no targets apart.
    """

    apart = None

    def __init__(self, path: Path, file: "ParquetFile") -> None:
        self._path, self._file = path, file

    @property
    def names(self) -> tuple[str, ...]:
        """Of its columns."""
        left = row_names(self._file.schema_arrow.metadata)
        return tuple(name for name in self._file.schema_arrow.names if name not in left)

    def whole(self, names: Sequence[str]) -> pd.DataFrame:
        """Some columns."""
        check_memory(16 * self._file.metadata.num_rows * len(names), f"{self._path}, targets, labels and text")

        def read(_place: Path) -> pd.DataFrame:
            table = self._file.read(columns=list(names), use_pandas_metadata=False)
            return pd.DataFrame({name: as_series(table.column(name)) for name in names})

        return through_door(self._path, read, kind=".parquet")

    def inputs(self, names: Sequence[str], where: str, problems: list[CellProblem], *, impute: bool) -> Inputs:
        """Written as they are read; what is no plain number is looked at as whole columns first."""
        plain = plain_columns(self._file)
        found = dict[str, CellProblem]()
        made = dict[str, list[InputColumn]]()

        def look(name: str) -> None:
            own = list[CellProblem]()
            made[name] = made_column(cast(pd.Series, self.whole([name])[name]), own)[0]
            if own:
                found[name] = own[0]

        for name in names:
            if name in plain:
                made[name] = [InputColumn(name, plain[name])]
            else:
                look(name)
        columns = tuple(column for name in names for column in made[name])
        unusable = set[str]()
        shape = (self._file.metadata.num_rows, len(columns))
        parts = self._parts(made, where, unusable)
        x = through_door(self._path, lambda _place: on_disk(parts, shape, where), kind=".parquet")
        for name in unusable:
            look(name)
        problems += [found[name] for name in names if name in found]
        if not problems:
            said_columns(columns, where)
        return x, columns

    def _parts(self, made: dict[str, list[InputColumn]], where: str, unusable: set[str]) -> Iterator[np.ndarray]:
        """The inputs, some rows at a time; columns that cannot be used are zeros and become known."""
        import pyarrow as pa

        rows = max(NUMBERS_AT_ONCE // max(len(made), 1), 1)
        for batch in self._file.iter_batches(batch_size=rows, columns=list(made)):
            table = pa.Table.from_batches([batch])
            yield np.column_stack([
                values
                for name, columns in made.items()
                for values in _numbers(as_series(table.column(name)).rename(name), columns, where, unusable)
            ])  # fmt: skip


def _numbers(cells: pd.Series, columns: list[InputColumn], where: str, unusable: set[str]) -> list[np.ndarray]:
    """Some cells of a column as the inputs that are made of it."""
    if columns and columns[0].made is Made.ONE_HOT:
        return one_hot_as(cells, [column.value for column in columns], where)
    numbers = as_numbers(cells) if columns else None
    if isinstance(numbers, np.ndarray):
        return [numbers]
    if columns:
        unusable.add(columns[0].name)
    return [np.zeros(len(cells)) for _ in columns]


LargeTable = LargeArray | LargeParquet
