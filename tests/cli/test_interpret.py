"""`isthmus interpret`: what a run stored of its coordinates, of that run and no other."""

import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

import discoveries
import isthmus
from command_lines import line_of
from isthmus.cli.main import run
from isthmus.discovery.evidence.interpretation import distance_correlation
from isthmus.discovery.files.storage import INTERPRETATION, write_beside
from isthmus.writing.checksums import opened_json, sealed_json


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    found = discoveries.discovery()
    found.save(tmp_path / "run")
    write_beside(tmp_path / "run", INTERPRETATION, isthmus.interpret(found, discoveries.inputs()))
    return tmp_path / "run"


def test_json_has_numbers_and_whole_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    long = tuple(f"{'a very long name ' * 8}{i}" for i in range(5))
    found = discoveries.discovery(input_names=long)
    found.save(tmp_path)
    meaning = isthmus.interpret(found, discoveries.inputs())
    write_beside(tmp_path, INTERPRETATION, meaning)
    assert run(["interpret", str(tmp_path), "--json"]) == 0
    first, *others = json.loads(capsys.readouterr().out)["coordinates"]
    assert (first["coordinate"], len(others)) == (1, 2)
    assert first["error_saved"] == meaning["error_saved"].values[0]
    assert list(first["attribution"]) == list(long)


def test_a_narrow_terminal_keeps_every_value(
    saved: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    assert run(["interpret", str(saved)]) == 0
    whole = "".join(capsys.readouterr().out.split())
    assert "\u2026" not in whole
    assert whole.count("place") == 3
    monkeypatch.setenv("COLUMNS", "200")
    assert run(["interpret", str(saved)]) == 0
    [value] = re.findall(r"error saved / variance +(\S+)", capsys.readouterr().out)[:1]
    assert value[:4] in whole


def test_what_another_run_stored_is_refused(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["interpret", str(saved)]) == 0
    assert capsys.readouterr().out.count("follows most") == 3
    found = discoveries.discovery(input_names=("a", "b", "c", "d", "e"))
    found.save(saved.with_name("other"))
    write_beside(saved.with_name("other"), INTERPRETATION, isthmus.interpret(found, discoveries.inputs() ** 3))
    shutil.copy(saved.with_name("other") / INTERPRETATION, saved / INTERPRETATION)
    assert run(["interpret", str(saved)]) == 2
    assert "interpretation.nc is damaged or of another run (its checksum differs)" in line_of(capsys.readouterr().err)
    # a run from before its checksum was kept: told by its columns
    content = opened_json((saved / "result.json").read_bytes())
    del content["beside"]
    (saved / "result.json").write_bytes(sealed_json(content))
    assert run(["interpret", str(saved)]) == 2
    assert "of another run (it has other columns). Give DATA" in line_of(capsys.readouterr().err)
    write_beside(saved, INTERPRETATION, isthmus.interpret(isthmus.load(saved), discoveries.inputs()))
    assert run(["interpret", str(saved)]) == 0


def test_candidates_are_compared_on_new_rows_and_stand_in_json(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, x = discoveries.discovery(), discoveries.inputs()
    path = tmp_path / "more.csv"
    pd.DataFrame(x, columns=list(found.input_names)).assign(other=x[:, 0] ** 2, kind="red").to_csv(path, index=False)
    assert run(["interpret", str(saved), str(path), "--candidates", "other", "--json"]) == 0
    told = [one["distance_correlation"]["other"] for one in json.loads(capsys.readouterr().out)["coordinates"]]
    z = found.transform(x)
    assert told == pytest.approx([distance_correlation(z[:, i], x[:, 0] ** 2) for i in range(found.rank)])
    for arguments, words in (
        ([str(saved), "--candidates", "other"], "needs DATA"),
        ([str(saved), "builtin:iris", "--candidates", "other"], "needs DATA, a file"),
        ([str(saved), str(path), "--candidates", ","], "names no column"),
        ([str(saved), str(path), "--candidates", "othr"], "has no column 'othr'"),
    ):
        assert run(["interpret", *arguments]) == 2
        assert words in line_of(capsys.readouterr().err)


def test_rows_that_say_nothing_are_refused(saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One row, or the same one several times: all of its coordinates saved nothing, as if no input mattered."""
    path, x = tmp_path / "one.csv", pd.DataFrame(discoveries.inputs(), columns=list(discoveries.INPUTS))
    for rows in (x[:1], x.iloc[[0, 0, 0]]):
        rows.to_csv(path, index=False)
        assert run(["interpret", str(saved), str(path)]) == 2
        assert "the coordinates do not vary" in line_of(capsys.readouterr().err)
    x[:5].to_csv(path, index=False)
    assert run(["interpret", str(saved), str(path)]) == 0
    assert "has 5 rows; what coordinates mean needs at least 20" in capsys.readouterr().err
