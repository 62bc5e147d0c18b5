"""A figure that is killed goes on where it stopped and ends with the same numbers."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from isthmus.sweeps.run_files import RESULT
from sweep_processes import finish, kill_all, start, until

FIGURE = "linear-resnets"


def command(folder: Path) -> list[str]:
    return [
        sys.executable, "-m", "isthmus", "figure", FIGURE, "--preset", "tiny", "--workers", "0", "--out", str(folder)
    ]  # fmt: skip


def parts(folder: Path) -> set[Path]:
    found = folder.glob(f"parts/runs/*/*/{RESULT}")
    return {path for path in found if not path.parent.name.startswith(".")}  # not those that are being written


def verdicts(folder: Path) -> Any:
    return json.loads((folder / "verdicts.json").read_text())


@pytest.mark.slow
def test_a_killed_figure_goes_on(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    finish(start(command(whole)))
    process = start(command(broken))
    until(lambda: len(parts(broken)) >= 1, process=process)
    kill_all(process)
    done = {path: path.stat().st_mtime_ns for path in parts(broken)}
    assert 1 <= len(done) < len(parts(whole))
    assert not (broken / "gallery.html").exists()
    finish(start(command(broken)))
    assert {path: path.stat().st_mtime_ns for path in done} == done
    assert {path.parent.name for path in parts(broken)} == {path.parent.name for path in parts(whole)}
    assert verdicts(broken) == verdicts(whole)
