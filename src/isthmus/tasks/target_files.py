"""Targets in a file of their own, row by row those of the data: `x.npy` and `y.npy`. What becomes of them: `files`.

A table of pictures names its rows, and is another matter: `picture_labels`.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pandas as pd

from isthmus.errors import DataError
from isthmus.tasks.arrays import listing
from isthmus.tasks.cells import CellProblem
from isthmus.tasks.columns import ColumnError, class_columns, target_columns
from isthmus.tasks.formats import FORMATS, WantedColumns, extension_of, read_content
from isthmus.tasks.names import quoted
from isthmus.tasks.table_options import TableOptions


def targets_apart(
    asked: Sequence[str],
    columns: Sequence[str],
    data: Path,
    options: TableOptions,
    *,
    as_classes: bool | None,
) -> pd.DataFrame | None:
    """The columns of the file that stands in the place of a column to predict; None where it is one of the data.

    Args:
        asked: the targets, or the column of classes.
        columns: of the data, which a file of such a name would not hide.
        data: the file beside which it is looked for, if it is not where it says.
        options: how it is written; all of its columns are taken, and its rows with those of the data, which leave out
            where a target is missing if that was asked for.
        as_classes: whether one column is needed; None where the targets are not looked at.

    Raises:
        DataError: it cannot be read or used, or has several columns where one is needed.
    """
    place = file_apart(asked, columns, data)
    if place is None:
        return None
    plain = replace(options, leave_out=(), units=False)
    table = read_content(place, WantedColumns(plain)).table
    if list(table.columns) == [f"c{i}" for i in range(1, table.shape[1] + 1)]:  # made up, as are those of the data
        table.columns = ["y"] if table.shape[1] == 1 else [f"y{i}" for i in range(1, table.shape[1] + 1)]
    if as_classes and table.shape[1] != 1:
        raise DataError(f"{place}: has {listing(map(quoted, table.columns), 'column')}, and classes are one. Keep one.")
    problems: list[CellProblem] = []
    if as_classes:
        class_columns(table.iloc[:, 0], str(place), problems)
    elif as_classes is not None:
        target_columns(table, problems)
    problems = [problem for problem in problems if not (problem.is_missing and options.drop_missing)]
    if problems:
        raise ColumnError(str(place), problems)
    return table


def file_apart(asked: Sequence[str], columns: Sequence[str], data: Path) -> Path | None:
    """The file that is named in the place of a column to predict, where it says or beside the data; None without one.

    Args:
        asked: the targets, or the column of classes.
        columns: of the data, which a file of such a name would not hide.
        data: the file of the data.
    """
    if len(asked) != 1 or asked[0] in set(columns):
        return None
    places = (Path(asked[0]), data.parent / asked[0])
    return next((path for path in places if extension_of(path) in FORMATS and path.exists()), None)


def targets_of(
    chosen: Sequence[str], columns: Sequence[str], apart: pd.DataFrame | None, path: Path, *, as_classes: bool
) -> pd.DataFrame | None:
    """Those of the targets that a file keeps apart (`y` of an .npz or of a group) that are meant; None for none.

    Args:
        chosen: the targets, or the column of classes: `y` for all of them; empty for what there is.
        columns: of the data, which come first.
        apart: the targets that the file has so.
        path: of the file.
        as_classes: whether one column is needed.

    Raises:
        DataError: there are several where one is needed.
    """
    if apart is None or set(chosen) & set(columns):
        return None
    if not chosen or tuple(chosen) == ("y",):
        found = apart
    elif set(chosen) <= set(apart.columns):
        found = cast(pd.DataFrame, apart[list(chosen)])
    else:
        return None
    if as_classes and found.shape[1] != 1:
        raise DataError(
            f"{path}, y: has {found.shape[1]} columns, and classes are one. Name one, {apart.columns[0]} say."
        )
    return found
