"""DATA of the command line as inputs of a run that is there: the columns that it wants, made as it made them.

Data of a run to be: `cli.data`. Samples in Python: `discovery.data.new_rows`.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from isthmus.cli.data import builtin_task
from isthmus.cli.run_folder import builtin_name
from isthmus.errors import DataError, DataWarning, outside
from isthmus.tasks.arrays import counted, listing
from isthmus.tasks.files_alike import inputs_like
from isthmus.tasks.input_columns import InputColumn, Made
from isthmus.tasks.names import quoted
from isthmus.tasks.picture_listing import is_picture_folder, listed
from isthmus.tasks.table_options import AS_IT_COMES, TableOptions


def rows_like(
    data: str,
    names: Sequence[str],
    columns: Sequence[InputColumn] | None = None,
    options: TableOptions = AS_IT_COMES,
) -> np.ndarray:
    """The inputs called `names` among the columns of DATA, in that order, for an encoder that knows them.

    Names x0, x1, ... are those of data without names and are taken by position, and so are the columns of a file
    without names where there are as many. A value of a column of text that no row has is a 0/1 column of zeros. What is
    too large for memory stays on disk.

    Args:
        data: a file, or "builtin:NAME".
        names: of the inputs.
        columns: how the run made them; None for a run from before that was recorded. Such a run is only given zeros for
            a value where the column is text in DATA, and then aloud.
        options: how the file is written.

    Raises:
        DataError: a column is missing, holds a value that the run never saw, or the data cannot be read.

    Warns:
        DataWarning: a file without names is read for inputs that have names; or zeros were put in for an older run.
    """
    unnamed = tuple(names) == tuple(f"x{i}" for i in range(len(names)))
    in_order = False

    def wanted(own: Sequence[str]) -> Sequence[InputColumn]:
        nonlocal in_order
        in_order = set(own) != set(names) and (_are_made_up(own) or (unnamed and not set(names) & set(own)))
        if in_order and len(own) != len(names) and not (unnamed or _are_made_up(names)):
            _check_positions(data, len(own), names, columns)  # before cells are read: those of others may hold anything
        if in_order:
            return [InputColumn(name) for name in own]
        return _assumed(data, names, own) if columns is None else columns

    if (task := builtin_task(data)) is not None:
        found, x = task.x_names or tuple(f"c{i + 1}" for i in range(task.x.shape[1])), task.x
        in_order = not task.x_names
    else:
        found, x = inputs_like(data, wanted, recorded=columns or (), options=options)
    if in_order and unnamed and len(found) == len(names):
        return x
    if in_order and not (unnamed or _are_made_up(names)):
        _check_positions(data, len(found), names, columns)
        return x
    if lost := [name for name in names if name not in found]:
        source = {column.name: column.source for column in columns or ()}  # of text one column gives several inputs
        lost, needed = (list(dict.fromkeys(source.get(name, name) for name in of)) for of in (lost, names))
        shown = ", ".join(quoted(name) for name in lost[:5]) + (", ..." if len(lost) > 5 else "")
        raise DataError(f"{data}: lacks {len(lost)} of the {len(needed)} input columns of the run: {shown}.")
    places = [found.index(name) for name in names]
    return x if places == list(range(x.shape[1])) else x[:, places]


def files_of_rows(data: str) -> tuple[str, ...]:
    """The file of each row, where DATA is a folder of pictures; else nothing.

    Raises:
        DataError: there are no pictures in it.
    """
    return listed(Path(data)).files if builtin_name(data) is None and is_picture_folder(data) else ()


def _assumed(data: str, names: Sequence[str], own: Sequence[str]) -> list[InputColumn]:
    """How an older run, which recorded nothing, must have made its inputs, judged by the columns of DATA.

    "T=300" is a column of numbers where DATA has a column of that name. Else it was a value of a column T, if DATA has
    that, and then this is said, since a table of other columns could be meant.
    """
    known = set(own)
    assumed: list[InputColumn] = []
    for name in names:
        column, _, value = name.partition("=")
        is_value = name not in known and value and column in known
        assumed.append(InputColumn(name, Made.ONE_HOT, column, value) if is_value else InputColumn(name))
    if encoded := list(dict.fromkeys(c.column for c in assumed if c.made is Made.ONE_HOT)):
        warnings.warn(
            f"{data}: the run does not say how its inputs were made; {listing(map(quoted, encoded), 'column')} taken "
            "for text with one 0/1 input per value.",
            DataWarning,
            stacklevel=outside(),
        )
    return assumed


def _are_made_up(names: Sequence[str]) -> bool:
    """Whether these are the names c1, c2, ... that the columns of a file without names are given."""
    return list(names) == [f"c{i}" for i in range(1, len(names) + 1)]


def _check_positions(data: str, num_columns: int, names: Sequence[str], columns: Sequence[InputColumn] | None) -> None:
    """Refuse a file without column names that cannot be meant for these inputs, and say how the others are read."""
    if form := next((column.column for column in columns or () if column.made is Made.PIXEL), None):
        raise DataError(f"{data}: the run was made of pictures of {form}. Give a folder of such pictures.")
    if num_columns != len(names) or any("=" in name for name in names):
        raise DataError(
            f"{data}: has {counted(num_columns, 'column')} without names; the run has {len(names)} with names, "
            f"from {names[0]!r} "
            f"to {names[-1]!r}. Give a table with these columns, a .csv say."
        )
    warnings.warn(
        f"{data}: has no column names; its columns are taken in the order of the run, {names[0]!r} to {names[-1]!r}.",
        DataWarning,
        stacklevel=outside(),
    )
