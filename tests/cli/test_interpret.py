"""`isthmus interpret`: what a run stored of its coordinates, of that run and no other."""

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
