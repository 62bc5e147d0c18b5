"""Tables in .parquet files as data frames, their sizes known before anything is unpacked. What columns mean: `columns`.

pyarrow is an extra; without it the refusal says how to install it.
"""

import json
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from isthmus.errors import DataError, DataWarning, outside
from isthmus.tasks.arrays import listing
from isthmus.tasks.door import through_door
from isthmus.tasks.input_columns import Made
from isthmus.tasks.memory import check_memory
from isthmus.tasks.names import checked_names, quoted

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

_NUMBERED = re.compile(r"__index_level_\d+__")  # names of rows without a name
_THRIFT_STRING, _THRIFT_ITEMS = 2**26, 2**21  # of the metadata: longer ones are damaged or made to fill memory


def read_parquet(path: Path) -> pd.DataFrame:
    """The columns of a file, but for those that pandas had as names of rows.

    Raises:
        DataError: the file cannot be read, two columns share a name, or there is no memory for it.
    """

    def read(place: Path) -> pd.DataFrame:
        file = opened_parquet(place)
        schema = file.schema_arrow
        left = row_names(schema.metadata)
        say_left_out(place, schema.metadata)
        names = [name for name in schema.names if name not in left]
        table = file.read(columns=names, use_pandas_metadata=False)
        return pd.DataFrame({name: as_series(table.column(name)) for name in names})

    return through_door(path, read, kind=".parquet")


def opened_parquet(path: Path, *, memory_map: bool = False, whole: bool = True, buffer: int = 0) -> "ParquetFile":
    """An open file whose names and sizes are checked; inside `through_door`, which tells what goes wrong.

    Args:
        path: the file.
        memory_map: read only those pages that are used.
        whole: refuse what has no place in memory as a whole.
        buffer: bytes of a column that are read at once; 0: all of a row group.

    Raises:
        DataError: pyarrow is missing, the sizes contradict each other, two columns share a name, or it is too large.
    """
    try:
        import pyarrow as pa
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise DataError(
            f"{path}: reading .parquet needs pyarrow. Install isthmus[tables], or save the table as .csv or .npy."
        ) from None
    limits: dict[str, Any] = {"thrift_string_size_limit": _THRIFT_STRING, "thrift_container_size_limit": _THRIFT_ITEMS}
    # what is read ahead of the rows that are asked for stays in memory until all are read
    limits |= {"memory_map": memory_map, "buffer_size": buffer, "pre_buffer": not buffer}
    file = ParquetFile(path, **limits)
    metadata, schema = file.metadata, file.schema_arrow
    checked_names(schema.names, str(path))
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    if any(group.num_rows < 0 for group in groups) or sum(group.num_rows for group in groups) != metadata.num_rows:
        raise DataError(f"{path}: is damaged (its numbers of rows contradict each other). Write the file again.")
    if whole:  # runs of one value take no place in the file, so that rows and not bytes are what counts
        unpacked = max(metadata.num_rows * 8 * len(schema.names), sum(max(0, g.total_byte_size) for g in groups))
        check_memory(2 * unpacked, str(path))  # as columns, and as the rows that are made of them
    # texts stay numbers of a list of values: a long one that is repeated is stored once in the file, and in memory too
    texts = [f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)]
    return ParquetFile(path, read_dictionary=texts, **limits) if texts else file


def as_series(column: Any) -> pd.Series:  # noqa: ANN401 - pyarrow has no stubs
    """A column of pyarrow as numbers, objects (text) or, where it is neither, under the type that pyarrow calls it."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind):
        if pa.types.is_string(kind.value_type) or pa.types.is_large_string(kind.value_type):
            return column.to_pandas().astype(object)
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_decimal(kind):
        return column.cast(pa.float64()).to_pandas()
    is_plain = pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if is_plain or pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return column.to_pandas()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column.to_pandas().astype(object)
    if pa.types.is_null(kind):
        return pd.Series([float("nan")] * len(column))
    return column.to_pandas(types_mapper=lambda _kind: pd.ArrowDtype(kind))


def plain_columns(file: "ParquetFile") -> dict[str, Made]:
    """The columns of numbers, by what inputs they make; whether cells are missing in them is not known."""
    import pyarrow as pa

    kinds = {field.name: field.type for field in file.schema_arrow}
    numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return {
        name: Made.BOOLEAN if pa.types.is_boolean(kind) else Made.NUMERIC
        for name, kind in kinds.items()
        if pa.types.is_boolean(kind) or any(is_kind(kind) for is_kind in numbers)
    }


def say_left_out(path: Path, metadata: dict[bytes, bytes] | None) -> None:
    """Say (DataWarning) which columns with names of their own are left out because pandas had them as names of rows."""
    ranges = [str(entry["name"]) for entry in _row_names(metadata) if isinstance(entry, dict) and entry.get("name")]
    named = sorted({*ranges, *(name for name in row_names(metadata) if not _NUMBERED.fullmatch(name))})
    if named:
        warnings.warn(
            f"{path}: {listing(map(quoted, named), 'column')}, which pandas had as names of rows, "
            f"{'was' if len(named) == 1 else 'were'} left out. To keep such a column, reset_index() before writing.",
            DataWarning,
            stacklevel=outside(),
        )


def row_names(metadata: dict[bytes, bytes] | None) -> set[str]:
    """The columns that pandas wrote because its rows had names, as far as what it says can be read."""
    return {name for name in _row_names(metadata) if isinstance(name, str)}


def _row_names(metadata: dict[bytes, bytes] | None) -> list[Any]:
    """Names of columns, and what pandas says of names that count, for which it wrote none."""
    try:
        return list(json.loads((metadata or {})[b"pandas"])["index_columns"])
    except (KeyError, TypeError, ValueError, RecursionError):
        return []
