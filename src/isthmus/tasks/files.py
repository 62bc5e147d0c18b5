"""Files on disk as tasks: .csv, .tsv, .parquet, .npy, .npz. Data in memory: `arrays`; what text becomes: `columns`.

Nothing is ever unpickled. Every refusal is a `DataError` of one line: which file, where in it, what to do.
"""

import csv
import warnings
import zipfile
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd

from isthmus.errors import DataError, DataWarning
from isthmus.tasks.arrays import as_samples, check_same_length, drop_constant_columns, listing
from isthmus.tasks.columns import check_present, class_columns, group_labels, input_columns, target_columns
from isthmus.tasks.task import Kind, Task

EXTENSIONS = (".csv", ".tsv", ".parquet", ".npy", ".npz")
_UNREADABLE = (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True, slots=True, eq=False)
class _Content:
    """A file's columns, and the targets that it keeps apart from them (`y` of an .npz)."""

    table: pd.DataFrame
    apart: pd.DataFrame | None = None


def read_table(
    path: str | Path,
    *,
    target: str | Sequence[str] = (),
    classes: str | None = None,
    autoencode: bool = False,
    groups: str | None = None,
    aside: Sequence[str] = (),
    among: Collection[str] | None = None,
    drop_constant: bool = True,
) -> Task:
    """The data of a file as a task: autoencoding unless targets are named or the file brings its own.

    Text in input columns becomes one 0/1 column per value, and constant input columns are dropped; a `DataWarning` says
    so. A .csv or .tsv whose first row is all numbers has no header, and its columns are called c1, c2, ... as those of
    arrays are (first row 0, 1, 2, ...: a header). An .npz holds `x` and may hold `y`.

    Args:
        path: .csv (commas), .tsv, .parquet (needs pyarrow), .npy or .npz.
        target: the columns to predict as numbers; all others are inputs.
        classes: the one column whose values are classes to predict; `"y"` for the `y` of an .npz.
        autoencode: reconstruct the inputs, also where the file holds a `y`.
        groups: the column of labels, numbers or text, whose rows belong together; it is no input.
        aside: columns that are neither inputs nor targets.
        among: the only columns to look at as inputs, where the file has any of them; others may hold anything.
        drop_constant: drop constant input columns; False keeps the columns of an earlier reading in place.

    Returns:
        Task without a known rank; a constant target is let through (its rank is 0).

    Raises:
        DataError: the file cannot be read, or its data cannot be used; the line says where and what to do.
    """
    path = Path(path)
    target = (target,) if isinstance(target, str) else tuple(target)
    if bool(target) + (classes is not None) + autoencode > 1:
        raise DataError(f"{path}: target, classes and autoencode exclude each other. Pass one of them.")
    content, labels = _without_labels(_read(path), groups, str(path))
    check_present(list(content.table.columns), tuple(aside), str(path))
    content = replace(content, table=content.table.drop(columns=list(aside)))
    chosen = (classes,) if classes is not None else target
    kind = Kind.CLASSIFICATION if classes is not None else Kind.REGRESSION
    if content.apart is not None and not target and classes in {None, "y"}:
        inputs, outputs = content.table, None if autoencode else content.apart
    else:
        check_present(list(content.table.columns), chosen, str(path))
        inputs = content.table.drop(columns=list(chosen))
        outputs = cast(pd.DataFrame, content.table[list(chosen)]) if chosen else None
    if inputs.shape[1] == 0:
        beside = " beside the groups" if groups is not None else ""
        raise DataError(f"{path}: no column is left as input{beside}. Name fewer targets.")
    if among is not None and (wanted := [name for name in inputs.columns if name in among]):
        inputs = cast(pd.DataFrame, inputs[wanted])
    return replace(_task(inputs, outputs, kind, str(path), drop_constant=drop_constant), groups=labels)


def _without_labels(content: _Content, groups: str | None, where: str) -> tuple[_Content, np.ndarray | None]:
    """The content without the column of groups, before text in it is read as categories, and its labels."""
    if groups is None:
        return content, None
    check_present(list(content.table.columns), (groups,), where)
    labels = cast(pd.Series, content.table[groups])
    return replace(content, table=content.table.drop(columns=groups)), group_labels(labels, where)


def _task(inputs: pd.DataFrame, outputs: pd.DataFrame | None, kind: Kind, where: str, *, drop_constant: bool) -> Task:
    x, x_names = input_columns(inputs, where)
    if drop_constant:
        x, x_names = drop_constant_columns(x, name=where, columns=x_names)
    if outputs is None:
        return Task(x, None, None, where, Kind.AUTOENCODING, x_names=x_names)
    check_same_length(len(x), len(outputs), name=where)
    read = target_columns(outputs, where) if kind is Kind.REGRESSION else class_columns(outputs.iloc[:, 0], where)
    return Task(x, read[0], None, where, kind, x_names=x_names, y_names=read[1])


def _read(path: Path) -> _Content:
    extension = path.suffix.lower()
    if path.is_dir():
        raise DataError(f"{path}: is a directory. Pass a file in it ({', '.join(EXTENSIONS)}).")
    if not path.exists():
        raise DataError(f"{path}: no such file. Check the path, or use builtin:NAME for data that come along.")
    if extension not in EXTENSIONS:
        raise DataError(f"{path}: unknown extension {extension!r}. Use one of {', '.join(EXTENSIONS)}.")
    try:
        if path.stat().st_size == 0:
            raise DataError(f"{path}: the file is empty. Pass a file with at least one row.")
        if extension in {".npy", ".npz"}:
            content = _read_arrays(path)
        else:
            content = _Content(_read_parquet(path) if extension == ".parquet" else _read_text(path))
    except DataError:
        raise
    except _UNREADABLE as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise DataError(f"{path}: cannot be read as {extension} ({reason}). Write the file again.") from error
    if len(content.table) == 0:
        raise DataError(f"{path}: has column names but no rows. Pass a file with at least one row.")
    return content


def _read_text(path: Path) -> pd.DataFrame:
    separator = "\t" if path.suffix.lower() == ".tsv" else ","
    with path.open(encoding="utf-8-sig", newline="") as lines:
        first = next((row for row in csv.reader(lines, delimiter=separator) if row), None)
    if first is None or not any(cell.strip() for cell in first):
        raise DataError(f"{path}: the file has no first row. Pass a file with at least one row.")
    if len(first) == 1 and (other := next((c for c in ";\t," if c in first[0]), None)):
        raise DataError(
            f"{path}: its columns are separated by {other!r}, not {separator!r}. Save it with {separator!r}."
        )
    header = None if _is_data(first) else 0
    if header == 0 and (odd := [cell for cell in first if "." in cell and _is_data([cell])]):
        warnings.warn(
            f"{path}: the first row was taken as column names although it holds the {listing(odd, 'number')}. If it is "
            "data, put a row of names above it.",
            DataWarning,
            stacklevel=4,
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # rows longer than the header would be cut
        try:
            table = pd.read_csv(
                path, sep=separator, header=header, index_col=False, skipinitialspace=True, encoding="utf-8-sig",
                low_memory=False,
            )  # fmt: skip
        except pd.errors.ParserWarning:
            raise DataError(f"{path}: rows have more cells than the first row. Name every column.") from None
    return _named(table) if header is None else _without_row_numbers(table)


def _is_data(first: Sequence[str]) -> bool:
    """Whether a first row is numbers; 0, 1, 2, ... are the names that pandas gives to columns."""
    try:
        numbers = [float(cell) for cell in first]
    except ValueError:
        return False
    return len(numbers) == 1 or numbers != list(range(len(numbers)))


def _without_row_numbers(table: pd.DataFrame) -> pd.DataFrame:
    """Drop the nameless first column of row numbers that pandas writes: it is no measurement."""
    table.columns = [str(c).strip() for c in table.columns]
    first = table.columns[0]
    if first == "Unnamed: 0" and np.array_equal(table[first].to_numpy(), np.arange(len(table))):
        return table.iloc[:, 1:]
    return table


def _named(table: pd.DataFrame) -> pd.DataFrame:
    table.columns = [f"c{i}" for i in range(1, table.shape[1] + 1)]
    return table


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        table = pd.read_parquet(path, engine="pyarrow")
    except ImportError:
        raise DataError(
            f"{path}: reading .parquet needs pyarrow. Install isthmus[tables], or save the table as .csv."
        ) from None
    table.columns = [str(c) for c in table.columns]
    return table


def _read_arrays(path: Path) -> _Content:
    with path.open("rb") as stream:  # opened here, since np.load leaves a file open that is no archive
        loaded = np.load(stream, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return _Content(_array_table(loaded, str(path)))
        arrays = {name: loaded[name] for name in loaded if name in {"x", "y"}}
        if "x" not in arrays:
            raise DataError(f"{path}: holds no array x, but {', '.join(loaded) or 'nothing'}. Save x (and y) in it.")
    table = _array_table(arrays["x"], f"{path}, x")
    if "y" not in arrays:
        return _Content(table)
    y = arrays["y"]
    if y.dtype.kind not in "US":
        y = as_samples(y, f"{path}, y")
    names = ["y"] if y.ndim == 1 or y.shape[1] == 1 else [f"y{i}" for i in range(1, y.shape[1] + 1)]
    return _Content(table, pd.DataFrame(y, columns=names))


def _array_table(array: np.ndarray, where: str) -> pd.DataFrame:
    return _named(pd.DataFrame(as_samples(array, where)))
