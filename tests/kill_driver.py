"""Runs a command over and over in forked children that are killed, by turns at a drawn file operation and after a
drawn time of the processor, until it is done.

`python kill_driver.py KILLS SEED FOLDER WORD ...`: an undisturbed run, FOLDER/whole; then each run is killed and gone
on with until it ends, then the next one begins, until there were so many kills. A line of JSON for each kill says what
the run was at, and one that it ended. Every sixth discovery draws its pictures.
Forked from the process of the undisturbed run, since starting Python anew takes longer than a run.
"""

import contextlib
import io
import json
import mmap
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from isthmus.cli import discover_run
from isthmus.cli.main import run
from isthmus.discovery import result
from isthmus.discovery.work import runner
from isthmus.sweeps import execution, worker
from isthmus.training import fitting

FINISHED = {0, 3}
MOST_SITTINGS = 400
MEAN_OPERATIONS, MEAN_SECONDS, PICTURES = 25, 0.25, 6
# what a run is at while a function runs, and afterwards until the next one; None: what it was at before
WINDOWS: dict[tuple[Any, str], tuple[str, str | None]] = {
    (fitting.Fitting, "_phases"): ("training", "between training and record"),
    (fitting.Fitting, "_save"): ("writing a checkpoint", None),
    (fitting.Fitting, "_save_end"): ("writing the end of a training", None),
    (runner, "save_state"): ("writing the record of a training", "between trainings"),
    (execution, "_numbers"): ("reading a network", "between training and record"),
    (worker, "write_run"): ("writing the result", "after the result"),
    (result, "write_fields"): ("writing the result", "after the result"),
    (discover_run, "write_outputs"): ("drawing pictures and page", "after the page"),
}


class Window:
    """What a child is at, where its parent can read it."""

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, 100)
        self.put("starting")

    def put(self, name: str) -> None:
        """Say it."""
        self._shared[:100] = name.encode().ljust(100)

    def get(self) -> str:
        """Read it."""
        return self._shared[:100].decode().strip()

    def over(self, holder: Any, name: str, during: str, after: str | None) -> None:
        """Say it of each call of a function."""
        real: Callable[..., Any] = getattr(holder, name)

        def told(*arguments: Any, **named: Any) -> Any:
            before = self.get()
            self.put(during)
            found = real(*arguments, **named)
            self.put(after or before)
            return found

        setattr(holder, name, told)


class Fate:
    """Kills the process at the n-th of its file operations; where it is not reached, the process ends by itself."""

    def __init__(self, number: int, *, afterwards: bool, window: Window) -> None:
        self.left, self.afterwards, self.window = number, afterwards, window

    def on(self, holder: Any, name: str) -> None:
        """Count the calls of a function that changes files."""
        real: Callable[..., Any] = getattr(holder, name)

        def counted(*arguments: Any, **named: Any) -> Any:
            self.left -= 1
            if self.left == 0 and not self.afterwards:
                self.kill(name)
            found = real(*arguments, **named)
            if self.left == 0:
                self.kill(name)
            return found

        setattr(holder, name, counted)

    def kill(self, name: str) -> None:
        """Say where, and end."""
        self.window.put(f"{self.window.get()}, {'after' if self.afterwards else 'before'} {name}")
        os.kill(os.getpid(), signal.SIGKILL)


def child_of(words: list[str], fate: Fate, window: Window, errors: Path) -> int:
    """The number of a forked process that runs the command."""
    if child := os.fork():
        return child
    code = 99
    try:
        file = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, 1)
        os.dup2(file, 2)
        fitting.CHECKPOINT_SECONDS = 0.0  # at every step: how fast the machine is decides nothing
        fitting.CHECKPOINT_PAUSE = 0.0
        for holder, name in ((Path, "replace"), (Path, "rename"), (Path, "unlink"), (os, "fsync"), (os, "rmdir")):
            fate.on(holder, name)
        for (holder, name), (during, after) in WINDOWS.items():
            window.over(holder, name, during, after)
        code = run(words)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def sitting(words: list[str], draw: random.Random, errors: Path) -> tuple[int, str]:
    """How one child ended, and what it was at."""
    window, afterwards = Window(), draw.random() < 0.5
    number, seconds = int(draw.expovariate(1 / MEAN_OPERATIONS)) + 1, draw.expovariate(1 / MEAN_SECONDS)
    if words[0] == "discover" and "--no-pictures" not in words:  # which take longer than all else
        number, seconds = 2 * number, 4 * seconds
    if by_time := draw.random() < 0.5:
        number = -1
    child = child_of(words, Fate(number, afterwards=afterwards, window=window), window, errors)
    clock = (~child << 3) | 2  # Linux's name for the processor's time of that process
    ended, status = 0, 0
    while not ended:
        if by_time and time.clock_gettime(clock) > seconds:
            os.kill(child, signal.SIGKILL)
            ended, status = os.waitpid(child, 0)
        else:
            time.sleep(0.002)
            ended, status = os.waitpid(child, os.WNOHANG)
    return os.waitstatus_to_exitcode(status), window.get()


def say(**line: str) -> None:
    """One line of JSON, at once."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def carried_out(words: list[str], out: Path, draw: random.Random) -> int:
    """Kill a run and go on with it until it ends; how often it was killed."""
    for kills in range(MOST_SITTINGS):
        begun = words[0] != "sweep" and any((out / name).exists() for name in ("work", "result.json"))
        option = "--resume" if begun else "--out"
        code, window = sitting([*words, option, str(out)], draw, out.with_suffix(".said"))
        if code in FINISHED:
            say(ended=out.name)
            return kills
        if code != -signal.SIGKILL:
            sys.exit(f"{out}: code {code}: {out.with_suffix('.said').read_text()}")
        say(killed=out.name, at=window)
    sys.exit(f"{out}: it never came to an end")


def main() -> None:
    """See above."""
    wanted, seed, folder, words = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:]
    with contextlib.redirect_stdout(io.StringIO()):
        if run([*words, "--out", str(folder / "whole")]) not in FINISHED:
            sys.exit("it does not end undisturbed")
    draw, kills, number = random.Random(seed), 0, 0
    while kills < wanted:
        out = folder / f"run{number}"
        plain = ["--no-pictures"] * (words[0] == "discover" and number % PICTURES > 0)
        kills, number = kills + carried_out([*words, *plain], out, draw), number + 1


if __name__ == "__main__":
    main()
