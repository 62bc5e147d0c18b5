"""Discoveries signalled at random moments, each going on where the one before was stopped; who lost what.

python tests/signal_stress.py 1000 [SEED]     # prints a count of how they ended, and every failure whole
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

SRC = Path(os.environ.get("ISTHMUS_SRC", str(Path(__file__).parents[1] / "src")))
SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
ENDED = {0, 3}  # done, or done and doubtful
OPTIONS = ["--target", "c", "--ridge", "3e-3", "--starts", "1", "--seed", "1"]
LONGEST = 300.0


@dataclass(slots=True)
class Outcome:
    """What a number of signalled children did."""

    codes: Counter[str] = field(default_factory=Counter[str])
    failures: list[str] = field(default_factory=list[str])
    finished: int = 0  # runs that came to their end over several children, with the bits of the undisturbed one


def write_data(path: Path) -> Path:
    """Sixty rows with one target."""
    x = np.random.default_rng(0).normal(size=(60, 2))
    rows = np.column_stack([x, np.tanh(x[:, 0] - x[:, 1])])
    np.savetxt(path, rows, delimiter=",", header="a,b,c", comments="")
    return path


def started(data: Path, folder: Path, *options: str, evaluations: int = 20) -> subprocess.Popen[str]:
    """A discovery in a process of its own."""
    where = ["--resume", str(folder)] if folder.exists() else ["--out", str(folder)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONPATH": str(SRC)}
    return subprocess.Popen(
        [sys.executable, "-m", "isthmus", "discover", str(data), *OPTIONS, *where, *options,
         "--evaluations", str(evaluations)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip


def is_handled(number: int) -> bool | None:
    """Whether SIGTERM has a handler in a process: before, there is only the interpreter. None where it has ended."""
    try:
        status = Path(f"/proc/{number}/status").read_text()
    except OSError:
        return None
    caught = next((line for line in status.splitlines() if line.startswith("SigCgt")), None)
    if caught is None or "State:\tZ" in status:
        return None
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


def until_handled(process: subprocess.Popen[str]) -> None:
    """Wait until a process hears signals, or has ended."""
    while process.poll() is None and is_handled(process.pid) is False:
        time.sleep(0.001)


def undisturbed(data: Path, folder: Path, *options: str) -> tuple[float, bytes]:
    """Seconds of a run that nobody disturbs, and its weights."""
    process = started(data, folder, *options)
    until_handled(process)
    began = time.monotonic()
    out, err = process.communicate(timeout=LONGEST)
    assert process.returncode in ENDED, out + err
    return time.monotonic() - began, (folder / "weights.safetensors").read_bytes()


def stress(number: int, *, seed: int, options: tuple[str, ...] = ("--no-pictures",)) -> Outcome:
    """Signal so many children, at moments spread over the time of a whole run, a fifth of them twice."""
    chance, outcome = random.Random(seed), Outcome()
    # a shell starts what runs behind it deaf to Ctrl-C, and children inherit that: they would run to their end
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with TemporaryDirectory(prefix="stress-") as place:
        data = write_data(Path(place) / "data.csv")
        seconds, weights = undisturbed(data, Path(place) / "whole", *options)
        folder = Path(place) / "run"
        for turn in range(number):
            first = chance.choice(SIGNALS)
            again = chance.choice(SIGNALS) if chance.random() < 0.2 else None
            moment = chance.uniform(0.0, 1.05 * seconds)
            problem, code = _one(data, folder, first, again, moment, chance.uniform(0.12, 0.4), options)
            outcome.codes[code] += 1
            if not problem and code in map(str, ENDED):
                same = (folder / "weights.safetensors").read_bytes() == weights
                outcome.finished += same
                problem = "" if same else "the weights differ from those of an undisturbed run"
                shutil.rmtree(folder)
            if problem:
                outcome.failures.append(f"turn {turn}, {first.name} {again} after {moment:.3f} s: {code}: {problem}")
                shutil.rmtree(folder, ignore_errors=True)
    return outcome


def _one(  # noqa: PLR0913 - a moment has that many sides
    data: Path, folder: Path, first: signal.Signals, again: signal.Signals | None, moment: float, pause: float,
    options: tuple[str, ...],
) -> tuple[str, str]:  # fmt: skip
    """What is wrong with how one child ended, and its exit code."""
    process = started(data, folder, *options)
    until_handled(process)
    time.sleep(moment)
    process.send_signal(first)
    if again is not None:
        time.sleep(pause)
        process.send_signal(again)
    try:
        _, err = process.communicate(timeout=LONGEST)
    except subprocess.TimeoutExpired:
        process.kill()
        return f"did not end\n{process.communicate()[1]}", "none"
    code = str(process.returncode)
    if process.returncode not in {130, *ENDED}:
        return err, code
    if "Traceback" in err or "Exception ignored" in err or "terminate" in err:
        return err, code
    if process.returncode == 130 and again is None and "interrupted" not in err:
        return f"said nothing\n{err}", code
    if folder.exists() and not any(folder.iterdir()):
        folder.rmdir()
    if folder.exists() and not (folder / "work").exists() and not (folder / "result.json").exists():
        shutil.rmtree(folder)  # made, and nothing begun: a new start takes it
    return "", code


if __name__ == "__main__":
    told = stress(int(sys.argv[1]), seed=int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    ended = f"{told.finished} runs ended with the same bits"
    sys.stdout.write(f"{sum(told.codes.values())} children: {dict(told.codes)}; {ended}\n")
    sys.stdout.write("\n".join([f"{len(told.failures)} failures", *told.failures, ""]))
    sys.exit(bool(told.failures))
