"""Whatever is in memory becomes float64 rows, or one line says why not."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
import xarray

from isthmus.errors import DataError, DataWarning
from isthmus.tasks import as_samples, check_rows, constant_columns, drop_constant_columns
from isthmus.tasks.arrays import NUMBERS_AT_ONCE, in_parts

X = np.arange(12.0).reshape(4, 3)


def read_only(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x.flags.writeable = False
    return x


RIGHT_ANSWER: list[tuple[str, Callable[[], Any]]] = [
    ("float64", lambda: X),
    ("float16", lambda: X.astype(np.float16)),
    ("long double", lambda: X.astype(np.longdouble)),
    ("int32", lambda: X.astype(np.int32)),
    ("uint8", lambda: X.astype(np.uint8)),
    ("big endian", lambda: X.astype(">f4")),
    ("list of lists", lambda: X.tolist()),
    ("columns first", lambda: np.asfortranarray(X)),
    ("every second row", lambda: np.repeat(X, 2, axis=0)[::2]),
    ("backwards", lambda: X[::-1].copy()[::-1]),
    ("read-only", lambda: read_only(X)),
    ("images", lambda: X.reshape(4, 3, 1)),
    ("object array of numbers", lambda: X.astype(object)),
    ("matrix with nothing masked", lambda: np.ma.masked_invalid(X)),
    ("data frame", lambda: pd.DataFrame(X)),
    ("data frame of several types", lambda: pd.DataFrame(X).astype({0: "int8", 1: "Int64", 2: "float32"})),
    ("xarray", lambda: xarray.DataArray(X, dims=("n", "d"))),
    ("tensor", lambda: torch.from_numpy(X)),
    ("tensor with gradient", lambda: torch.tensor(X, requires_grad=True)),
    ("transposed tensor", lambda: torch.from_numpy(X.T.copy()).T),
    ("negated tensor", lambda: torch.view_as_complex(torch.from_numpy(np.stack([0 * X, -X], -1))).conj().imag),
    ("bfloat16 tensor", lambda: torch.from_numpy(X).bfloat16()),
    ("half tensor", lambda: torch.from_numpy(X).half()),
]

ERROR_LINE: list[tuple[str, Callable[[], Any], str]] = [
    ("NaN", lambda: np.where(X == 4, np.nan, X), "column 2 holds a missing value or NaN in row 2"),
    ("NaN in many rows", lambda: np.full((9, 1), np.nan), "rows 1, 2, 3, 4, 5 and 4 more"),
    ("infinity", lambda: torch.tensor([[1.0], [float("inf")]]), "column 1 holds infinity in row 2"),
    ("huge", lambda: [[1.0], [1e300]], "1e.300 in row 2"),
    ("long double beyond float64", lambda: np.array([1, 10]).astype(np.longdouble) ** 4000, "infinity in row 2"),
    ("missing in a data frame", lambda: pd.DataFrame({"u": [1.0, None]}), "column 'u' holds a missing value"),
    ("missing in nullable integers", lambda: pd.Series([1, None], dtype="Int64", name="u"), "missing value"),
    ("None among objects", lambda: np.array([[1.0, None]], dtype=object), "column 2 holds a missing value"),
    ("masked", lambda: np.ma.masked_equal(X, 4.0), "column 2 holds a missing value or NaN in row 2"),
    ("text", lambda: np.array([["a"]]), "not numbers"),
    ("text among objects", lambda: [[1.0, object()]], "holds object"),
    ("text in a data frame", lambda: pd.DataFrame({"s": ["a", "b"]}), "column 's' holds str"),
    ("dates", lambda: np.array(["2020"], dtype="M8[D]"), "not numbers"),
    ("complex", lambda: X + 1j, "complex"),
    ("complex tensor", lambda: torch.ones(2, dtype=torch.complex64), "complex"),
    ("complex series", lambda: pd.Series([1j]), "complex"),
    ("sparse", lambda: scipy.sparse.csr_array(X), r"x.toarray\(\)"),
    ("ragged", lambda: [[1.0], [1.0, 2.0]], "differ in length"),
    ("a number", lambda: 3.0, "single value"),
    ("no rows", lambda: np.ones((0, 2)), "is empty"),
    ("no columns", lambda: np.ones((2, 0)), "is empty"),
    ("None", lambda: None, "single value|NoneType"),
]


@pytest.mark.parametrize(("name", "make"), RIGHT_ANSWER, ids=[case[0] for case in RIGHT_ANSWER])
def test_taken_as_rows(name: str, make: Callable[[], Any]) -> None:
    samples = as_samples(make())
    np.testing.assert_array_equal(samples, X)
    assert samples.dtype == np.float64
    assert samples.flags.c_contiguous
    assert samples.flags.writeable


@pytest.mark.parametrize(("name", "make", "match"), ERROR_LINE, ids=[case[0] for case in ERROR_LINE])
def test_refused_in_one_line(name: str, make: Callable[[], Any], match: str) -> None:
    with pytest.raises(DataError, match=match) as caught:
        as_samples(make())
    assert str(caught.value).startswith("x: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("make", [np.array, pd.Series, torch.tensor, list])
def test_one_dimension_is_one_column(make: Callable[[list[float]], Any]) -> None:
    np.testing.assert_array_equal(as_samples(make([1.0, 2.0])), [[1.0], [2.0]])


def test_the_largest_accepted_number_survives_squaring() -> None:
    assert np.isfinite(np.square(as_samples(np.full((1000, 1), 1e140))).sum())


def test_constant_columns_are_found_and_dropped() -> None:
    x = np.array([[1.0, 5.0, 0.0], [2.0, 5.0, 0.0]])
    assert constant_columns(x).tolist() == [False, True, True]
    with pytest.warns(DataWarning, match="x: dropped the constant columns 'b', 'c'"):
        kept, names = drop_constant_columns(x, columns=("a", "b", "c"))
    assert (kept.tolist(), names) == ([[1.0], [2.0]], ("a",))


def test_varied_columns_are_left_alone_without_a_word() -> None:
    assert drop_constant_columns(X)[0] is X


def test_few_rows_warn_in_python_and_are_refused_on_request() -> None:
    check_rows(20, refuse=True)
    with pytest.warns(DataWarning, match="has 19 rows; a rank needs at least 20"):
        check_rows(19)
    with pytest.raises(DataError, match="has 19 rows"):
        check_rows(19, refuse=True)


def test_a_mapped_file_is_looked_at_without_being_copied_or_changed(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.random.default_rng(0).normal(size=(100_000, 50)))
    mapped = np.load(path, mmap_mode="r")
    tracemalloc.start()
    try:
        samples = as_samples(mapped)
        assert not constant_columns(samples).any()
        _, peak = tracemalloc.get_traced_memory()
        as_samples(mapped[1:])  # the control: of a part a copy is made
        _, of_copy = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < mapped.nbytes / 2 < mapped.nbytes < of_copy
    assert samples.flags.writeable
    samples[0, 0] = 7.0
    assert mapped[0, 0] != 7.0
    assert np.array_equal(samples[1:], mapped[1:])


def test_what_is_looked_at_in_parts_is_looked_at_whole() -> None:
    x = np.zeros((2 * NUMBERS_AT_ONCE // 5 + 3, 5))
    assert sum(len(part) for part in in_parts(x)) == len(x)
    x[-1, 3] = 1.0
    assert constant_columns(x).tolist() == [True, True, True, False, True]
    x[-1, 3] = np.nan
    with pytest.raises(DataError, match=f"column 4 holds a missing value or NaN in row {len(x)}"):
        as_samples(x)
