"""DATA of the command line as arguments of `discover`: which columns are targets, groups, inputs; at least 20 rows.

Reading files and built-in tasks: `tasks`. Checking numbers: `tasks.arrays`, by way of `discover`.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from isthmus.cli.run_folder import builtin_name
from isthmus.discovery.data.column_summary import column_summary
from isthmus.errors import DataError, DataWarning, outside
from isthmus.tasks import Kind, Task, builtin
from isthmus.tasks.array_files import is_archive
from isthmus.tasks.arrays import check_rows, counted, listing
from isthmus.tasks.files import columns_beside, inputs_like, read_table
from isthmus.tasks.input_columns import InputColumn, Made
from isthmus.tasks.names import names_in, quoted
from isthmus.tasks.picture_listing import is_picture_folder, listed
from isthmus.tasks.table_options import AS_IT_COMES, TableOptions
from isthmus.tasks.written_units import WrittenUnits
from isthmus.training.losses import CROSS_ENTROPY, Loss, known, loss_argument


@dataclass(frozen=True, slots=True)
class TargetChoice:
    """What is to be predicted from DATA, as the options say; none of the three leaves it to the data."""

    target: tuple[str, ...] = ()
    classes: str | None = None
    autoencode: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """What `discover` is called with.

    Attributes:
        x: inputs, which may lie on disk.
        names: of their columns.
        y: targets, or 0/1 columns per class; None when autoencoding.
        loss: loss by name, None for the squared error.
        groups: a label per row, or None.
        ordered: whether the rows are a time series.
        note: what was decided for the user, or None.
        columns: how each input was made from the columns of the data.
        candidates: variables by name that the coordinates are compared with, one row or several columns each.
        units: of inputs and targets, where DATA tells them and they were asked for.
        files: a name for each row, where DATA is a folder of them; or empty.
    """

    x: np.ndarray
    names: tuple[str, ...]
    y: pd.DataFrame | None
    loss: str | None
    groups: np.ndarray | None
    ordered: bool
    note: str | None
    columns: tuple[InputColumn, ...] = ()
    candidates: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    units: WrittenUnits | None = None
    files: tuple[str, ...] = ()

    def thinned(self, most: int) -> "Rows":
        """At most so many rows, as far apart as can be."""
        every = slice(None, None, -(-len(self.x) // most))
        return replace(
            self, x=self.x[every], y=None if self.y is None else self.y[every],
            groups=None if self.groups is None else self.groups[every],
            candidates={name: values[every] for name, values in self.candidates.items()},
        )  # fmt: skip

    def summary(self) -> list[str]:
        """What stands out among the inputs; nothing for data that have no columns by name."""
        if not self.columns:
            return []
        targets = () if self.y is None else tuple(map(str, self.y.columns))
        are_classes = self.loss == CROSS_ENTROPY.name
        return column_summary(self.x, self.columns, targets, ordered=self.ordered, are_classes=are_classes)

    @property
    def made(self) -> tuple[InputColumn, ...]:
        """How each input was made, as `discover` takes it; of data without columns their names alone."""
        return self.columns or tuple(map(InputColumn, self.names))


def choice_of(target: str | None, classes: str | None, *, autoencode: bool) -> TargetChoice:
    """The choice that the options make.

    Raises:
        DataError: more than one of them is given, or --target names nothing.
    """
    given = [name for name, value in (("--target", target is not None), ("--classes", classes is not None),
                                      ("--autoencode", autoencode)) if value]  # fmt: skip
    if len(given) > 1:
        raise DataError(f"{' and '.join(given)} exclude each other. Give one of them.")
    names = names_in(target or "")
    if target is not None and not names:
        raise DataError("--target: names no column. Give one or several, separated by commas.")
    return TargetChoice(names, classes, autoencode)


def loss_option(text: str | None) -> Loss | None:
    """The loss that --loss names, None where nothing was asked for.

    Raises:
        DataError: there is none of that name.
    """
    try:
        return None if text is None else loss_argument(text, "--loss")
    except ValueError:
        raise DataError(f"--loss {text}: needs one of {known()}.") from None


def read_rows(
    data: str,
    choice: TargetChoice,
    *,
    groups: str | None = None,
    ordered: bool = False,
    seed: int = 0,
    candidates: Sequence[str] = (),
    options: TableOptions = AS_IT_COMES,
) -> Rows:
    """The rows of DATA, a file read with `options` or "builtin:NAME" (drawn with `seed`); `candidates` are kept beside.

    Raises:
        DataError: the data cannot be read or used; one line says where and what to do.
    """
    if builtin_name(data) is not None:
        if candidates:
            raise DataError(f"{data}: has no columns beside its inputs. Leave out --candidates.")
        if options.units:
            raise DataError(f"{data}: tells no units of its columns. Give a file of units.")
        task = _builtin(data, choice, groups, seed)
    else:
        task = _table(data, choice, groups, candidates, options)
    check_rows(task.num_samples, name=data, refuse=True)
    names = task.x_names or tuple(f"x{i}" for i in range(task.x.shape[1]))
    y = None
    if task.y is not None:
        y = pd.DataFrame(task.y, columns=list(task.y_names or (f"y{i}" for i in range(task.y.shape[1]))))
    loss = CROSS_ENTROPY.name if task.kind is Kind.CLASSIFICATION else None
    asked = (*choice.target, *filter(None, [choice.classes]))
    beside = columns_beside(data, candidates, options, asked=asked) if candidates else {}
    return Rows(
        task.x,
        names,
        y,
        loss,
        task.groups,
        ordered or task.ordered,
        _note(data, choice, task),
        task.x_columns,
        beside,
        task.units,
        task.row_names,
    )


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


def builtin_task(data: str, *, seed: int = 0) -> Task | None:
    """The task of "builtin:NAME"; None where DATA is a file.

    Raises:
        DataError: no such name.
    """
    name = builtin_name(data)
    return None if name is None else builtin(name, seed=seed)


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


def _are_made_up(names: Sequence[str] | pd.Index) -> bool:
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


def _builtin(data: str, choice: TargetChoice, groups: str | None = None, seed: int = 0) -> Task:
    if groups is not None:
        raise DataError(f"{data}: has no column of labels. Leave out --groups.")
    if choice.target or choice.classes is not None:
        raise DataError(f"{data}: brings its own targets. Leave out --target and --classes, or give --autoencode.")
    task = builtin_task(data, seed=seed)
    assert task is not None
    if not choice.autoencode or task.y is None:
        return task
    return replace(task, y=None, kind=Kind.AUTOENCODING, y_names=(), true_rank=None, jacobian_rank=None, flat_rank=None)


def _table(data: str, choice: TargetChoice, groups: str | None, aside: Sequence[str], options: TableOptions) -> Task:
    # constant columns stay: discover leaves them out and says so, and rows to come have them too
    return read_table(
        data,
        target=choice.target,
        classes=choice.classes,
        autoencode=choice.autoencode,
        groups=groups,
        aside=aside,
        drop_constant=False,
        options=options,
    )


def _note(data: str, choice: TargetChoice, task: Task) -> str | None:
    if choice != TargetChoice() or builtin_name(data) is not None:
        return None
    if task.row_names and task.kind is Kind.CLASSIFICATION:
        shown = listing(map(quoted, task.y_names), "folder")
        return f"{data}: the {shown} are the classes of the pictures; --autoencode leaves them alone."
    if task.kind is not Kind.AUTOENCODING:
        return None
    what = "has no y" if is_archive(Path(data)) else "no --target, --classes or --autoencode given"
    num = task.x.shape[1]
    what_is = "the pictures are" if task.row_names else "the one column is" if num == 1 else f"all {num} columns are"
    return f"{data}: {what}, so {what_is} autoencoded (the rank of the data themselves)."
