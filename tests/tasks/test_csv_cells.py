"""No cell of text in a table of ours is a formula to a spreadsheet, and our own reader gives the text back."""

import csv
import io
import re
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discoveries
import isthmus
from isthmus.cli.main import run
from isthmus.cli.sweep_folder import write_table
from isthmus.sweeps.index import Index, Row, Status
from isthmus.sweeps.store import Store
from isthmus.tasks import read_table
from isthmus.tasks.csv_cells import as_written, csv_text, guarded, unguarded

SIGNS = ("=", "+", "-", "@", "\t", "\r")
FORMULAS = ("=cmd|'/C calc'!A0", "+1+1", "-2+3", "@SUM(1)", '=HYPERLINK("http://h";"x")', "'=1", "--1")
NAMES = tuple(f"{formula} {number}" for number, formula in enumerate(FORMULAS))
texts = st.text(st.sampled_from("'=+-@\t\r\n1.e５ab ＝"), max_size=6)  # noqa: RUF001


@pytest.mark.slow
@given(cell=texts)
def test_what_goes_out_is_no_formula_and_comes_back(cell: str) -> None:
    out = guarded(cell)
    assert isinstance(out, str)
    assert unguarded(out) == cell
    if out.startswith(SIGNS):
        assert out == cell
        float(out)  # a number, which a spreadsheet may take as one


def test_numbers_stay_numbers() -> None:
    table = pd.DataFrame({"a": [-1.5, float("-inf")], "b": ["-3", "+4e5"], "-7": [True, False], "c": [None, "-x"]})
    assert csv_text(table) == "a,b,-7,c\n-1.5,-3,True,\n-inf,+4e5,False,'-x\n"


@pytest.mark.parametrize("name", FORMULAS)
def test_headings_and_cells_come_back_from_a_file(name: str, tmp_path: Path) -> None:
    table = pd.DataFrame({name: [1.0, -2.0, 3.5, 0.25], "plain": [2.0, 1, 0, 5], "label": [name, "b", name, "b"]})
    (tmp_path / "t.csv").write_text(csv_text(table), newline="")
    cells = [cell for row in csv.reader(io.StringIO((tmp_path / "t.csv").read_text())) for cell in row]
    assert [cell for cell in cells if cell.startswith(("=", "+", "@", "-")) and cell != "-2.0"] == []
    task = read_table(tmp_path / "t.csv", classes="label")
    assert task.x_names == (name, "plain")
    assert task.y_names == tuple(sorted([name, "b"]))


def test_apply_and_what_reads_it_know_the_same_names(tmp_path: Path) -> None:
    inputs, names = discoveries.inputs(), NAMES[: discoveries.inputs().shape[1]]
    (tmp_path / "t.csv").write_text(csv_text(pd.DataFrame(inputs, columns=list(names))), newline="")
    targets = tuple(NAMES[: len(discoveries.TARGETS)])
    discoveries.discovery(input_names=names, target_names=targets).save(tmp_path / "run")
    command = ["apply", str(tmp_path / "run"), str(tmp_path / "t.csv"), "--what", "prediction"]
    assert run([*command, "--out", str(tmp_path / "p.csv")]) == 0
    head = (tmp_path / "p.csv").read_text().splitlines()[0]
    assert [cell for cell in next(csv.reader([head])) if cell.startswith(SIGNS)] == []
    assert read_table(tmp_path / "p.csv").x_names == targets


def test_the_table_of_a_sweep(tmp_path: Path) -> None:
    store = Store.make(tmp_path / "s")
    index = Index(tmp_path / "s" / "index.sqlite")
    settings = [{"task": {"target": value}, "training": {"ridge": -1.0 * i}} for i, value in enumerate(FORMULAS)]
    index.put(Row(f"{i:020x}", Status.FAILED, setting, error=f"x\n{FORMULAS[i]}") for i, setting in enumerate(settings))
    index.close()
    assert write_table(store.folder, tmp_path / "t.csv") == 0
    table = pd.read_csv(tmp_path / "t.csv")
    assert [cell for cell in [*table["task.target"], *table["error"]] if cell.startswith(SIGNS)] == []
    back = as_written(table)
    ridges = dict(zip(back["task.target"], table["training.ridge"], strict=True))
    assert ridges == {target: -1.0 * i for i, target in enumerate(FORMULAS)}
    assert set(back["error"]) == set(FORMULAS)


def test_every_table_of_commas_is_written_there() -> None:
    """Another writer anywhere else would be a door beside this one."""
    root = Path(isthmus.__file__).parent
    writes = re.compile(r"\.(to_csv|writerows?|savetxt)\(")
    lines = {path: path.read_text().splitlines() for path in root.rglob("*.py")}
    code = {
        path: "\n".join(line for line in text if not line.lstrip().startswith(">>> ")) for path, text in lines.items()
    }
    found = {path.relative_to(root).as_posix() for path, text in code.items() if writes.search(text)}
    assert found == {"tasks/csv_cells.py"}


def test_a_carriage_return_alone_begins_no_row() -> None:
    table = pd.DataFrame({"two\rlines": [1.0, 2.0], "b": ["x\ry", "z"]})
    rows = list(csv.reader(io.StringIO(csv_text(table), newline="")))
    assert rows == [["two\rlines", "b"], ["1.0", "x\ry"], ["2.0", "z"]]
    assert csv_text(table.rename(columns={"two\rlines": "a"}).iloc[1:]) == "a,b\n2.0,z\n"
