"""DATA of the command line as arguments of `discover`: which columns are targets, groups, inputs; at least 20 rows.

Reading files and built-in tasks: `tasks`. Checking numbers: `tasks.arrays`, by way of `discover`.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from isthmus.errors import DataError, DataWarning
from isthmus.tasks import Kind, Task, builtin
from isthmus.tasks.arrays import check_rows
from isthmus.tasks.files import read_table

_BUILTIN = "builtin:"
_OWN_TARGETS = (".npz",)


@dataclass(frozen=True, slots=True)
class Choice:
    """What is to be predicted from DATA, as the options say; none of the three leaves it to the data."""

    target: tuple[str, ...] = ()
    classes: str | None = None
    autoencode: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """What `discover` is called with.

    Attributes:
        x: inputs with the names of their columns.
        y: targets, or 0/1 columns per class; None when autoencoding.
        loss: loss by name, None for the squared error.
        groups: a label per row, or None.
        ordered: whether the rows are a time series.
        note: what was decided for the user, or None.
        candidates: variables by name that the coordinates are compared with, one row or several columns each.
    """

    x: pd.DataFrame
    y: pd.DataFrame | None
    loss: str | None
    groups: np.ndarray | None
    ordered: bool
    note: str | None
    candidates: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])


def choice_of(target: str | None, classes: str | None, *, autoencode: bool) -> Choice:
    """The choice that the options make.

    Raises:
        DataError: more than one of them is given, or --target names nothing.
    """
    given = [name for name, value in (("--target", target is not None), ("--classes", classes is not None),
                                      ("--autoencode", autoencode)) if value]  # fmt: skip
    if len(given) > 1:
        raise DataError(f"{' and '.join(given)} exclude each other. Give one of them.")
    names = tuple(name.strip() for name in (target or "").split(",") if name.strip())
    if target is not None and not names:
        raise DataError("--target: names no column. Give one or several, separated by commas.")
    return Choice(names, classes, autoencode)


def read_rows(  # noqa: PLR0913
    data: str,
    choice: Choice,
    *,
    groups: str | None = None,
    ordered: bool = False,
    seed: int = 0,
    candidates: Sequence[str] = (),
) -> Rows:
    """The rows of DATA, a file or "builtin:NAME" (drawn with `seed`); `candidates` are columns kept beside.

    Raises:
        DataError: the data cannot be read or used; one line says where and what to do.
    """
    if data.startswith(_BUILTIN):
        if candidates:
            raise DataError(f"{data}: has no columns beside its inputs. Leave out --candidates.")
        task = _builtin(data, choice, groups, seed)
    else:
        task = _table(data, choice, groups, candidates)
    check_rows(task.num_samples, name=data, refuse=True)
    names = task.x_names or tuple(f"x{i}" for i in range(task.x.shape[1]))
    x = pd.DataFrame(task.x, columns=list(names))
    y = None
    if task.y is not None:
        y = pd.DataFrame(task.y, columns=list(task.y_names or (f"y{i}" for i in range(task.y.shape[1]))))
    loss = "cross_entropy" if task.kind is Kind.CLASSIFICATION else None
    beside = _candidates(data, candidates) if candidates else {}
    return Rows(x, y, loss, task.groups, ordered or task.ordered, _note(data, choice, task), beside)


def rows_like(data: str, names: Sequence[str]) -> np.ndarray:
    """The inputs called `names` among the columns of DATA, in that order, for an encoder that knows them.

    Names x0, x1, ... are those of data without names and are taken by position, and so are the columns of a file
    without names where there are as many. A text value that does not occur in DATA is a 0/1 column of zeros.

    Raises:
        DataError: a column is missing, or the data cannot be read.

    Warns:
        DataWarning: a file without names is read for inputs that have names.
    """
    if data.startswith(_BUILTIN):
        task = _builtin(data, Choice())
    else:  # columns that the run does not know may hold text or nothing
        among = {*names, *(name.split("=", 1)[0] for name in names)}
        task = read_table(data, autoencode=True, among=among, drop_constant=False)
    found = pd.DataFrame(task.x, columns=list(task.x_names) or None)
    found.columns = found.columns.map(str)
    unnamed = tuple(names) == tuple(f"x{i}" for i in range(len(names)))
    if unnamed and found.shape[1] == len(names) and set(found.columns) != set(names):
        return task.x
    if _are_made_up(found.columns) and not (unnamed or _are_made_up(names)):
        _check_positions(data, found.shape[1], names)
        return task.x
    bases = {str(column).split("=", 1)[0] for column in found.columns if "=" in str(column)}
    absent = [name for name in names if name not in found.columns]
    if lost := [name for name in absent if name.split("=", 1)[0] not in bases or "=" not in name]:
        shown = ", ".join(repr(name) for name in lost[:5]) + (", ..." if len(lost) > 5 else "")
        raise DataError(f"{data}: lacks {len(lost)} of the {len(names)} input columns of the run: {shown}.")
    known = {name.split("=", 1)[0] for name in names if "=" in name}
    unseen = [c for c in found.columns if "=" in c and c.split("=", 1)[0] in known and c not in names]
    if unseen:
        column, value = unseen[0].split("=", 1)
        raise DataError(f"{data}: column {column!r} holds {value!r}, which the run never saw. Remove these rows.")
    return found.reindex(columns=list(names), fill_value=0.0).to_numpy(dtype=np.float64)


def _are_made_up(names: Sequence[str] | pd.Index) -> bool:
    """Whether these are the names c1, c2, ... that the columns of a file without names are given."""
    return list(names) == [f"c{i}" for i in range(1, len(names) + 1)]


def _check_positions(data: str, num_columns: int, names: Sequence[str]) -> None:
    """Refuse a file without column names that cannot be meant for these inputs, and say how the others are read."""
    if num_columns != len(names) or any("=" in name for name in names):
        raise DataError(
            f"{data}: has {num_columns} columns without names; the run has {len(names)} with names, from {names[0]!r} "
            f"to {names[-1]!r}. Give a table with these columns, a .csv say."
        )
    warnings.warn(
        f"{data}: has no column names; its columns are taken in the order of the run, {names[0]!r} to {names[-1]!r}.",
        DataWarning,
        stacklevel=3,
    )


def _builtin(data: str, choice: Choice, groups: str | None = None, seed: int = 0) -> Task:
    if groups is not None:
        raise DataError(f"{data}: has no column of labels. Leave out --groups.")
    if choice.target or choice.classes is not None:
        raise DataError(f"{data}: brings its own targets. Leave out --target and --classes, or give --autoencode.")
    task = builtin(data.removeprefix(_BUILTIN), seed=seed)
    if not choice.autoencode or task.y is None:
        return task
    return replace(task, y=None, kind=Kind.AUTOENCODING, y_names=(), true_rank=None, jacobian_rank=None, flat_rank=None)


def _candidates(data: str, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Columns of DATA by name; text is several 0/1 columns."""
    task = read_table(data, autoencode=True, among=set(names), drop_constant=False)
    bases = np.array([name if name in names else name.split("=", 1)[0] for name in task.x_names])
    return {name: task.x[:, bases == name] for name in names}


def _table(data: str, choice: Choice, groups: str | None, aside: Sequence[str]) -> Task:
    # constant columns stay: discover leaves them out and says so, and rows to come have them too
    return read_table(
        data,
        target=choice.target,
        classes=choice.classes,
        autoencode=choice.autoencode,
        groups=groups,
        aside=aside,
        drop_constant=False,
    )


def _note(data: str, choice: Choice, task: Task) -> str | None:
    if choice != Choice() or task.kind is not Kind.AUTOENCODING or data.startswith(_BUILTIN):
        return None
    what = "has no y" if Path(data).suffix.lower() in _OWN_TARGETS else "no --target, --classes or --autoencode given"
    return f"{data}: {what}, so all {task.x.shape[1]} columns are autoencoded (the rank of the data themselves)."
