"""Anything array-like in memory as float64 samples in rows, checked once. Files: `files`; columns of tables: `columns`.

Scaling of the numbers is left to `discovery`, which folds it back into what it returns.
"""

import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from mmap import mmap
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float64, Integer, Shaped

from isthmus.errors import DataError, DataWarning, outside
from isthmus.tasks.mapped import is_on_disk, let_go, mapped

LEAST_ROWS = 20
# squares of larger numbers, summed over a table, come near the largest float64 (1.8e308)
LARGEST = 1e140
# what is divided by less, as weights are by the spread of a column, overflows
LEAST_SPREAD = 1e-300
_TABLE = 2  # dimensions
NAMELESS = "Unnamed: {}"  # as pandas calls it, and as older runs know it
_FLOATS_OF_NUMPY = (torch.float16, torch.float32, torch.float64)
NUMBERS_AT_ONCE = 1_000_000  # of an array that is looked at as a whole: what is made of so many takes 8 MB


def as_samples(
    x: object, name: str = "x", *, columns: Sequence[str] = (), first_row: int = 0
) -> Float64[np.ndarray, "n d"]:
    """The numbers of `x` as a writable, C-contiguous float64 array with samples as rows.

    Arrays, lists, torch tensors, data frames and series are taken, of any real or boolean type and memory layout. One
    dimension becomes one column; images (n, h, w) are flattened. What is already in this form is not copied, nor are
    rows of float64 on disk (`mapped`), contiguous or not.

    Args:
        x: the data.
        name: what to call them in an error.
        columns: names of the columns for the error about missing values; those of a data frame are found.
        first_row: rows of the whole data that come before these; the error counts them.

    Raises:
        DataError: text, dates, complex numbers, sparse storage, no rows or columns, NaN or infinity (with their rows),
            numbers above 1e140 in size.

    >>> tasks.as_samples([1, 2, 3]).shape
    (3, 1)
    """
    array = _numbers(_may_be_written(x) if isinstance(x, np.memmap) else x, name)
    if array.ndim == 0:
        raise DataError(f"{name}: needs samples as rows, got the single value {array}. Pass an array of shape (n, d).")
    if array.size == 0:
        raise DataError(f"{name}: is empty, shape {array.shape}. Pass at least one row and one column.")
    on_disk = is_on_disk(array) and array.ndim == _TABLE and array.dtype == np.float64
    # a long double beyond float64 becomes infinity, one that is no number NaN, which are reported below
    with np.errstate(over="ignore", invalid="ignore"):
        samples = array if on_disk else np.require(array.reshape(len(array), -1), np.float64, ["C", "W"])
    if not columns and isinstance(x, pd.DataFrame):
        columns = column_names(x.columns)
    check_finite(samples, name, columns=columns, first_row=first_row)
    return samples


@np.errstate(invalid="ignore", over="ignore")  # a signalling NaN, or what float64 cannot hold: refused by its rows
def _numbers(x: object, name: str) -> np.ndarray:
    """A numpy array of a real type."""
    sparse = sys.modules.get("scipy.sparse")  # whoever has such a matrix has imported it
    if sparse is not None and sparse.issparse(x):
        raise DataError(f"{name}: is a sparse matrix. Pass {name}.toarray().")
    if isinstance(x, torch.Tensor):
        array = tensor_numbers(x, name)
    elif isinstance(x, np.ma.MaskedArray):
        array = np.ma.filled(x.astype(np.float64), np.nan)
    elif isinstance(x, pd.DataFrame | pd.Series):
        array = _frame_numbers(x, name)
    else:
        if isinstance(x, list | tuple):
            x = [tensor_numbers(row, name) if isinstance(row, torch.Tensor) else row for row in x]
        try:
            array = np.asarray(x)
        except ValueError:
            raise DataError(f"{name}: its rows differ in length. Pass a rectangular array.") from None
    return _real(array, name)


def _may_be_written(array: np.memmap) -> np.ndarray:
    """Of a file of float64 that is mapped to be read, a map whose pages are copied where they are written to.

    What may not be written to would be copied whole, for torch takes no other. A part of a map stays what it is.
    """
    whole = isinstance(array.base, mmap) and array.filename is not None and array.flags.c_contiguous
    if not whole or array.flags.writeable or array.dtype != np.float64:
        return array
    with Path(str(array.filename)).open("rb") as stream:
        return mapped(stream, array.dtype, array.shape, offset=array.offset, pages=mmap)


def tensor_numbers(x: torch.Tensor, name: str) -> np.ndarray:
    """A tensor as an array: of a floating-point type that numpy lacks (bfloat16, those of 8 bits) in float64, *exact*.

    Raises:
        DataError: it holds complex numbers, or is of a kind that numpy has nothing for.
    """
    if x.is_complex():
        raise DataError(f"{name}: holds complex numbers ({x.dtype}). Pass real and imaginary parts as columns.")
    x = x.detach().resolve_conj().resolve_neg().cpu()
    if x.dtype.is_floating_point and x.dtype not in _FLOATS_OF_NUMPY:
        x = x.double()
    try:
        return x.numpy()
    except (TypeError, RuntimeError):
        raise DataError(f"{name}: is a tensor of {x.dtype}, {x.layout}. Pass a dense one of plain numbers.") from None


def _frame_numbers(x: "pd.DataFrame | pd.Series", name: str) -> np.ndarray:
    table = x if isinstance(x, pd.DataFrame) else x.to_frame()
    is_judged_by_value = False
    for place, (column, dtype) in enumerate(zip(column_names(table.columns), table.dtypes, strict=True)):
        if isinstance(dtype, np.dtype) and dtype.kind in "Oc":
            if pd.api.types.infer_dtype(table.iloc[:, place]) == "string":  # pandas before 3 keeps text as objects
                raise DataError(f"{name}: column {column!r} holds str, not numbers. Encode or drop it.")
            is_judged_by_value = True
        elif not pd.api.types.is_numeric_dtype(dtype):
            raise DataError(f"{name}: column {column!r} holds {dtype}, not numbers. Encode or drop it.")
    return table.to_numpy() if is_judged_by_value else table.to_numpy(dtype=np.float64, na_value=np.nan)


def column_names(labels: Iterable[object]) -> list[str]:
    """Labels of the columns of a data frame as text; one that is missing is called as it is in a file of that frame.

    >>> from isthmus.tasks.arrays import column_names
    >>> column_names(["a", None, 3])
    ['a', 'Unnamed: 1', '3']
    """
    return [
        NAMELESS.format(place) if pd.api.types.is_scalar(label) and bool(pd.isna(label)) else str(label)
        for place, label in enumerate(labels)
    ]


def _real(array: np.ndarray, name: str) -> np.ndarray:
    if array.dtype.kind in "biuf":
        return array
    if array.dtype.kind == "c":
        raise DataError(f"{name}: holds complex numbers ({array.dtype}). Pass real and imaginary parts as columns.")
    if array.dtype.kind == "O":
        if all(v is None or isinstance(v, int | float | np.number | np.bool_) for v in array.flat):
            return array.astype(np.float64)
        odd = next(v for v in array.flat if not (v is None or isinstance(v, int | float | np.number | np.bool_)))
        if all(isinstance(v, str) for v in array.flat):
            raise DataError(f"{name}: holds text, not numbers. Encode it as numbers or drop it.")
        raise DataError(f"{name}: holds {type(odd).__name__} ({str(odd)[:40]!r}) beside numbers. Pass numbers only.")
    raise DataError(f"{name}: holds {array.dtype}, not numbers. Encode it as numbers or drop it.")


def check_finite(
    samples: Shaped[np.ndarray, "n d"], name: str, *, columns: Sequence[str] = (), first_row: int = 0
) -> None:
    """Raise a DataError that names the rows and columns (counted from 1) of NaN, infinity or numbers above 1e140."""
    with np.errstate(invalid="ignore", over="ignore"):
        found = [(~(np.abs(part.astype(np.float64, copy=False)) <= LARGEST)).nonzero() for part in in_parts(samples)]
    starts = np.cumsum([0, *(len(part) for part in in_parts(samples))]).tolist()
    rows = np.concatenate([start + of[0] for start, of in zip(starts, found, strict=False)])
    if not len(rows):
        return
    places = np.concatenate([of[1] for of in found])
    value = samples[rows[0], places[0]]
    where = listing(sorted({first_row + int(r) + 1 for r in rows}), "row")
    wrong = sorted(set(places.tolist()))
    named = listing([repr(columns[p]) if columns else str(p + 1) for p in wrong], "column")
    named += " holds" if len(wrong) == 1 else " hold"
    if np.isfinite(value):
        raise DataError(
            f"{name}: {named} {value:.3g} in {where}; numbers above {LARGEST:g} overflow. Rescale or remove them."
        )
    what = "a missing value or NaN" if np.isnan(value) else "infinity"
    raise DataError(f"{name}: {named} {what} in {where}. Fill in or remove these rows.")


def listing(items: Iterable[object], noun: str, *, shown: int = 5) -> str:
    """`rows 3, 17, 22 and 4 more`: the first few of a list, with its noun in the right number."""
    words = [str(i) for i in items]
    rest = f" and {len(words) - shown} more" if len(words) > shown else ""
    return f"{noun}{'s' if len(words) > 1 else ''} {', '.join(words[:shown])}{rest}"


def counted(number: int, noun: str) -> str:
    """`1 row`, `2 rows`: a number with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def constant_columns(x: Float64[np.ndarray, "n d"]) -> Bool[np.ndarray, " d"]:
    """Which columns hold one and the same value in every row.

    >>> tasks.constant_columns(np.array([[1.0, 2.0], [1.0, 3.0]]))
    array([ True, False])
    """
    return np.logical_and.reduce([(part == x[0]).all(axis=0) for part in in_parts(x)])


def in_parts(x: np.ndarray) -> Iterator[np.ndarray]:
    """The rows, so many at a time that what is computed of them takes little beside an array larger than memory."""
    rows = rows_at_once(x)
    for start in range(0, len(x), rows):
        part = x[start : start + rows]
        yield part
        let_go(part)


def rows_at_once(x: np.ndarray) -> int:
    """How many rows are looked at together."""
    return max(NUMBERS_AT_ONCE // max(x[0].size, 1), 1) if len(x) else 1


def chosen_rows(x: np.ndarray, which: Bool[np.ndarray, " n"] | Integer[np.ndarray, " chosen"]) -> np.ndarray:
    """`x[which]`, rows in order; of an array on disk without keeping in memory what lies between them."""
    if not is_on_disk(x):
        return x[which]
    rows = which.nonzero()[0] if which.dtype == bool else which
    found, step = np.empty((len(rows), *x.shape[1:]), x.dtype), rows_at_once(x)
    for start in range(int(rows[0]) if len(rows) else len(x), len(x), step):
        first, last = np.searchsorted(rows, [start, start + step]).tolist()
        found[first:last] = x[rows[first:last]]
        let_go(x)
        if last == len(rows):
            break
    return found


def drop_constant_columns(
    x: Float64[np.ndarray, "n d"], *, name: str = "x", columns: Sequence[str] = ()
) -> tuple[Float64[np.ndarray, "n kept"], tuple[str, ...]]:
    """The columns of `x` that vary, and their names; a DataWarning names the others.

    Raises:
        DataError: no column varies, so that all rows are identical.

    >>> table = np.array([[1.0, 2.0], [1.0, 3.0]])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # a DataWarning names the column
    ...     kept, names = tasks.drop_constant_columns(table, columns=("a", "b"))
    ...
    >>> kept.shape, names
    ((2, 1), ('b',))
    """
    constant = constant_columns(x)
    if constant.all():
        raise DataError(f"{name}: all {len(x)} rows are identical, so there is nothing to learn. Pass varied rows.")
    if not constant.any():
        return x, tuple(columns)
    words = [repr(columns[c]) if columns else str(c + 1) for c in constant.nonzero()[0].tolist()]
    warnings.warn(f"{name}: dropped the constant {listing(words, 'column')}.", DataWarning, stacklevel=outside())
    kept = tuple(c for c, is_constant in zip(columns, constant, strict=True) if not is_constant) if columns else ()
    return np.ascontiguousarray(x[:, ~constant]), kept


def check_rows(num_rows: int, *, name: str = "x", what: str = "a rank needs", refuse: bool = False) -> None:
    """Warn (DataWarning), or raise DataError where asked to `refuse`, about fewer than 20 rows for `what` needs more.

    >>> try:
    ...     tasks.check_rows(12, refuse=True)
    ... except errors.DataError as error:
    ...     print(error)
    ...
    x: has 12 rows; a rank needs at least 20 to be told from noise. Add rows.
    """
    if num_rows >= LEAST_ROWS:
        return
    sentence = f"{name}: has {counted(num_rows, 'row')}; {what} at least {LEAST_ROWS} to be told from noise. Add rows."
    if refuse:
        raise DataError(sentence)
    warnings.warn(sentence, DataWarning, stacklevel=outside())


def check_same_length(num_x: int, num_y: int, *, name: str = "x, y") -> None:
    """Raise DataError unless there is one row of y for each row of x.

    >>> try:
    ...     tasks.check_same_length(20, 19)
    ... except errors.DataError as error:
    ...     print(type(error).__name__)
    ...
    DataError
    """
    if num_x != num_y:
        raise DataError(
            f"{name}: x has {counted(num_x, 'row')} and y has {num_y}. Pass one row of y for each row of x."
        )
