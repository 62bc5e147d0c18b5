"""Every reader with mutants of good files: success, or one line of ours, in little time and memory.

    PYTHONPATH=src:tests:benchmarks python tests/fuzz/fuzzing.py npy 100000 [FIRST]
    PYTHONPATH=src:tests:benchmarks python tests/fuzz/fuzzing.py all 100000 [FIRST]   # all readers, in rounds

prints the numbers of the inputs that fail, with what they raise; a number gives the same input again.
"""

import contextlib
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Generator
from pathlib import Path
from types import FrameType

from fuzz.mutation import mutant
from fuzz.readers import READERS, place
from isthmus.errors import DataWarning, IsthmusError, NumericalWarning
from isthmus.tasks.arrays import counted

MEMORY = "64M"  # what data may take while the fuzzer runs
AT_ONCE = 1000  # inputs between two words on how far it is
MOST_SECONDS, MOST_BYTES = 10.0, 400 * 2**20  # of one input: of the processor, and beyond what was taken before


class Hang(BaseException):
    """An input that takes longer than it may; no reader may catch it."""


def inputs(name: str, first: int, count: int) -> Generator[tuple[int, bytes]]:
    """The mutants of a reader by number."""
    good = READERS[name].good()
    for number in range(first, first + count):
        chance = random.Random(f"{name} {number}")
        yield number, mutant(chance.choice(good), chance, others=good)


def trial(name: str, content: bytes, folder: Path) -> str:
    """What is wrong with how a reader takes a file; empty where nothing is."""
    reader = READERS[name]
    path = folder / f"data{reader.suffix}"
    path.write_bytes(content)
    caught: list[warnings.WarningMessage] = []
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    try:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            signal.alarm(int(6 * MOST_SECONDS))  # of the wall, on a busy machine
            try:
                reader.read(path)
            finally:
                signal.alarm(0)
                caught = list(heard or ())
    except IsthmusError as error:
        line = str(error)
        if "\n" in line or len(line) > 3000 or not line.endswith((".", "?")):
            return f"not one line: {line[:300]!r}"
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is what is looked for
        if isinstance(error, KeyboardInterrupt):
            raise
        return f"{type(error).__name__}: {str(error)[:200]!r} in {traceback.extract_tb(error.__traceback__)[-1]}"
    seconds = time.process_time() - began
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    if seconds > MOST_SECONDS:
        return f"takes {seconds:.0f} s"
    if grown > MOST_BYTES:
        return f"takes {grown / 2**20:.0f} MiB"
    strange = [w for w in caught if not issubclass(w.category, DataWarning | NumericalWarning)]
    return f"warns {strange[0].category.__name__}: {strange[0].message}" if strange else ""


@contextlib.contextmanager
def budget() -> Generator[Path]:
    """A folder for the files, a limit for data, and an end to hangs."""
    before = os.environ.get("ISTHMUS_MEMORY")
    os.environ["ISTHMUS_MEMORY"] = MEMORY

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise Hang

    handler = signal.signal(signal.SIGALRM, stop)
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    try:
        yield folder
    finally:
        signal.signal(signal.SIGALRM, handler)
        shutil.rmtree(folder, ignore_errors=True)
        if before is None:
            del os.environ["ISTHMUS_MEMORY"]
        else:
            os.environ["ISTHMUS_MEMORY"] = before


def failures(name: str, count: int, *, first: int = 0, seconds: float = float("inf")) -> tuple[dict[int, str], int]:
    """The inputs that fail by number, and how many were tried before the time was over."""
    found: dict[int, str] = {}
    tried, until = 0, time.monotonic() + seconds
    with budget() as folder:
        for number, content in inputs(name, first, count):
            if time.monotonic() > until:
                break
            if wrong := trial(name, content, folder):
                found[number] = wrong
            tried += 1
    return found, tried


def main() -> None:
    """Says how far it is as it goes: a hundred thousand take long, and all readers are to get as far as each other."""
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    last = first + int(sys.argv[2])
    found: dict[str, dict[int, str]] = {name: {} for name in (READERS if sys.argv[1] == "all" else sys.argv[1:2])}
    try:
        for start in range(first, last, AT_ONCE):
            for name, before in found.items():
                more, _ = failures(name, min(AT_ONCE, last - start), first=start)
                before |= more
                for number, words in list(more.items())[:20]:
                    print(f"  {number}: {words}")  # noqa: T201
                tried = counted(min(start + AT_ONCE, last) - first, "input")
                print(f"{name}: {tried}, {counted(len(before), 'failure')}", flush=True)  # noqa: T201
    finally:
        shutil.rmtree(place(), ignore_errors=True)


if __name__ == "__main__":
    main()
