"""One table written in many ways, read as the same numbers; what proves nothing is refused or left alone."""

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.errors import DataError, DataWarning
from isthmus.tasks import read_table
from isthmus.tasks.dialects import dialect_of
from isthmus.tasks.first_rows import unit_row
from isthmus.tasks.table_options import TableOptions
from isthmus.tasks.written_numbers import decimal_sign, is_number, plain_numbers

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.standard_normal((30, 2)), 1000 * RNG.integers(1, 9999, 30) + 0.25])
NAMES = ("time", "flow", "cost")


def lines(form: Callable[[float], str], separator: str, *, names: str = "") -> str:
    header = names or separator.join(NAMES)
    return "\n".join([header, *(separator.join(map(form, row)) for row in X.tolist())]) + "\n"


def german(value: float) -> str:
    return f"{value:,}".replace(",", "_").replace(".", ",").replace("_", ".")


def comma(value: float) -> str:
    return repr(value).replace(".", ",")


COMMENTS = "# made by a machine, 2024\n# second line\n"
# name, file, what stands in it, what is said
WRITTEN: list[tuple[str, str, bytes, str]] = [
    ("semicolons", "d.csv", lines(repr, ";").encode(), "separated by ';'"),
    ("decimal commas", "d.csv", lines(comma, ";").encode(), "separated by ';'; its numbers have decimal commas"),
    ("German thousands", "d.csv", lines(german, ";").encode(), "decimal commas"),
    ("thousands", "d.csv", lines(lambda v: f'"{v:,}"', ",").encode(), ""),
    ("thousands by blanks", "d.tsv", lines(lambda v: f"{v:,}".replace(",", "\u202f"), "\t").encode(), ""),
    ("Swiss thousands", "d.csv", lines(lambda v: f"{v:,}".replace(",", "'"), ";").encode(), "separated by ';'"),
    ("bars", "d.csv", lines(repr, "|").encode(), "separated by '|'"),
    ("commas in tsv", "d.tsv", lines(repr, ",").encode(), "separated by ','"),
    ("blanks", "d.txt", lines(repr, "   ").encode(), "separated by blanks"),
    ("blanks before and behind", "d.dat", lines(repr, " \t ").replace("\n", "  \n  ").encode(), ""),
    ("tabs in txt", "d.txt", lines(repr, "\t").encode(), ""),
    ("packed", "d.csv.gz", gzip.compress(lines(repr, ",").encode()), ""),
    ("packed in capitals", "D.TSV.GZ", gzip.compress(lines(repr, "\t").encode()), ""),
    ("comments", "d.csv", (COMMENTS + lines(repr, ",")).encode(), "begin with '#' are comments"),
    ("a header like that of savetxt", "d.txt", f"# {lines(repr, ' ')}".encode(), "line 1 begins with '#' and holds"),
    ("comments above it", "d.txt", f"{COMMENTS}#{lines(repr, ',')}".encode(), "line 3 begins with '#' and holds"),
    ("a row of units", "d.csv", lines(repr, ",", names="time,flow,cost\ns,m3/s,-").encode(), "'s', 'm3/s', '-'"),
    ("Latin", "d.csv", lines(repr, ",", names="time,flow,cost\n°C,µ,€").encode("cp1252"), "as Windows-1252; line 2"),
    ("UTF-16", "d.csv", lines(repr, ",").encode("utf-16"), "is UTF-16"),
    ("all at once", "d.dat.gz",
     gzip.compress((COMMENTS + lines(german, ";", names="time;flow;cost\nh;m³;€")).encode("utf-16")),
     "UTF-16; .*';'; .*decimal commas; line 4 holds .*; .*comments, 2 in all"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "file", "content", "says"), WRITTEN, ids=[case[0] for case in WRITTEN])
def test_the_same_numbers_however_they_are_written(
    tmp_path: Path, name: str, file: str, content: bytes, says: str
) -> None:
    path = tmp_path / file
    path.write_bytes(content)
    if says:
        with pytest.warns(DataWarning, match=says):
            task = read_table(path, target="cost")
    else:
        task = read_table(path, target="cost")  # a plain table: nothing is said
    assert task.x_names == NAMES[:2]
    np.testing.assert_array_equal(task.x, X[:, :2])
    np.testing.assert_array_equal(task.target, X[:, 2:])


SAID: list[tuple[str, TableOptions, str]] = [
    ("a;b\n1,500;2\n2,250;1\n", TableOptions(decimal=",", sep=";"), "1.5"),
    ("a;b\n1,500;2\n2,250;1\n", TableOptions(decimal=".", sep=";"), "1500"),
    ("a b\n1.5 2\n2.25 1\n", TableOptions(sep="space"), "1.5"),
    ("a\tb\n1.5\t2\n2.25\t1\n", TableOptions(sep="tab"), "1.5"),
    ("!no\na,b\n1.5,2\n!no\n2.25,1\n", TableOptions(comment="!"), "1.5"),
    ("a,ü\n1.5,2\n2.25,1\n", TableOptions(encoding="latin-1"), "1.5"),
]


@pytest.mark.parametrize(("content", "options", "first"), SAID, ids=[str(case[1])[13:40] for case in SAID])
def test_what_is_said_is_not_guessed(tmp_path: Path, content: str, options: TableOptions, first: str) -> None:
    path = tmp_path / "d.csv"
    path.write_bytes(content.encode(options.encoding or "utf-8"))
    task = read_table(path, options=options)
    assert task.x.shape == (2, 2)
    assert task.x[0, 0] == float(first)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"sep": ";;"}, "one character"),
        ({"sep": "é"}, "of ASCII"), ({"sep": '"'}, "of ASCII"), ({"sep": "\n"}, "of ASCII"),
        ({"decimal": "'"}, "a point or a comma"), ({"encoding": "nope"}, "none that"),
        ({"encoding": "rot13"}, "none that"), ({"sep": ",", "decimal": ","}, "are both"),
        ({"drop_missing": True, "impute": True}, "exclude each other"),
    ],
)  # fmt: skip
def test_options_that_cannot_be_meant(options: dict[str, object], says: str) -> None:
    with pytest.raises(DataError, match=says):
        TableOptions(**options)  # pyright: ignore[reportArgumentType]


UNCERTAIN = {
    "a thousand, or one and a bit": ("a;b\n1,234;2\n5,678;1\n", "separators of thousands"),
    "commas and points": ("a;b\n1,5;2\n5.25;1\n", "decimal commas"),
    "points in front of three digits": ("a;b\n0,5;2\n0.125;1\n", "decimal commas"),
}


@pytest.mark.parametrize(("content", "says"), UNCERTAIN.values(), ids=list(UNCERTAIN))
@pytest.mark.filterwarnings("ignore:.*separated by ';'")
def test_what_could_be_two_numbers_is_refused(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "d.csv"
    path.write_text(content)
    with pytest.raises(DataError, match=says):
        read_table(path)


@pytest.mark.filterwarnings("ignore:.*separated by ';'")
def test_a_number_of_the_other_way_far_down_is_refused(tmp_path: Path) -> None:
    """Beyond the lines that the guess looks at: never 15 for 1.5."""
    path = tmp_path / "d.csv"
    path.write_text("a;b\n" + "1,5;2,25\n2,5;1\n" * 1500 + "1.5;1\n")
    with pytest.raises(DataError, match="'a' holds '1.5' in row 3001, and decimal commas.*Row 3001 is line 3002"):
        read_table(path)


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("# top\na,b\n1,2\n# between\n3,oops\n4,5\n6,7\n8,9\n")
    with pytest.warns(DataWarning, match="comments"), pytest.raises(DataError, match="Row 2 is line 5 of the file"):
        read_table(path)


def test_a_header_of_a_csv_keeps_its_sign(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("# a,b\n1.5,2\n2.5,1\n")
    assert read_table(tmp_path / "d.csv").x_names == ("# a", "b")
    (tmp_path / "d.csv").write_text("# a,b\nu,v\n2.5,1\n1,2\n")  # above names it is a comment
    with pytest.warns(DataWarning, match="comments"):
        assert read_table(tmp_path / "d.csv").x_names == ("u", "v")


def test_text_with_other_separators_in_it_stays_a_table_of_commas() -> None:
    rows = ["a,b\n", "x;y,1\n", "u;v,2\n"]
    assert dialect_of(list(enumerate(rows, 1)), ".csv", TableOptions()).separator == ","
    assert dialect_of([(1, "flow, m3/s;time, s\n"), (2, "1,5;2,5\n")], ".csv", TableOptions()).separator == ";"
    assert dialect_of([(1, "#ff0000,1\n"), (2, "#00ff00,2\n")], ".csv", TableOptions()).comment == ""


def test_units_are_text_above_numbers_in_half_of_the_columns() -> None:
    assert unit_row([["a", "b"], ["m", "-"], ["1", "2"], ["3", "4"]]) == ("m", "-")
    assert unit_row([["a", "b", "c"], ["m", "-", "-"], ["1", "2", "3"], ["3", "4", "5"]]) == ()
    assert unit_row([["a", "b"], ["m", "-"], ["1", "2"]]) == ("m", "-")
    assert unit_row([["a", "b"], ["m", "-"]]) == ()
    assert unit_row([["a", "b"], ["m", "7"], ["1", "2"], ["3", "4"]]) == ()
    assert unit_row([["a", "b"], ["m", "1"], ["1", "2"], ["3", "4"]]) == ("m", "1")
    assert unit_row([["a", "b"], ["1", "1"], ["1", "2"], ["3", "4"]]) == ()
    assert unit_row([["a", "b", "c"], ["m", "1", "1"], ["1", "2", "3"], ["3", "4", "5"]]) == ()
    assert unit_row([["a", "b"], ["x", "y"], ["z", "w"], ["u", "v"]]) == ()


def test_of_a_table_with_units_text_above_one_column_of_numbers_is_enough() -> None:
    rows = [["a", "b", "c"], ["m", "1", "1"], ["1", "2", "3"], ["3", "4", "5"]]
    assert unit_row(rows, are_said=True) == ("m", "1", "1")
    assert unit_row(rows[:3], are_said=True) == ("m", "1", "1")
    assert unit_row([["a", "b"], ["m", "7"], ["1", "2"]], are_said=True) == ()
    assert unit_row([["a", "b"], ["x", "y"], ["z", "w"]], are_said=True) == ()


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(-(10**12), 10**12))
def test_numbers_come_back_to_the_last_bit(value: float, whole: int) -> None:
    import pandas as pd

    for number in (value, float(whole)):
        written = [comma(number), german(number) if abs(number) < 1e15 else comma(number)]
        assert [float(cell) for cell in plain_numbers(pd.Series(written, dtype=object), ",")] == [number, number]
        assert all(map(is_number, written))


@given(st.text(alphabet="0123456789.,' -+e\u00a0", max_size=12))
def test_a_cell_is_changed_only_into_a_number(cell: str) -> None:
    import pandas as pd

    for sign in ".,":
        (found,) = plain_numbers(pd.Series([cell], dtype=object), sign)
        if found != cell:
            float(found)
            assert is_number(cell)
    proven = decimal_sign([cell])
    if proven is not None:
        assert proven in cell or cell.count({".": ",", ",": "."}[proven]) > 1


def column_of(cells: list[str]) -> str:
    return "a;b\n" + "".join(f"{cell};{i % 7}\n" for i, cell in enumerate(cells))


POINTS_THAT_COULD_BE_THOUSANDS = {
    "counted past a thousand": [f"{v:,}".replace(",", ".") for v in range(980, 1020)],
    "zeros and signs": ["0", "-1.000", "12", "+3.250"] * 5,
    "a missing cell": [*["7", "", "1.250", "NA"] * 5, "8"],
    "all of them whole as decimals too": ["998", "999", "1.000", "2.000"] * 5,
    "far down": [*["7", "8"] * 700, "1.250"],
}
POINTS_THAT_ARE_DECIMAL = {
    "a zero before it": ["7", "0.998", "1.001"] * 5,
    "another number of digits": ["7", "1.001", "1.5"] * 5,
    "rounded all alike": ["12.345", "1.200", "998.250"] * 5,
    "thousands without a point": ["7", "1.001", "1200"] * 5,
    "an exponent": ["7", "1.001", "1.5e2"] * 5,
    "whole ones with a point": ["7.0", "1.001"] * 5,
    "in another column": ["998", "1.001"] * 5,
}


@pytest.mark.parametrize("cells", POINTS_THAT_COULD_BE_THOUSANDS.values(), ids=list(POINTS_THAT_COULD_BE_THOUSANDS))
@pytest.mark.filterwarnings("ignore:.*separated by ';'", "ignore:.*left out rows")
def test_a_point_that_could_stand_between_thousands_is_refused(tmp_path: Path, cells: list[str]) -> None:
    path = tmp_path / "d.csv"
    path.write_text(column_of(cells))
    with pytest.raises(DataError, match=r"'a' holds points before three digits in row.*--decimal.*Row \d+ is line"):
        read_table(path, options=TableOptions(drop_missing=True))
    assert read_table(path, options=TableOptions(leave_out=("a",))).x_names == ("b",)
    for sign in ".,":  # what is said is done
        task = read_table(path, options=TableOptions(decimal=sign, drop_missing=True))
        meant = [float(cell.replace(".", "" if sign == "," else ".")) for cell in cells if cell not in {"", "NA"}]
        np.testing.assert_array_equal(task.x[:, 0], meant)


@pytest.mark.parametrize("cells", POINTS_THAT_ARE_DECIMAL.values(), ids=list(POINTS_THAT_ARE_DECIMAL))
@pytest.mark.filterwarnings("ignore:.*separated by ';'")
def test_a_point_that_is_proven_is_read_without_a_word(tmp_path: Path, cells: list[str]) -> None:
    path = tmp_path / "d.csv"
    rows = [f"{cell};0.{i}" for i, cell in enumerate(cells)] if cells == ["998", "1.001"] * 5 else []
    path.write_text("\n".join(["a;b", *rows]) + "\n" if rows else column_of(cells))
    np.testing.assert_array_equal(read_table(path).x[:, 0], list(map(float, cells)))


def test_texts_of_other_tables_are_held_to_the_same(tmp_path: Path) -> None:
    import pandas as pd

    table = pd.DataFrame({"a": ["998", "1.001"] * 10, "b": range(20)})
    table.to_parquet(tmp_path / "d.parquet")
    with pytest.raises(DataError, match="'a' holds points before three digits in rows 2, 4"):
        read_table(tmp_path / "d.parquet")
    with pytest.raises(DataError, match="'a' holds points before three digits"):
        read_table(tmp_path / "d.parquet", target="a")
