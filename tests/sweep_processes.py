"""Processes of sweeps for tests: command lines of their own, schedulers, workers, and who their children are."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import isthmus

ENVIRONMENT = os.environ | {
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": os.pathsep.join(
        [str(Path(isthmus.__file__).parents[1]), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    ),
}


class Process(subprocess.Popen[str]):
    """A process in a session of its own, whose errors go to a file: a pipe that nobody reads fills up and stops it."""

    def __init__(self, command: list[str], environment: Mapping[str, str]) -> None:
        with tempfile.NamedTemporaryFile(delete=False) as file:
            self._said = Path(file.name)
            super().__init__(
                command, stdout=subprocess.DEVNULL, stderr=file, text=True, env=environment, start_new_session=True
            )

    def said(self) -> str:
        """What it has written so far."""
        return self._said.read_text()


def start_sweep(plan: Path, folder: Path, *options: str) -> Process:
    """`isthmus sweep PLAN --out DIR` in a session of its own, so that a signal reaches all of it and nothing else."""
    command = [sys.executable, "-m", "isthmus", "sweep", str(plan), "--out", str(folder), *options]
    return start(command)


def start(command: list[str], environment: Mapping[str, str] = ENVIRONMENT) -> Process:
    """Start a command; a signal to its session reaches all of it and nothing else."""
    return Process(command, environment)


def finish(process: Process, *, code: int = 0, seconds: float = 600) -> str:
    """Wait for the end; returns stderr."""
    process.wait(timeout=seconds)
    assert process.returncode == code, process.said()
    return process.said()


def kill_all(process: Process) -> None:
    """Kill -9 of the process and of everything it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=60)


def until(
    condition: Callable[[], bool], *, seconds: float = 120, every: float = 0.01, process: Process | None = None
) -> None:
    """Wait until the condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        assert process is None or process.poll() is None, process.said() if process else ""
        time.sleep(every)


def lines(folder: Path, what: str) -> list[int]:
    """The processes of the lines of attempts.log that say `what`."""
    path = folder / "work" / "attempts.log"
    text = path.read_text() if path.exists() else ""
    return [int(line.split()[3]) for line in text.splitlines() if line.split()[1] == what]
