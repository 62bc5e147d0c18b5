"""Files read as an earlier one was: the inputs of a run again, from other rows. Files in general: `files`."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd

from isthmus.errors import DataError
from isthmus.tasks.cells import CellProblem
from isthmus.tasks.columns import ColumnError, numeric_as, one_hot_as
from isthmus.tasks.files import located
from isthmus.tasks.formats import Content, WantedColumns, opened_content, read_content, say_unused
from isthmus.tasks.input_columns import InputColumn, Made
from isthmus.tasks.large_tables import LargeTable
from isthmus.tasks.missing import filled_as
from isthmus.tasks.names import as_named
from isthmus.tasks.picture_folders import PictureFolder, picture_folder
from isthmus.tasks.picture_listing import is_picture_folder
from isthmus.tasks.table_options import AS_IT_COMES, TableOptions


def inputs_like(
    path: str | Path,
    wanted: Callable[[Sequence[str]], Sequence[InputColumn]],
    *,
    recorded: Sequence[InputColumn] = (),
    options: TableOptions = AS_IT_COMES,
) -> tuple[tuple[str, ...], np.ndarray]:
    """Those of the wanted columns that a file has, made as they were when they were recorded.

    Args:
        path: as for `read_table`; columns that are not asked for may hold anything.
        wanted: the columns, by the names of those of the file.
        recorded: those that are known before it is read: their text is text also where it looks like numbers.
        options: how the table is written.

    Returns:
        Their names and their numbers (n, columns), on disk where they are too large to be read whole and none was text;
        where a column of text is missing, all of its values are.

    Raises:
        DataError: the file cannot be read, a cell is no number where there were numbers, or a value never seen.
    """
    path = Path(path)
    if is_picture_folder(path):
        return _pixels_like(picture_folder(path), wanted, recorded)
    say_unused(path, options)
    texts = {column.column for column in recorded if column.made is Made.ONE_HOT}
    sign = next((column.decimal for column in recorded if column.decimal), None)
    fills = any(column.filled for column in recorded) and not options.drop_missing
    options = replace(options, usual_decimal=sign, impute=fills)
    reading = WantedColumns(options, as_text=texts, keep={column.source for column in recorded})
    content = read_content(path, reading) if texts else opened_content(path, reading)
    if isinstance(content, Content):
        own = as_named(content.names, [column.source for column in recorded], str(path))
        content = replace(content, table=content.table.set_axis(own, axis=1))
    columns = wanted(content.names)
    if not isinstance(content, Content):
        if (found := _on_disk_like(content, columns, str(path))) is not None:
            return found
        content = read_content(path, reading)
    content = content.complete(str(path)) if options.drop_missing else content
    return _columns_like(content, columns, path)


def _on_disk_like(
    content: LargeTable, columns: Sequence[InputColumn], where: str
) -> tuple[tuple[str, ...], np.ndarray] | None:
    """Columns of numbers that stay on disk; None where some are made of text, or have become something else."""
    there = {column.name: column for column in columns if column.source in content.names}
    problems: list[CellProblem] = []
    if not there or any(column.made is Made.ONE_HOT for column in there.values()):
        return None
    x, made = content.inputs([column.source for column in there.values()], where, problems, impute=False)
    is_same = [column.made for column in made] == [column.made for column in there.values()]
    return (tuple(there), x) if is_same and not problems else None


def _columns_like(content: Content, columns: Sequence[InputColumn], path: Path) -> tuple[tuple[str, ...], np.ndarray]:
    found: dict[str, np.ndarray] = {}
    there = {c.source: cast(pd.Series, content.table[c.source]) for c in columns if c.source in content.table.columns}
    there = filled_as(there, {c.source: c.filled for c in columns}, str(path))
    try:
        for column in columns:
            if column.name in found or column.source not in there:
                continue
            cells = there[column.source]
            if column.made is Made.ONE_HOT:
                same = [other for other in columns if other.made is Made.ONE_HOT and other.column == column.column]
                made = one_hot_as(cells, [other.value for other in same], str(path))
                found |= {other.name: values for other, values in zip(same, made, strict=True)}
            else:
                found[column.name] = numeric_as(cells, str(path))
    except ColumnError as error:
        raise DataError(located(error, content)) from error
    return tuple(found), np.column_stack(list(found.values())) if found else np.empty((len(content.table), 0))


def _pixels_like(
    pictures: PictureFolder,
    wanted: Callable[[Sequence[str]], Sequence[InputColumn]],
    recorded: Sequence[InputColumn],
) -> tuple[tuple[str, ...], np.ndarray]:
    forms = {column.column for column in recorded if column.made is Made.PIXEL}
    if forms != {pictures.form.words}:
        raise DataError(
            f"{pictures.path}: holds pictures of {pictures.form.words}; the run was made of "
            f"{f'those of {forms.pop()}' if forms else 'other data than pictures'}. Pass what it was made of."
        )
    names = tuple(column.name for column in wanted(pictures.form.names))
    return names, pictures.pixels(names)
