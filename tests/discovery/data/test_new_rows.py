"""New rows for a discovery: in its order by name, refused where `discover` would refuse them, never read as others."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr

import discoveries
import isthmus
from isthmus.discovery.data.checking import checked_data, groups_of_rows
from isthmus.errors import DataError, DataWarning, ShapeError

NAMES = list(discoveries.INPUTS)


@pytest.fixture(scope="module")
def found() -> isthmus.Discovery:
    return discoveries.discovery()


def doors(found: isthmus.Discovery) -> dict[str, Callable[[object], object]]:
    """Everything that takes new rows."""
    return {
        "transform": found.transform,
        "predict": found.predict,
        "inputs_of": found.inputs_of,
        "interpret": lambda x: isthmus.interpret(found, x),  # pyright: ignore[reportArgumentType] - also what is refused
    }


def frame(columns: list[str] = NAMES) -> pd.DataFrame:
    return pd.DataFrame(discoveries.inputs(), columns=columns)


@pytest.mark.parametrize("door", ["transform", "predict", "inputs_of", "interpret"])
def test_a_table_that_lacks_an_input_is_refused_by_name(found: isthmus.Discovery, door: str) -> None:
    take = doors(found)[door]
    other = frame([*NAMES[:-1], NAMES[-1].upper()])
    for x in (other, other[NAMES[:-1]], other[NAMES[-2::-1]], xr.Dataset({n: ("row", other[n]) for n in NAMES[:-1]})):
        with pytest.raises(DataError, match=f"lacks column '{NAMES[-1]}' of the 5 inputs of the run"):
            take(x)
    with pytest.raises(DataError, match="lacks columns 'probe 1', 'probe 2', 'probe 3', 'probe 4' of"):
        take(other[NAMES[:1]])
    with pytest.raises(DataError, match="both called 'probe 0'"):
        take(pd.concat([frame(), frame()[NAMES[:1]]], axis=1))


def test_columns_are_taken_by_name_wherever_all_are_there(found: isthmus.Discovery) -> None:
    expected = found.transform(discoveries.inputs())
    turned = frame()[NAMES[::-1]].assign(text="beside")
    np.testing.assert_array_equal(found.transform(turned), expected)
    np.testing.assert_array_equal(found.predict(turned), found.predict(discoveries.inputs()))
    assert np.abs(found.transform(frame()[NAMES[::-1]].to_numpy()) - expected).max() > 0.1  # the order matters


def test_a_table_without_any_of_the_names_is_taken_by_position_and_that_is_said(found: isthmus.Discovery) -> None:
    expected = found.transform(discoveries.inputs())
    with pytest.warns(DataWarning, match=r"by position, 'a' as 'probe 0' to 'e' as 'probe 4'\."):
        np.testing.assert_array_equal(found.transform(frame(list("abcde"))), expected)
    for unnamed in (pd.DataFrame(discoveries.inputs()), frame([f"x{i}" for i in range(5)]), discoveries.inputs()):
        np.testing.assert_array_equal(found.transform(unnamed), expected)  # nothing to say: a warning is an error here


REFUSED: dict[str, tuple[Callable[[np.ndarray], object], type[Exception], str]] = {
    "NaN": (lambda x: np.where(x == x[2, 1], np.nan, x), DataError, "column 2 holds a missing value or NaN in row 3"),
    "NaN by name": (lambda x: pd.DataFrame(np.where(x == x[2, 1], np.nan, x), columns=NAMES), DataError, "'probe 1'"),
    "infinity": (lambda x: np.where(x == x[2, 1], np.inf, x), DataError, "column 2 holds infinity in row 3"),
    "complex": (lambda x: x + 1j, DataError, "complex numbers"),
    "complex tensor": (lambda x: torch.from_numpy(x + 1j), DataError, "needs real numbers"),
    "text": (lambda x: x.astype(str), DataError, "not numbers"),
    "tensor on no device": (lambda x: torch.from_numpy(x).to("meta"), DataError, "tensor without data"),
    "no rows": (lambda x: x[:0], DataError, "is empty"),
    "one column fewer": (lambda x: x[:, 1:], ShapeError, r"needs the 5 input columns of the run, got 4\.$"),
    "one sample": (lambda x: x[0], ShapeError, r"got 1\. Pass x\[None\]"),
}


@pytest.mark.parametrize("door", ["transform", "predict", "inputs_of", "interpret"])
@pytest.mark.parametrize("what", REFUSED)
def test_what_discover_refuses_is_refused_of_new_rows(found: isthmus.Discovery, what: str, door: str) -> None:
    made, error, match = REFUSED[what]
    with pytest.raises(error, match=match):
        doors(found)[door](made(discoveries.inputs()))


def test_what_discover_takes_is_taken_of_new_rows(found: isthmus.Discovery) -> None:
    x = discoveries.inputs()
    expected = found.transform(x)
    for same in (torch.from_numpy(x).requires_grad_(), x.tolist(), np.asfortranarray(x), xr.DataArray(x)):
        np.testing.assert_array_equal(found.transform(same), expected)
    np.testing.assert_allclose(found.transform(torch.from_numpy(x).float()), expected, atol=1e-5)


def test_hidden_layers_hold_some_of_the_rows_at_a_time(
    found: isthmus.Discovery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a million rows all hidden layers at once took ten times their memory."""
    seen: list[int] = []
    x = np.repeat(discoveries.inputs(), 5, axis=0)
    whole = found.transform(x), found.predict(x)
    hooks = [
        h.register_forward_hook(lambda *args: seen.append(len(args[1][0]))) for h in (found.encoder, found.decoder)
    ]
    most = 7 * max(*found.encoder.dimensions, *found.decoder.dimensions)
    monkeypatch.setattr("isthmus.discovery.data.new_rows.NUMBERS_AT_ONCE", most)
    parts = found.transform(x), found.predict(x)
    for hook in hooks:
        hook.remove()
    np.testing.assert_allclose(parts[0], whole[0], rtol=1e-12)
    np.testing.assert_allclose(parts[1], whole[1], rtol=1e-12)
    assert 0 < max(seen) * max(found.encoder.dimensions) <= most
    assert sum(seen) == 3 * len(x)


def test_what_is_no_array_of_rows_is_called_what_it_is() -> None:
    x = discoveries.inputs()
    assert checked_data(x, pd.Series(x[:, 0], name="u"), None).target_names == ("u",)
    assert checked_data(x, pd.Series(x[:, 0]), None).target_names == ("y0",)
    for path in ("base.csv", Path("base.csv")):
        with pytest.raises(DataError, match=r"'base.csv'. Read it with isthmus.tasks.read_table"):
            checked_data(path, None, None)


def test_coordinates_that_are_decoded_are_checked_as_rows_are(found: isthmus.Discovery) -> None:
    coordinates = found.transform(discoveries.inputs())
    np.testing.assert_array_equal(found.decode(coordinates), found.predict(discoveries.inputs()))
    with pytest.raises(ShapeError, match="coordinates: needs the 3 columns of the run, got 2"):
        found.decode(coordinates[:, 1:])
    with pytest.raises(DataError, match="coordinates: .* missing value or NaN in rows 1, 2"):
        found.decode(np.full((2, 3), np.nan))


@pytest.mark.parametrize("kind", ["array", "list", "series", "categorical", "objects"])
def test_text_to_predict_is_told_how_classes_are_asked_for(kind: str) -> None:
    """To encode it as numbers, as was advised, would have made a regression of it."""
    x, y = np.random.default_rng(0).normal(size=(30, 3)), np.array(["p", "q", "r"] * 10)
    of = {
        "array": y, "list": y.tolist(), "series": pd.Series(y), "categorical": pd.Categorical(y),
        "objects": y.astype(object),
    }  # fmt: skip
    with pytest.raises(DataError, match=r"^y: .*not numbers.* To predict classes pass loss='cross_entropy'\.$"):
        checked_data(x, of[kind], None)
    assert checked_data(x, of[kind], "cross_entropy").target_names == ("p", "q", "r")


def test_rows_without_a_group_are_named() -> None:
    with pytest.raises(DataError, match=r"groups=\.\.\.\): has no label in row 3\."):
        groups_of_rows([1.0, 2.0, np.nan, 2.0], None)
    with pytest.raises(DataError, match="has no label in rows 1, 2"):
        groups_of_rows(np.array([None, None, "a"], dtype=object), [1.0, 1.0, 1.0])


def test_other_columns_are_said_before_what_stands_in_them(found: isthmus.Discovery) -> None:
    with pytest.raises(ShapeError, match="needs the 5 input columns of the run, got 4"):
        found.predict(np.full((6, 4), np.nan))
    with pytest.raises(DataError, match="columns 1, 2, 3, 4, 5 hold a missing value or NaN"):
        found.predict(np.full((6, 5), np.nan))


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT], ids=["none", "nan", "na", "nat"])
def test_a_column_without_a_name_is_called_as_in_a_file_of_the_same_table(tmp_path: Path, missing: object) -> None:
    """It had been called nan, and the file of the same table was said to lack it."""
    table = pd.DataFrame(discoveries.inputs()[:, :3], columns=pd.Index(["a", missing, "c"], dtype=object))
    checked = checked_data(table, table.iloc[:, [1, 2]], None)
    table.to_csv(tmp_path / "table.csv", index=False)
    assert checked.input_names == isthmus.tasks.read_table(tmp_path / "table.csv").x_names == ("a", "Unnamed: 1", "c")
    assert checked.target_names == ("Unnamed: 0", "c")
    found = discoveries.replace(discoveries.discovery(), input_names=("a", "Unnamed: 1", "c", "d", "e"))
    rows = pd.DataFrame(discoveries.inputs(), columns=pd.Index(["a", missing, "c", "d", "e"], dtype=object))
    np.testing.assert_array_equal(found.in_order(rows), discoveries.inputs())  # by name, without a word
    with pytest.raises(DataError, match="column 'Unnamed: 1' holds a missing value"):
        found.in_order(rows.replace(rows.iloc[0, 1], np.nan))
    candidates = rows.iloc[:, [1]]
    assert isthmus.interpret(found, rows, candidates=candidates)["candidate"].values.tolist() == ["Unnamed: 0"]
