"""Every reader with mutants of good files: success, or one line of ours, in little time and memory.

    PYTHONPATH=src:tests:benchmarks python tests/fuzz/fuzzing.py npy 100000 [FIRST]

prints the numbers of the inputs that fail, with what they raise; a number gives the same input again.
"""

import contextlib
import io
import json
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
import zlib
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType

from fuzz import corpus
from fuzz.mutation import mutant
from isthmus.cli.data import rows_like
from isthmus.cli.main import run
from isthmus.cli.model_data import own_arrays
from isthmus.discovery import load
from isthmus.discovery.files.models import read_model_file
from isthmus.discovery.files.netcdf import checksum, read_table
from isthmus.errors import DataWarning, IsthmusError, NumericalWarning
from isthmus.sweeps.plan import Plan
from isthmus.tasks import mnist, read_matrix
from isthmus.tasks import read_table as read_data
from isthmus.tasks.arrays import counted
from isthmus.tasks.door import read_json, read_toml, through_door
from isthmus.tasks.shards import open_rows, read_numbers

MEMORY = "64M"  # what data may take while the fuzzer runs
MOST_SECONDS, MOST_BYTES = 10.0, 400 * 2**20  # of one input: of the processor, and beyond what was taken before


class Hang(BaseException):
    """An input that takes longer than it may; no reader may catch it."""


@dataclass(frozen=True)
class Reader:
    """What is fuzzed.

    Attributes:
        suffix: of its files.
        good: the files that mutants are made of.
        read: takes a path.
    """

    suffix: str
    good: Callable[[], list[bytes]]
    read: Callable[[Path], object]


def _table(path: Path) -> None:
    """As inputs, as targets and as classes, chosen by the content so that each mutant is read once."""
    options: list[dict[str, object]] = [{}, {"target": "a"}, {"classes": "kind"}, {"groups": "kind"}, {"aside": ["b"]}]
    if path.suffix == ".npz":
        options = [{}, {"classes": "y"}, {"autoencode": True}]
    read_data(path, **options[path.stat().st_size % len(options)])  # type: ignore[arg-type]


def _rows(path: Path) -> None:
    rows_like(str(path), ("a", "kind=cat") if path.stat().st_size % 2 else ("c1", "c2", "c3"))


def _shard(path: Path) -> None:
    source = open_rows(path)
    read_numbers(source, slice(0, min(source.rows, 1000)), source.names[:2], "data")


def _mnist_folder(path: Path) -> None:
    folder = path.parent / "mnist"
    folder.mkdir(exist_ok=True)
    (folder / "train-labels-idx1-ubyte").write_bytes(corpus.idx(corpus.LABELS))
    shutil.copy(path, folder / f"train-images-idx3-ubyte{path.suffix if path.suffix == '.gz' else ''}")
    try:
        mnist(folder, classes=True)
    finally:
        shutil.rmtree(folder)


@cache
def _place() -> Path:
    return Path(tempfile.mkdtemp(prefix="fuzz-"))


def _run_parts() -> list[bytes]:
    return [file.read_bytes() for file in sorted(corpus.run_folder(_place()).iterdir()) if file.is_file()]


def _run_folder(path: Path) -> None:
    """A run of which one file is the mutant, with its right checksum every second time."""
    good = sorted(file for file in corpus.run_folder(_place()).iterdir() if file.is_file())
    content = path.read_bytes()
    folder = path.parent / "damaged"
    shutil.copytree(good[0].parent, folder)
    try:
        chosen = folder / good[_KIND.get(content[:4], zlib.crc32(content) % len(good))].name
        chosen.write_bytes(content)
        if chosen.name != "result.json" and len(content) % 2:
            result = json.loads((folder / "result.json").read_text())
            result["checksums"][chosen.name] = checksum(chosen)
            (folder / "result.json").write_text(json.dumps(result))
        load(folder)
    finally:
        shutil.rmtree(folder)


_KIND: dict[bytes, int] = {b'{\n "': 2}  # a mutant of result.json that still begins as one takes its place


def _command(*words: str) -> Callable[[Path], None]:
    def call(path: Path) -> None:
        errors = io.StringIO()
        folder = corpus.run_folder(_place())
        filled = [word.format(path=path, run=folder, out=path.parent / "out") for word in words]
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            code = run(filled)
        lines = errors.getvalue().splitlines()
        if code == 2 and not (lines and lines[-1].startswith("isthmus: ")):
            raise AssertionError(f"exit code 2 with {lines[-3:]}")
        if code not in {0, 2, 3}:
            raise AssertionError(f"exit code {code}")

    return call


READERS: dict[str, Reader] = {
    "csv": Reader(".csv", corpus.texts, _table),
    "tsv": Reader(".tsv", lambda: [corpus.text_table("\t")], _table),
    "parquet": Reader(".parquet", corpus.tables, _table),
    "npy": Reader(".npy", corpus.arrays, _table),
    "npz": Reader(".npz", corpus.archives, _table),
    "rows of csv": Reader(".csv", corpus.texts, _rows),
    "rows of npy": Reader(".npy", corpus.arrays, _rows),
    "rows of npz": Reader(".npz", corpus.archives, _rows),
    "matrix csv": Reader(".csv", lambda: [b"1,2\n3,4\n", b"a,b\n1,2.5\n"], read_matrix),
    "matrix npy": Reader(".npy", corpus.arrays, read_matrix),
    "matrix npz": Reader(".npz", corpus.archives, read_matrix),
    "arrays npy": Reader(".npy", corpus.arrays, own_arrays),
    "arrays npz": Reader(".npz", corpus.archives, own_arrays),
    "shard npy": Reader(".npy", corpus.arrays, _shard),
    "shard parquet": Reader(".parquet", corpus.tables, _shard),
    "idx": Reader(".idx", lambda: [corpus.idx(corpus.IMAGES)], _mnist_folder),
    "idx.gz": Reader(".gz", lambda: [corpus.packed(corpus.idx(corpus.IMAGES))], _mnist_folder),
    "json": Reader(".json", corpus.settings, read_json),
    "toml": Reader(".toml", lambda: [corpus.PLAN], read_toml),
    "plan": Reader(".toml", lambda: [corpus.PLAN], Plan.read),
    "netcdf": Reader(".nc", lambda: [corpus.netcdf(_place())],
                     lambda path: through_door(path, lambda p: read_table(p, "scree"), kind="netCDF")),
    "safetensors": Reader(".safetensors", corpus.tensors, read_model_file),
    "run folder": Reader(".part", _run_parts, _run_folder),
    "cost": Reader(".npy", corpus.arrays, _command("cost", "{path}", "--depth", "4", "--kind", "connected")),
    "apply": Reader(".csv", corpus.texts, _command("apply", "{run}", "{path}")),
}  # fmt: skip


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
    name, count = sys.argv[1], int(sys.argv[2])
    found, tried = failures(name, count, first=int(sys.argv[3]) if len(sys.argv) > 3 else 0)
    for words, number in Counter(words.partition(":")[0] for words in found.values()).most_common():
        print(f"  {number} times {words}")  # noqa: T201
    for number, words in list(found.items())[:20]:
        print(f"  {number}: {words}")  # noqa: T201
    print(f"{name}: {counted(tried, 'input')}, {counted(len(found), 'failure')}")  # noqa: T201
    shutil.rmtree(_place(), ignore_errors=True)


if __name__ == "__main__":
    main()
