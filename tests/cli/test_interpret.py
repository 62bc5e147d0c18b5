"""`isthmus interpret`: what a run stored of its coordinates, of that run and no other."""

import json
import re
import shutil
from pathlib import Path

import pytest

import discoveries
import isthmus
from command_lines import line_of
from isthmus.cli.main import run
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
