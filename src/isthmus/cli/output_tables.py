"""Tables that a command writes to --out: how each kind of file is written, in one registry. Which paths: `output_file`.

No library is imported before a table is written, so that commands can name the kinds while they start.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.errors import DataError

if TYPE_CHECKING:
    import pandas as pd


def _as_text(table: "pd.DataFrame", path: Path) -> None:
    from isthmus.tasks.csv_cells import csv_text

    path.write_text(csv_text(table), encoding="utf-8", newline="")


def _as_parquet(table: "pd.DataFrame", path: Path) -> None:
    typed = table.copy()
    for number in range(table.shape[1]):  # by number: names may be there twice
        typed.isetitem(number, _of_one_type(table.iloc[:, number]))
    # rows without a column, as of rank 0, are counted by their index alone
    typed.to_parquet(path, index=table.columns.empty, engine="pyarrow")


def _of_one_type(column: "pd.Series") -> "pd.Series":
    """A column that parquet takes: of words, switches and numbers together, as settings of several kinds are, words."""
    kinds = {type(value) for value in column.dropna()} if column.dtype == object else set()
    is_mixed = len(kinds) > 1 and not kinds <= {int, float}
    return column.map(str, na_action="ignore") if is_mixed else column


def _as_array(table: "pd.DataFrame", path: Path) -> None:
    import numpy as np

    with path.open("wb") as stream:  # np.save adds an extension to a name without one
        np.save(stream, table.to_numpy(dtype=np.float64), allow_pickle=False)


ARRAY = ".npy"
KINDS: dict[str, Callable[["pd.DataFrame", Path], None]] = {
    ".csv": _as_text, ".parquet": _as_parquet, ARRAY: _as_array,
}  # fmt: skip


def writable(path: Path, table: "pd.DataFrame") -> "pd.DataFrame":
    """What of a table that kind of file holds: a .npy the columns of numbers alone."""
    return table.select_dtypes("number") if path.suffix.lower() == ARRAY else table


def save_table(path: Path, table: "pd.DataFrame") -> None:
    """Write a table, whole or not at all.

    Raises:
        DataError: .parquet, and pyarrow is missing.
    """
    from isthmus.writing.atomic import atomic_path

    with atomic_path(path) as temporary:
        try:
            KINDS.get(path.suffix.lower(), _as_text)(table, temporary)  # a stream has no extension
        except ImportError:
            raise DataError(f"--out {path}: needs pyarrow. Install isthmus[tables], or write a .csv.") from None
