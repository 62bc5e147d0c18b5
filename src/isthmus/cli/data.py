"""DATA of the command line as arguments of `discover`: which columns are targets, groups, inputs; at least 20 rows.

Reading files and built-in tasks: `tasks`. Checking numbers: `tasks.arrays`, by way of `discover`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from isthmus.cli.run_folder import builtin_name
from isthmus.discovery.data.column_summary import column_summary
from isthmus.errors import DataError
from isthmus.tasks import Kind, Task, builtin
from isthmus.tasks.array_files import is_archive, opened_arrays
from isthmus.tasks.arrays import check_rows, listing
from isthmus.tasks.files import columns_beside, read_table
from isthmus.tasks.input_columns import InputColumn
from isthmus.tasks.names import names_in, quoted
from isthmus.tasks.table_options import AS_IT_COMES, TableOptions
from isthmus.tasks.written_units import WrittenUnits
from isthmus.training.losses import CROSS_ENTROPY, Loss, known, loss_argument

_OF_Y = re.compile(r"y\d*")  # the targets that an archive keeps apart, all or one; columns of arrays are c1, c2, ...


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


def builtin_task(data: str, *, seed: int = 0) -> Task | None:
    """The task of "builtin:NAME"; None where DATA is a file.

    Raises:
        DataError: no such name.
    """
    name = builtin_name(data)
    return None if name is None else builtin(name, seed=seed)


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
    if builtin_name(data) is not None:
        return None
    if choice != TargetChoice():
        return (
            f"{data}: its y is not used; --target y (or --classes y) predicts it."
            if _has_unused_y(data, choice)
            else None
        )
    if task.row_names and task.kind is Kind.CLASSIFICATION:
        shown = listing(map(quoted, task.y_names), "folder")
        return f"{data}: the {shown} are the classes of the pictures; --autoencode leaves them alone."
    if task.kind is not Kind.AUTOENCODING:
        return None
    what = "has no y" if is_archive(Path(data)) else "no --target, --classes or --autoencode given"
    num = task.x.shape[1]
    what_is = "the pictures are" if task.row_names else "the one column is" if num == 1 else f"all {num} columns are"
    return f"{data}: {what}, so {what_is} autoencoded (the rank of the data themselves)."


def _has_unused_y(data: str, choice: TargetChoice) -> bool:
    """Whether a file keeps targets apart, and something else was asked for."""
    asked = (*choice.target, *filter(None, [choice.classes]))
    if not is_archive(Path(data)) or (asked and all(_OF_Y.fullmatch(name) for name in asked)):
        return False
    with opened_arrays(Path(data)) as file:
        return {"x", "y"} <= set(file.names)
