import csv
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import discoveries
import isthmus
from command_lines import line_of
from isthmus.cli.data_of_run import rows_like
from isthmus.cli.main import run
from isthmus.tasks.mapped import is_on_disk
from isthmus.tasks.seen_ranges import recorded_range


def applied(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("apply") / "run"
    discoveries.discovery().save(folder)
    return folder


def test_apply_gives_the_coordinates_of_new_rows(table: Path, saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["apply", str(saved), str(table)]) == 0
    head, *rows = applied(capsys.readouterr().out)
    assert head == ["coordinate 1", "coordinate 2", "coordinate 3"]
    expected = discoveries.discovery().transform(discoveries.inputs())
    np.testing.assert_array_equal(np.array(rows, dtype=float), expected)


def test_apply_says_which_columns_are_far_outside_of_what_the_run_saw(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Temperatures in another unit had given nonsense without a word."""
    found, x = discoveries.discovery(), discoveries.inputs()
    settings = {**found.settings, "input_ranges": recorded_range(x)}
    discoveries.replace(found, settings=settings).save(tmp_path / "run")
    for shift, is_said in ((0.0, False), (273.15, True)):
        rows = pd.DataFrame(x[:4] + [shift, 0, 0, 0, 0], columns=list(discoveries.INPUTS))
        rows.to_csv(tmp_path / "new.csv", index=False)
        for what in ("coordinates", "prediction"):
            assert run(["apply", str(tmp_path / "run"), str(tmp_path / "new.csv"), "--what", what]) == 0
            assert ("column 'probe 0'" in capsys.readouterr().err) is is_said


def test_apply_writes_predictions_to_a_file(
    table: Path, saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["apply", str(saved), str(table), "--what", "prediction", "--out", str(tmp_path / "p.csv")]) == 0
    assert capsys.readouterr() == ("", "")
    head, *rows = applied((tmp_path / "p.csv").read_text())
    assert head == list(discoveries.TARGETS)
    np.testing.assert_array_equal(np.array(rows, dtype=float), discoveries.discovery().predict(discoveries.inputs()))


def test_apply_names_the_likeliest_class(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = discoveries.discovery(task="classification")
    found.save(tmp_path / "run")
    assert run(["apply", str(tmp_path / "run"), str(table), "--what", "prediction"]) == 0
    head, *rows = applied(capsys.readouterr().out)
    assert head == ["class", *(f"logit of {name}" for name in discoveries.TARGETS)]
    best = found.predict(discoveries.inputs()).argmax(axis=1)
    assert [row[0] for row in rows] == [discoveries.TARGETS[i] for i in best]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere", "table.csv"], "no finished run"),
        (["run", "missing.csv"], "no such file"),
        (["run", "builtin:iris"], "lacks 5 of the 5 input columns"),
        (["run", "table.csv", "--out", "none/a.csv"], "its folder does not exist"),
        (["run", "table.csv", "--what", "colour"], "Invalid value for '--what'"),
    ],
)
def test_apply_refuses_in_one_line(
    table: Path, saved: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    arguments: list[str], message: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(table.parent)
    shutil.copytree(saved, "run")
    assert run(["apply", *arguments]) == 2
    assert message in line_of(capsys.readouterr().err)


def test_apply_writes_arrays_and_parquet(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A .npy has the numbers alone, in the order of the rows."""
    pytest.importorskip("pyarrow")
    found = discoveries.discovery(task="classification")
    found.save(tmp_path / "run")
    arguments = ["apply", str(tmp_path / "run"), str(table), "--what", "prediction", "--out"]
    for name in ("p.npy", "p.parquet"):
        assert run([*arguments, str(tmp_path / name)]) == 0
    assert capsys.readouterr() == ("", "")
    expected = found.predict(discoveries.inputs())
    np.testing.assert_array_equal(np.load(tmp_path / "p.npy"), expected)
    written = pd.read_parquet(tmp_path / "p.parquet")
    np.testing.assert_array_equal(written.drop(columns="class").to_numpy(), expected)
    assert written["class"].tolist() == [discoveries.TARGETS[i] for i in expected.argmax(axis=1)]
    assert run([*arguments, str(tmp_path / "p.npy"), "--replace", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["columns"]) == expected.shape[1]
    assert run([*arguments, str(tmp_path / "p.npy")]) == 2
    assert "Add --replace" in line_of(capsys.readouterr().err)
    assert run([*arguments, str(tmp_path / "p.xlsx")]) == 2
    assert "Use .csv or .parquet or .npy" in line_of(capsys.readouterr().err)


@pytest.mark.parametrize("name", ["none.parquet", "none.npy"])
def test_no_coordinate_is_said_and_loses_no_row(
    name: str, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A .parquet without columns held no row: what is joined to it later was lost."""
    x = pd.read_csv(table)[list(discoveries.INPUTS)]
    isthmus.discover(x, np.ones(len(x))).save(tmp_path / "run")
    out = tmp_path / name
    assert run(["apply", str(tmp_path / "run"), str(table), "--out", str(out)]) == 0
    assert "the rank is 0" in line_of(capsys.readouterr().err)
    written = pd.read_parquet(out) if out.suffix == ".parquet" else np.load(out)
    assert written.shape == (len(x), 0)


@pytest.mark.filterwarnings("ignore:.*has no column names:isthmus.errors.DataWarning")
@pytest.mark.parametrize("name", ["rows.npy", "columns.npy", "single.npy", "rows.parquet"])
def test_rows_too_large_for_memory_stay_on_disk(
    name: str, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    x, found = discoveries.inputs(), discoveries.discovery()
    path = tmp_path / name
    if path.suffix == ".parquet":
        pd.DataFrame(x, columns=list(found.input_names)).assign(other="text").to_parquet(path)
    else:
        np.save(path, np.asfortranarray(x) if name == "columns.npy" else x.astype("f4") if name == "single.npy" else x)
    whole = rows_like(str(path), found.input_names, found.columns)
    assert not is_on_disk(whole)
    monkeypatch.setattr("isthmus.tasks.large_tables.FITS", 100)
    parts = rows_like(str(path), found.input_names, found.columns)
    assert is_on_disk(parts)
    np.testing.assert_array_equal(parts, whole)
    monkeypatch.setattr("isthmus.discovery.data.new_rows.NUMBERS_AT_ONCE", 100)  # some rows at a time
    assert run(["apply", str(saved), str(path), "--out", str(tmp_path / "z.npy")]) == 0
    np.testing.assert_allclose(np.load(tmp_path / "z.npy"), found.transform(whole), rtol=1e-12)
    assert run(["interpret", str(saved), str(path)]) == 0


def test_a_column_that_became_text_is_told_on_disk_as_in_memory(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")
    found, path = discoveries.discovery(), tmp_path / "text.parquet"
    rows = pd.DataFrame(discoveries.inputs(), columns=list(found.input_names))
    told: list[str] = []
    for fits in (2**27, 100):
        monkeypatch.setattr("isthmus.tasks.large_tables.FITS", fits)
        for odd in (rows.assign(**{found.input_names[1]: "warm"}), rows.iloc[:, 1:]):
            odd.to_parquet(path)
            assert run(["apply", str(saved), str(path)]) == 2
            told.append(capsys.readouterr().err.splitlines()[-1])
    assert told[:2] == told[2:]
    assert "lacks 1 of the 5 input columns" in told[1]
