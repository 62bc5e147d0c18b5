"""Runs a command over and over in forked children that kill themselves at a drawn file operation, until it is done.

`python kill_driver.py KILLS SEED FOLDER WORD ...`: each run is killed and gone on with until it ends, then the next one
begins, until there were so many kills. One line of JSON for each run says where it was killed.
Forked, since starting Python anew takes longer than a run.
"""

import importlib
import json
import os
import random
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from isthmus.cli.main import run
from isthmus.training import fitting

FINISHED = {0, 3}
MOST_SITTINGS = 400


class Fate:
    """Kills the process at the n-th of its file operations; where it is not reached, the process ends by itself."""

    def __init__(self, number: int, *, afterwards: bool, told: int) -> None:
        self.left, self.afterwards, self.told = number, afterwards, told

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
        os.write(self.told, f"{'after' if self.afterwards else 'before'} {name}".encode())
        os.kill(os.getpid(), signal.SIGKILL)


def sitting(words: list[str], draw: random.Random, errors: Path) -> tuple[int, str]:
    """How one child ended, and where it was killed."""
    number, afterwards = int(draw.expovariate(1 / 25)) + 1, draw.random() < 0.5
    heard, told = os.pipe()
    child = os.fork()
    if child == 0:
        code = 99
        try:
            file = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(file, 1)
            os.dup2(file, 2)
            fitting.CHECKPOINT_SECONDS = 0.02
            fitting.CHECKPOINT_PAUSE = 0.0
            fate = Fate(number, afterwards=afterwards, told=told)
            for holder, name in ((Path, "replace"), (Path, "rename"), (Path, "unlink"), (os, "fsync"), (os, "rmdir")):
                fate.on(holder, name)
            code = run(words)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(told)
    where = os.read(heard, 100).decode()
    os.close(heard)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), where


def carried_out(words: list[str], out: Path, draw: random.Random) -> list[str]:
    """Kill a run and go on with it until it ends; where it was killed."""
    kills: list[str] = []
    for _ in range(MOST_SITTINGS):
        begun = words[0] != "sweep" and any((out / name).exists() for name in ("work", "result.json"))
        option = "--resume" if begun else "--out"
        code, where = sitting([*words, option, str(out)], draw, out.with_suffix(".said"))
        if code in FINISHED:
            return kills
        if code != -signal.SIGKILL:
            sys.exit(f"after {kills}: code {code}: {out.with_suffix('.said').read_text()}")
        kills.append(where)
    sys.exit(f"it never came to an end: {kills}")


def main() -> None:
    """See above."""
    wanted, seed, folder, words = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:]
    for heavy in ("isthmus.cli.discover_run", "isthmus.sweeps.sweeping"):  # once, and not in every child
        importlib.import_module(heavy)
    draw, kills, number = random.Random(seed), 0, 0
    while kills < wanted:
        out = folder / f"run{number}"
        where = carried_out(words, out, draw)
        kills, number = kills + len(where), number + 1
        sys.stdout.write(json.dumps({"run": out.name, "kills": where}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
