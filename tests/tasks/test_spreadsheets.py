import datetime
import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from isthmus.errors import DataError, DataWarning
from isthmus.tasks import read_table
from isthmus.tasks.table_options import TableOptions

openpyxl = pytest.importorskip("openpyxl", reason="the extra excel is not installed")
X = np.random.default_rng(0).standard_normal((30, 3)).round(9)  # openpyxl writes 16 digits


def sheet(path: Path, rows: Sequence[Sequence[object]], *others: str) -> Path:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for title in others:
        book.create_sheet(title)
    book.save(path)
    return path


def put_behind_rows(path: Path, rows: str, rest: str) -> None:
    """More text in the first sheet, within its rows and behind them."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    text = members["xl/worksheets/sheet1.xml"].decode()
    members["xl/worksheets/sheet1.xml"] = text.replace("</sheetData>", f"{rows}</sheetData>{rest}").encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def test_a_sheet_is_read_as_a_csv_would_be(tmp_path: Path) -> None:
    rows = [["a", "b", "y"], *X.tolist()]
    task = read_table(sheet(tmp_path / "d.xlsx", rows), target="y")
    np.testing.assert_array_equal(task.x, X[:, :2])
    np.testing.assert_array_equal(task.target, X[:, 2:])
    assert read_table(sheet(tmp_path / "e.xlsx", rows[1:])).x_names == ("c1", "c2", "c3")
    numbered = [["", "a", "b"], *([i, *row[:2]] for i, row in enumerate(X.tolist()))]
    assert read_table(sheet(tmp_path / "f.xlsx", numbered)).x_names == ("a", "b")


def test_units_other_sheets_and_odd_cells_are_said(tmp_path: Path) -> None:
    rows = [["a", "b"], ["m", "kg"], [], *X[:, :2].tolist()]
    path = sheet(tmp_path / "d.xlsx", rows, "notes")
    with pytest.warns(DataWarning, match="row 2 of the sheet holds text above numbers"), \
         pytest.warns(DataWarning, match="sheet 'Sheet' was read, of 2"):  # fmt: skip
        np.testing.assert_array_equal(read_table(path).x, X[:, :2])
    rows = [["a", "b"], [], *X[:, :2].tolist(), [1, "#N/A"], ["oops", 2]]
    with pytest.raises(
        DataError, match="'a' holds text in row 32 .'oops'.*'b' holds a missing.*row 31 is row 33 of the"
    ):
        read_table(sheet(tmp_path / "e.xlsx", rows))
    with pytest.raises(DataError, match="row 2 of the sheet has cells beyond the first row"):
        read_table(sheet(tmp_path / "f.xlsx", [["a"], [1, 2]]))
    with pytest.raises(DataError, match="first sheet is empty"):
        read_table(sheet(tmp_path / "g.xlsx", []))


def test_what_is_no_sheet_or_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "d.xlsx").write_bytes(b"PK no archive")
    with pytest.raises(DataError, match="cannot be read as .xlsx"):
        read_table(tmp_path / "d.xlsx")
    path = sheet(tmp_path / "wide.xlsx", [["a"], *([[1]] * 30)])
    far = "".join(f'<row r="{n}"><c r="XFD{n}"><v>1</v></c></row>' for n in range(40, 4040))
    put_behind_rows(path, far, "")
    monkeypatch.setenv("ISTHMUS_MEMORY", "50M")  # 200 kB that name 65 million cells
    with pytest.raises(DataError, match="needs .* of memory"):
        read_table(path)


# what Excel writes of a list to choose from, and a date beyond those that it knows
CHOICES = '<extLst><ext uri="{CCE6A557-97BC-4b89-ADB6-D9C93CAAB3DF}"/></extLst>'
NO_DATE = '<row r="32"><c r="A32" s="1"><v>99999999999</v></c><c r="B32"><v>1</v></c></row>'


@pytest.mark.parametrize(("rows", "rest"), [("", CHOICES), (NO_DATE, "")])
def test_what_openpyxl_leaves_out_of_a_sheet_is_not_told(tmp_path: Path, rows: str, rest: str) -> None:
    dated = [[datetime.datetime(2020, 1, 1), 2.0]] * 2  # noqa: DTZ001 - cells have no zone; they give their style
    path = sheet(tmp_path / "d.xlsx", [["a", "b"], *([] if rest else dated[:1]), *X[: 29 + bool(rest), :2].tolist()])
    put_behind_rows(path, rows, rest)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if rest:
            assert read_table(path).x.shape == (30, 2)
        else:
            with pytest.raises(DataError, match="holds dates|'a' holds"):
                read_table(path)


@pytest.mark.dear(1)
@pytest.mark.parametrize("number", [2**20 + 1, 10**9, 10**30])
def test_a_row_may_not_call_itself_any_number(tmp_path: Path, number: int) -> None:
    """openpyxl makes the empty rows before it, which never ends."""
    path = sheet(tmp_path / "d.xlsx", [["a", "b"], *X[:, :2].tolist()])
    put_behind_rows(path, f'<row r="{number}"><c r="A{number}"><v>1</v></c></row>', "")
    with pytest.raises(DataError, match="has a row beyond the 1048576 of a sheet"):
        read_table(path)


def test_a_chart_or_a_hidden_sheet_is_no_table(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.create_chartsheet("chart", 0)
    book.worksheets[0].sheet_state = "hidden"
    book.worksheets[0].append(["not", "this"])
    shown = book.create_sheet("shown")
    for row in (["a", "b"], *X[:, :2].tolist()):
        shown.append(row)
    book.save(tmp_path / "d.xlsx")
    with pytest.warns(DataWarning, match="sheet 'shown' was read, of 2, the first that is not hidden"):
        np.testing.assert_array_equal(read_table(tmp_path / "d.xlsx").x, X[:, :2])


def test_formulas_that_nobody_computed_are_named(tmp_path: Path) -> None:
    rows = [["a", "b"], *([i, f"=A{i + 2}*2"] for i in range(30))]
    with pytest.raises(DataError, match=r"formulas without values \(cells B2, B3, B4, B5, B6 and 25 more\)"):
        read_table(sheet(tmp_path / "d.xlsx", rows))
    with pytest.raises(DataError, match=r"formulas without values \(cell AB1\)"):
        read_table(sheet(tmp_path / "e.xlsx", [[*range(27), "=1"], *([[0] * 28] * 3)]))


def test_what_is_missing_in_a_csv_is_missing_in_a_sheet(tmp_path: Path) -> None:
    path = sheet(tmp_path / "d.xlsx", [["NA", "b"], *X[:28, :2].tolist(), ["NA", 1], ["N/A", 2]])  # sodium
    with pytest.raises(DataError, match="'NA' holds a missing value or NaN in rows 29, 30"):
        read_table(path)
    with pytest.warns(DataWarning, match="left out rows 29, 30"):
        assert len(read_table(path, options=TableOptions(drop_missing=True)).x) == 28


def test_the_decimal_sign_that_is_said_holds_for_text_in_a_sheet(tmp_path: Path) -> None:
    path = sheet(tmp_path / "d.xlsx", [["a", "b"], *([i, f"{i},5" if i % 2 else i + 0.25] for i in range(30))])
    with pytest.raises(DataError, match=r"decimal commas .* say the decimal sign \(--decimal\)"):
        read_table(path)
    task = read_table(path, options=TableOptions(decimal=","))
    assert task.x[:, 1].tolist() == [i + 0.5 if i % 2 else i + 0.25 for i in range(30)]
    path = sheet(tmp_path / "e.xlsx", [["a", "b"], *([i, "1.001" if i % 2 else 15] for i in range(30))])
    with pytest.raises(DataError, match="'b' holds points before three digits"):
        read_table(path)
    for sign, value in ((",", 1001), (".", 1.001)):
        assert read_table(path, options=TableOptions(decimal=sign)).x[:2, 1].tolist() == [15, value]


def test_options_of_text_change_nothing_in_a_sheet_and_it_is_said(tmp_path: Path) -> None:
    path = sheet(tmp_path / "d.xlsx", [["a", "b"], *X[:, :2].tolist()])
    with pytest.warns(DataWarning, match=r"sep and comment tell how text is written, and change nothing in .xlsx"):
        read_table(path, options=TableOptions(sep=";", comment="#"))
    np.savetxt(tmp_path / "y.csv", X[:, 2], delimiter=";")
    read_table(path, target="y.csv", options=TableOptions(sep=";"))  # those of the file of targets


TIMES = [datetime.time(i % 20, 30) for i in range(30)]
DAYS = [datetime.datetime(2024, 1, i % 20 + 1) for i in range(30)]  # noqa: DTZ001 - cells have no zone


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        (TIMES, "dates or times in rows 1, 2, 3, 4, 5 and 25 more .'00:30:00'"),
        (TIMES[:15] + DAYS[:15], "dates or times"),
        ([5, "u", *DAYS[:28]], "dates or times in rows 3"),
        ([True, *range(29)], "booleans in row 1, numbers elsewhere"),
    ],
)
def test_cells_of_several_types_are_refused(tmp_path: Path, cells: Sequence[object], says: str) -> None:
    path = sheet(tmp_path / "d.xlsx", [["a", "b"], *([i, cell] for i, cell in enumerate(cells))])
    with pytest.raises(DataError, match=f"'b' holds {says}"):
        read_table(path)


def marked(path: Path, *merged: str, hidden: int = 0, hidden_column: str = "", first: int = 6) -> Path:
    """A table whose column batch has a label in every sixth row, its cells merged as is said."""
    book = openpyxl.Workbook()
    book.active.append(["batch", "a", "b"])
    for i, (a, b, _) in enumerate(X.tolist()):
        book.active.append([f"b{i // 6}" if i % first == 0 else None, a, b])
    for one in merged:
        book.active.merge_cells(one)
    if hidden:
        book.active.row_dimensions[hidden].hidden = True
    if hidden_column:
        book.active.column_dimensions[hidden_column].hidden = True
    book.save(path)
    return path


RANGES = [f"A{2 + i}:A{7 + i}" for i in range(0, 30, 6)]


@pytest.mark.filterwarnings("ignore:.*became one 0/1 column")
@pytest.mark.parametrize("impute", [False, True])
def test_a_merged_cell_counts_for_all_rows_that_it_spans(tmp_path: Path, impute: bool) -> None:
    """With --impute 100 of 120 labels of batches had been filled with the most frequent one."""
    path = marked(tmp_path / "d.xlsx", *RANGES)
    says = r"ranges A2:A7, A8:A13, A14:A19, A20:A25, A26:A31 of column 'batch' are merged: the value counts"
    with pytest.warns(DataWarning, match=says):
        task = read_table(path, options=TableOptions(impute=impute))
    np.testing.assert_array_equal(task.x[:, :5], np.repeat(np.eye(5), 6, axis=0))


def test_labels_that_stand_once_for_several_rows_are_not_filled_with_the_most_frequent(tmp_path: Path) -> None:
    path = marked(tmp_path / "d.xlsx")
    with pytest.raises(DataError, match="most cells of text column 'batch'"):
        read_table(path, options=TableOptions(impute=True))


def test_cells_that_are_merged_otherwise_are_refused_or_left(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cells B5:C5 of the sheet are merged across columns.*Split them"):
        read_table(marked(tmp_path / "d.xlsx", "B5:C5"), options=TableOptions(leave_out=("batch",)))
    path = marked(tmp_path / "e.xlsx", "E2:E9", "F3:H4", "A40:A44")  # beside and below the table
    assert read_table(path, options=TableOptions(leave_out=("batch",))).x.shape == (30, 2)
    with zipfile.ZipFile(path) as archive:
        text = archive.read("xl/worksheets/sheet1.xml").decode()
    assert "mergeCell " in text
    ranges = "".join(f'<mergeCell ref="A2:A{i}"/>' for i in range(10, 30))
    crafted = marked(tmp_path / "f.xlsx")
    put_behind_rows(crafted, "", f'<mergeCells count="20">{ranges}</mergeCells>')
    with pytest.raises(DataError, match="merged cells of the sheet overlap"):
        read_table(crafted, options=TableOptions(leave_out=("batch",)))


def test_rows_and_columns_that_nobody_sees_are_said(tmp_path: Path) -> None:
    path = marked(tmp_path / "d.xlsx", hidden=5, hidden_column="B", first=1)
    with pytest.warns(DataWarning, match="row 5 of the sheet is hidden, which makes"), \
         pytest.warns(DataWarning, match="column 'a' of the sheet is hidden"), \
         pytest.warns(DataWarning, match="became one 0/1"):  # fmt: skip
        assert len(read_table(path).x) == 30


def test_titles_above_the_names_are_left_out_as_of_text(tmp_path: Path) -> None:
    """A sheet of the same lines as a .csv had been refused."""
    rows = [["Plant 7"], ["by hand"], ["a", "b", "y"], *X.tolist()]
    path = sheet(tmp_path / "d.xlsx", rows)
    with pytest.warns(DataWarning, match="row 1 of the sheet holds a title, 'Plant 7', and is left out"), \
         pytest.warns(DataWarning, match="row 2 of the sheet holds a title, 'by hand'"):  # fmt: skip
        np.testing.assert_array_equal(read_table(path, target="y").x, X[:, :2])
    groups = [["", "inputs"], ["a", "b", "y"], *X.tolist()]  # which columns they are is not known
    with pytest.raises(DataError, match="cells beyond the first row. Name every column there; delete titles and names"):
        read_table(sheet(tmp_path / "e.xlsx", groups))
    book = openpyxl.Workbook()
    book.active.append(["a note"])
    data = book.create_sheet("data")
    for row in rows[2:]:
        data.append(row)
    book.save(tmp_path / "f.xlsx")
    with pytest.warns(DataWarning, match="of 2"), pytest.raises(DataError, match="no rows in the sheet.*or hide the"):
        read_table(tmp_path / "f.xlsx")
    book.active.sheet_state = "hidden"
    book.save(tmp_path / "f.xlsx")
    with pytest.warns(DataWarning, match="sheet 'data' was read"):
        assert len(read_table(tmp_path / "f.xlsx").x) == 30
    (tmp_path / "g.csv").write_text("Plant 7\nby hand\na,b\n1,2\n")
    with pytest.raises(DataError, match="which has 1. Delete titles above the names of columns. Name every column"):
        read_table(tmp_path / "g.csv")
