"""Units in a table itself: the same from a row below the header, brackets in names and a sheet; gaps are left open."""

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from isthmus.errors import DataError, DataWarning
from isthmus.tasks import Task, read_table
from isthmus.tasks.table_options import TableOptions
from isthmus.tasks.written_units import units_in_names

UNITS = {"speed": "m/s", "size": "m", "ratio": "-"}
ROWS = pd.DataFrame(np.random.default_rng(0).uniform(1, 2, (25, 3)), columns=list(UNITS))
ASKED = TableOptions(units=True)


def written(path: Path, units: dict[str, str] = UNITS, rows: pd.DataFrame = ROWS) -> Path:
    table = pd.concat([pd.DataFrame([units]), rows.astype(object)])
    table.to_excel(path, index=False) if path.suffix == ".xlsx" else table.to_csv(path, index=False)
    return path


def said(path: Path, **arguments: str) -> Task:
    with pytest.warns(DataWarning, match="holds the units of the columns"):
        return read_table(path, options=ASKED, **arguments)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("name", ["d.csv", "d.csv.gz", "d.xlsx"])
def test_a_row_below_the_header_holds_the_units(tmp_path: Path, name: str) -> None:
    if name.endswith("xlsx") and importlib.util.find_spec("openpyxl") is None:
        pytest.skip("openpyxl is not installed")
    task = said(written(tmp_path / name), target="ratio")
    assert task.units is not None
    assert task.units.texts == {"speed": "m/s", "size": "m", "ratio": "1"}
    assert task.units.where.startswith(f"{tmp_path / name}, ")
    assert "2" in task.units.where.rpartition(", ")[2]
    np.testing.assert_allclose(task.x, ROWS[["speed", "size"]], rtol=1e-14)  # sheets keep 16 digits


def test_units_are_kept_only_where_they_were_asked_for(tmp_path: Path) -> None:
    with pytest.warns(DataWarning, match="units perhaps, and is left out"):
        assert read_table(written(tmp_path / "d.csv")).units is None


def test_brackets_behind_names_hold_units_and_stay_in_the_names(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    ROWS.set_axis(["v [m/s]", "p (kg/(m s^2))", "f(x)"], axis=1).to_csv(path, index=False)
    task = read_table(path, options=ASKED)
    assert task.x_names == ("v [m/s]", "p (kg/(m s^2))", "f(x)")
    assert task.units is not None
    assert task.units.texts == {"v [m/s]": "m/s", "p (kg/(m s^2))": "kg/(m s^2)"}


def test_units_are_of_the_columns_that_are_used(tmp_path: Path) -> None:
    rows = ROWS.assign(fluid=["air", "oil", "water", "air", "oil"] * 5, note=range(25))
    path = written(tmp_path / "d.csv", UNITS | {"fluid": "", "note": "degC", "size": ""}, rows)
    with pytest.warns(DataWarning, match="holds the units of the columns|became one 0/1 column"):
        task = read_table(path, target="ratio", options=TableOptions(units=True, leave_out=("note",)))
    assert task.units is not None
    assert dict(task.units.texts) == {
        "speed": "m/s", "fluid=air": "1", "fluid=oil": "1", "fluid=water": "1", "ratio": "1",
    }  # fmt: skip


def test_a_table_without_units_is_refused_where_they_are_asked_for(tmp_path: Path) -> None:
    ROWS.to_csv(tmp_path / "d.csv", index=False)
    with pytest.raises(DataError, match=r"d.csv: has no units, neither .* Write them there, or give a file"):
        read_table(tmp_path / "d.csv", options=ASKED)
    np.save(tmp_path / "d.npy", ROWS.to_numpy())
    with pytest.raises(DataError, match="has no units"):
        read_table(tmp_path / "d.npy", options=ASKED)


@pytest.mark.parametrize("name", ["f(x)", "[m]", "(m)", "a [m] b", "a []", "plain"])
def test_other_brackets_are_no_units(name: str) -> None:
    assert units_in_names([name, "b [m]"], "here").texts == {"b [m]": "m"}
