"""New rows far outside of what a run saw: said with column, rows and values; new rows of the same kind are not."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets

import discoveries
import isthmus
from isthmus.errors import DataError, DataWarning
from isthmus.tasks.seen_ranges import recorded_range, say_far_off
from isthmus.training import Limits

X = np.random.default_rng(0).uniform([20, 1, 5], [80, 5, 9], size=(120, 3))
NAMES = ("T", "P", "pH")


def said(rows: np.ndarray, seen: np.ndarray = X, names: tuple[str, ...] = NAMES, logged: tuple[bool, ...] = ()) -> str:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", DataWarning)
        say_far_off(rows, names, recorded_range(seen), logged=logged)
    return " ".join(str(one.message) for one in told)


def test_other_units_are_said_with_column_rows_and_values() -> None:
    assert said(X + [273.15, 0, 0]).startswith("new rows lie far outside of what the run saw: column 'T' (20.")
    told = said(X[:4] * [1, 1000, 1])
    assert "column 'P' (1.0" in told
    assert "in rows 1, 2, 3, 4. What is told of them is extrapolated" in told
    assert "column 'T' (20" in said(X[:1] - [100, 0, 0])
    assert "'pH' (5.0" in said(X[:4, [1, 2, 0]])  # columns that changed places
    assert said(X[:2] * [1, 1, 1]) == said(X[:2] + [50, 3, 3]) == ""  # beyond, and not by far


def test_a_column_that_stood_still_may_not_move() -> None:
    seen = np.column_stack([X[:, :2], np.full(120, 0.3)])
    assert "column 'pH' (0.3 in every row) is 0.4 in rows 1, 2" in said(np.where(seen == 0.3, 0.4, seen)[:2], seen)
    assert said(np.where(seen == 0.3, 0.1 + 0.2, seen), seen) == ""


def test_only_some_columns_are_listed_and_the_others_counted() -> None:
    names = ("a", "b", "c", "d", "e")
    seen = np.random.default_rng(0).random((30, 5))
    told = said(seen[:9] + 9, seen, names)
    assert told.count("column '") == 3
    assert "in rows 1, 2, 3, 4, 5 and 4 more; 2 more columns. What" in told
    assert "1 more column. What" in said(seen[:9] + [9, 9, 9, 9, 0], seen, names)


def test_parts_of_many_rows_are_counted_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isthmus.tasks.arrays.NUMBERS_AT_ONCE", 21)
    rows = X.copy()
    rows[[3, 50, 119], 0] = 1e3, 2e3, 1e3
    assert "is 2000 in rows 4, 51, 120." in said(rows)


def test_logarithms_are_compared_and_numbers_told() -> None:
    seen = np.log(np.column_stack([10 ** np.linspace(-3, 3, 40), np.arange(1.0, 41.0)]))
    rows = np.log(np.array([[1e-8, 3.0], [1e-12, 3.0]]))
    assert "column 'T' (0.001 to 1000) is 1e-12 in row 2." in said(rows, seen, ("T", "P"), (True, False))


@pytest.mark.parametrize("name", ["iris", "wine", "diabetes", "digits"])
def test_rows_of_the_same_table_are_nothing_new(name: str) -> None:
    """Of digits some pixels are dark in all pictures but few, and bright in another."""
    table: pd.DataFrame = getattr(datasets, f"load_{name}")(as_frame=True).data
    x = table.to_numpy(dtype=np.float64)
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(len(x))
        half = len(x) // 2
        for names in (tuple(table.columns), tuple(f"x{i}" for i in range(x.shape[1]))):
            assert said(x[order[half:]], x[order[:half]], names) == ""


def test_every_door_of_a_run_says_it_and_runs_without_a_record_do_not() -> None:
    before = discoveries.discovery()
    x = discoveries.inputs()
    found = discoveries.replace(before, settings={**before.settings, "input_ranges": recorded_range(x)})
    far = x + [0, 0, 99, 0, 0]
    for take in (found.transform, found.predict, found.inputs_of, lambda rows: isthmus.interpret(found, rows)):
        take(x)  # nothing to say: a warning is an error here
        with pytest.warns(DataWarning, match="column 'probe 2' .* in rows 1, 2, 3, 4, 5 and 55 more"):
            take(far)
    before.predict(far)


@pytest.mark.parametrize(
    "record", ["", {"low": [0.0]}, {"low": [0, 0], "high": [1, 1]}, {"low": [2] * 3, "high": [1] * 3}]
)
def test_a_damaged_record_is_refused(record: object) -> None:
    with pytest.raises(DataError, match="record of the ranges of inputs in this run is damaged"):
        say_far_off(X, NAMES, record)


@pytest.mark.filterwarnings("ignore:Logarithms were taken")
def test_a_search_keeps_the_ranges_of_all_its_rows_and_says_nothing_of_these() -> None:
    x = np.random.default_rng(0).lognormal(size=(60, 2))
    table = pd.DataFrame(x, columns=["a", "b"])
    found = isthmus.discover(
        table, x[:, :1] * x[:, 1:], log=["a", "b"], encoder="linear", effort="quick", starts=1,
        limits=Limits(evaluations=40),
    )  # fmt: skip
    np.testing.assert_allclose(found.settings["input_ranges"]["high"], np.log(x.max(axis=0)))  # pyright: ignore
    found.predict(table)
    with pytest.warns(DataWarning, match="column 'a' .* is 1e-09 in row 1"):
        found.predict(table.assign(a=[1e-9, *x[1:, 0]]))
