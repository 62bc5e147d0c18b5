"""New samples for a discovery that is there: checked as those of a search are, their columns brought into its order.

The rows of a search itself: `checking`. New rows in files: `cli.data`.
"""

import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from torch import Tensor

from isthmus.errors import DataError, DataWarning, ShapeError, outside
from isthmus.networks.arguments import tensor_argument
from isthmus.tasks.arrays import as_samples, counted, listing
from isthmus.tasks.foreign import in_memory
from isthmus.tasks.names import checked_names, quoted


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
    samples = as_samples(x, called)
    if samples.shape[1] != width:
        one = f" Pass {called}[None], of shape (1, {width}), for one sample." if np.shape(x) == (width,) else ""
        what = "input columns" if names else "columns"
        raise ShapeError(f"{called}: needs the {width} {what} of the run, got {samples.shape[1]}.{one}")
    return samples


def _in_order(x: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """The columns that are called so, or all as they stand where none is."""
    own, known = [str(name) for name in x.columns], set(names)
    if not known & set(own):
        if len(own) == len(names) and not (_are_made_up(x.columns) or _are_made_up(names)):
            warnings.warn(
                "x: none of its columns is called as an input of the run; they are taken by position, "
                f"{quoted(own[0])} as {quoted(names[0])} to {quoted(own[-1])} as {quoted(names[-1])}.",
                DataWarning,
                stacklevel=outside(),
            )
        return x
    checked_names([name for name in own if name in known], "x")
    if lost := [quoted(name) for name in names if name not in set(own)]:
        them, every = "it" if len(lost) == 1 else "them", counted(len(names), "input")
        raise DataError(f"x: lacks {listing(lost, 'column')} of the {every} of the run. Add or rename {them}.")
    return x.set_axis(own, axis=1).loc[:, list(names)]


def _are_made_up(names: Sequence[object] | pd.Index) -> bool:
    """Whether nobody gave these names: numbers, or x0, x1, ... of an array."""
    return isinstance(names, pd.RangeIndex) or list(names) in [
        [f"x{i}" for i in range(len(names))],
        list(range(len(names))),
    ]
