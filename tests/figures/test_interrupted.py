"""`isthmus figure --workers 2` as a process: the bits of `--workers 0`, also after an interruption in its middle."""

import os
import signal
import sys
from pathlib import Path

import pytest

from isthmus.sweeps.run_files import RESULT, WEIGHTS, arrays_of
from sweep_processes import Process, finish, start, until

FIGURE = ("discretisation", "linear-networks")  # trainings of its own, and trainings of a sweep
NUM_PARTS = 6  # of discretisation


def start_figure(name: str, folder: Path, workers: int) -> Process:
    command = [sys.executable, "-m", "isthmus", "figure", name, "--preset", "tiny"]
    return start([*command, "--out", str(folder), "--workers", str(workers)])


def results(folder: Path) -> dict[str, Path]:
    """Folder of everything that is finished, by its id."""
    found = [*folder.glob(f"runs/runs/*/*/{RESULT}"), *folder.glob(f"parts/runs/*/*/{RESULT}")]
    return {path.parent.name: path.parent for path in found if not path.parent.name.startswith(".")}  # half written


def bits(folder: Path) -> dict[str, tuple[str, bytes]]:
    """All that was computed, but how long it took."""
    return {
        name: (
            repr(arrays_of(place).drop_attrs().to_dict()),
            (place / WEIGHTS).read_bytes() if (place / WEIGHTS).exists() else b"",
        )
        for name, place in results(folder).items()
    }


def is_gone(process: Process) -> bool:
    """Whether nothing that a command started is left behind."""
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURE)
def test_workers_change_no_bit(name: str, tmp_path: Path) -> None:
    for workers in (0, 2):
        finish(start_figure(name, tmp_path / str(workers), workers))
    found = bits(tmp_path / "0")
    assert len(found) >= 3
    assert found == bits(tmp_path / "2")


@pytest.mark.slow
def test_an_interrupted_parallel_figure_goes_on(tmp_path: Path) -> None:
    whole, halved = tmp_path / "whole", tmp_path / "halved"
    halved.mkdir()
    process = start_figure("discretisation", halved, 2)
    until(lambda: len(results(halved)) >= 1, process=process)
    os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does, to all processes of the command
    assert "the same command goes on" in finish(process, code=130)
    until(lambda: is_gone(process))
    before = {name: (place / RESULT).stat().st_mtime_ns for name, place in results(halved).items()}
    assert 1 <= len(before) < NUM_PARTS
    finish(start_figure("discretisation", halved, 2))
    after = results(halved)
    assert {name: (after[name] / RESULT).stat().st_mtime_ns for name in before} == before
    finish(start_figure("discretisation", whole, 0))
    assert bits(halved) == bits(whole)
