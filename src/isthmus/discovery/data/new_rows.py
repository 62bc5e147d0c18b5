"""New samples for a discovery that is there: checked as those of a search are, their columns brought into its order.

What its halves make of them, some at a time: `applied`.

The rows of a search itself: `checking`. New rows in files: `cli.data_of_run`.
"""

import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from isthmus.errors import DataError, DataWarning, ShapeError, outside
from isthmus.networks import FullyConnected
from isthmus.networks.arguments import tensor_argument
from isthmus.tasks.arrays import NUMBERS_AT_ONCE, as_samples, column_names, counted, listing
from isthmus.tasks.foreign import in_memory
from isthmus.tasks.mapped import let_go
from isthmus.tasks.names import as_named, checked_names, quoted


def new_rows(x: object, names: Sequence[str], width: int, *, called: str = "x") -> NDArray[np.float64]:
    """New samples (n, width) as float64 rows, their columns in the order of `names`.

    What has columns by name is taken by them; where none of them is one of `names`, by position, which is said if
    somebody gave both kinds of names.

    Args:
        x: samples in the user's units.
        names: of the inputs of the run.
        width: their number.
        called: what an error calls the samples: "x", "coordinates".

    Raises:
        DataError: what are no real and finite numbers, or has some of the inputs by name and lacks others.
        ShapeError: another number of columns.

    Warns:
        DataWarning: columns by other names are taken by position.
    """
    if isinstance(x, Tensor):  # what is sparse or has no data is no array
        tensor_argument(x, called)
    x, _ = in_memory(x, name=called)
    if isinstance(x, pd.DataFrame):
        x = _in_order(x, names)
    if width == 0 and np.shape(x)[1:] == (0,):  # coordinates of rank 0
        return np.zeros(np.shape(x))
    shape = tuple(getattr(x, "shape", ()))
    if len(shape) == 2:  # before cells are looked at: those of other columns may hold anything
        _check_width(shape, shape[1], names, width, called)
    samples = as_samples(x, called)
    _check_width(np.shape(x), samples.shape[1], names, width, called)
    return samples


def _check_width(shape: tuple[int, ...], found: int, names: Sequence[str], width: int, called: str) -> None:
    if found != width:
        one = f" Pass {called}[None], of shape (1, {width}), for one sample." if shape == (width,) else ""
        what = "input columns" if names else "columns"
        raise ShapeError(f"{called}: needs the {width} {what} of the run, got {found}.{one}")


def applied(network: FullyConnected, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """What a network makes of rows, some at a time: of a million, hidden layers would take many times their memory."""
    found = np.empty((len(rows), network.dimensions[-1]))
    at_once = max(NUMBERS_AT_ONCE // max(network.dimensions), 1)
    for start in range(0, len(rows), at_once):
        part = rows[start : start + at_once]
        with torch.no_grad():  # of a copy, as a part of a file on disk may be read-only
            found[start : start + at_once] = network(torch.from_numpy(np.array(part))).numpy()
        let_go(part)
    return found


def targets_in_order(y: ArrayLike, names: Sequence[str]) -> ArrayLike:
    """Targets, or 0/1 columns of classes, in the order of `names` if a data frame has all of them; else as they are."""
    own = column_names(y.columns) if isinstance(y, pd.DataFrame) else []
    if not isinstance(y, pd.DataFrame) or len(set(own)) < len(own) or not set(names) <= set(own):
        return y
    return y.set_axis(own, axis=1).loc[:, list(names)]


def _in_order(x: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """The columns that are called so, or all as they stand where none is."""
    known = set(names)
    own = as_named(column_names(x.columns), names, "x")
    there = set(own)
    if not known & there:
        if len(own) == len(names) and not (_are_made_up(x.columns) or _are_made_up(names)):
            warnings.warn(
                "x: none of its columns is called as an input of the run; they are taken by position, "
                f"{quoted(own[0])} as {quoted(names[0])} to {quoted(own[-1])} as {quoted(names[-1])}.",
                DataWarning,
                stacklevel=outside(),
            )
        return x
    checked_names([name for name in own if name in known], "x")
    if lost := [quoted(name) for name in names if name not in there]:
        them, every = "it" if len(lost) == 1 else "them", counted(len(names), "input")
        raise DataError(f"x: lacks {listing(lost, 'column')} of the {every} of the run. Add or rename {them}.")
    return x.set_axis(own, axis=1).loc[:, list(names)]


def _are_made_up(names: Sequence[object] | pd.Index) -> bool:
    """Whether nobody gave these names: numbers, or x0, x1, ... of an array."""
    return isinstance(names, pd.RangeIndex) or list(names) in [
        [f"x{i}" for i in range(len(names))],
        list(range(len(names))),
    ]
