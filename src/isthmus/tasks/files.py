"""Files on disk as tasks: .csv, .tsv, .parquet, .npy, .npz. Data in memory: `arrays`; what text becomes: `columns`.

Nothing is ever unpickled. Every refusal is a `DataError` of one line: which file, where in it, what to do.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd

from isthmus.errors import DataError
from isthmus.tasks.array_files import opened_arrays
from isthmus.tasks.arrays import as_samples, check_same_length, drop_constant_columns
from isthmus.tasks.cells import CellProblem
from isthmus.tasks.columns import (
    ColumnError,
    check_present,
    class_columns,
    group_labels,
    input_columns,
    numeric_as,
    one_hot_as,
    target_columns,
)  # fmt: skip
from isthmus.tasks.door import checked_file, through_door
from isthmus.tasks.input_columns import InputColumn, Made
from isthmus.tasks.names import checked_names, found_names
from isthmus.tasks.parquet import read_parquet
from isthmus.tasks.task import Kind, Task
from isthmus.tasks.text_tables import Lines, place_in_words, read_text_table, short_rows

EXTENSIONS = (".csv", ".tsv", ".parquet", ".npy", ".npz")


@dataclass(frozen=True, slots=True, eq=False)
class _Content:
    """A file's columns, the targets that it keeps apart from them (`y` of an .npz), and where text has its rows."""

    table: pd.DataFrame
    apart: pd.DataFrame | None = None
    lines: Lines | None = None


def read_table(
    path: str | Path,
    *,
    target: str | Sequence[str] = (),
    classes: str | None = None,
    autoencode: bool = False,
    groups: str | None = None,
    aside: Sequence[str] = (),
    drop_constant: bool = True,
) -> Task:
    """The data of a file as a task: autoencoding unless targets are named or the file brings its own.

    Text in input columns becomes one 0/1 column per value, and constant input columns are dropped; a `DataWarning` says
    so. A .csv or .tsv whose first row is all numbers has no header, and its columns are called c1, c2, ... as those of
    arrays are (first row 0, 1, 2, ...: a header). An .npz holds `x` and may hold `y`.

    Args:
        path: .csv (commas), .tsv, .parquet (needs pyarrow), .npy or .npz.
        target: the columns to predict as numbers; all others are inputs. Names that a comma had cut are put together.
        classes: the one column whose values are classes to predict; `"y"` for the `y` of an .npz.
        autoencode: reconstruct the inputs, also where the file holds a `y`.
        groups: the column of labels, numbers or text, whose rows belong together; it is no input.
        aside: columns that are neither inputs nor targets.
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
    aside = found_names(aside, content.table.columns)
    check_present(list(content.table.columns), aside, str(path))
    content = replace(content, table=content.table.drop(columns=list(aside)))
    target = found_names(target, content.table.columns)
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
    try:
        task = _task(inputs, outputs, kind, str(path), drop_constant=drop_constant)
    except ColumnError as error:
        raise DataError(_located(error, content)) from error
    return replace(task, groups=labels)


def columns_like(
    path: str | Path,
    wanted: Callable[[Sequence[str]], Sequence[InputColumn]],
    *,
    recorded: Sequence[InputColumn] = (),
) -> dict[str, np.ndarray]:
    """Those of the wanted columns that a file has, made as they were when they were recorded.

    Args:
        path: as for `read_table`; columns that are not asked for may hold anything.
        wanted: the columns, by the names of those of the file.
        recorded: those that are known before it is read: their text is text also where it looks like numbers.

    Returns:
        Numbers by the names of the columns; where a column of text is missing, all of its values are.

    Raises:
        DataError: the file cannot be read, a cell is no number where there were numbers, or a value never seen.
    """
    path = Path(path)
    texts = {column.column for column in recorded if column.made is Made.ONE_HOT}
    content = _read(path, as_text=texts, keep={column.source for column in recorded})
    columns = wanted(tuple(str(name) for name in content.table.columns))
    found: dict[str, np.ndarray] = {}
    try:
        for column in columns:
            if column.name in found or column.source not in content.table.columns:
                continue
            cells = cast(pd.Series, content.table[column.source])
            if column.made is Made.ONE_HOT:
                same = [other for other in columns if other.made is Made.ONE_HOT and other.column == column.column]
                made = one_hot_as(cells, [other.value for other in same], str(path))
                found |= {other.name: values for other, values in zip(same, made, strict=True)}
            else:
                found[column.name] = numeric_as(cells, str(path))
    except ColumnError as error:
        raise DataError(_located(error, content)) from error
    return found


def column_names(path: str | Path) -> tuple[str, ...]:
    """The names of the columns of a file."""
    return tuple(str(name) for name in _read(Path(path)).table.columns)


def _located(error: ColumnError, content: _Content) -> str:
    """What is wrong with columns of text in a file, with the lines of the file."""
    rows = [problem.rows[0] for problem in error.problems[:3] if problem.rows]
    if content.lines is None or not rows:
        return error.told()
    most = len(content.table)
    units = [problem for problem in error.problems if problem.is_text and problem.rows == (0,)]
    if units and 2 * len(units) >= content.table.shape[1]:
        cells = ", ".join(repr(str(cell)[:20]) for cell in content.table.iloc[0].tolist()[:5])
        instead = f"its first row holds text above numbers ({cells}), units perhaps"
        return f"{error.where}: {instead}. Remove that row, or write the units into the names of the columns."
    missing = [row for problem in error.problems for row in problem.rows if problem.is_missing]
    if missing and (short := short_rows(content.lines, sorted(set(missing)), most=most)):
        return f"{error.where}: {short}; {error.problems[0].what}. Write as many cells in each line."
    return error.told(addition=place_in_words(content.lines, rows, most=most))


def _without_labels(content: _Content, groups: str | None, where: str) -> tuple[_Content, np.ndarray | None]:
    """The content without the column of groups, before text in it is read as categories, and its labels."""
    if groups is None:
        return content, None
    check_present(list(content.table.columns), (groups,), where)
    labels = cast(pd.Series, content.table[groups])
    return replace(content, table=content.table.drop(columns=groups)), group_labels(labels, where)


def _task(inputs: pd.DataFrame, outputs: pd.DataFrame | None, kind: Kind, where: str, *, drop_constant: bool) -> Task:
    problems: list[CellProblem] = []
    x, made = input_columns(inputs, where, problems)
    y, y_names = None, ()
    if outputs is not None:
        check_same_length(len(x), len(outputs), name=where)
        if kind is Kind.REGRESSION:
            y, y_names = target_columns(outputs, problems)
        else:
            y, y_names = class_columns(cast(pd.Series, outputs.iloc[:, 0]), where, problems)
    if problems:
        raise ColumnError(where, problems)
    x = as_samples(x, where)
    names = tuple(column.name for column in made)
    if drop_constant:
        x, names = drop_constant_columns(x, name=where, columns=names)
        kept = set(names)
        made = tuple(column for column in made if column.name in kept)
    if y is None:
        return Task(x, None, None, where, Kind.AUTOENCODING, x_names=names, x_columns=made)
    return Task(x, as_samples(y, where), None, where, kind, x_names=names, y_names=y_names, x_columns=made)


def _read(path: Path, *, as_text: Collection[str] = (), keep: Collection[str] = ()) -> _Content:
    extension = path.suffix.lower()
    checked = checked_file(path, hint="Check the path, or use builtin:NAME for data that come along.")
    if extension not in EXTENSIONS:
        raise DataError(f"{path}: unknown extension {extension!r}. Use one of {', '.join(EXTENSIONS)}.")
    if checked.stat().st_size == 0:
        raise DataError(f"{path}: the file is empty. Pass a file with at least one row.")
    if extension in {".npy", ".npz"}:
        content = through_door(path, _read_arrays, kind=extension)
    elif extension == ".parquet":
        content = _Content(read_parquet(path))
    else:
        table, lines = read_text_table(path, as_text=as_text, keep=keep)
        content = _Content(table, lines=lines)
    if len(content.table) == 0:
        raise DataError(f"{path}: has column names but no rows. Pass a file with at least one row.")
    return content


def _read_arrays(path: Path) -> _Content:
    with opened_arrays(path) as file:
        if "x" not in file.names:
            raise DataError(f"{path}: holds no array x, but {file.names_in_words}. Save x (and y) in it.")
        # an archive tells which of its arrays it is
        x = file.read("x")
        y = file.read("y") if "y" in file.names else None
        table = _array_table(x, f"{path}, x" if len(file.names) > 1 or path.suffix.lower() == ".npz" else str(path))
    return _Content(table) if y is None else _Content(table, _targets(y, f"{path}, y"))


def _targets(y: np.ndarray, where: str) -> pd.DataFrame:
    """The array y of an .npz as columns."""
    if y.dtype.kind in "US":
        if y.ndim == 0 or y.size != len(y):
            raise DataError(f"{where}: needs one text per row, got shape {y.shape}. Save it as one column.")
        texts = [str(text) for text in y.reshape(-1).tolist()]
        checked_names(sorted(set(texts)), where, what="class")
        return pd.DataFrame({"y": pd.Series(texts, dtype=object)})
    y = as_samples(y, where)
    names = ["y"] if y.shape[1] == 1 else [f"y{i}" for i in range(1, y.shape[1] + 1)]
    return pd.DataFrame(y, columns=names)


def _array_table(array: np.ndarray, where: str) -> pd.DataFrame:
    table = pd.DataFrame(as_samples(array, where))
    table.columns = [f"c{i}" for i in range(1, table.shape[1] + 1)]
    return table
