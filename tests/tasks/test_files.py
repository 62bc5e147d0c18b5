"""Real files in, a task or one line out: each row of the tables says which of the two a case must give."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from isthmus.errors import DataError, DataWarning
from isthmus.tasks import Kind, read_table
from isthmus.tasks.files_alike import inputs_like
from isthmus.tasks.input_columns import InputColumn, Made, columns_of, recorded
from isthmus.tasks.table_options import TableOptions

Write = Callable[[Path], object]
RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 3))
Y = X[:, :1] * X[:, 1:2]


def text(content: str) -> Write:
    return lambda path: path.write_text(content, encoding="utf-8")


def raw(content: bytes) -> Write:
    return lambda path: path.write_bytes(content)


def csv_of(frame: pd.DataFrame, **options: Any) -> Write:
    return lambda path: frame.to_csv(path, index=False, **options)


def npy(array: object) -> Write:
    return lambda path: np.save(path, np.asarray(array))


def npz(**arrays: np.ndarray) -> Write:
    return lambda path: np.savez(path, **arrays)  # type: ignore[arg-type]


def frame(**changes: object) -> pd.DataFrame:
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]} | changes)


def with_cell(row: int, column: str, value: object) -> pd.DataFrame:
    """A table with one odd cell."""
    table = frame().astype(object)
    table.loc[row - 1, column] = value
    return table


SPECIES = ["owl", "cat", "eel"] * 10
KINDS = np.tile(np.eye(3)[[2, 0, 1]], (10, 1))

# ERROR LINE (exit code 2 of the command line): name, file, how it is written, arguments, what the line must say
REFUSED: list[tuple[str, str, Write, dict[str, Any], str]] = [
    ("missing file", "d.csv", lambda path: None, {}, "no such file.*Check the path"),
    ("directory", "d.csv", lambda path: path.mkdir(), {}, "is a directory"),
    ("unknown extension", "d.xls", raw(b"PK"), {}, r"unknown extension '.xls'.*\.csv, \.tsv"),
    ("an image", "d.png", raw(b"PNG"), {}, r"unknown extension '.png'.*\.npz\. Of pictures pass the folder"),
    ("unknown packing", "d.csv.zip", raw(b"PK"), {}, r"unknown extension '.zip'"),
    ("empty csv", "d.csv", text(""), {}, "is empty"),
    ("empty npy", "d.npy", raw(b""), {}, "is empty"),
    ("blank lines only", "d.csv", text("\n\n"), {}, "no first row"),
    ("header only", "d.csv", text("a,b\n"), {}, "no rows"),
    ("missing column", "d.csv", csv_of(frame()), {"target": "cc"}, "no column 'cc'. Did you mean 'c'.*columns a, b, c"),
    ("missing class column", "d.csv", csv_of(frame()), {"classes": "z"}, "no column 'z'. It has columns a, b, c"),
    ("text among numbers", "d.csv", csv_of(with_cell(4, "b", "oops")), {}, "'b' holds text in row 4 .'oops'."),
    ("empty cell", "d.csv", csv_of(with_cell(7, "b", "")), {}, "'b' holds a missing value or NaN in row 7"),
    ("nan", "d.csv", csv_of(with_cell(7, "c", "nan")), {"target": "c"}, "'c' holds a missing value or NaN in row 7"),
    ("infinity", "d.csv", csv_of(with_cell(2, "a", "-inf")), {}, "'a' holds infinity in row 2"),
    ("huge value", "d.csv", csv_of(with_cell(3, "a", 1e300)), {}, "'a' holds 1e.300 in row 3.*overflow"),
    ("huge target", "d.csv", csv_of(with_cell(3, "a", -1e300)), {"target": "a"}, "holds -1e.300 in row 3"),
    ("complex in csv", "d.csv", csv_of(with_cell(3, "a", "1+2j")), {}, "'a' holds text in row 3"),
    ("missing text", "d.csv", csv_of(frame(s=[None, *SPECIES[1:]])), {}, "'s' holds a missing value or NaN in row 1"),
    ("names of rows", "d.csv", csv_of(frame(s=[f"id{i}" for i in range(30)])), {}, "'s' has 30 different values"),
    ("text as target", "d.csv", csv_of(frame(s=SPECIES)), {"target": "s"}, "'s' holds text.*as classes"),
    ("numbers as classes", "d.csv", csv_of(frame()), {"classes": "a"}, "30 different values.*use target"),
    ("identical rows", "d.csv", text("a,b\n" + "1,2\n" * 30), {}, "all 30 rows are identical"),
    ("identical inputs", "d.csv", text("a,b\n" + "1,2\n1,3\n" * 15), {"target": "b"}, "all 30 rows are identical"),
    ("all columns targets", "d.csv", csv_of(frame()), {"target": ["a", "b", "c"]}, "no column is left"),
    ("two choices", "d.csv", csv_of(frame()), {"target": "a", "autoencode": True}, "exclude each other"),
    ("longer rows", "d.csv", text("a,b\n" + "1,2,3\n4,5,7\n" * 15), {}, "more cells than the first row"),
    ("one longer row", "d.csv", text("a,b\n1,2\n3,4,5\n"), {}, "line 3 has more cells than the first row, which has 2"),
    ("not text", "d.csv", raw(bytes(range(128, 256)) * 4), {}, "neither UTF-8 nor Windows-1252"),
    ("not packed", "d.csv.gz", text("a,b\n1,2\n"), {}, "cannot be read as .csv"),
    ("not parquet", "d.parquet", text("a,b\n1,2\n"), {}, "cannot be read as .parquet"),
    ("not npy", "d.npy", text("a,b\n1,2\n"), {}, "cannot be read as .npy"),
    ("cut npz", "d.npz", raw(b"PK\x03\x04 cut"), {}, "cannot be read as .npz"),
    ("pickled objects", "d.npy", npy(np.array([{"a": 1}], dtype=object)), {}, "cannot be read.*allow_pickle=False"),
    ("pickled x", "d.npz", npz(x=np.array([None], dtype=object)), {}, "cannot be read.*allow_pickle=False"),
    ("complex npy", "d.npy", npy(X + 1j), {}, "complex numbers"),
    ("text npy", "d.npy", npy([["a"], ["b"]]), {}, "not numbers"),
    ("single number", "d.npy", npy(3.0), {}, "single value"),
    ("no rows", "d.npy", npy(np.ones((0, 3))), {}, "is empty"),
    ("nan in npy", "d.npy", npy([[1.0, np.nan], [2.0, 3.0]]), {}, "column 2 holds a missing value or NaN in row 1"),
    ("npz without x", "d.npz", npz(inputs=X, y=Y), {}, "no array x, but inputs, y"),
    ("different lengths", "d.npz", npz(x=X, y=Y[:-1]), {}, "x has 30 rows and y has 29"),
    ("text y", "d.npz", npz(x=X, y=np.array(SPECIES)), {}, "'y' holds text.*as classes"),
    (
        "dates",
        "d.parquet",
        lambda p: frame(t=pd.date_range("2020", periods=30)).to_parquet(p),
        {},
        "'t' holds datetime",
    ),
]

_RAGGED = 'a,b,c\n\n1,2,3\n"4\n",5\n7,8,9\n'
_THOUSANDS = frame().assign(b=[f"{1000 + i:,}" for i in range(30)])
_ONE = _THOUSANDS.drop(columns=["a", "c"])
_DECIMALS = frame().assign(b=[f"{i},5" for i in range(30)])
_SEVERAL = with_cell(4, "b", "oops").assign(a=[None, *X[1:, 0]], s=[f"id{i}" for i in range(30)], t=["u"] * 29 + [None])
_SAME = frame(s=SPECIES).rename(columns={"a": "s=owl"})
TOLD: list[tuple[str, str, Write, dict[str, Any], str]] = [
    (
        "several problems", "d.csv", csv_of(_SEVERAL), {},
        r"'a' holds a missing value or NaN in row 1; column 'b' holds text in row 4 \('oops'\), numbers elsewhere; "
        r".*'s' has 30 different.*; column 't' holds a missing.*Fill in .*Correct .*Row 1 is line 2, row 4 is line 5",
    ),
    (
        "inputs and targets", "d.csv", csv_of(_SEVERAL), {"target": "a", "aside": ["s", "t"]},
        "'b' holds text.*'a' holds a missing",
    ),
    ("a short row", "d.csv", text(_RAGGED), {}, "line 4 has 2 cells, the first line 3; column 'c' holds a missing"),
    ("lines and rows", "d.csv", text("a,b\n\n1,\"2\n\"\n\n3,\n5,7\n"), {}, "in row 2.*Row 2 is line 6 of the file"),
    ("thousands or decimals", "d.csv", csv_of(_ONE), {}, "separators of thousands.*decimal sign"),
    ("several longer rows", "d.csv", text("a,b\n1,2\n3,4,5\n\n6,7\n8,9,1\n"), {}, "lines 3, 6 have more cells"),
    ("several short rows", "d.csv", text("a,b\n1\n3,4\n8\n"), {}, r"line 2 has 1 cells, the first line 2 .line 4"),
    ("decimal commas", "d.csv", csv_of(_DECIMALS), {}, "'b' holds decimal commas .*'0,5'.*decimal points"),
    ("names but for blanks", "d.csv", text("a,a ,c\n1,2,3\n4,5,7\n"), {"target": "a"}, "columns 1 and 2 are both"),
    ("the same name thrice", "d.csv", text("a,a,b,a\n1,2,3,4\n"), {}, "columns 1, 2 and 4 are both called 'a'"),
    ("a value and a column", "d.csv", csv_of(_SAME), {}, "both called 's=owl'"),
]  # fmt: skip

ALL_REFUSED = REFUSED + TOLD

# RIGHT ANSWER: name, file, how it is written, arguments, expected x and y
ACCEPTED: list[tuple[str, str, Write, dict[str, Any], np.ndarray, np.ndarray | None]] = [
    ("csv", "d.csv", csv_of(frame()), {}, X, None),
    ("autoencode said", "d.csv", csv_of(frame()), {"autoencode": True}, X, None),
    ("target", "d.csv", csv_of(frame()), {"target": "b"}, X[:, [0, 2]], X[:, [1]]),
    ("targets in given order", "d.csv", csv_of(frame()), {"target": ("c", "a")}, X[:, [1]], X[:, [2, 0]]),
    ("no header", "d.csv", csv_of(frame(), header=False), {"target": "c2"}, X[:, [0, 2]], X[:, [1]]),
    ("numbered header", "d.csv", csv_of(pd.DataFrame(X)), {"target": "1"}, X[:, [0, 2]], X[:, [1]]),
    ("row numbers", "d.csv", lambda p: frame().to_csv(p), {}, X, None),
    ("byte order mark", "d.csv", csv_of(frame(), encoding="utf-8-sig"), {"target": "a"}, X[:, 1:], X[:, :1]),
    ("upper-case extension", "D.CSV", csv_of(frame()), {}, X, None),
    ("windows line ends", "d.csv", csv_of(frame(), lineterminator="\r\n"), {}, X, None),
    ("tsv", "d.tsv", csv_of(frame(), sep="\t"), {}, X, None),
    ("one column", "d.csv", csv_of(pd.DataFrame({"a": X[:, 0]})), {}, X[:, :1], None),
    ("constant target", "d.csv", csv_of(frame(k=1)), {"target": "k"}, X, np.ones((30, 1))),
    ("booleans", "d.csv", csv_of(frame(f=X[:, 0] > 0)), {"target": ["a", "b", "c"]}, X[:, :1] > 0, X),
    ("numeric classes", "d.csv", csv_of(frame(k=[0, 1, 2] * 10)), {"classes": "k"}, X, np.tile(np.eye(3), (10, 1))),
    ("one class", "d.csv", csv_of(frame(k=["z"] * 30)), {"classes": "k"}, X, np.ones((30, 1))),
    ("parquet", "d.parquet", lambda p: frame().to_parquet(p), {"target": "a"}, X[:, 1:], X[:, :1]),
    ("npy", "d.npy", npy(X), {}, X, None),
    ("npy in columns", "d.npy", npy(np.asfortranarray(X)), {"target": "c3"}, X[:, :2], X[:, 2:]),
    ("integers", "d.npy", npy((8 * X).astype(np.int8)), {}, (8 * X).astype(np.int8), None),
    ("float16", "d.npy", npy(X.astype(np.float16)), {}, X.astype(np.float16), None),
    ("npz", "d.npz", npz(x=X, y=Y), {}, X, Y),
    ("npz, one-dimensional y", "d.npz", npz(x=X, y=Y[:, 0]), {}, X, Y),
    ("npz without y", "d.npz", npz(x=X), {}, X, None),
    ("npz, y ignored", "d.npz", npz(x=X, y=Y), {"autoencode": True}, X, None),
    ("npz, classes", "d.npz", npz(x=X, y=np.array(SPECIES)), {"classes": "y"}, X, KINDS),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*became one 0/1 column")
@pytest.mark.parametrize(
    ("name", "file", "write", "arguments", "match"), ALL_REFUSED, ids=[case[0] for case in ALL_REFUSED]
)
def test_refused_in_one_line(
    tmp_path: Path, name: str, file: str, write: Write, arguments: dict[str, Any], match: str
) -> None:
    write(tmp_path / file)
    with pytest.raises(DataError, match=match) as caught:
        read_table(tmp_path / file, **arguments)
    line = str(caught.value)
    assert "\n" not in line
    assert line.startswith(str(tmp_path / file))
    assert line.endswith((".", "?"))


@pytest.mark.parametrize(("name", "file", "write", "arguments", "x", "y"), ACCEPTED, ids=[case[0] for case in ACCEPTED])
def test_read_as_expected(
    tmp_path: Path, name: str, file: str, write: Write, arguments: dict[str, Any], x: np.ndarray, y: np.ndarray | None
) -> None:
    write(tmp_path / file)
    task = read_table(tmp_path / file, **arguments)
    np.testing.assert_array_equal(task.x, x)
    assert len(task.x_names) == x.shape[1]
    assert (task.y is None) == (y is None)
    assert task.true_rank is None
    if y is not None:
        np.testing.assert_array_equal(task.target, y)
        assert len(task.y_names) == y.shape[1]


def test_images_are_flattened_and_it_is_said(tmp_path: Path) -> None:
    npy(X.reshape(30, 3, 1))(tmp_path / "d.npy")
    with pytest.warns(DataWarning, match=r"of shape \(30, 3, 1\) was flattened to 30 rows of 3 columns"):
        task = read_table(tmp_path / "d.npy")
    np.testing.assert_array_equal(task.x, X)


def test_text_inputs_become_one_column_per_value_and_it_is_said(tmp_path: Path) -> None:
    csv_of(frame(s=SPECIES))(tmp_path / "d.csv")
    with pytest.warns(DataWarning, match=r"text in column 's' \(3 values\) became one 0/1 column per value"):
        task = read_table(tmp_path / "d.csv", target="a")
    assert task.x_names == ("b", "c", "s=cat", "s=eel", "s=owl")
    np.testing.assert_array_equal(task.x[:3, 2:], [[0, 0, 1], [1, 0, 0], [0, 1, 0]])


def test_constant_inputs_are_dropped_by_name_unless_kept(tmp_path: Path) -> None:
    csv_of(frame(flat=2.5, dull=0))(tmp_path / "d.csv")
    with pytest.warns(DataWarning, match="dropped the constant columns 'flat', 'dull'"):
        task = read_table(tmp_path / "d.csv")
    assert task.x_names == ("a", "b", "c")
    kept = read_table(tmp_path / "d.csv", drop_constant=False)
    assert kept.x_names == ("a", "b", "c", "flat", "dull")


def test_text_classes_give_a_classification_task(tmp_path: Path) -> None:
    csv_of(frame(s=SPECIES))(tmp_path / "d.csv")
    task = read_table(tmp_path / "d.csv", classes="s")
    assert task.kind is Kind.CLASSIFICATION
    assert task.y_names == ("cat", "eel", "owl")


def test_numbers_among_the_column_names_are_pointed_out(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("5.1,3.5,owl\n" + "4.9,3.1,cat\n4.7,3.2,owl\n" * 15)
    with pytest.warns(DataWarning, match="taken as column names although it holds the numbers 5.1, 3.5"):
        read_table(tmp_path / "d.csv", classes="owl")


def test_parquet_without_pyarrow_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame().to_parquet(tmp_path / "d.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError, match=r"needs pyarrow. Install isthmus\[tables\]"):
        read_table(tmp_path / "d.parquet")


def test_a_crafted_npy_runs_no_code(tmp_path: Path) -> None:
    """An object array that would create a file when unpickled."""
    mark = tmp_path / "ran"
    np.save(tmp_path / "d.npy", np.array([Trap(mark)], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="allow_pickle=False"):
        read_table(tmp_path / "d.npy")
    assert not mark.exists()
    np.load(tmp_path / "d.npy", allow_pickle=True)  # control: unpickling springs the trap
    assert mark.exists()


class Trap:
    """Touches a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self.mark,)


@pytest.mark.parametrize("first", [0, 1])
def test_nameless_numbers_of_rows_are_left_out(tmp_path: Path, first: int) -> None:
    """As pandas writes them, from 0, and R, from 1."""
    path = tmp_path / "d.csv"
    frame().set_axis(range(first, first + 30)).to_csv(path)
    assert read_table(path).x_names == ("a", "b", "c")


def test_nameless_numbers_with_gaps_are_left_out_aloud(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    frame().set_axis(range(5, 95, 3)).to_csv(path)
    with pytest.warns(DataWarning, match="has no name and counts upwards, 5 to 92: taken for numbers of rows"):
        assert read_table(path).x_names == ("a", "b", "c")
    # an older run that has them as an input still finds them
    columns = [InputColumn("Unnamed: 0"), InputColumn("a")]
    names, x = inputs_like(path, lambda _names: columns, recorded=columns)
    assert names == ("Unnamed: 0", "a")
    assert x[:2, 0].tolist() == [5, 8]
    frame().set_axis(RNG.normal(size=30)).to_csv(path)  # a measurement whose name was forgotten
    assert read_table(path).x_names == ("Unnamed: 0", "a", "b", "c")


def test_names_with_commas_can_be_targets(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    frame().rename(columns={"b": "flow rate, m3/s"}).to_csv(path, index=False)
    for words in (["flow rate, m3/s"], ["flow rate", "m3/s"]):
        assert read_table(path, target=words).y_names == ("flow rate, m3/s",)
    assert read_table(path, target=["c", "flow rate", "m3/s", "a"][:3]).y_names == ("c", "flow rate, m3/s")


def test_how_columns_were_made_is_known(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    frame(s=SPECIES, on=X[:, 0] > 0).rename(columns={"a": "T=300"}).to_csv(path, index=False)
    with pytest.warns(DataWarning, match="became one 0/1 column"):
        made = read_table(path).x_columns
    assert made[0] == InputColumn("T=300", Made.NUMERIC, decimal=".")
    assert made[3] == InputColumn("s=cat", Made.ONE_HOT, "s", "cat")
    assert made[-1] == InputColumn("on", Made.BOOLEAN)
    assert columns_of([c.name for c in made], json.loads(json.dumps(recorded(made)))) == made
    assert columns_of(["a"], None) is None
    for damaged in ([{}], [{"made": "guess"}], [], 7):
        with pytest.raises(DataError, match="damaged"):
            columns_of(["a"], damaged)


@pytest.mark.parametrize("rows", ["counting", "named"])
def test_a_column_that_pandas_had_as_names_of_rows_is_said_to_be_left_out(
    tmp_path: Path, rows: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.arange(30) if rows == "counting" else X[:, 0]
    frame(a=values).set_index("a").to_parquet(tmp_path / "d.parquet")
    frame().iloc[::2].to_parquet(tmp_path / "e.parquet")  # names without a name are numbers of rows
    for fits in (100, 2**27):  # on disk, and in memory
        monkeypatch.setattr("isthmus.tasks.large_tables.FITS", fits)
        with pytest.warns(DataWarning, match="column 'a', which pandas had as names of rows, was left out. To keep"):
            assert read_table(tmp_path / "d.parquet").x_names == ("b", "c")
        read_table(tmp_path / "e.parquet")


@pytest.mark.parametrize("kind", ["csv", "parquet", "npy"])
def test_whole_numbers_that_float64_cannot_tell_apart_are_not_called_constant(tmp_path: Path, kind: str) -> None:
    table = pd.DataFrame({"c1": 2**60 + np.arange(30), "c2": np.arange(30) % 7})
    path = tmp_path / f"d.{kind}"
    write = {"csv": csv_of(table), "parquet": table.to_parquet, "npy": npy(table.to_numpy())}
    write[kind](path)
    with pytest.raises(
        DataError, match="'c1' holds whole numbers that differ by less than float64 .*1152921504606846976"
    ):
        read_table(path)
    with pytest.raises(DataError, match="'c1' holds whole numbers that differ"):
        read_table(path, target="c1")
    assert read_table(path, options=TableOptions(leave_out=("c1",))).x_names == ("c2",)
    far = table.assign(c1=2**60 * (np.arange(30) % 4 + 1))  # float64 has these
    {"csv": csv_of(far), "parquet": far.to_parquet, "npy": npy(far.to_numpy())}[kind](path)
    assert read_table(path).x[:, 0].tolist() == far["c1"].tolist()


def test_blanks_around_text_make_no_other_value(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("a,s\n" + '1,A \n2,A\n3,"\tB"\n4,B\n' * 8)
    with pytest.warns(DataWarning, match=r"'s' \(2 values\)"):
        task = read_table(path)
    assert task.x_names == ("a", "s=A", "s=B")
    assert read_table(path, classes="s").y_names == ("A", "B")
    groups = read_table(path, groups="s").groups
    assert groups is not None
    assert len(set(groups.tolist())) == 2
    _names, made = inputs_like(path, lambda _names: task.x_columns, recorded=task.x_columns)
    np.testing.assert_array_equal(made, task.x)
    older = [InputColumn(f"s={value}", Made.ONE_HOT, "s", value) for value in ("A", "A ", "\tB", "B")]
    _names, made = inputs_like(path, lambda _names: older, recorded=older)  # a run from before
    assert made.sum(0).tolist() == [8, 8, 8, 8]


def test_texts_that_a_spreadsheet_makes_one_are_not_merged(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("a,s\n" + "1,=A\n2,'=A\n3,B\n" * 8)
    with pytest.raises(DataError, match="""'s' holds "'=A" and '=A', which are one text to a spreadsheet"""):
        read_table(tmp_path / "d.csv")


@pytest.mark.parametrize(
    ("asked", "roles"),
    [
        ({"target": ["b"], "options": TableOptions(leave_out=("b",))}, "both left out and a target"),
        ({"target": ["b"], "groups": "b"}, "both the groups and a target"),
        ({"classes": "b", "aside": ["b"]}, "both kept aside and the classes"),
    ],
)
def test_a_column_that_is_asked_for_as_two_things_is_refused_as_such(
    tmp_path: Path, asked: dict[str, Any], roles: str
) -> None:
    """That the file had no such column was said."""
    path = tmp_path / "d.csv"
    frame().to_csv(path, index=False)
    with pytest.raises(DataError, match=rf"column 'b' cannot be {roles}\. Name it once"):
        read_table(path, **asked)


def test_labels_of_runs_are_pointed_to_groups(tmp_path: Path) -> None:
    """To replace them by numbers, as was advised, made an input of them."""
    rng = np.random.default_rng(0)
    for values, is_shared in ((np.repeat(np.arange(80), 4), True), (np.arange(320), False)):
        runs = [f"r{i}" for i in rng.permutation(values)]
        pd.DataFrame({"run": runs, "a": rng.random(320)}).to_csv(tmp_path / "d.csv", index=False)
        with pytest.raises(DataError, match="text column 'run' has .* in 320 rows") as error:
            read_table(tmp_path / "d.csv")
        assert ("name it as groups (--groups); else remove it" in str(error.value)) is is_shared
        assert ("rows. Remove it, or replace it by numbers." in str(error.value)) is not is_shared


@pytest.mark.other_types
@pytest.mark.parametrize("wrong", [{"target": 3}, {"target": ["a", 3]}, {"options": {"sep": ","}}], ids=str)
def test_what_names_no_columns_is_refused_before_the_file_is_opened(wrong: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"^read_table\({[*wrong][0]}=.*needs "):
        read_table(tmp_path / "nowhere.csv", **wrong)
