"""Processes of sweeps for tests: command lines of their own, schedulers, workers, and who their children are."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import isthmus

ENVIRONMENT = os.environ | {
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": os.pathsep.join([str(Path(isthmus.__file__).parents[1]), str(Path(__file__).parent)]),
}


def start_sweep(plan: Path, folder: Path, *options: str) -> "subprocess.Popen[str]":
    """`isthmus sweep PLAN --out DIR` in a session of its own, so that a signal reaches all of it and nothing else."""
    command = [sys.executable, "-m", "isthmus", "sweep", str(plan), "--out", str(folder), *options]
    return start(command)


def start(command: list[str], environment: Mapping[str, str] = ENVIRONMENT) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )


def finish(process: "subprocess.Popen[str]", *, code: int = 0, seconds: float = 600) -> str:
    """Wait for the end; returns stderr."""
    _, errors = process.communicate(timeout=seconds)
    assert process.returncode == code, errors
    return errors


def kill_all(process: "subprocess.Popen[str]") -> None:
    """Kill -9 of the process and of everything it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)


def until(
    condition: Callable[[], bool], *, seconds: float = 120, process: "subprocess.Popen[str] | None" = None
) -> None:
    """Wait until the condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        assert process is None or process.poll() is None, process.communicate()[1] if process else ""
        time.sleep(0.01)


def lines(folder: Path, what: str) -> list[int]:
    """The processes of the lines of attempts.log that say `what`."""
    path = folder / "work" / "attempts.log"
    text = path.read_text() if path.exists() else ""
    return [int(line.split()[3]) for line in text.splitlines() if line.split()[1] == what]
