"""Data of other libraries become the same numbers, or a sentence."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
import xarray as xr
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

import isthmus
from isthmus.errors import DataError, DataWarning
from isthmus.tasks.arrays import as_samples
from isthmus.tasks.foreign import check_row_labels, in_memory

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((30, 3)), RNG.standard_normal((30, 2))
TENSORS = torch.from_numpy(X), torch.from_numpy(Y)


class Rows(Dataset[torch.Tensor]):
    """Rows alone."""

    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, index: int) -> torch.Tensor:
        return TENSORS[0][index]


class Stream(IterableDataset[tuple[np.ndarray, np.ndarray]]):
    """Pairs, one after the other, without a length."""

    def __iter__(self):  # noqa: ANN204
        return iter(zip(X, Y, strict=True))


PAIRS: dict[str, Callable[[], object]] = {
    "Dataset": lambda: TensorDataset(*TENSORS),
    "DataLoader": lambda: DataLoader(TensorDataset(*TENSORS), batch_size=7),
    "IterableDataset": Stream,
}
ROWS: dict[str, Callable[[], object]] = {
    "sparse": lambda: scipy.sparse.csr_array(X),
    "sparse matrix": lambda: scipy.sparse.coo_matrix(X),
    "DataArray": lambda: xr.DataArray(X),
    "Dataset": lambda: xr.Dataset({name: ("t", X[:, i]) for i, name in enumerate("abc")}),
    "Dataset, turned": lambda: xr.Dataset({"a": ("t", X[:, 0]), "b": (("k", "t"), X[:, 1:].T)}),
    "rows of torch": Rows,
    "loader of rows": lambda: DataLoader(Rows(), batch_size=11),
    "array": lambda: X,
}


@pytest.mark.parametrize("make", ROWS.values(), ids=list(ROWS))
def test_rows(make: Callable[[], object]) -> None:
    found, targets = in_memory(make())
    np.testing.assert_array_equal(as_samples(found), X)
    assert targets is None


TYPES = [
    dtype for name in sorted(dir(torch))
    if isinstance(dtype := getattr(torch, name), torch.dtype) and name.startswith(("float", "bfloat", "int", "uint"))
]  # fmt: skip


def of_type(dtype: torch.dtype) -> torch.Tensor | None:
    """Rows of 1 and 2 in a type of torch; None where torch itself makes none of it."""
    try:
        return (1.0 + (TENSORS[0] > 0)).to(dtype)
    except (RuntimeError, NotImplementedError):
        return None


@pytest.mark.other_types
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_numbers_of_every_type_of_torch_are_taken_or_refused_in_words(dtype: torch.dtype) -> None:
    rows = of_type(dtype)
    if rows is None:
        return
    given: list[object] = [
        rows,
        TensorDataset(rows),
        DataLoader(TensorDataset(rows), batch_size=7),
        [*rows],
        tuple(rows),
    ]
    for one in given:
        try:
            found = as_samples(in_memory(one)[0])
        except DataError as error:
            assert str(dtype) in str(error)  # noqa: PT017 - some types have no numbers that numpy knows
            assert not dtype.is_floating_point
        else:
            np.testing.assert_array_equal(found, 1 + (X > 0))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float8_e4m3fn])
def test_modules_are_given_samples_of_short_numbers(dtype: torch.dtype) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    rows = TENSORS[0].to(dtype)
    for given in (TensorDataset(rows), DataLoader(TensorDataset(rows), batch_size=7), rows):
        assert isthmus.compress(module, given, tolerance=0.3, allow_slower=True).relative_error <= 0.3
        assert isthmus.factorise(module, given, 1).rank == 1


@pytest.mark.parametrize("make", PAIRS.values(), ids=list(PAIRS))
def test_pairs_bring_their_targets(make: Callable[[], object]) -> None:
    found, targets = in_memory(make())
    np.testing.assert_array_equal(found, X)
    np.testing.assert_array_equal(np.asarray(targets), Y)
    with pytest.raises(DataError, match="brings its own targets"):
        in_memory(make(), Y)


def test_polars() -> None:
    polars = pytest.importorskip("polars", reason="polars is no dependency")
    frame = polars.DataFrame({"a": X[:, 0], "n": [1, None, *range(28)], "on": [True] * 30})
    for given in (frame, frame.lazy()):
        found, targets = in_memory(given, frame["a"])
        assert isinstance(found, pd.DataFrame)
        assert list(found.columns) == ["a", "n", "on"]
        np.testing.assert_array_equal(found["a"], X[:, 0])
        np.testing.assert_array_equal(np.asarray(targets), X[:, 0])
        with pytest.raises(DataError, match="column 'n' holds a missing value or NaN in row 2"):
            as_samples(found)


@pytest.mark.parametrize("kind", ["DataArray", "Dataset"])
def test_rows_of_xarray_are_paired_by_their_coordinates_or_refused(kind: str) -> None:
    """Shuffled targets were paired by position, so that nothing was predicted, without a word."""
    case = np.array([f"run {i}" for i in range(30)])
    order = RNG.permutation(30)
    x = xr.DataArray(X, dims=("case", "p"), coords={"case": case})
    y = xr.DataArray(Y, dims=("case", "q"), coords={"case": case})
    if kind == "Dataset":
        y = y.to_dataset(name="y")
    check_row_labels(x, {"y": y})
    with pytest.raises(DataError, match=r"y: has the row labels \(index\) of x in another order"):
        check_row_labels(x, {"y": y.isel(case=order)})
    with pytest.raises(DataError, match="in another order"):
        check_row_labels(pd.DataFrame(X, index=case), {"y": y.isel(case=order)})
    check_row_labels(x.drop_vars("case"), {"y": y.isel(case=order)})  # of what has no labels nothing is known


def test_columns_of_xarray_have_the_names_of_their_coordinates() -> None:
    x = xr.DataArray(X, dims=("t", "p"), coords={"p": ["u", "v", "w"]})
    found: Any = in_memory(x)[0]
    assert list(found.columns) == ["u", "v", "w"]
    number: Any = in_memory(x.assign_coords(p=[0.5, 1.0, 2.0]))[0]
    assert list(number.columns) == ["p=0.5", "p=1.0", "p=2.0"]
    fit: dict[str, Any] = {"ridge": 1e-2, "starts": 1, "effort": "quick", "limits": isthmus.Limits(evaluations=5)}
    run = isthmus.discover(x, Y, **fit)
    assert run.input_names == ("u", "v", "w")
    np.testing.assert_array_equal(run.transform(x.isel(p=[2, 0, 1])), run.transform(x))
    with pytest.raises(DataError):
        run.transform(x.assign_coords(p=["u", "v", "z"]))


@pytest.mark.filterwarnings("ignore:.*was flattened to:isthmus.errors.DataWarning")
@pytest.mark.parametrize("labels", ["none", "ascending"])
@pytest.mark.parametrize("as_dataset", [False, True])
def test_fields_of_xarray_are_known_again_whichever_way_they_lie(labels: str, *, as_dataset: bool) -> None:
    """A field with its axes swapped, or from north to south, has as many columns: all of them were mistaken."""
    y, x = np.linspace(0, 1, 4), np.linspace(0, 2, 5)
    coords = {"y": y, "x": x} if labels == "ascending" else {}
    waves = np.sin(y)[:, None] * RNG.normal(size=(40, 1, 1)) + np.cos(x) * RNG.normal(size=(40, 1, 1))
    field = xr.DataArray(waves, dims=("t", "y", "x"), coords=coords, name="u")
    fit: dict[str, Any] = {"ridge": 1e-2, "starts": 1, "effort": "quick", "limits": isthmus.Limits(evaluations=5)}

    def given(one: xr.DataArray) -> xr.DataArray | xr.Dataset:
        return one.to_dataset() if as_dataset else one

    run = isthmus.discover(given(field), **fit)
    assert len(run.input_names) == 20
    assert run.input_names[1] == {
        (False, "none"): "x=1 y=0", (False, "ascending"): "x=0.5 y=0.0",
        (True, "none"): "u[x=1 y=0]", (True, "ascending"): "u[x=0.5 y=0.0]",
    }[as_dataset, labels]  # fmt: skip
    expected = run.transform(given(field))
    np.testing.assert_array_equal(run.transform(given(field.transpose("t", "x", "y"))), expected)
    if coords:
        np.testing.assert_array_equal(run.transform(given(field.isel(y=slice(None, None, -1)))), expected)
    np.testing.assert_array_equal(run.transform(field.values), expected)


def test_more_dimensions_are_flattened_aloud() -> None:
    with pytest.warns(DataWarning, match=r"y: of shape \(30, 2, 1\) was flattened to 30 rows of 2 columns"):
        flat: Any = in_memory(X, Y.reshape(30, 2, 1))[1]
    assert flat.shape == (30, 2)
    with pytest.warns(DataWarning, match=r"x: of shape \(30, 3, 1\) was flattened to 30 rows of 3 columns"):
        found, _ = in_memory(X.reshape(30, 3, 1))
    np.testing.assert_array_equal(np.asarray(found), X)


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "no variables": (xr.Dataset, "without variables"),
    "another dimension": (lambda: xr.Dataset({"a": ("t", X[:, 0]), "b": ("u", X[:, 1])}), "'b' lacks the dimension"),
    "three parts": (lambda: TensorDataset(*TENSORS, TENSORS[0]), "samples have 3 parts"),
    "no samples": (lambda: TensorDataset(torch.zeros(0, 2)), "has no samples"),
    "texts": (lambda: DataLoader([["a", "b"]], batch_size=None), "a sample holds str"),  # pyright: ignore[reportArgumentType]
}  # fmt: skip


@pytest.mark.parametrize(("make", "says"), REFUSED.values(), ids=list(REFUSED))
def test_what_is_no_table(make: Callable[[], object], says: str) -> None:
    with pytest.raises(DataError, match=says):
        in_memory(make())


def test_a_sparse_matrix_that_has_no_place_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISTHMUS_MEMORY", "1M")
    with pytest.raises(DataError, match="x, a sparse matrix as rows: needs"):
        in_memory(scipy.sparse.csr_array((10**6, 10**3)))


@pytest.mark.slow
def test_discover_takes_them_and_finds_the_same() -> None:
    def found(x: object, y: object = None) -> isthmus.Discovery:
        return isthmus.discover(x, y, ridge=3e-3, starts=1, effort="quick", limits=isthmus.Limits(evaluations=20))

    plain = found(X, Y)
    for given in (DataLoader(TensorDataset(*TENSORS), batch_size=7), TensorDataset(*TENSORS)):
        np.testing.assert_array_equal(found(given).scree["heldout_error"], plain.scree["heldout_error"])
    table = xr.Dataset({name: ("t", X[:, i]) for i, name in enumerate("abc")})
    named = found(table, scipy.sparse.csr_array(Y))
    assert named.input_names == ("a", "b", "c")
    np.testing.assert_array_equal(named.transform(table), plain.transform(scipy.sparse.csr_array(X)))


class Lazy:
    """As a frame of dask: how many rows there are is not known before they are computed."""

    shape = (object(), 3)


@pytest.mark.parametrize(
    "make", [Lazy, lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])], ids=["frame", "nested"]
)
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_what_does_not_know_its_rows_is_refused_in_words(make: Callable[[], object]) -> None:
    with pytest.raises(DataError, match="does not say how many rows it has. Compute it"):
        in_memory(make())
