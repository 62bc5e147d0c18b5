"""Files on disk as tasks. Which formats there are: `formats`; data in memory: `arrays`; what text becomes: `columns`.

Nothing is ever unpickled. Every refusal is a `DataError` of one line: which file, where in it, what to do.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd

from isthmus.errors import DataError
from isthmus.tasks.arrays import as_samples, check_same_length, drop_constant_columns
from isthmus.tasks.cells import CellProblem
from isthmus.tasks.columns import (
    MOST_TOLD,
    ColumnError,
    check_present,
    class_columns,
    group_labels,
    input_columns,
    target_columns,
)  # fmt: skip
from isthmus.tasks.formats import Content, WantedColumns, opened_content, say_unused
from isthmus.tasks.input_columns import Made
from isthmus.tasks.large_tables import Inputs, LargeTable
from isthmus.tasks.missing import filled
from isthmus.tasks.names import found_names, quoted
from isthmus.tasks.picture_folders import PictureFolder
from isthmus.tasks.picture_labels import labelled_folder
from isthmus.tasks.picture_listing import is_picture_folder
from isthmus.tasks.table_options import AS_IT_COMES, TableOptions
from isthmus.tasks.target_files import targets_apart, targets_of
from isthmus.tasks.task import Kind, Task
from isthmus.tasks.text_tables import place_in_words, short_rows
from isthmus.tasks.written_units import units_in_names


def read_table(
    path: str | Path,
    *,
    target: str | Sequence[str] = (),
    classes: str | None = None,
    autoencode: bool = False,
    groups: str | None = None,
    aside: Sequence[str] = (),
    drop_constant: bool = True,
    options: TableOptions = AS_IT_COMES,
) -> Task:
    """The data of a file, or of a folder of pictures, as a task: autoencoding unless it has targets, or some are named.

    Text in input columns becomes one 0/1 column per value, and constant input columns are dropped; a `DataWarning`
    says so. A table whose first row is all numbers has no header, and its columns are called c1, c2, ... as those of
    arrays are (first row 0, 1, 2, ...: a header). An .npz, or a group of zarr, holds `x` and may hold `y`. Of a
    folder every picture is a row of pixels between 0 and 1; pictures that lie in several folders in it have these as
    classes, the column "folder", and one table beside them has further columns, one of which holds their names.

    Args:
        path: .csv, .tsv, .txt or .dat, also packed (.csv.gz), .xlsx (needs openpyxl), .parquet (needs pyarrow), .npy,
            .npz, a zarr folder (needs zarr), or a folder of pictures of one size and kind.
        target: the columns to predict as numbers; all others are inputs. Names that a comma had cut are put together.
            Or one file, all of whose columns are predicted: its rows are those of the data (`y.npy`); of a folder of
            pictures it is the table that tells of them.
        classes: the one column whose values are classes to predict; `"y"` for the `y` of an .npz or a group. Or a file.
        autoencode: reconstruct the inputs, also where the file holds a `y`.
        groups: the column of labels, numbers or text, whose rows belong together; it is no input.
        aside: columns that are neither inputs nor targets.
        drop_constant: drop constant input columns; False keeps the columns of an earlier reading in place. Pixels stay.
        options: how the table is written, and what is done about missing cells.

    Returns:
        Task without a known rank; a constant target is let through (its rank is 0).

    Raises:
        DataError: the file cannot be read, or its data cannot be used; the line says where and what to do.

    >>> path = Path(tempfile.mkdtemp()) / "table.csv"
    >>> pd.DataFrame({"a": range(20), "b": np.sin(range(20)), "c": np.cos(range(20))}).to_csv(path, index=False)
    >>> task = tasks.read_table(path, target=["c"])
    >>> task.x_names, task.y_names
    (('a', 'b'), ('c',))
    """
    path = Path(path)
    target = (target,) if isinstance(target, str) else target
    if not (isinstance(target, Iterable) and all(isinstance(name, str) for name in target)):  # pyright: ignore[reportUnnecessaryIsInstance] - callers
        raise DataError(f"read_table(target={str(target)[:40]}): needs names of columns.")
    if not isinstance(options, TableOptions):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DataError(f"read_table(options=...): needs isthmus.tasks.TableOptions, got {type(options).__name__}.")
    target = tuple(target)
    if bool(target) + (classes is not None) + autoencode > 1:
        raise DataError(f"{path}: target, classes and autoencode exclude each other. Pass one of them.")
    _check_roles(path, {
        "left out": options.leave_out, "the groups": (groups,), "kept aside": aside, "a target": target,
        "the classes": (classes,),
    })  # fmt: skip
    others = (*filter(None, [groups]), *aside)
    chosen = (classes,) if classes is not None else target
    content, apart = _opened(path, options, others, chosen, as_classes=classes is not None, is_apart=not autoencode)
    if isinstance(content, PictureFolder) and not autoencode:
        target, classes = content.chosen(target, classes, others)
    names = _without(content.names, found_names(options.leave_out, content.names))
    labels = None
    if groups is not None:  # before text in it is read as categories
        check_present(names, (groups,), str(path))
        labels = group_labels(cast(pd.Series, content.whole([groups])[groups]), str(path))
        names = _without(names, [groups])
    aside = found_names(aside, names)
    check_present(names, aside, str(path))
    names = _without(names, aside)
    target = found_names(target, names)
    if twice := [name for place, name in enumerate(target) if name in target[:place]]:
        raise DataError(f"{path}: target {quoted(twice[0])} is named twice. Name it once.")
    kind = Kind.CLASSIFICATION if classes is not None else Kind.REGRESSION
    if apart is None:
        chosen = (classes,) if classes is not None else target
        check_present(names, chosen, str(path))
        names = _without(names, chosen)
    if not names:
        beside = " beside the groups" if groups is not None else ""
        raise DataError(f"{path}: no column is left as input{beside}. Name fewer targets.")
    outputs = apart if apart is not None else content.whole(chosen) if chosen else None
    inputs = partial(content.inputs, names, str(path), impute=options.impute)
    try:
        may_drop = drop_constant and not isinstance(content, PictureFolder)  # rows keep the form of a picture
        task = _task(inputs, outputs, kind, str(path), drop_constant=may_drop)
    except ColumnError as error:
        raise DataError(located(error, content)) from error
    if isinstance(content, Content) and content.lines is not None and (sign := content.lines.decimal):
        numbers = (replace(c, decimal=sign) if c.made is Made.NUMERIC else c for c in task.x_columns)
        task = replace(task, x_columns=tuple(numbers))
    task = replace(task, groups=labels, row_names=content.files if isinstance(content, PictureFolder) else ())
    if not options.units:
        return task
    lines = content.lines if isinstance(content, Content) else None
    units = units_in_names(content.names, str(path)) if lines is None or lines.units is None else lines.units
    targets = task.y_names if kind is Kind.REGRESSION else ()
    return replace(task, units=units.of_columns(task.x_columns, targets))


def _opened(
    path: Path,
    options: TableOptions,
    others: Sequence[str],
    chosen: Sequence[str],
    *,
    as_classes: bool | None = None,
    is_apart: bool = True,
) -> tuple[Content | LargeTable | PictureFolder, pd.DataFrame | None]:
    """What a file or a folder holds, of a folder what the columns need that are asked for, and targets apart from it.

    Args:
        path: of it.
        options: how tables are written; rows that are left out are so in the targets too.
        others: further columns that are asked for.
        chosen: the targets, or the column of classes.
        as_classes: which of the two; None where the targets are not looked at.
        is_apart: whether targets that the file keeps apart may be meant.
    """
    if is_picture_folder(path):
        return labelled_folder(path, options, (*chosen, *others)), None
    content = opened_content(path, WantedColumns(options))
    apart = targets_apart(chosen, content.names, path, options, as_classes=as_classes)
    if apart is None:  # else the options may be those of the other file
        say_unused(path, options)
        if is_apart:
            apart = targets_of(chosen, content.names, content.apart, path, as_classes=bool(as_classes))
    if not options.drop_missing or not isinstance(content, Content):
        return content, apart
    content = replace(content, apart=apart).complete(str(path), found_names(chosen, content.names))
    return content, content.apart


def _check_roles(path: Path, roles: Mapping[str, Sequence[str | None]]) -> None:
    """Refuse (DataError) a column that is asked for as two things."""
    taken: dict[str, str] = {}
    for role, names in roles.items():
        for name in filter(None, names):
            if taken.setdefault(name, role) != role:
                raise DataError(f"{path}: column {quoted(name)} cannot be both {taken[name]} and {role}. Name it once.")


def _without(names: Sequence[str], left: Sequence[str]) -> list[str]:
    apart = set(left)
    return [name for name in names if name not in apart]


def columns_beside(
    path: str | Path, names: Sequence[str], options: TableOptions = AS_IT_COMES, *, asked: Sequence[str] = ()
) -> dict[str, np.ndarray]:
    """Some columns of a file, or of what is known of pictures, by name; text is several 0/1 columns.

    Args:
        path: as for `read_table`.
        names: of the columns.
        options: as they were for `read_table`.
        asked: the targets or classes there, as they were named.

    Raises:
        DataError: as for `read_table`.
    """
    path = Path(path)
    problems = list[CellProblem]()
    content, _apart = _opened(path, options, names, asked)
    names = found_names(names, content.names)
    check_present(content.names, names, str(path))
    table = content.whole(names)
    x, made = input_columns(filled(table, str(path))[0] if options.impute else table, str(path), problems)
    if problems:
        raise DataError(located(ColumnError(str(path), problems), content))
    sources = np.array([column.source for column in made], dtype=object)
    return {name: x[:, sources == name] for name in names}


def located(error: ColumnError, content: Content | LargeTable | PictureFolder) -> str:
    """What is wrong with columns of text in a file, with the lines of the file."""
    if isinstance(content, PictureFolder):
        first = next((problem.rows[0] for problem in error.problems if problem.rows), None)
        return error.told(addition="" if first is None else f"Row {first + 1} is {quoted(content.files[first])}.")
    if not isinstance(content, Content) or content.lines is None:
        return error.told()
    places = np.arange(len(content.table)) if content.rows is None else content.rows
    most = content.total or len(content.table)
    rows = [int(places[problem.rows[0]]) for problem in error.problems[:MOST_TOLD] if problem.rows]
    missing = sorted({int(places[row]) for problem in error.problems for row in problem.rows if problem.is_missing})
    if missing and (short := short_rows(content.lines, missing, most=most)):
        return f"{error.where}: {short}; {error.problems[0].what}. Write as many cells in each line."
    return error.told(addition=place_in_words(content.lines, rows, most=most))


def _task(
    inputs: Callable[[list[CellProblem]], Inputs],
    outputs: pd.DataFrame | None,
    kind: Kind,
    where: str,
    *,
    drop_constant: bool,
) -> Task:
    problems: list[CellProblem] = []
    x, made = inputs(problems)
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
