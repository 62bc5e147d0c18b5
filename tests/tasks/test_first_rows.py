"""What the first rows of a table are, and that no row of data is lost without a word."""

from pathlib import Path

import pytest

from isthmus.errors import DataError, DataWarning
from isthmus.tasks import read_table
from isthmus.tasks.first_rows import is_row_of_data
from isthmus.tasks.table_options import TableOptions

WRITTEN_BY = "ignore:.*(separated by|became one 0/1 column|begins with)"
SEMICOLONS = "".join(f"{i};{i % 7},{i % 10};{'AB'[i % 2]}\n" for i in range(30))
TABS = "".join(f"{i}\t{i % 7}.{i % 10}\t{'AB'[i % 2]}\n" for i in range(30))


@pytest.mark.parametrize(
    ("file", "content", "names"),
    [
        ("d.csv", f"%rh;a;k\n{SEMICOLONS}", ("%rh", "a", "k=A", "k=B")),
        ("d.csv", f"# made here\n#rh;a;k\n{SEMICOLONS}", ("rh", "a", "k=A", "k=B")),
        ("d.txt", f"# rh\ta\tk\n{TABS}", ("rh", "a", "k=A", "k=B")),
        ("d.txt", f"%rh;a;k\n{SEMICOLONS}", ("rh", "a", "k=A", "k=B")),
        ("d.dat", "#rh a k\n" + TABS.replace("\t", "  "), ("rh", "a", "k=A", "k=B")),
    ],
)
@pytest.mark.filterwarnings(WRITTEN_BY)
def test_names_behind_a_sign_of_comments_are_names(
    tmp_path: Path, file: str, content: str, names: tuple[str, ...]
) -> None:
    (tmp_path / file).write_text(content)
    task = read_table(tmp_path / file)
    assert task.x_names == names
    assert len(task.x) == 30


def test_a_row_of_data_has_no_text_above_numbers() -> None:
    assert is_row_of_data([["1", "A"], ["2", "B"]])
    assert is_row_of_data([["1", "NA"], ["2", "3"]])
    assert not is_row_of_data([["2019", "b"], ["2", "3"]])
    assert not is_row_of_data([["a", "b"], ["2", "B"]])
    assert not is_row_of_data([])


LOST = {
    "whole numbers and text": ("".join(f"{i % 9},{'AB'[i % 2]},{i % 2}\n" for i in range(3, 63)), "3, 0|3, 1"),
    "decimal commas and text": ("".join(f"{i},5;{'AB'[i % 2]};{i % 2}\n" for i in range(60)), "0,5, 0"),
    "years": ("name,2019,2020\n" + "u,1,7\nv,2,3\n" * 20, "2019, 2020"),
    "a cell is missing": ("3,,1\n" + "1,2,5\n3,1,4\n" * 20, "3, 1"),
    "0, 1 above whole numbers": ("0,1\n" + "3,1\n2,5\n" * 20, "0, 1"),
}


@pytest.mark.parametrize(("content", "numbers"), LOST.values(), ids=list(LOST))
@pytest.mark.filterwarnings(WRITTEN_BY, "ignore:.*dropped the constant")
def test_a_first_row_that_could_be_data_is_said(tmp_path: Path, content: str, numbers: str) -> None:
    (tmp_path / "d.csv").write_text(content)
    said = f"taken as column names although it holds the numbers? ({numbers})"
    with pytest.warns(DataWarning, match=said):
        read_table(tmp_path / "d.csv")
    openpyxl = pytest.importorskip("openpyxl", reason="the extra excel is not installed")
    if ";" in content:
        return  # a sheet has no decimal commas
    book = openpyxl.Workbook()
    for line in content.splitlines():
        book.active.append([int(c) if c.isdigit() else c or None for c in line.split(",")])
    book.save(tmp_path / "d.xlsx")
    with pytest.warns(DataWarning, match=said):
        read_table(tmp_path / "d.xlsx")


def test_numbers_that_count_above_measurements_are_data_aloud(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("2019,2020,2021\n" + "0.5,0.25,0.75\n1.5,2.5,0.5\n" * 15)
    with pytest.warns(DataWarning, match="taken as data although it counts, 2019 to 2021"):
        assert len(read_table(tmp_path / "d.csv").x) == 31


@pytest.mark.parametrize("content", ["3,1,2\n" + "1,2,5\n3,1,4\n" * 20, "1.5,2\n" + "3.5,4\n1.5,7\n" * 20,
                                     "0,1\n" + "0.5,2\n1.5,3\n" * 20, ",0,1\n" + "0,0.5,2\n1,1.5,3\n"])  # fmt: skip
def test_plain_rows_are_read_without_a_word(tmp_path: Path, content: str) -> None:
    (tmp_path / "d.csv").write_text(content)
    read_table(tmp_path / "d.csv")


@pytest.mark.filterwarnings("ignore:.*separated by ';'")
def test_rows_with_decimal_commas_need_no_names(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("".join(f"{i},5;{i * i},25\n" for i in range(30)))
    with pytest.warns(DataWarning, match="decimal commas"):
        task = read_table(tmp_path / "d.csv")
    assert task.x_names == ("c1", "c2")
    assert task.x[:2].tolist() == [[0.5, 0.25], [1.5, 1.25]]


# a sign of comments above the names, and rows of data that begin with it
@pytest.mark.parametrize("cells", [("#0", "#1"), ("#ff0000", "#00ff00"), ("#N/A", "x"), ("%5", "%6")])
@pytest.mark.filterwarnings("ignore:.*became one 0/1 column", "ignore:.*dropped the constant")
def test_a_row_that_begins_like_a_comment_is_a_row(tmp_path: Path, cells: tuple[str, str]) -> None:
    rows = [f"{cells[i % 2]},{i},0.5,A\n" for i in range(30)]
    sign = cells[0][0]
    content = "".join(
        [f"{sign} export\n", "a,b,c,k\n", *rows[:20], f"{sign} a note\n", *rows[20:], f"{sign} the end\n"]
    )
    (tmp_path / "d.csv").write_text(content)
    with pytest.warns(DataWarning, match="are comments, 3 in all"):
        task = read_table(tmp_path / "d.csv", options=TableOptions(leave_out=("a",)))
    assert task.x[:, 0].tolist() == list(range(30))
    if cells[0] == "#N/A":
        with (
            pytest.warns(DataWarning, match="comments, 3"),
            pytest.raises(DataError, match="'a' holds a missing value or NaN in rows 1, 3, .*Row 1 is line 3"),
        ):
            read_table(tmp_path / "d.csv")
        # what is said is done
        assert len(read_table(tmp_path / "d.csv", options=TableOptions(comment="#", leave_out=("a",))).x) == 15


def test_a_row_that_was_commented_out_is_refused_with_its_remedy(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("# export\na,b\n1,2\n#3,4\n5,6\n7,1\n")
    with pytest.warns(DataWarning, match="1 in all"), pytest.raises(
        DataError, match=r"text in row 2 \('#3'\).*say the sign of comments \(--comment\). Row 2 is line 4"
    ):  # fmt: skip
        read_table(tmp_path / "d.csv")
    assert len(read_table(tmp_path / "d.csv", options=TableOptions(comment="#")).x) == 3


def test_quotes_within_a_cell_hide_no_comment(tmp_path: Path) -> None:
    """An inch is no quote, and a cell in quotes may go on over lines that look like comments."""
    inches = "".join(f'x 5",{i}\n# between\n' for i in range(20))
    (tmp_path / "d.csv").write_text(f"# top\na,b\n{inches}")
    with pytest.warns(DataWarning, match="21 in all"):
        task = read_table(tmp_path / "d.csv", options=TableOptions(leave_out=("a",)))
    assert task.x[:, 0].tolist() == list(range(20))
    (tmp_path / "d.csv").write_text("# top\na,b\n" + '"u\n# within",1\n# between\n"v ""3",2\n' * 10)
    with pytest.warns(DataWarning, match="11 in all"):
        task = read_table(tmp_path / "d.csv", classes="a")
    assert task.y_names == ("u\n# within", 'v "3')


TITLED = "My experiment,,\na,b,c\n{}" + "1,5,2\n2,6,3\n" * 10


@pytest.mark.parametrize("units", ["", "m,s,kg\n"])
def test_a_title_above_the_names_is_left_out_aloud(tmp_path: Path, units: str) -> None:
    (tmp_path / "d.csv").write_text(TITLED.format(units))
    words = "line 1 holds a title, 'My experiment', and is left out" + ("; line 3 holds text above" if units else "")
    with pytest.warns(DataWarning, match=words):
        task = read_table(tmp_path / "d.csv")
    assert task.x_names == ("a", "b", "c")
    assert task.x[0].tolist() == [1, 5, 2]


@pytest.mark.parametrize(("line", "sign"), [("sep=;", ";"), ('"sep=|"', "|"), ("SEP=,", ","), ("sep=\t", "\t")])
@pytest.mark.filterwarnings(WRITTEN_BY)
def test_the_separator_that_a_first_line_tells_excel(tmp_path: Path, line: str, sign: str) -> None:
    (tmp_path / "d.csv").write_text(f"{line}\n" + sign.join("ab") + "\n" + f"1.5{sign}2\n2.5{sign}7\n" * 10)
    task = read_table(tmp_path / "d.csv")
    assert task.x_names == ("a", "b")
    assert task.x[0].tolist() == [1.5, 2]
