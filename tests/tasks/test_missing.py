from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from isthmus.errors import DataError, DataWarning
from isthmus.tasks import read_table
from isthmus.tasks.columns import ColumnError
from isthmus.tasks.files import columns_beside
from isthmus.tasks.files_alike import inputs_like
from isthmus.tasks.input_columns import columns_of, recorded
from isthmus.tasks.table_options import TableOptions

TABLE = "a,b,s,y\n1,2,u,1\n,3,v,2\n4,,u,3\n5,6,,4\n7,8,u,\n2,1,v,5\n"
DROP, IMPUTE = TableOptions(drop_missing=True), TableOptions(impute=True)
pytestmark = pytest.mark.filterwarnings("ignore:.*became one 0/1 column")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "d.csv").write_text(TABLE)
    return tmp_path / "d.csv"


def test_rows_that_lack_something_are_left_out_aloud(path: Path) -> None:
    with pytest.warns(
        DataWarning, match="left out rows 2, 3, 4, 5, in which cells are missing, of 6; column 'a' lacks 1"
    ):
        task = read_table(path, target="y", options=DROP)
    np.testing.assert_array_equal(task.x[:, :2], [[1, 2], [2, 1]])
    np.testing.assert_array_equal(task.target, [[1], [5]])


@pytest.mark.parametrize("kind", ["column", "array y", "file"])
def test_what_targets_lack_is_said_beside_the_column_that_lacks_most(kind: str, tmp_path: Path) -> None:
    """Of a target that lacked a cell the column that lacked as many had been named alone."""
    x, y = np.arange(60.0).reshape(30, 2), np.arange(30.0)
    x[3:5, 1], y[7] = np.nan, np.nan
    column = "b" if kind == "column" else "c2"
    if kind == "column":
        pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": y}).to_csv(tmp_path / "d.csv", index=False)
    elif kind == "file":
        np.savez(tmp_path / "d.npz", x=x)
    else:
        np.savez(tmp_path / "d.npz", x=x, y=y)
    np.save(tmp_path / "y.npy", y)
    path = tmp_path / ("d.csv" if kind == "column" else "d.npz")
    with pytest.warns(DataWarning, match=f"left out rows 4, 5, 8, .*; column '{column}' lacks 2, target 'y' lacks 1"):
        read_table(path, target="y.npy" if kind == "file" else "y", options=DROP)


def test_a_column_that_is_left_out_costs_no_rows(path: Path) -> None:
    with pytest.warns(DataWarning, match="left out rows 2, 5, in"):
        task = read_table(path, target="y", options=TableOptions(drop_missing=True, leave_out=("b", "s")))
    assert task.x_names == ("a",)
    assert task.x[:, 0].tolist() == [1, 4, 5, 2]
    with pytest.raises(DataError, match="no column 'nope'"):
        read_table(path, options=TableOptions(leave_out=("nope",)))


def test_inputs_are_filled_and_targets_are_not(path: Path) -> None:
    with pytest.warns(DataWarning, match=r"'a' \(1 cell\), 'b' \(1 cell\), 's' \(1 cell\) were filled"), \
         pytest.raises(DataError, match="'y' holds a missing value or NaN in row 5.*Row 5 is line 6"):  # fmt: skip
        read_table(path, target="y", options=IMPUTE)
    with pytest.warns(DataWarning, match="were filled"):
        task = read_table(path, options=TableOptions(impute=True, leave_out=("y",)))
    np.testing.assert_array_equal(task.x[:4, 0], [1, 4, 4, 5])  # the median of 1, 4, 5, 7, 2
    np.testing.assert_array_equal(task.x[3, 2:], [1, 0])  # u, the more frequent


def test_lines_are_told_rightly_after_rows_were_left_out(path: Path) -> None:
    path.write_text("a,b\n1,\n2,3\n,4\n5,inf\n6,7\n")
    with pytest.warns(DataWarning, match="left out rows 1, 3"), pytest.raises(DataError, match="is line 5 of the file"):
        read_table(path, options=DROP)


def test_nothing_is_left_of_rows_that_all_lack_something(path: Path) -> None:
    path.write_text("a,b\n1,\n2,\n")
    with pytest.raises(DataError, match="missing in each of the 2 rows; column 'b' lacks 2"):
        read_table(path, options=DROP)


RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(30, 3)), RNG.normal(size=(30, 2))
HOLES_X, HOLES_Y = X.copy(), Y.copy()
HOLES_X[[3, 29], [0, 2]], HOLES_Y[[5, 29], 1] = np.nan, np.nan
KEPT = [row for row in range(30) if row not in {3, 5, 29}]


def stored(folder: Path, extension: str) -> tuple[Path, tuple[str, ...]]:
    """Inputs and targets with missing cells, apart or in one file, and how the targets are named."""
    columns, targets = pd.DataFrame(HOLES_X, columns=list("abc")), pd.DataFrame(HOLES_Y, columns=["u", "v"])
    path = folder / f"x{extension.split()[0]}"
    if extension == ".npz":
        np.savez(path, x=HOLES_X, y=HOLES_Y)
        return path, ()
    if extension == ".npz y":
        np.savez(path, x=HOLES_X, y=HOLES_Y)
        return path, ("y",)
    if extension == ".npy":
        np.save(path, HOLES_X)
        np.save(folder / "y.npy", HOLES_Y)
        return path, ("y.npy",)
    if extension == ".csv apart":
        columns.to_csv(path, index=False)
        targets.to_csv(folder / "y.csv", index=False)
        return path, ("y.csv",)
    pd.concat([columns, targets], axis=1).to_csv(path, index=False)
    return path, ("u", "v")


@pytest.mark.parametrize("extension", [".npz", ".npz y", ".npy", ".csv apart", ".csv"])
def test_inputs_and_targets_lose_the_same_rows_wherever_they_lie(tmp_path: Path, extension: str) -> None:
    path, target = stored(tmp_path, extension)
    with pytest.warns(DataWarning, match="left out rows 4, 6, 30, in which cells are missing, of 30"):
        task = read_table(path, target=target, options=DROP)
    np.testing.assert_array_equal(task.x, X[KEPT])
    np.testing.assert_array_equal(task.target, Y[KEPT])
    assert task.y_names == (("u", "v") if "csv" in extension else ("y1", "y2"))
    with pytest.warns(DataWarning, match="left out"):
        beside = columns_beside(path, [task.x_names[1]], DROP, asked=target)
    np.testing.assert_array_equal(beside[task.x_names[1]][:, 0], X[KEPT, 1])


@pytest.mark.parametrize("extension", [".npz", ".npy", ".csv apart", ".csv"])
def test_missing_cells_of_arrays_are_refused_or_filled(tmp_path: Path, extension: str) -> None:
    path, target = stored(tmp_path, extension)
    with pytest.raises(DataError, match="missing value or NaN in row") as caught:
        read_table(path, target=target)
    assert isinstance(caught.value, ColumnError) or isinstance(caught.value.__cause__, ColumnError)  # for the remedies
    if extension == ".npz":
        with pytest.warns(DataWarning, match="were filled"):
            task = read_table(path, autoencode=True, options=IMPUTE)
        assert task.x[3, 0] == np.nanmedian(HOLES_X[:, 0])
        for said in ({"autoencode": True}, {"target": "c1"}):  # what is not used costs no rows
            with pytest.warns(DataWarning, match="left out rows 4, 30, in"):
                assert len(read_table(path, options=DROP, **said).x) == 28  # pyright: ignore[reportArgumentType]


def test_the_targets_of_an_archive_have_names(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", x=X, y=Y)
    for target, kept in (("y", [0, 1]), ("y2", [1]), (["y2", "y1"], [1, 0])):
        np.testing.assert_array_equal(read_table(tmp_path / "d.npz", target=target).target, Y[:, kept])
    np.testing.assert_array_equal(read_table(tmp_path / "d.npz", target="c2").target, X[:, 1:2])
    with pytest.raises(DataError, match="y: has 2 columns, and classes are one. Name one, y1 say"):
        read_table(tmp_path / "d.npz", classes="y")
    with pytest.raises(DataError, match="has no column 'z'"):
        read_table(tmp_path / "d.npz", target="z")
    np.savez(tmp_path / "d.npz", x=X, y=Y[:, 0])
    np.testing.assert_array_equal(read_table(tmp_path / "d.npz", target="y").target, Y[:, :1])


def test_lines_are_told_where_the_last_rows_were_left_out(path: Path) -> None:
    path.write_text("a,b\n1,2\n2,inf\n,3\n")
    with pytest.warns(DataWarning, match="left out"), pytest.raises(DataError, match="Row 2 is line 3 of the file"):
        read_table(path, options=DROP)


@pytest.mark.parametrize("end", [",,,\n", ",,,\n,,,\n", " , ,,\n"])
def test_lines_of_separators_alone_at_the_end_are_no_rows(tmp_path: Path, end: str) -> None:
    body = "a,b,s,y\n" + "".join(f"{i},{i % 3},{'uv'[i % 2]},{i * i}\n" for i in range(20))
    (tmp_path / "d.csv").write_text(body + end)
    (tmp_path / "e.csv").write_text(body)
    task, same = (read_table(tmp_path / name, target="y") for name in ("d.csv", "e.csv"))
    np.testing.assert_array_equal(task.x, same.x)
    (tmp_path / "d.csv").write_text(body + "7,,u,1\n" + end)
    with pytest.raises(DataError, match="'b' holds a missing value or NaN in row 21.*Row 21 is line 22 of"):
        read_table(tmp_path / "d.csv", target="y")
    with pytest.warns(DataWarning, match="left out row 21, in which cells are missing, of 21"):
        assert len(read_table(tmp_path / "d.csv", target="y", options=DROP).x) == 20
    (tmp_path / "d.csv").write_text(body + ",,,\n" + "7,1,u,1\n")  # in between they may be missing rows
    with pytest.raises(DataError, match="missing value or NaN in row 21"):
        read_table(tmp_path / "d.csv", target="y")


def test_other_rows_are_filled_as_those_of_the_run_were(path: Path, tmp_path: Path) -> None:
    """A run of a filled table could not be applied to that table; medians are those of its rows, not of the others."""
    with pytest.warns(DataWarning, match="were filled"):
        task = read_table(path, options=TableOptions(impute=True, leave_out=("y",)))
    columns = columns_of(task.x_names, [dict(one) for one in recorded(task.x_columns)])
    assert columns == task.x_columns
    told = r"'a' \(1 cell\), 'b' \(1 cell\), 's' \(1 cell\) were filled as the run's own"
    with pytest.warns(DataWarning, match=told):
        names, same = inputs_like(path, lambda _names: task.x_columns, recorded=task.x_columns)
    np.testing.assert_array_equal(same, task.x)
    assert names == task.x_names
    others = tmp_path / "others.csv"
    others.write_text("a,b,s\n100,,v\n,200,\n300,1,u\n")
    with pytest.warns(DataWarning, match="as the run's own"):
        _names, new = inputs_like(others, lambda _names: task.x_columns, recorded=task.x_columns)
    np.testing.assert_array_equal(new, [[100, 3, 0, 1], [4, 200, 1, 0], [300, 1, 1, 0]])


def test_rows_of_a_run_that_filled_nothing_are_not_filled(path: Path, tmp_path: Path) -> None:
    whole = tmp_path / "whole.csv"
    whole.write_text("a,b\n1,2\n3,4\n5,7\n")
    task = read_table(whole)
    with pytest.raises(DataError, match="missing"):
        inputs_like(path, lambda _names: task.x_columns, recorded=task.x_columns)


def test_arrays_are_filled_too(tmp_path: Path) -> None:
    file, numbers = tmp_path / "d.npy", np.arange(20.0).reshape(10, 2)
    numbers[3, 1] = np.nan
    np.save(file, numbers)
    with pytest.warns(DataWarning, match="were filled"):
        task = read_table(file, options=IMPUTE)
    with pytest.warns(DataWarning, match="as the run's own"):
        _names, same = inputs_like(file, lambda _names: task.x_columns, recorded=task.x_columns)
    np.testing.assert_array_equal(same, task.x)
