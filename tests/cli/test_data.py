import dataclasses
import json
import warnings
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

import isthmus
from isthmus.cli.data import TargetChoice, choice_of, read_rows
from isthmus.cli.data_of_run import rows_like
from isthmus.cli.discover import DiscoverRequest
from isthmus.cli.main import run
from isthmus.cli.shared_options import TableReading
from isthmus.errors import DataError, DataWarning
from isthmus.tasks.input_columns import InputColumn, Made, columns_of, recorded
from isthmus.tasks.table_options import TableOptions


@pytest.fixture
def table(tmp_path: Path) -> str:
    rng = np.random.default_rng(0)
    rows = [f"{a},{b},{'xyz'[i % 3]},{i // 5}" for i, (a, b) in enumerate(rng.normal(size=(30, 2)))]
    path = tmp_path / "table.csv"
    path.write_text("\n".join(["u,v,kind,site", *rows]) + "\n")
    return str(path)


def test_the_three_choices_exclude_each_other() -> None:
    assert choice_of(" u, v ", None, autoencode=False) == TargetChoice(target=("u", "v"))
    assert choice_of(None, "kind", autoencode=False) == TargetChoice(classes="kind")
    assert choice_of(None, None, autoencode=True) == TargetChoice(autoencode=True)
    with pytest.raises(DataError, match="--target and --autoencode exclude each other"):
        choice_of("u", None, autoencode=True)
    with pytest.raises(DataError, match="--target: names no column"):
        choice_of(" ,", None, autoencode=False)


@pytest.mark.filterwarnings("ignore:.*became one 0/1 column")
def test_targets_classes_and_groups_are_taken_apart(table: str) -> None:
    rows = read_rows(table, TargetChoice(target=("v",)), groups="site")
    assert list(rows.names) == ["u", "kind=x", "kind=y", "kind=z"]
    assert rows.y is not None
    assert list(rows.y.columns) == ["v"]
    assert rows.groups is not None
    np.testing.assert_array_equal(rows.groups, np.arange(30) // 5)
    assert (rows.loss, rows.note) == (None, None)

    rows = read_rows(table, TargetChoice(classes="kind"))
    assert rows.loss == "cross_entropy"
    assert rows.y is not None
    assert list(rows.y.columns) == ["x", "y", "z"]
    np.testing.assert_array_equal(rows.y.to_numpy().argmax(1), np.arange(30) % 3)

    rows = read_rows(table, TargetChoice(target=("v",)), groups="kind")
    assert list(rows.names) == ["u", "site"]
    assert rows.groups is not None
    np.testing.assert_array_equal(rows.groups, np.arange(30) % 3)


@pytest.mark.filterwarnings("ignore:.*became one 0/1 column")
def test_candidates_are_kept_beside_and_are_no_inputs(table: str) -> None:
    rows = read_rows(table, TargetChoice(target=("v",)), candidates=("site", "kind"))
    assert list(rows.names) == ["u"]
    np.testing.assert_array_equal(rows.candidates["site"][:, 0], np.arange(30) // 5)
    np.testing.assert_array_equal(rows.candidates["kind"].argmax(1), np.arange(30) % 3)
    assert not read_rows(table, TargetChoice(target=("v",))).candidates
    with pytest.raises(DataError, match="nowhere"):
        read_rows(table, TargetChoice(target=("v",)), candidates=("nowhere",))
    with pytest.raises(DataError, match="no column is left"):
        read_rows(table, TargetChoice(target=("v",)), candidates=("u", "site", "kind"))
    with pytest.raises(DataError, match="Leave out --candidates"):
        read_rows("builtin:iris", TargetChoice(), candidates=("u",))


@pytest.mark.filterwarnings("ignore:.*became one 0/1 column")
def test_a_table_without_a_choice_is_autoencoded_and_that_is_said(table: str) -> None:
    rows = read_rows(table, TargetChoice())
    assert rows.y is None
    assert rows.note is not None
    assert "so all 6 columns are autoencoded" in rows.note
    assert read_rows(table, TargetChoice(autoencode=True)).note is None


def test_an_npz_brings_its_own_targets(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(25, 3))
    np.savez(tmp_path / "both.npz", x=x, y=x[:, :1])
    np.savez(tmp_path / "one.npz", x=x)
    rows = read_rows(str(tmp_path / "both.npz"), TargetChoice())
    assert rows.y is not None
    assert rows.note is None
    rows = read_rows(str(tmp_path / "one.npz"), TargetChoice())
    assert rows.y is None
    assert "has no y" in str(rows.note)


def test_builtin_data_know_what_they_are() -> None:
    rows = read_rows("builtin:iris", TargetChoice())
    assert (rows.loss, rows.note, rows.ordered) == ("cross_entropy", None, False)
    assert read_rows("builtin:iris", TargetChoice(autoencode=True)).y is None
    with pytest.raises(DataError, match="brings its own targets"):
        read_rows("builtin:iris", TargetChoice(target=("a",)))
    with pytest.raises(DataError, match=r"builtin:irs: unknown\. Did you mean 'iris'"):
        read_rows("builtin:irs", TargetChoice())


def test_too_few_rows_and_missing_groups_are_refused(tmp_path: Path, table: str) -> None:
    np.save(tmp_path / "few.npy", np.random.default_rng(0).normal(size=(19, 3)))
    with pytest.raises(DataError, match="has 19 rows"):
        read_rows(str(tmp_path / "few.npy"), TargetChoice())
    np.save(tmp_path / "many.npy", np.random.default_rng(0).normal(size=(30, 1)))
    with pytest.raises(DataError, match="has no column 'site'"):
        read_rows(str(tmp_path / "many.npy"), TargetChoice(), groups="site")
    with pytest.raises(DataError, match="no column is left as input beside the groups"):
        read_rows(str(tmp_path / "many.npy"), TargetChoice(), groups="c1")


def test_groups_may_be_any_text_however_many(tmp_path: Path) -> None:
    path = tmp_path / "patients.csv"
    path.write_text("\n".join(["patient,u,v", *(f"p{i // 2:03},{i}.5,{i * i}" for i in range(160))]) + "\n")
    rows = read_rows(str(path), TargetChoice(target=("v",)), groups="patient")  # 80 labels: too many for 0/1 columns
    assert list(rows.names) == ["u"]
    assert rows.groups is not None
    np.testing.assert_array_equal(rows.groups, np.arange(160) // 2)
    with pytest.raises(DataError, match="'patient' has 80 different values"):
        read_rows(str(path), TargetChoice(target=("v",)))
    path.write_text("patient,u\n" + "".join(f"{'' if i == 4 else 'p'},{i}\n" for i in range(30)))
    with pytest.raises(DataError, match="'patient' holds a missing value or NaN in row 5"):
        read_rows(str(path), TargetChoice(), groups="patient")
    with pytest.raises(DataError, match="has no column of labels"):
        read_rows("builtin:iris", TargetChoice(), groups="species")


def test_builtin_data_are_drawn_with_the_seed() -> None:
    zero, one, again = (read_rows("builtin:circle", TargetChoice(), seed=s).x for s in (0, 1, 1))
    assert not np.array_equal(zero, one)
    np.testing.assert_array_equal(one, again)


def test_columns_that_the_run_does_not_know_may_hold_anything(tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    path.write_text("note,b,a,late\n" + "".join(f"text {i},{i},{-i},\n" for i in range(60)))
    np.testing.assert_array_equal(rows_like(str(path), ("a", "b"))[3], [-3.0, 3.0])
    path.write_text("note,b,a\nx,,1\ny,2,3\n")
    with pytest.raises(DataError, match="NaN in row 1"):
        rows_like(str(path), ("a", "b"))


def test_new_rows_are_put_in_the_order_of_the_run(tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    path.write_text("extra,b,a\n9,2,1\n")
    np.testing.assert_array_equal(rows_like(str(path), ("a", "b")), [[1.0, 2.0]])
    with pytest.raises(DataError, match=r"lacks 1 of the 2 input columns of the run: 'c'"):
        rows_like(str(path), ("a", "c"))


def test_a_column_of_text_that_is_missing_is_called_as_in_the_table(tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    names = ("a", "kind=x", "kind=y")
    columns = [InputColumn("a"), *(InputColumn(f"kind={v}", Made.ONE_HOT, "kind", v) for v in "xy")]
    with pytest.raises(DataError, match=r"lacks 1 of the 2 input columns of the run: 'kind'\.$"):
        rows_like(str(path), names, columns)


def german_run(folder: Path) -> tuple[tuple[str, ...], tuple[InputColumn, ...]]:
    """Names and columns of a run of numbers with decimal commas, as its file tells them."""
    path = folder / "run.csv"
    path.write_text("temp;kind;menge;y\n" + "".join(f"{i},5;{'ab'[i % 2]};{i}.234;{i * i}\n" for i in range(1, 31)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # separators, commas and text: said elsewhere
        rows = read_rows(str(path), TargetChoice(("y",)))
    assert rows.x[0, -1] == 1234
    columns = columns_of(rows.names, json.loads(json.dumps(recorded(rows.made))))
    assert columns is not None
    assert columns == rows.made
    return rows.names, columns


# what stands in new rows -> what is read; a number where nothing need be said, a text that is said, or an error
ALIKE = "read with commas, as those of earlier rows"
NEW_ROWS: dict[str, tuple[str, list[float] | str, str]] = {
    "thousands that prove nothing": ("temp;kind;menge\n3;a;1.234\n4;b;12.500\n5;a;987\n", [1234, 12500, 987], ALIKE),
    "commas": ("temp;kind;menge\n3,5;a;1.234\n4;b;12.500\n5;a;987\n", [1234, 12500, 987], "have decimal commas"),
    "whole numbers": ("temp;kind;menge\n3;a;1234\n4;b;12500\n5;a;987\n", [1234, 12500, 987], "separated by ';'.$"),
    "whole numbers between commas": ("temp,kind,menge\n3,a,1234\n4,b,12500\n5,a,987\n", [1234, 12500, 987], ""),
    "points": ("temp;kind;menge\n3.5;a;1234\n4;b;1\n", "have decimal points, and those of earlier rows had commas", ""),
    "points between commas": ("temp,kind,menge\n3,a,1.234\n4,b,12.500\n", "If that is right say --decimal \\.", ""),
}


@pytest.mark.filterwarnings("ignore:.*separated by")
@pytest.mark.parametrize("what", NEW_ROWS)
def test_new_rows_are_read_as_those_of_the_run_were_written(tmp_path: Path, what: str) -> None:
    names, columns = german_run(tmp_path)
    text, expected, said = NEW_ROWS[what]
    path = tmp_path / "new.csv"
    path.write_text(text)
    if isinstance(expected, str):
        with pytest.raises(DataError, match=expected):
            rows_like(str(path), names, columns)
        expected = [float(line.split(text[4])[-1]) for line in text.splitlines()[1:]]
        read = rows_like(str(path), names, columns, TableOptions(decimal="."))
    else:
        with pytest.warns(DataWarning, match=said) if said else nullcontext():
            read = rows_like(str(path), names, columns)
    assert read[:, -1].tolist() == expected


def test_rows_of_a_run_without_a_record_are_read_as_they_prove(tmp_path: Path) -> None:
    names, columns = german_run(tmp_path)
    older = tuple(dataclasses.replace(column, decimal="") for column in columns)
    assert not any("decimal" in entry for entry in recorded(older))
    path = tmp_path / "new.csv"
    path.write_text("temp,kind,menge\n3.5,a,1.234\n4,b,12.500\n")
    assert rows_like(str(path), names, older)[:, -1].tolist() == [1.234, 12.5]
    with pytest.raises(DataError, match="record of input columns in this run is damaged"):
        columns_of(("a",), [{"made": "numeric", "decimal": "x"}])


@pytest.mark.filterwarnings("ignore:.*became one 0/1 column")
def test_a_text_value_that_does_not_occur_is_a_column_of_zeros(tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    path.write_text("kind,a\nx,1\nx,2\n")
    names = ("a", "kind=x", "kind=y")
    columns = [InputColumn("a"), *(InputColumn(f"kind={v}", Made.ONE_HOT, "kind", v) for v in "xy")]
    np.testing.assert_array_equal(rows_like(str(path), names, columns), [[1, 1, 0], [2, 1, 0]])
    with pytest.warns(DataWarning, match=r"does not say how its inputs were made; column 'kind' taken for text"):
        np.testing.assert_array_equal(rows_like(str(path), names), [[1, 1, 0], [2, 1, 0]])
    # text that looks like numbers in the new rows is still the text that it was
    path.write_text("kind,a\n05,1\n05,2\n")
    columns = [InputColumn("a"), InputColumn("kind=05", Made.ONE_HOT, "kind", "05")]
    np.testing.assert_array_equal(rows_like(str(path), ("a", "kind=05"), columns), [[1, 1], [2, 1]])


def test_columns_of_numbers_whose_names_look_one_hot_are_never_filled_in(tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    path.write_text("T=300,a\n1,2\n3,4\n")
    names = ("a", "T=300", "T=400")
    for columns in (None, [InputColumn(name) for name in names]):  # also for a run from before there was a record
        with pytest.raises(DataError, match="lacks 1 of the 3 input columns of the run: 'T=400'"):
            rows_like(str(path), names, columns)
    np.testing.assert_array_equal(rows_like(str(path), names[:2]), [[2, 1], [4, 3]])


def test_unnamed_inputs_are_taken_by_position(tmp_path: Path) -> None:
    np.save(tmp_path / "new.npy", np.arange(6.0).reshape(3, 2))
    np.testing.assert_array_equal(rows_like(str(tmp_path / "new.npy"), ("x0", "x1")), np.arange(6.0).reshape(3, 2))
    with pytest.raises(DataError, match="lacks 3 of the 3"):
        rows_like(str(tmp_path / "new.npy"), ("x0", "x1", "x2"))
    path = tmp_path / "named.csv"
    path.write_text("u,v\n1,2\n3,4\n")
    np.testing.assert_array_equal(rows_like(str(path), ("x0", "x1")), [[1, 2], [3, 4]])
    path.write_text("x1,X0\n1,2\n3,4\n")  # one of them is known by name, so that the others are too
    with pytest.raises(DataError, match="lacks 1 of the 2 input columns of the run: 'x0'"):
        rows_like(str(path), ("x0", "x1"))


def test_a_file_without_names_fits_a_run_with_as_many_named_columns(tmp_path: Path) -> None:
    rows = np.arange(6.0).reshape(3, 2)
    np.save(tmp_path / "new.npy", rows)
    with pytest.warns(DataWarning, match=r"no column names; its columns are taken in the order of the run, 'a' to 'b'"):
        np.testing.assert_array_equal(rows_like(str(tmp_path / "new.npy"), ("a", "b")), rows)


def test_named_columns_are_not_taken_for_those_of_a_file_without_names(tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    with pytest.raises(DataError, match="lacks 2 of the 2 input columns of the run: 'c1', 'c2'"):
        rows_like(str(path), ("c1", "c2"))


@pytest.mark.parametrize("names", [("a", "b", "c"), ("a", "kind=x")], ids=["another number", "a column of text"])
def test_a_file_without_names_for_other_columns_is_refused(tmp_path: Path, names: tuple[str, ...]) -> None:
    np.save(tmp_path / "new.npy", np.arange(6.0).reshape(3, 2))
    with pytest.raises(DataError, match=rf"has 2 columns without names; the run has {len(names)} with names, from 'a'"):
        rows_like(str(tmp_path / "new.npy"), names)


@pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")  # 0/1 columns are announced
def test_a_category_that_the_run_never_saw_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("size,color\n" + "\n".join(f"{i},{'red' if i % 2 else 'blue'}" for i in range(6)) + "\n")
    assert rows_like(str(path), ["size", "color=blue", "color=red"]).shape == (6, 3)
    with pytest.raises(DataError, match="'color' holds 'red', which the run never saw"):
        rows_like(str(path), ["size", "color=blue", "color=green"])


@pytest.mark.parametrize(("asked", "told"), [([], True), (["--impute"], False), (["--drop-missing"], False)])
def test_what_fills_missing_cells_is_named_beside_other_problems(
    asked: list[str], told: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A date alone had kept it from being said."""
    table = tmp_path / "d.csv"
    table.write_text("day,u,v\n" + "".join(f"2024-01-{i:02},{'' if i == 7 else i},{i * i}\n" for i in range(1, 29)))
    assert run(["discover", str(table), "--target", "v", "--out", str(tmp_path / "run"), *asked]) == 2
    err = " ".join(capsys.readouterr().err.split())
    assert "Or --leave-out NAME leaves a column out" in err
    assert ("--drop-missing leaves rows of missing cells out, and --impute fills inputs." in err) is told


@pytest.mark.parametrize("target", ["t", "apart.csv"])
@pytest.mark.parametrize(
    ("asked", "told"),
    [([], "and --impute fills inputs."), (["--impute"], "instead of --impute, which fills inputs alone, and no")],
    ids=["nothing", "impute"],
)
def test_a_missing_target_has_a_way_out_whatever_fills_inputs(
    asked: list[str], told: str, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """--impute had said of it that it is missing, and no more; of a file of targets nothing was said at all."""
    (tmp_path / "d.csv").write_text("u,t\n" + "".join(f"{i},{'' if i == 7 else i * i}\n" for i in range(30)))
    (tmp_path / "apart.csv").write_text("t,v\n" + "".join(f"{'' if i == 7 else i * i},{i}\n" for i in range(30)))
    assert run(["discover", str(tmp_path / "d.csv"), "--target", target, "--out", str(tmp_path / "run"), *asked]) == 2
    err = " ".join(capsys.readouterr().err.split())
    assert "missing value or NaN in row 8" in err
    assert f"Or --drop-missing leaves such rows out, {told}" in err


CHOICES = {
    "autoencode": (TargetChoice(autoencode=True), True), "a column": (TargetChoice(("c1",)), True),
    "its y": (TargetChoice(("y",)), False), "one of y": (TargetChoice(("y2",)), False),
}  # fmt: skip


@pytest.mark.parametrize(("choice", "told"), CHOICES.values(), ids=CHOICES)
def test_targets_of_an_npz_that_are_not_used_are_told(choice: TargetChoice, told: bool, tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(25, 3))
    np.savez(tmp_path / "both.npz", x=x, y=x[:, :2])
    assert ("its y is not used" in str(read_rows(str(tmp_path / "both.npz"), choice).note)) is told


@pytest.mark.slow
def test_how_a_table_is_written_can_be_said_and_goes_with_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table with semicolons, thousands that could be decimals, a missing cell and a column of numbers of rows."""
    rng = np.random.default_rng(0)
    x = rng.integers(1000, 9999, size=(60, 2))
    lines = [f"{i};{a / 1000:.3f};{b / 1000:.3f};{a / 1000 - b / 500:.3f}" for i, (a, b) in enumerate(x)]
    lines[7] = lines[7].replace(lines[7].split(";")[1], "")
    table = tmp_path / "d.csv"
    table.write_text("\n".join(["n;u, m;v;w", *lines]).replace(".", ",") + "\n")
    quick = ["--ridge", "3e-3", "--starts", "1", "--evaluations", "40", "--effort", "quick", "--no-pictures"]
    asked = ["discover", str(table), "--target", "w", "--out", str(tmp_path / "run"), *quick]
    assert run(asked) == 2  # negative targets prove a comma: only what is missing is refused
    err = capsys.readouterr().err
    assert "'u, m' holds a missing value or NaN in row 8. Fill in" in err
    assert "Or --drop-missing leaves such rows out, and --impute fills inputs." in err
    assert run([*asked, "--drop-missing", "--decimal", ",", "--candidates", "n"]) in {0, 3}
    err = capsys.readouterr().err
    assert "left out row 8, in which cells are missing, of 60" in err
    assert "note: 59 rows of 2 input columns, to predict column 'w'." in err
    found = isthmus.load(tmp_path / "run")
    assert found.input_names == ("u, m", "v")
    new = tmp_path / "new.txt"
    new.write_text("# new rows\n" + "v|u, m\n" + "2.500|1.250\n3.500|4.250\n")
    said = ["--sep", "|", "--decimal", ".", "--comment", "#", "--encoding", "utf-8"]
    assert run(["apply", str(tmp_path / "run"), str(new), "--what", "prediction", *said]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    np.testing.assert_allclose(
        np.array(out.split()[1:], dtype=float), np.ravel(found.predict(np.array([[1.25, 2.5], [4.25, 3.5]])))
    )


def test_the_command_of_a_request_brings_its_reading(tmp_path: Path) -> None:
    request = DiscoverRequest("d.csv", leave_out="n", impute=True, reading=TableReading(sep="tab", decimal=","))
    assert request.command == "isthmus discover d.csv --leave-out n --impute --sep tab --decimal ,"
    assert "sep-tab" in str(request.default_folder)
    assert request.table_options == TableOptions(sep="tab", decimal=",", leave_out=("n",), impute=True)
