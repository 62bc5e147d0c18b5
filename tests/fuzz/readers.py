"""What is fuzzed: every reader of files that somebody else wrote, with the good files that its mutants are made of."""

import contextlib
import io
import json
import shutil
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import discoveries
from fuzz import corpus
from isthmus.cli.apply import NewRows, What, applied
from isthmus.cli.data_of_run import rows_like
from isthmus.cli.main import run
from isthmus.cli.model_data import own_arrays
from isthmus.discovery import Discovery, load
from isthmus.discovery.files.models import read_model_file
from isthmus.discovery.files.netcdf import checksum, read_table
from isthmus.discovery.files.state_dicts import INDEX, unpickled_tensors
from isthmus.discovery.groups.unit_files import read_units
from isthmus.sweeps.plan import Plan
from isthmus.sweeps.run_files import arrays_of, read_network
from isthmus.tasks import mnist, read_matrix
from isthmus.tasks import read_table as read_data
from isthmus.tasks.csv_cells import csv_text
from isthmus.tasks.door import read_json, read_toml, through_door
from isthmus.tasks.input_columns import InputColumn, Made, recorded
from isthmus.tasks.shards import open_rows, read_numbers
from isthmus.tasks.table_options import TableOptions
from isthmus.writing.checksums import sealed_json


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


def _pictures(path: Path) -> None:
    folder = path.parent / "pictures"
    folder.mkdir()
    shutil.copy(path, folder)
    try:
        read_data(folder)
    finally:
        shutil.rmtree(folder)


@cache
def place() -> Path:
    """A folder for what readers need besides the mutant; of one process, and its own to remove."""
    return Path(tempfile.mkdtemp(prefix="fuzz-"))


def _damaged(path: Path, good: Path, look: Callable[[Path], object]) -> None:
    """A folder of which one file is the mutant, with its right checksum every second time."""
    files = sorted(file.name for file in good.iterdir() if file.is_file())
    content = path.read_bytes()
    folder = path.parent / "damaged" / good.name  # a run of a sweep is called by its id
    shutil.copytree(good, folder)
    try:
        is_result = content[:4] == b'{\n "'  # a mutant of result.json that still begins as one takes its place
        chosen = folder / ("result.json" if is_result else files[zlib.crc32(content) % len(files)])
        chosen.write_bytes(content)
        if len(content) % 2:
            with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
                result = json.loads((folder / "result.json").read_text())
                if chosen.name != "result.json":
                    result["checksums"][chosen.name] = checksum(chosen)
                (folder / "result.json").write_bytes(sealed_json(result))
        look(folder)
    finally:
        shutil.rmtree(folder.parent)


def _sweep_run(folder: Path) -> None:
    arrays_of(folder)
    read_network(folder)


def _parts(folder: Path) -> list[bytes]:
    return [file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()]


def _sharded(path: Path) -> None:
    """An index beside good files, or a good index beside a file that is the mutant."""
    content, index = path.read_bytes(), path.parent / f"model{INDEX}"
    index.write_bytes(corpus.sharded()[0])
    for name, tensors in corpus.SHARDS.items():
        (path.parent / name).write_bytes(corpus.save(tensors))
    (index if content.lstrip()[:1] == b"{" else path.parent / "one.safetensors").write_bytes(content)
    read_model_file(index, factory="fuzz.corpus:made_network")


@cache
def _for_tables() -> Discovery:
    """A discovery whose inputs are those that `corpus.text_table` gives."""
    kinds = [InputColumn(f"kind={kind}", Made.ONE_HOT, "kind", kind) for kind in ("cat", "eel", "owl")]
    columns = (InputColumn("a"), InputColumn("b b"), *kinds)
    found = discoveries.discovery(input_names=tuple(c.name for c in columns))
    return replace(found, settings={**found.settings, "input_columns": recorded(columns)})


def _applied(path: Path) -> None:
    what = What.PREDICTION if path.stat().st_size % 2 else What.COORDINATES
    csv_text(applied(_for_tables(), NewRows(path.parent, str(path), what)))


def _guessed(path: Path) -> None:
    """With nothing said, or with something that may be wrong."""
    said = (
        TableOptions(), TableOptions(sep=";", decimal=","), TableOptions(encoding="utf-16"), TableOptions(impute=True),
        TableOptions(sep="space", comment="#"), TableOptions(encoding="latin-1", drop_missing=True),
        TableOptions(encoding="utf-16-be"), TableOptions(comment="%", sep="|"), TableOptions(),
        TableOptions(units=True),
    )  # fmt: skip
    read_data(path, options=said[zlib.crc32(path.read_bytes()) % len(said)])


def _zarr(path: Path) -> None:
    """The array to which the mutant belongs, which takes the place of one of its files."""
    number, content = path.read_bytes()[:1] or b"\0", path.read_bytes()[1:]
    good = corpus.zarr_folder(place())
    files = corpus.zarr_files(good)
    file = files[number[0] % len(files)].relative_to(good)
    folder = path.parent / file.parts[0]
    shutil.copytree(good / file.parts[0], folder)
    try:
        (path.parent / file).write_bytes(content)
        read_data(folder)
        _shard(folder)
    finally:
        shutil.rmtree(folder)


def _command(*words: str) -> Callable[[Path], None]:
    def call(path: Path) -> None:
        errors = io.StringIO()
        folder = corpus.run_folder(place())
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
    "netcdf": Reader(".nc", lambda: corpus.netcdf(place()),
                     lambda path: through_door(path, read_table, kind="netCDF")),
    "safetensors": Reader(".safetensors", lambda: [*corpus.tensors(), corpus.network(place())], read_model_file),
    "sharded safetensors": Reader(f"{INDEX}", corpus.sharded, _sharded),
    "state dict": Reader(".pt", corpus.state_dicts, unpickled_tensors),
    "run folder": Reader(".part", lambda: _parts(corpus.run_folder(place())),
                         lambda path: _damaged(path, corpus.run_folder(place()), load)),
    "sweep run": Reader(".part", lambda: _parts(corpus.sweep_run(place())),
                        lambda path: _damaged(path, corpus.sweep_run(place()), _sweep_run)),
    "cost": Reader(".npy", corpus.arrays, _command("cost", "{path}", "--depth", "4", "--kind", "connected")),
    "apply": Reader(".csv", corpus.texts, _applied),
    "guessed csv": Reader(".csv", corpus.guessed, _guessed),
    "guessed dat": Reader(".dat", corpus.guessed, _guessed),
    "guessed csv.gz": Reader(".csv.gz", lambda: [corpus.packed(text) for text in corpus.guessed()], _guessed),
    "xlsx": Reader(".xlsx", corpus.sheets, _table),
    "pictures": Reader(".png", corpus.pictures, _pictures),
    "units toml": Reader(".toml", corpus.units_toml, read_units),
    "units csv": Reader(".csv", corpus.units_csv, read_units),
}  # fmt: skip
if find_spec("zarr"):  # an extra
    READERS["zarr"] = Reader(".part", lambda: corpus.zarr_parts(place()), _zarr)
