from pathlib import Path

import numpy as np
import pytest

from isthmus.errors import DataError, DataWarning
from isthmus.tasks import read_table
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
