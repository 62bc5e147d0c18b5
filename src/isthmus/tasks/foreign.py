"""Data of other libraries as arrays or data frames in memory: polars, xarray, torch's data sets, sparse matrices.

None of these libraries is imported for it. What arrays and data frames become then: `arrays`.
"""

import itertools
import math
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
import torch
import xarray as xr
from numpy.typing import ArrayLike
from torch.utils.data import DataLoader, Dataset, IterableDataset

from isthmus.errors import DataError, DataWarning, outside
from isthmus.tasks.array_files import say_flattened
from isthmus.tasks.arrays import tensor_numbers
from isthmus.tasks.memory import check_memory

_PAIR = 2  # inputs and targets


def in_memory(x: object, y: object = None, *, name: str = "x") -> tuple[ArrayLike, ArrayLike | None]:
    """Inputs and targets as arrays or data frames; a data set or loader of pairs brings its own targets.

    Args:
        x: the inputs; of three dimensions and more it is flattened to rows, and a DataWarning says so.
        y: the targets, likewise; None for none.
        name: what errors call `x`.

    Raises:
        DataError: variables of other lengths, sparse rows that have no place in memory, samples that are neither rows
            nor pairs, or two kinds of targets.
    """
    if isinstance(x, DataLoader | Dataset):
        rows, targets = stacked(x, name)
        if targets is not None and y is not None:
            raise DataError(f"{name}: brings its own targets. Leave out y.")
        x, y = rows, targets if y is None else y
    return _as_rows(_converted(x, name), name), None if y is None else _as_rows(_converted(y, "y"), "y")


def _as_rows(found: Any, name: str) -> Any:  # noqa: ANN401
    try:
        shape = [int(size) for size in getattr(found, "shape", ())]
    except (TypeError, RuntimeError):  # frames of dask, nested tensors
        what = type(found).__name__
        raise DataError(f"{name}: a {what} does not say how many rows it has. Compute it, or pass an array.") from None
    say_flattened(shape, name)
    return found.reshape(shape[0], int(np.prod(shape[1:]))) if len(shape) > _PAIR else found


def check_row_labels(x: object, beside: Mapping[str, object], *, in_order: bool = True) -> None:
    """Compare the row labels (index) of data frames and series that are taken row for row.

    Args:
        x: the inputs; of what has no labels nothing is known.
        beside: what belongs to their rows, by name.
        in_order: whether the labels of `x` in another order are refused; else that is said.

    Raises:
        DataError: the labels are those of `x` in another order.

    Warns:
        DataWarning: they are others, and on neither side mere numbers of rows; or most are those of rows of `x` above
            or below, as where each side lost a row of its own.
    """
    rows = _row_labels(x)
    for name, other in beside.items():
        labels = _row_labels(other)
        if rows is None or labels is None or len(rows) != len(labels) or rows.equals(labels):
            continue
        shared = int(np.count_nonzero(labels.isin(rows))) if rows.is_unique and labels.is_unique else 0
        if shared == len(rows) and in_order:
            raise DataError(
                f"{name}: has the row labels (index) of x in another order. Pass {name}.loc[x.index], or both after "
                "reset_index(drop=True) if the rows belong together as they stand."
            )
        by_label = ""
        if shared == len(rows):
            has, by_label = "the row labels (index) of x in another order", f"{name}.loc[x.index]"
        elif _are_shifted(rows, labels, shared):
            has = f"{shared:,} of the {len(rows):,} row labels (index) of x, but not at the same rows"
            by_label = f"both with .loc[x.index.intersection({name}.index)]"
        elif _are_numbers_of_rows(rows) or _are_numbers_of_rows(labels):
            continue
        else:
            has = "other row labels (index) than x"
        meant = f" If the labels say what belongs together, pass {by_label}." if by_label else ""
        warnings.warn(
            f"{name}: has {has}; rows are taken as they stand, the first with the first.{meant}",
            DataWarning,
            stacklevel=outside(),
        )


def _are_shifted(rows: pd.Index, labels: pd.Index, shared: int) -> bool:
    """Whether most labels are on both sides, in the same order, and some of these not in the same row.

    So they are where each side lost rows of its own. Those of rows that were drawn stand in no order.
    """
    is_sorted = rows.is_monotonic_increasing and labels.is_monotonic_increasing
    if not is_sorted or 2 * shared <= len(rows):
        return False
    # by place, as those of categories of their own refuse ==
    return shared > int(np.count_nonzero(rows.get_indexer(labels) == np.arange(len(rows))))


def _row_labels(x: object) -> "pd.Index | None":
    if isinstance(x, xr.DataArray | xr.Dataset):
        first = x if isinstance(x, xr.DataArray) else next(iter(x.data_vars.values()), None)
        return None if first is None or not first.dims else x.indexes.get(first.dims[0])
    return x.index if isinstance(x, pd.DataFrame | pd.Series) else None


def _are_numbers_of_rows(labels: pd.Index) -> bool:
    return isinstance(labels, pd.RangeIndex) and (labels.start, labels.step) == (0, 1)


def _converted(x: Any, name: str) -> Any:  # noqa: ANN401 - whatever came
    return next((convert(x, name) for is_one, convert in _KINDS if is_one(x)), x)


def _is_polars(x: object) -> bool:
    polars = sys.modules.get("polars")
    return polars is not None and isinstance(x, polars.DataFrame | polars.LazyFrame | polars.Series)


def _of_polars(x: Any, _name: str) -> object:  # noqa: ANN401
    if hasattr(x, "collect"):
        x = x.collect()
    return (
        pd.DataFrame({column: x[column].to_numpy() for column in x.columns}) if hasattr(x, "columns") else x.to_numpy()
    )


def _of_dataset(x: xr.Dataset, name: str) -> pd.DataFrame:
    """One column for each variable, or for each entry of one that has more dimensions behind the samples."""
    if not len(x.data_vars):
        raise DataError(f"{name}: is a Dataset without variables. Give it one at least.")
    first = next(iter(x.data_vars.values()))
    sample = first.dims[0] if first.dims else None
    columns: dict[str, np.ndarray] = {}
    for key, variable in x.data_vars.items():
        if sample not in variable.dims:
            raise DataError(
                f"{name}: variable {str(key)!r} lacks the dimension {str(sample)!r} of the samples. Drop it."
            )
        rows = variable.transpose(sample, ...)
        values = rows.values.reshape(x.sizes[sample], math.prod(rows.shape[1:]))
        names = [f"{key}[{entry}]" for entry in _entries(rows)] if values.shape[1] != 1 else [str(key)]
        columns |= {name: values[:, i] for i, name in enumerate(names)}
    return pd.DataFrame(columns, index=x.indexes.get(sample))


def _of_labelled(x: xr.DataArray, name: str) -> object:
    """A table of samples and named columns; the values where a second dimension has no labels."""
    if x.ndim < _PAIR or (x.ndim == _PAIR and x.dims[1] not in x.indexes):
        return x.values
    say_flattened(x.shape, name)
    values = x.values.reshape(len(x), math.prod(x.shape[1:]))
    return pd.DataFrame(values, index=x.indexes.get(x.dims[0]), columns=_entries(x))


def _entries(x: xr.DataArray) -> list[str]:
    """The entries behind the first dimension by their labels: the same names in whatever order dimensions stand."""
    dims = x.dims[1:]
    if len(dims) == 1:
        labels = x.indexes[dims[0]].tolist() if dims[0] in x.indexes else None
        if labels is None:
            return [str(i) for i in range(x.shape[1])]
        return [label if isinstance(label, str) else f"{dims[0]}={label}" for label in labels]
    labels = [x.indexes[dim].tolist() if dim in x.indexes else range(x.sizes[dim]) for dim in dims]
    order = sorted(range(len(dims)), key=lambda i: str(dims[i]))
    return [" ".join(f"{dims[i]}={entry[i]}" for i in order) for entry in itertools.product(*labels)]


def _of_sparse(x: Any, name: str) -> np.ndarray:  # noqa: ANN401
    check_memory(8.0 * x.shape[0] * (x.shape[1] if len(x.shape) > 1 else 1), f"{name}, a sparse matrix as rows")
    return x.toarray()


def stacked(x: "DataLoader[Any] | Dataset[Any]", name: str) -> tuple[np.ndarray, np.ndarray | None]:
    """The samples of a data set or the batches of a loader, together."""
    batched = isinstance(x, DataLoader)
    samples: Iterable[object] = x if batched or isinstance(x, IterableDataset) else (x[i] for i in range(len(x)))  # pyright: ignore[reportArgumentType] - one that is no iterable has a length
    rows: list[np.ndarray] = []
    targets: list[np.ndarray] = []
    held = 0
    for sample in samples:
        parts = list(sample) if isinstance(sample, Sequence) and not isinstance(sample, str) else [sample]
        if not 1 <= len(parts) <= _PAIR:
            raise DataError(
                f"{name}: its samples have {len(parts)} parts. Give rows, or pairs of a row and its target."
            )
        arrays = [_array(part, name) for part in parts]
        held += sum(8 * array.size for array in arrays)
        check_memory(2 * held, name)
        rows.append(arrays[0] if batched else arrays[0][None])
        targets += [arrays[1] if batched else arrays[1][None]] if len(arrays) == _PAIR else []
    if not rows or (targets and len(targets) != len(rows)):
        raise DataError(f"{name}: {'some of its samples have targets' if rows else 'has no samples'}. Give all alike.")
    try:
        return np.concatenate(rows), np.concatenate(targets) if targets else None
    except ValueError:
        raise DataError(f"{name}: its samples differ in shape. Give rows of one length.") from None


def _array(part: object, name: str) -> np.ndarray:
    found = tensor_numbers(part, name) if isinstance(part, torch.Tensor) else np.asarray(part)
    if found.dtype.kind not in "biuf":
        raise DataError(f"{name}: a sample holds {type(part).__name__}, not numbers. Give tensors or arrays.")
    return found


def _is_sparse(x: object) -> bool:
    return bool(scipy.sparse.issparse(x))


_KINDS: tuple[tuple[Callable[[object], bool], Callable[[Any, str], object]], ...] = (
    (_is_polars, _of_polars),
    (lambda x: isinstance(x, xr.Dataset), _of_dataset),
    (lambda x: isinstance(x, xr.DataArray), _of_labelled),
    (_is_sparse, _of_sparse),
)
