"""Columns of a table as numbers: choosing them, text into 0/1 columns, classes. Reading the file: `files`."""

import difflib
import warnings
from collections.abc import Sequence
from typing import cast

import numpy as np
import pandas as pd
from jaxtyping import Float64

from isthmus.errors import DataError, DataWarning
from isthmus.tasks.arrays import as_samples, listing

MOST_CATEGORIES = 50


def check_present(columns: Sequence[str], wanted: Sequence[str], where: str) -> None:
    """Raise a DataError that lists the columns, nearest first, when one that is wanted is missing."""
    for name in wanted:
        if name not in columns:
            near = difflib.get_close_matches(name, columns, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise DataError(f"{where}: has no column {name!r}.{hint} It has {listing(columns, 'column', shown=20)}.")


def input_columns(table: pd.DataFrame, where: str) -> tuple[Float64[np.ndarray, "n d"], tuple[str, ...]]:
    """All columns as numbers, with their names; a DataWarning says which text became one 0/1 column per value."""
    parts: list[pd.DataFrame] = []
    encoded: list[str] = []
    for column in _series(table):
        numbers = _as_numbers(column, where)
        if numbers is None:
            parts.append(_one_hot_text(column, where))
            encoded.append(f"{column.name!r} ({parts[-1].shape[1]} values)")
        else:
            parts.append(numbers.to_frame())
    if encoded:
        warnings.warn(
            f"{where}: text in {listing(encoded, 'column', shown=10)} became one 0/1 column per value.",
            DataWarning,
            stacklevel=3,
        )
    whole = pd.concat(parts, axis=1)
    return as_samples(whole, where), tuple(str(c) for c in whole.columns)


def target_columns(table: pd.DataFrame, where: str) -> tuple[Float64[np.ndarray, "n d"], tuple[str, ...]]:
    """Columns that are predicted as numbers, with their names."""
    parts: list[pd.Series] = []
    for column in _series(table):
        numbers = _as_numbers(column, where)
        if numbers is None:
            raise DataError(
                f"{where}: target column {column.name!r} holds text. To predict classes name it as classes."
            )
        parts.append(numbers)
    return as_samples(pd.concat(parts, axis=1), where), tuple(str(c) for c in table.columns)


def class_columns(labels: pd.Series, where: str) -> tuple[Float64[np.ndarray, "n classes"], tuple[str, ...]]:
    """One 0/1 column per class in sorted order, and the names of the classes."""
    _check_complete(labels, where)
    classes, index = np.unique(labels.to_numpy(), return_inverse=True)
    if len(classes) > max(2, len(labels) // 2):
        raise DataError(
            f"{where}: class column {labels.name!r} has {len(classes)} different values in {len(labels)} rows. "
            "For numbers use target instead of classes."
        )
    return np.eye(len(classes))[index.reshape(-1)], tuple(str(c) for c in classes)


def group_labels(labels: pd.Series, where: str) -> np.ndarray:
    """A number per row, equal where the labels, numbers or text, are equal."""
    _check_complete(labels, where)
    return np.unique(labels.astype(str).to_numpy(dtype=str), return_inverse=True)[1].reshape(-1)


def _series(table: pd.DataFrame) -> list[pd.Series]:
    return [cast(pd.Series, table.iloc[:, place]) for place in range(table.shape[1])]


def _as_numbers(column: pd.Series, where: str) -> pd.Series | None:
    """The column as float64 with NaN where missing; None when it is text."""
    if column.dtype.kind == "c":
        raise DataError(
            f"{where}: column {column.name!r} holds complex numbers. Store real and imaginary parts as two columns."
        )
    if pd.api.types.is_numeric_dtype(column):
        return pd.Series(column.to_numpy(dtype=np.float64, na_value=np.nan), name=column.name)
    if column.dtype.kind in "mM":
        raise DataError(f"{where}: column {column.name!r} holds {column.dtype}. Turn it into numbers or remove it.")
    numbers = pd.Series(np.asarray(pd.to_numeric(column, errors="coerce"), dtype=np.float64), name=column.name)
    is_text = (numbers.isna() & column.notna().to_numpy()).to_numpy()
    if not is_text.any():
        return numbers
    if 2 * is_text.sum() >= column.notna().sum():
        return None
    rows = is_text.nonzero()[0]
    first = str(column.iloc[int(rows[0])])[:40]
    raise DataError(
        f"{where}: column {column.name!r} holds text in {listing((rows + 1).tolist(), 'row')} ({first!r}), numbers "
        "elsewhere. Correct or remove these rows."
    )


def _one_hot_text(column: pd.Series, where: str) -> pd.DataFrame:
    _check_complete(column, where)
    values = column.astype(str)
    categories = sorted(set(values))
    if len(categories) > min(MOST_CATEGORIES, max(2, len(values) // 2)):
        raise DataError(
            f"{where}: text column {column.name!r} has {len(categories)} different values in {len(values)} rows; "
            "remove it, or replace it by numbers."
        )
    return pd.DataFrame({f"{column.name}={c}": (values == c).to_numpy(dtype=np.float64) for c in categories})


def _check_complete(column: pd.Series, where: str) -> None:
    rows = column.isna().to_numpy().nonzero()[0]
    if len(rows):
        raise DataError(
            f"{where}: column {column.name!r} holds a missing value or NaN in {listing((rows + 1).tolist(), 'row')}. "
            "Fill in or remove these rows."
        )
