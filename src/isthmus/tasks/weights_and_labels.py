"""What belongs to the rows of a search one by one: their weights, the groups they are in, their classes, checked.

The rows themselves: `arrays`; row labels (index) of data frames: `foreign`.
"""

import math

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from isthmus.errors import DataError
from isthmus.tasks.arrays import column_names, listing, tensor_numbers
from isthmus.tasks.names import checked_names

Array = NDArray[np.float64]
TINY, HUGE = 1e-250, 1e250  # weights, between which no sum of them vanishes or overflows


def checked_weights(sample_weight: ArrayLike | None, num_rows: int) -> Array | None:
    """Weights as float64 (n,), finite, non-negative and not all zero; None where none were given."""
    if sample_weight is None:
        return None
    weights = _weights(sample_weight)
    if weights.shape != (num_rows,):
        raise DataError(
            f"discover(sample_weight=...): needs one weight per row, {num_rows}; got shape {weights.shape}."
        )
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        where = listing((int(row) + 1 for row in wrong), "row")
        raise DataError(
            f"discover(sample_weight=...): needs finite weights >= 0, got {weights[wrong[0]]:g} in {where}."
        )
    if not weights.any():
        raise DataError(
            "discover(sample_weight=...): every weight is zero, so that no row is left. Give some rows a weight."
        )
    # divided by a power of two, which rounds nothing, where sums of them would overflow or vanish
    largest = float(weights.max())
    return weights if TINY < largest < HUGE else weights / math.ldexp(1.0, math.frexp(largest)[1] - 1)


def _weights(sample_weight: ArrayLike) -> Array:
    is_tensor = isinstance(sample_weight, Tensor)
    values = tensor_numbers(sample_weight, "discover(sample_weight=...)") if is_tensor else np.asarray(sample_weight)
    if values.dtype.kind == "c":
        raise DataError(f"discover(sample_weight=...): holds complex numbers ({values.dtype}).")
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError(f"discover(sample_weight=...): holds {values.dtype}, not numbers.") from None


def groups_of_rows(groups: ArrayLike | None, sample_weight: ArrayLike | None) -> ArrayLike | None:
    """The group labels of the rows that `checked_data` keeps."""
    if groups is not None and len(missing := np.atleast_1d(pd.isna(np.asarray(groups))).nonzero()[0]):
        rows = listing((missing + 1).tolist(), "row")
        raise DataError(f"discover(groups=...): has no label in {rows}. Give one to each row, or drop these rows.")
    try:
        np.unique(np.asarray(groups))
    except TypeError:  # numbers and text, which have no common order
        try:
            groups = pd.factorize(np.asarray(groups))[0]
        except (TypeError, ValueError):
            raise DataError("discover(groups=...): needs one label per row, text or numbers.") from None
    if groups is None or sample_weight is None:
        return groups
    labels, weights = np.asarray(groups), _weights(sample_weight)
    if labels.shape != weights.shape:
        raise DataError(f"discover(groups=...): needs one label per row, {len(weights)}; got shape {labels.shape}.")
    return labels[weights > 0]


def class_numbers(y: ArrayLike) -> tuple[Array, tuple[str, ...]]:
    """Class numbers and names, from labels or from one 0/1 column per class."""
    values = tensor_numbers(y, "discover(y)") if isinstance(y, Tensor) else np.asarray(y)
    if values.dtype.kind == "c":
        raise DataError(f"discover(y): the labels are complex numbers ({values.dtype}). Give text or whole numbers.")
    if values.ndim == 2 and values.shape[1] > 1:
        names, numbers = names_of(y, values.shape[1], "class "), values.argmax(1)
        if set(np.unique(values).tolist()) - {0, 1} or bool((values.sum(1) != 1).any()):
            raise DataError("discover(y, loss='cross_entropy'): needs labels (n,), or 0/1 columns with one 1 per row.")
        present, numbers = np.unique(numbers, return_inverse=True)  # a class without rows cannot be learnt
        return numbers.astype(np.float64), tuple(names[int(c)] for c in present)
    if missing := np.flatnonzero([v is None or v != v for v in values.reshape(-1).tolist()]).tolist():
        raise DataError(f"discover(y): the label is missing in {listing((r + 1 for r in missing), 'row')}. Fill it in.")
    if values.dtype.kind == "f" and bool((values != np.round(values)).any()):
        raise DataError("discover(y, loss='cross_entropy'): the labels are fractions; for numbers leave out loss.")
    try:
        classes, numbers = np.unique(values.reshape(-1), return_inverse=True)
    except TypeError:
        kinds = ", ".join(sorted({type(label).__name__ for label in values.reshape(-1).tolist()}))
        raise DataError(f"discover(y): the labels are of several types, {kinds}. Make them all text.") from None
    return numbers.astype(np.float64), checked_names(classes.tolist(), "discover(y)", what="class")


def names_of(values: object, width: int, prefix: str) -> tuple[str, ...]:
    """Names of the columns of a data frame, or of a series; of other arrays made up."""
    columns = getattr(values, "columns", None)
    if isinstance(values, pd.Series) and values.name is not None and width == 1:
        columns = (values.name,)
    if columns is None:
        return tuple(f"{prefix}{i}" for i in range(width))
    return checked_names(column_names(columns), f"discover({prefix.strip()})")
