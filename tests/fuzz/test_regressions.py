"""Every file that once ended in a traceback, a hang or all of the memory, by name: refused in one line."""

import gzip
import io
import os
import resource
import struct
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from command_lines import line_of
from fuzz.corpus import LABELS, PLAN, idx, npy, npz, parquet
from isthmus.cli.main import run
from isthmus.errors import DataError, DataWarning, PlanError
from isthmus.sweeps.plan import Plan
from isthmus.tasks import mnist, read_matrix, read_table
from isthmus.tasks.array_files import arrays_of
from isthmus.tasks.door import file_inside, read_json, read_toml
from isthmus.tasks.shards import open_rows, read_labels, read_numbers

Write = Callable[[Path], object]
X = np.random.default_rng(0).normal(size=(30, 3))
Y = X[:, :1]


def header(text: str, *, version: bytes = b"\1\0") -> bytes:
    """A .npy of that header and 720 bytes of numbers."""
    content = text.encode("latin1").ljust(117) + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(content)) + content + X.tobytes()


def shaped(shape: str, descr: str = "'<f8'") -> bytes:
    return header(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}")


def changed(content: bytes, offset: int, value: bytes) -> bytes:
    """An archive with the same field of a member changed in its head and in the directory."""
    made = bytearray(content)
    for mark, start in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        place = made.find(mark) + start + offset
        made[place : place + len(value)] = value
    return bytes(made)


def lying_archive() -> bytes:
    """A member that says it is small and unpacks to 80 MB."""
    packed = bytearray(npz({"x": npy(np.zeros((10**6, 10)))}, zipfile.ZIP_DEFLATED))
    for mark, start in ((b"PK\3\4", 22), (b"PK\1\2", 24)):
        place = packed.find(mark) + start
        packed[place : place + 4] = struct.pack("<I", 1000)
    return bytes(packed)


def bad_lzma() -> bytes:
    content = bytearray(npz({"x": npy(X)}, zipfile.ZIP_LZMA))
    content[60:90] = b"\xff" * 30
    return bytes(content)


def run_length(rows: int) -> bytes:
    stream = io.BytesIO()
    table = pa.table({"a": np.zeros(rows), "b": np.ones(rows)})
    with pq.ParquetWriter(stream, table.schema, compression="zstd") as writer:
        writer.write_table(table, row_group_size=rows)
    return stream.getvalue()


def parquet_with_metadata(text: bytes) -> bytes:
    return parquet(pa.table({"a": X[:, 0], "b": X[:, 1]}).replace_schema_metadata({b"pandas": text}))


def csv_of(header_line: str, *rows: str) -> bytes:
    return ("\n".join([header_line, *rows]) + "\n").encode()


GOOD_ROWS = [f"{a:.3f},{b:.3f}" for a, b, _ in X.tolist()]
WIDE_CELL = "x" * 140_000
LONG_HEADER = b"\x93NUMPY\1\0" + struct.pack("<H", 60_000) + b"(" * 60_000
MAPS = pa.table({"b": pa.array([[("u", 1)]] * 30, pa.map_(pa.string(), pa.int64()))})
TEXTS, HALVES = npy(np.full((30, 1, 2), "a")), npy(np.array(["\ud800", "b"] * 15))
DIGITS = csv_of("a,b", *GOOD_ROWS, f"{'9' * 400},1")
DUPLICATES = pa.table([pa.array(X[:, 0]), pa.array(X[:, 1])], names=["a", "a"])

# name: file, content, what the line says
TABLES: dict[str, tuple[str, bytes, str]] = {
    "npy, a shape of 10^12": ("d.npy", shaped("(1000000000000, 1)"), "is cut short: its header says shape"),
    "npy, a shape beyond 64 bits": ("d.npy", shaped(f"({9**30}, 1)"), "its header says shape"),
    "npy, a negative shape": ("d.npy", shaped("(-1, 3)"), "its header says shape"),
    "npy, a boolean shape": ("d.npy", shaped("(True, 3)"), "its header says shape"),
    "npy, a shape that is no tuple": ("d.npy", shaped("7"), "cannot be read as .npy"),
    "npy, a broken header": ("d.npy", header("{'descr': '<f8', 'fortran"), "cannot be read as .npy"),
    "npy, a nested header": ("d.npy", header("(" * 110), "cannot be read as .npy"),
    "npy, a long header": ("d.npy", LONG_HEADER, "cannot be read as .npy"),
    "npy, odd escapes in the header": ("d.npy", header("{'\\d': '<f8'}"), "cannot be read as .npy"),
    "npy, no such type": ("d.npy", shaped("(30, 3)", "'<q9'"), "cannot be read as .npy"),
    "npy, a type of nested lists": ("d.npy", shaped("(3,)", "[('a', [('b', '<f8')])]"), "not numbers"),
    "npy, values without content": ("d.npy", shaped("(1000000000000,)", "'|V0'"), "values without content"),
    "npy, a version to come": ("d.npy", header("{}", version=b"\3\0"), "is of format 3.0"),
    "npy, dates": ("d.npy", npy(np.arange(30).astype("M8[s]")), "not numbers"),
    "npy, records": ("d.npy", npy(np.zeros(30, dtype=[("a", "f8"), ("b", "f8")])), "not numbers"),
    "npz, encrypted": ("d.npz", changed(npz({"x": npy(X)}), 0, b"\1\0"), "cannot be read as .npz .*encrypted"),
    "npz, an unknown method": ("d.npz", changed(npz({"x": npy(X)}), 2, b"\x63\0"), "cannot be read as .npz"),
    "npz, bad LZMA": ("d.npz", bad_lzma(), "cannot be read as .npz"),
    "npz, one text": ("d.npz", npz({"x": npy(X), "y": npy(np.array("abc"))}), "needs one text per row"),
    "npz, texts in three dimensions": ("d.npz", npz({"x": npy(X), "y": TEXTS}), "one text per row"),
    "npz, no array": ("d.npz", npz({"x": b"no array at all"}), "cannot be read as .npz"),
    "npz, empty": ("d.npz", npz({}), "no array x, but nothing"),
    "npz, a member that lies of its size": ("d.npz", lying_archive(), "Bad CRC|is cut short"),
    "npz, half a pair of UTF-16": ("d.npz", npz({"x": npy(X), "y": HALVES}), "U.D800, which no"),
    "csv, a long cell in the first row": ("d.csv", csv_of(f"a,{WIDE_CELL}", *GOOD_ROWS), "field larger"),
    "csv, whole numbers of 400 digits": ("d.csv", DIGITS, "'a' holds infinity in row 31"),
    "csv, NUL in a name": ("d.csv", csv_of("a\0,b", *GOOD_ROWS), "holds a NUL byte at byte 2"),
    "csv, NUL in a cell": ("d.csv", csv_of("a,b", *GOOD_ROWS, "1\0007,2"), "holds a NUL byte"),
    "csv, a control character in a name": ("d.csv", csv_of("a,b\x1b[0m", *GOOD_ROWS), "name of column 2 holds U.001B"),
    "csv, the same name twice": ("d.csv", csv_of("a,b ,b", "1,2,3", "4,5,7"), "columns 2 and 3 are both called 'b'"),
    "csv, UTF-16": ("d.csv", "a,b\n1,2\n".encode("utf-16"), "is UTF-16"),
    "parquet, damaged metadata of pandas": ("d.parquet", parquet_with_metadata(b'{"index_columns": 7, "columns"'), ""),
    "parquet, nested metadata of pandas": ("d.parquet", parquet_with_metadata(b"[" * 100_000), ""),
    "parquet, the same name twice": ("d.parquet", parquet(DUPLICATES), "columns 1 and 2 are both called 'a'"),
    "parquet, bytes": ("d.parquet", parquet(pa.table({"a": X[:, 0], "b": [b"x"] * 30})), "'b' holds binary"),
    "parquet, lists": ("d.parquet", parquet(pa.table({"a": X[:, 0], "b": [[1, 2]] * 30})), "'b' holds list"),
    "parquet, structs": ("d.parquet", parquet(pa.table({"a": X[:, 0], "b": [{"u": 1}] * 30})), "'b' holds struct"),
    "parquet, maps": ("d.parquet", parquet(MAPS), "holds map"),
}  # fmt: skip


@pytest.mark.parametrize(("file", "content", "says"), TABLES.values(), ids=list(TABLES))
def test_a_table(tmp_path: Path, file: str, content: bytes, says: str) -> None:
    path = tmp_path / file
    path.write_bytes(content)
    options: dict[str, Any] = {"classes": "y"} if "text" in says or "D800" in says else {}
    if not says:  # what pandas notes of itself is not needed
        assert read_table(path, **options).x.shape == (30, 2)
        return
    with pytest.raises((DataError, DataWarning), match=says) as caught:  # of warnings, which are errors here, too
        read_table(path, **options)
    line = str(caught.value)
    assert line.startswith(str(path))
    assert line.endswith(".")
    assert "\n" not in line


@pytest.mark.parametrize("name", [name for name in TABLES if name.startswith("np")])
def test_an_array_elsewhere(tmp_path: Path, name: str) -> None:
    """The same files as a matrix, as samples of a module and as rows of a fit."""
    file, content, _says = TABLES[name]
    path = tmp_path / file
    path.write_bytes(content)
    readers: list[Callable[[], object]] = [lambda: read_matrix(path), lambda: arrays_of(path)]
    if file.endswith(".npy"):
        readers.append(lambda: open_rows(path))
    lines: list[str] = []
    for read in readers:
        try:
            read()
        except DataError as error:
            lines.append(str(error))
    assert not any("\n" in line for line in lines)
    # a matrix is x alone, and samples may be of any type
    assert lines or any(word in name for word in ("text", "UTF-16"))


def test_rows_of_a_fit(tmp_path: Path) -> None:
    np.save(tmp_path / "records.npy", np.zeros(30, dtype=[("a", "f8")]))
    with pytest.raises(DataError, match="not numbers"):
        open_rows(tmp_path / "records.npy")
    (tmp_path / "bytes.parquet").write_bytes(parquet(pa.table({"a": X[:, 0], "b": [b"x"] * 30})))
    source = open_rows(tmp_path / "bytes.parquet")
    with pytest.raises(DataError, match="holds binary"):
        read_numbers(source, slice(0, 30), ("b",), "data")
    with pytest.raises(DataError, match="'b' holds binary"):
        read_labels(source, slice(0, 30), "b", "data")


BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "npz of zeros": ("d.npz", lambda: npz({"x": npy(np.zeros((8 * 10**5, 10)))}, zipfile.ZIP_DEFLATED)),
    "npz with a target of zeros": (
        "d.npz", lambda: npz({"x": npy(X), "y": npy(np.zeros((8 * 10**5, 10)))}, zipfile.ZIP_DEFLATED),
    ),
    "parquet of one value": ("d.parquet", lambda: run_length(4 * 10**6)),
}  # fmt: skip


@pytest.mark.dear(1)
@pytest.mark.parametrize(("file", "make"), BOMBS.values(), ids=list(BOMBS))
def test_what_unpacks_to_more_than_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, make: Callable[[], bytes]
) -> None:
    path = tmp_path / file
    path.write_bytes(make())
    monkeypatch.setenv("ISTHMUS_MEMORY", "50M")
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with pytest.raises(DataError, match=r"needs .* of memory; data may take 50 MiB.*ISTHMUS_MEMORY="):
        read_table(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024
    assert time.process_time() - began < 2
    monkeypatch.setenv("ISTHMUS_MEMORY", "unlimited")
    if file == "d.npz":
        with pytest.raises(DataError, match=r"identical|x has 30 rows and y has"):  # read to its end
            read_table(path)


def test_small_numbers_that_would_fill_the_memory_are_read_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "d.npy").write_bytes(npy(np.zeros((10**7, 1), dtype=np.int8)))
    monkeypatch.setenv("ISTHMUS_MEMORY", "50M")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DataError, match="all 10000000 rows are identical"):
        read_table(tmp_path / "d.npy")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 80 * 1024


def test_packed_digits_are_unpacked_as_far_as_their_head_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISTHMUS_MEMORY", "50M")
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx(LABELS))
    images = tmp_path / "train-images-idx3-ubyte.gz"
    images.write_bytes(gzip.compress(idx(np.zeros((12, 4, 4))) + bytes(10**8), 1))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DataError, match="needs 192 values for shape .12, 4, 4., got more"):
        mnist(tmp_path)
    images.write_bytes(gzip.compress(struct.pack(">HBBIII", 0, 8, 3, 2**30, 28, 28)))
    with pytest.raises(DataError, match="of memory"):
        mnist(tmp_path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[" * 50 + "1" * 5000 + "]" * 50, "\ud800", "NaN,"])
def test_deep_or_odd_json_and_toml(tmp_path: Path, text: str) -> None:
    path = tmp_path / "f"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    with pytest.raises(DataError, match="cannot be read as JSON"):
        read_json(path)
    path.write_text(f"x = {text}", encoding="utf-8", errors="surrogatepass")
    with pytest.raises(DataError, match="cannot be read as TOML"):
        read_toml(path)
    with pytest.raises(PlanError, match="cannot be read as TOML"):
        Plan.read(path)
    path.write_bytes(PLAN)
    assert read_toml(path)["task"]["rank"] == 2


DEVICES = {"zero.npy": "zero", "full.npz": "full", "random.csv": "urandom", "null.parquet": "null"}


def test_what_is_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "folder.csv").mkdir()
    for name, device in (
        ("zero.npy", "zero"),
        ("full.npz", "full"),
        ("random.csv", "urandom"),
        ("null.parquet", "null"),
    ):
        (tmp_path / name).symlink_to(f"/dev/{device}")
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    cases = dict.fromkeys(DEVICES, "is a device") | {"pipe.csv": "is a pipe", "folder.csv": "is a directory"}
    cases |= dict.fromkeys(["loop.csv", "n" * 300 + ".csv"], "cannot be opened")
    cases |= {"none.csv": "no such file", "a\0b.csv": "holds a NUL byte"}
    for name, says in cases.items():
        assert run(["discover", f"{tmp_path}/{name}", "--autoencode", "--out", str(tmp_path / "out")]) == 2
        assert says in line_of(capsys.readouterr().err)
    for name in ("zero.npy", "pipe.csv"):
        assert run(["cost", f"{tmp_path}/{name}", "--depth", "3", "--kind", "connected"]) == 2
        line_of(capsys.readouterr().err)


def test_names_in_a_folder_lead_nowhere_else(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "scree.nc").write_bytes(b"x")
    (folder / "zero").symlink_to("/dev/zero")
    (tmp_path / "secret").write_bytes(b"s")
    (folder / "link").symlink_to(tmp_path / "secret")
    assert file_inside(folder, "scree.nc") == folder / "scree.nc"
    for name in ("/dev/zero", "../secret", "", ".", "..", "a/b", "a\\b", "a\0", "zero", "link", "missing"):
        with pytest.raises(DataError, match=r"\.$"):
            file_inside(folder, name)


@pytest.mark.slow
def test_ten_thousand_columns_take_seconds(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    kinds = ",".join("abc"[i % 3] for i in range(5000))
    numbers = ",".join(f"{i % 7}.5" for i in range(5000))
    head = ",".join(f"column {i}" for i in range(10_000))
    path.write_text("\n".join([head, *(f"{kinds[2 * (i % 3) :]}{',a' * (i % 3)},{numbers}" for i in range(8))]) + "\n")
    began = time.process_time()
    with pytest.warns(match="became one 0/1 column per value"):
        task = read_table(path, drop_constant=False)
    assert task.x.shape[0] == 8
    assert time.process_time() - began < 20


@pytest.mark.parametrize("read", [read_table, read_matrix])
def test_members_of_an_archive_with_names_of_several_lines_are_said_in_one(
    tmp_path: Path, read: Callable[[Path], object]
) -> None:
    path = tmp_path / "odd.npz"
    path.write_bytes(npz({"a\nb": npy(X), "c\u202ed\x0c": npy(Y)}))
    with pytest.raises(DataError) as caught:
        read(path)
    assert "a\\nb, c\\u202ed\\x0c" in str(caught.value)
    assert str(caught.value).isprintable()


def test_numbers_that_warn_when_they_are_turned_are_refused_by_their_rows(tmp_path: Path) -> None:
    """A NaN that signals, and a header as Python 2 wrote it, in a file of which a process reads some rows."""
    rows = X.astype(np.float32)
    rows.view(np.uint32)[4, 1] = 0x7F800001
    np.save(tmp_path / "nan.npy", rows)
    source = open_rows(tmp_path / "nan.npy")
    with pytest.raises(DataError, match="row 5"):
        read_numbers(source, slice(0, 30), source.names, "data")
    older = tmp_path / "older.npy"
    older.write_bytes(header("{'descr': '<f8', 'fortran_order': False, 'shape': (30L, 3L), }"))
    source = open_rows(older)
    assert np.array_equal(read_numbers(source, slice(0, 30), source.names, "data"), X)


def test_a_head_of_many_sizes_is_refused_in_a_short_line(tmp_path: Path) -> None:
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx(LABELS))
    sides = [0, *range(2**31, 2**31 + 254)]
    (tmp_path / "train-images-idx3-ubyte").write_bytes(
        struct.pack(f">HBB{len(sides)}I", 0, 8, len(sides), *sides) + b"x"
    )
    with pytest.raises(DataError) as caught:
        mnist(tmp_path, classes=True)
    assert len(str(caught.value)) < 400
