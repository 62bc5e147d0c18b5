"""Codes for missing cells among numbers: named with column, value and rows; ordinary tables hold none."""

import warnings

import numpy as np
import pandas as pd
import pytest

import isthmus
from isthmus.discovery.data.checking import checked_data, with_powers
from isthmus.errors import DataWarning
from isthmus.tasks.builtin import builtin
from isthmus.tasks.missing_codes import is_code, missing_codes, said_codes

X = np.random.default_rng(0).uniform([20, 1, 5], [80, 5, 9], size=(120, 3))
NAMES = ("T", "P", "pH")


def holding(*codes: float, place: int = 0, x: np.ndarray = X) -> np.ndarray:
    found = x.copy()
    found[10 : 10 + len(codes), place] = codes
    return found


@pytest.mark.parametrize("code", [-99, -999, 999, 9999, -9999.0, 99999, -999.25, 99.99, 8888, -32768, 1e30, 9.96921e36])
def test_usual_codes_far_outside_are_named_with_their_rows(code: float) -> None:
    told = said_codes(holding(code, code, place=1), NAMES)
    assert len(told) == 1
    assert told[0].startswith(f"Column 'P' holds {code:.10g} in rows 11, 12, far outside of its other values (1.0")
    single = holding(code, place=1).astype(np.float32).astype(np.float64)
    assert [found.place for found in missing_codes(single, NAMES)] == [1]


def test_what_is_near_the_other_values_or_no_usual_code_is_none() -> None:
    for code in (99, 120, -100, 1000, 10000, 0, -1, 9.9, 255):
        assert said_codes(holding(code), NAMES) == []
    assert said_codes(np.column_stack([X, np.linspace(90, 120, 120).round()]), (*NAMES, "n")) == []
    assert said_codes(np.where(np.arange(120) % 2, 999.0, 3.0)[:, None], ["two values"]) == []
    assert not is_code(88.0)
    assert not is_code(1000.0)


def test_several_codes_in_a_column_and_in_all_columns_of_one_kind_are_found() -> None:
    assert "holds -999 and 9999 in rows 11, 12, 13," in said_codes(holding(-999, 9999, -999), NAMES)[0]
    for place in range(3):
        x = holding(-999, place=place, x=holding(-999, -999, place=0))
        assert len(said_codes(x, ("s1", "s2", "s3"))) == (1 if place == 0 else 2)
    everywhere = X.copy()
    everywhere[5] = -999
    assert len(said_codes(everywhere, ("s1", "s2", "s3"))) == 3


def test_inputs_and_targets_are_looked_at_as_the_user_has_them() -> None:
    """Also where some rows have no weight, and where logarithms were taken."""
    x, y = holding(9999), holding(9999, 9999, place=1)[:, 1:2]
    weight = np.ones(120)
    weight[:4] = 0
    table = pd.DataFrame(x, columns=NAMES)
    for log in (None, "all", ["T", "y"]):
        data = with_powers(checked_data(table, pd.DataFrame({"y": y[:, 0]}), None, weight), log, None)
        told = [note for note in data.notes() if "a code for missing cells" in note]
        assert [note[:40] for note in told] == [
            "Column 'T' holds 9999 in row 11, far out",
            "Column 'y' holds 9999 in rows 11, 12, fa",
        ]
    labels = np.where(np.arange(120) % 2, 9999, 1)
    assert checked_data(X, labels, "cross_entropy").notes() == []


def test_discover_says_it_and_keeps_it() -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", DataWarning)
        found = isthmus.discover(
            pd.DataFrame(holding(-999), columns=NAMES), effort="quick", starts=1, ridge=1e-2,
            limits=isthmus.Limits(evaluations=30),
        )  # fmt: skip
    assert any("Column 'T' holds -999 in row 11" in str(one.message) for one in told)
    assert any("Column 'T' holds -999 in row 11" in one for one in found.warnings)


@pytest.mark.parametrize(
    "name",
    ["iris", "wine", "diabetes", "digits", "breast_cancer", "linnerud", "teacher", "friedman", "swiss_roll", "circle"],
)
def test_ordinary_tables_hold_none(name: str) -> None:
    task = builtin(name)
    tables = [task.x, *([task.y] if task.y is not None else [])]
    for table in tables:
        names = [f"x{i}" for i in range(table.shape[1])]
        assert said_codes(table, names) == said_codes(table, [f"{chr(97 + i)}" for i in range(table.shape[1])]) == []


def test_pixels_are_none() -> None:
    """One that is bright in a single picture lies far outside of what it is in the others."""
    rng = np.random.default_rng(0)
    specks = np.where(rng.random((300, 40)) < 0.01, 99.0, np.where(rng.random((300, 40)) < 0.1, 1.0, 0.0))
    pictures = np.hstack([specks, rng.integers(0, 256, size=(300, 60)).astype(float)])
    assert said_codes(pictures, [f"pixel {i}" for i in range(100)]) == []
