"""Zarr folders of strangers: what they ask for and what they lie about, each refused in one line at no cost."""

import gzip
import json
import os
import struct
import time
import tracemalloc
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command_lines import line_of
from isthmus.cli.main import run
from isthmus.errors import DataError
from isthmus.tasks import read_table
from isthmus.tasks.shards import open_rows, read_numbers

pytest.importorskip("zarr", reason="the extra zarr is not installed")
numcodecs = pytest.importorskip("numcodecs", reason="the extra zarr is not installed")
X = np.random.default_rng(0).normal(size=(30, 3))
PLAIN = [{"name": "bytes", "configuration": {"endian": "little"}}]
HEAD_3: dict[str, Any] = {
    "zarr_format": 3, "node_type": "array", "shape": [30, 3], "data_type": "float64", "fill_value": 0.0,
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [10, 3]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "codecs": PLAIN, "attributes": {},
}  # fmt: skip
HEAD_2: dict[str, Any] = {
    "zarr_format": 2, "shape": [30, 3], "chunks": [10, 3], "dtype": "<f8", "fill_value": 0.0, "order": "C",
    "filters": None, "compressor": None,
}  # fmt: skip
ZEROS = bytes(240)


@dataclass(frozen=True)
class Crafted:
    """A folder, and words of its refusal.

    Attributes:
        refusal: in the line.
        told: what the head says otherwise, of format 2 where it says dtype, chunks or so.
        pack: of the 240 bytes of each chunk.
        raw: the head as it stands there, in the place of JSON.
        then: done to the folder.
    """

    refusal: str
    told: dict[str, Any] = field(default_factory=dict[str, Any])
    pack: Callable[[bytes], bytes] = bytes
    raw: bytes = b""
    then: Callable[[Path], object] = lambda _folder: None

    @property
    def is_old(self) -> bool:
        return bool(self.told.keys() & {"dtype", "chunks", "compressor", "filters", "order", "dimension_separator"})

    def made(self, place: Path) -> Path:
        place.mkdir()
        head = (HEAD_2 if self.is_old else HEAD_3) | self.told
        (place / (".zarray" if self.is_old else "zarr.json")).write_bytes(self.raw or json.dumps(head).encode())
        for number in range(3):
            file = place / (f"{number}.0" if self.is_old else f"c/{number}/0")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(self.pack(X[10 * number : 10 * number + 10].tobytes()))
        self.then(place)
        return place


def grid(*chunk: int) -> dict[str, Any]:
    return {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk)}}}


def codec(name: str, **configuration: Any) -> dict[str, Any]:
    return {"codecs": [*PLAIN, {"name": name, "configuration": configuration}]}


def linked(name: str, to: str) -> Callable[[Path], None]:
    def link(folder: Path) -> None:
        outside = folder.parent / to
        outside.mkdir(exist_ok=True)
        (outside / "0").write_bytes(ZEROS)
        place = folder / name
        if place.is_dir():
            (place / "0").unlink()
            place.rmdir()
        else:
            place.unlink()
        place.symlink_to(outside if name == "c/0" else outside / "0")

    return link


def replaced_by_pipe(folder: Path) -> None:
    (folder / "c" / "1" / "0").unlink()
    os.mkfifo(folder / "c" / "1" / "0")


def without_chunks(folder: Path) -> None:
    for number in range(3):
        (folder / "c" / str(number) / "0").unlink()


def one_missing(folder: Path) -> None:
    (folder / "1.0").unlink()


def one_flipped(folder: Path) -> None:
    place = folder / "c" / "1" / "0"
    content = bytearray(place.read_bytes())
    content[len(content) // 2] ^= 1
    place.write_bytes(content)


def chunks_beyond_the_last(folder: Path) -> None:
    for number in range(3):
        (folder / "c" / str(number)).rename(folder / "c" / str(number + 3))


def blosc_with(offset: int, value: bytes) -> Callable[[bytes], bytes]:
    """Zeros with other bytes in the head: 2 flags, 3 size of a number, 4 unpacked, 8 of a block."""

    def pack(chunk: bytes) -> bytes:
        packed = bytearray(numcodecs.Blosc().encode(bytes(len(chunk))))
        packed[offset : offset + len(value)] = value
        return bytes(packed)

    return pack


GZIP, ZSTD, BLOSC = codec("gzip", level=5), codec("zstd", level=0, checksum=False), codec("blosc")
CRAFTED: dict[str, Crafted] = {
    # types
    "objects, 2": Crafted("holds |O, which is not read as numbers", {"dtype": "|O"}),
    "objects packed by pickle": Crafted("holds |O", {"dtype": "|O", "filters": [{"id": "pickle", "protocol": 5}]}),
    "records": Crafted("not read as numbers", {"dtype": [["a", "<f8"], ["b", "<i4"]]}),
    "dates": Crafted("holds <M8[ns]", {"dtype": "<M8[ns]"}),
    "text": Crafted("holds <U3", {"dtype": "<U3"}),
    "complex": Crafted("holds complex128", {"data_type": "complex128"}),
    "strings": Crafted("holds string", {"data_type": "string", "codecs": [{"name": "vlen-utf8"}]}),
    "a type with settings": Crafted("not read as numbers", {"data_type": {"name": "struct", "configuration": {}}}),
    "a type that is evaluated": Crafted("not read as numbers", {"dtype": "__import__('os')"}),
    # codecs
    "pickle, 3": Crafted("uses the codec 'numcodecs.pickle'", codec("numcodecs.pickle")),
    "pickle in the place of bytes": Crafted("uses the codec 'pickle'", {"codecs": [{"name": "pickle"}]}),
    "pickle, 2": Crafted("uses the codec 'pickle'", {"compressor": {"id": "pickle"}}),
    "json, 2": Crafted("uses the codec 'json2'", {"compressor": {"id": "json2"}}),
    "a codec of another package": Crafted(
        "uses the codec 'imagecodecs_tiff'", {"compressor": {"id": "imagecodecs_tiff"}}
    ),
    "a codec that is no word": Crafted("uses the codec", {"compressor": {"id": ["zstd"]}}),
    "filters": Crafted("uses filters", {"filters": [{"id": "delta", "dtype": "<f8"}]}),
    "shards": Crafted("is written in shards", {"codecs": [{"name": "sharding_indexed", "configuration": {}}]}),
    "packed ten times": Crafted("stand in an order", {"codecs": [*PLAIN, *[{"name": "gzip"}] * 10]}),
    "no codec": Crafted("it says codecs []", {"codecs": []}),
    "codecs that are no list": Crafted("it says codecs", {"codecs": {"name": "bytes"}}),
    "turned to nowhere": Crafted(
        "it says transpose", {"codecs": [{"name": "transpose", "configuration": {"order": [7, 0]}}, *PLAIN]}
    ),
    "storage transformers": Crafted("storage transformers", {"storage_transformers": [{"name": "x"}]}),
    "an extension": Crafted("asks for 'run'", {"run": {"name": "me"}}),
    # sizes
    "a shape of 10^12": Crafted("of its 100,000,000,000 chunks are missing", {"shape": [10**12, 3]}),
    "a shape beyond all numbers": Crafted("it says shape", {"shape": [10**40, 3]}),
    "a negative shape": Crafted("it says shape", {"shape": [-30, 3]}),
    "a shape of fractions": Crafted("it says shape", {"shape": [30.0, 3]}),
    "a thousand dimensions": Crafted("it says shape", {"shape": [1] * 1000}),
    "chunks of 10^12": Crafted("a chunk: needs", grid(10**12, 3)),
    "chunks of nothing": Crafted("it says chunks", grid(0, 3)),
    "chunks of another dimension": Crafted("it says chunks", grid(10)),
    "an irregular grid": Crafted("it says chunk_grid", {"chunk_grid": {"name": "rectangular", "configuration": {}}}),
    "a single value": Crafted("holds a single value", {"shape": []} | grid()),
    "no rows": Crafted("is empty", {"shape": [0, 3]}, then=without_chunks),
    # chunks
    "no chunk at all": Crafted("3 of its 3 chunks are missing", then=without_chunks),
    "chunks beyond the last alone": Crafted("3 of its 3 chunks are missing", then=chunks_beyond_the_last),
    "a missing chunk and no number for it": Crafted(
        "1 of its 3 chunks", {"fill_value": None, "order": "C"}, then=one_missing
    ),
    "a short chunk": Crafted("c/0/0: unpacks to 239 bytes, and a chunk has 240", pack=lambda c: c[:-1]),
    "an empty chunk": Crafted("c/0/0: unpacks to 0 bytes", pack=lambda _: b""),
    "a long chunk": Crafted("c/0/0: unpacks to", pack=lambda c: c + bytes(10**6)),
    "a chunk of a terabyte": Crafted("c/0/0: unpacks to", then=lambda folder: os.truncate(folder / "c/0/0", 2**40)),
    "gzip that unpacks to 40 MB": Crafted("unpacks to", GZIP, lambda _: gzip.compress(bytes(4 * 10**7), 1)),
    "zlib that unpacks to 40 MB": Crafted(
        "unpacks to", {"compressor": {"id": "zlib"}}, lambda _: zlib.compress(bytes(4 * 10**7), 1)
    ),
    "zstd that unpacks to 40 MB": Crafted(
        "unpacks to 40000000 bytes", ZSTD, lambda _: numcodecs.Zstd().encode(bytes(4 * 10**7))
    ),
    "blosc that unpacks to 10 MB": Crafted(
        "unpacks to 10000000 bytes", BLOSC, lambda _: numcodecs.Blosc().encode(bytes(10**7))
    ),
    "lz4 that unpacks to 40 MB": Crafted(
        "unpacks to 40000000", {"compressor": {"id": "lz4"}}, lambda _: numcodecs.LZ4().encode(bytes(4 * 10**7))
    ),
    "blosc that says 2 GB": Crafted("unpacks to 2147483584 bytes", BLOSC, blosc_with(4, struct.pack("<I", 2**31 - 64))),
    "blosc of numbers without bytes": Crafted("c/0/0: is damaged", BLOSC, blosc_with(3, b"\0")),
    "blosc of blocks without bytes": Crafted("c/0/0: is damaged", BLOSC, blosc_with(8, bytes(4))),
    "blosc that says it is not packed": Crafted("c/0/0: is damaged", BLOSC, blosc_with(2, b"\x02")),
    "blosc without its head": Crafted("c/0/0: is damaged", BLOSC, lambda c: numcodecs.Blosc().encode(c)[:8]),
    "lz4 without its head": Crafted("0.0: is damaged", {"compressor": {"id": "lz4"}}, lambda _: b"\xf0"),
    "gzip that is none": Crafted("c/0/0: is damaged", GZIP, lambda c: c),
    "blosc that is cut": Crafted("is damaged", BLOSC, lambda c: numcodecs.Blosc().encode(c)[:-9]),
    "zstd that is cut": Crafted(
        "chunk one of c/0/0 to c/2/0 cannot be unpacked", ZSTD, lambda c: numcodecs.Zstd().encode(c)[:-9]
    ),
    "gzip that is cut": Crafted("c/0/0: is damaged", GZIP, lambda c: gzip.compress(c)[:-9]),
    "gzip with something behind it": Crafted("c/0/0: is damaged", GZIP, lambda c: gzip.compress(c) + b"x"),
    "zstd that says no size": Crafted(
        "is damaged, or not packed as", ZSTD, lambda _: b"\x28\xb5\x2f\xfd\0\0" + bytes(30)
    ),
    "zstd that is none": Crafted("is damaged, or not packed as", ZSTD, lambda c: c),
    "a checksum that is wrong": Crafted("cannot be unpacked", codec("crc32c"), lambda c: c + b"1234"),
    "a checksum that is missing": Crafted("is damaged", codec("crc32c"), lambda _: b""),
    "a chunk that is a pipe": Crafted("c/1/0: is no file", then=replaced_by_pipe),
    "NaN": Crafted(
        "column 1 holds a missing value or NaN in rows 1, 11, 21", pack=lambda c: struct.pack("<d", np.nan) + c[8:]
    ),
    "infinity": Crafted("column 1 holds infinity in row", pack=lambda c: struct.pack("<d", np.inf) + c[8:]),
    # places
    "a chunk that leads out": Crafted("c/1/0: is a link out of the array", then=linked("c/1/0", "other")),
    "chunks in a folder that leads out": Crafted("c/0: is a link to a folder", then=linked("c/0", "other")),
    "a head that leads out": Crafted("zarr.json: is a link out of its folder", then=linked("zarr.json", "other")),
    "a head of format 2 that leads out": Crafted(
        ".zarray: is a link out of its folder", {"order": "C"}, then=linked(".zarray", "other")
    ),
    # heads
    "no JSON": Crafted("zarr.json: cannot be read as JSON", raw=b"{"),
    "no text": Crafted("zarr.json: cannot be read as JSON", raw=b"\xff\xfe\0"),
    "deep JSON": Crafted("nested too deeply", raw=b'{"attributes":' * 10**5),
    "a list": Crafted("it says JSON", raw=b"[1]"),
    "nothing": Crafted("cannot be read", raw=b"{}"),
    "a number of 10,000 digits": Crafted("cannot be read as JSON", raw=b'{"shape": [' + b"9" * 10**4 + b"]}"),
    "another format": Crafted("it says zarr_format, node_type [4, 'array']", {"zarr_format": 4}),
    "another format, 2": Crafted("it says zarr_format 1", {"zarr_format": 1, "order": "C"}),
    "an order that is none": Crafted("it says order", {"order": "K"}),
    "bytes in another order": Crafted(
        "it says endian", {"codecs": [{"name": "bytes", "configuration": {"endian": "middle"}}]}
    ),
    "a number for missing chunks that is none": Crafted(
        "it says fill_value", {"fill_value": {"a": 1}}, then=lambda f: (f / "c/1/0").unlink()
    ),
    "one that is too large": Crafted(
        "cannot be read as .zarr", {"dtype": "|u1", "chunks": [80, 3], "fill_value": 10**30}
    ),
    "names of chunks that lead out": Crafted("it says separator", {"dimension_separator": "/../../"}),
    "another encoding of names": Crafted("it says chunk_key_encoding", {"chunk_key_encoding": {"name": "suffix"}}),
    "packed numbers": Crafted("are to be changed by scale_factor", {"attributes": {"scale_factor": 0.1}}),
    "attributes that are none": Crafted("it says JSON", {"attributes": 5}),
    "a name that ends lines": Crafted("asks for 'a\\nb'", {"a\nb": 1}),
}


def test_what_is_crafted_is_read_where_nothing_is_wrong(tmp_path: Path) -> None:
    for name, crafted in {
        "3": Crafted(""),
        "2": Crafted("", {"order": "C"}),
        "gzip": Crafted("", GZIP, gzip.compress),
    }.items():
        assert np.array_equal(read_table(crafted.made(tmp_path / name)).x, X)


@pytest.mark.parametrize("name", CRAFTED)
def test_a_crafted_folder_is_refused_in_one_line_at_no_cost(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = CRAFTED[name].made(tmp_path / "x.zarr")
    monkeypatch.setenv("ISTHMUS_MEMORY", "64M")
    tracemalloc.start()
    began = time.process_time()
    try:
        with pytest.raises(DataError) as error:
            read_table(place)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    line = str(error.value)
    assert CRAFTED[name].refusal in line
    assert line.startswith(str(tmp_path))
    assert "\n" not in line
    assert line.endswith(".")
    assert len(line) < 700
    assert peak < 15e6
    assert time.process_time() - began < 5
    with pytest.raises(DataError):  # by parts too
        read_numbers(source := open_rows(place), slice(0, source.rows), source.names, "x")


def test_one_flipped_bit_is_refused_where_there_is_a_checksum(tmp_path: Path) -> None:
    crafted = Crafted(
        "", codec("crc32c"), lambda c: bytes(numcodecs.CRC32C(location="end").encode(c)), then=one_flipped
    )
    with pytest.raises(DataError, match=r"x.zarr: chunk one of c/0/0 to c/2/0 cannot be unpacked"):
        read_table(crafted.made(tmp_path / "x.zarr"))


def test_nothing_that_a_file_names_is_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Codecs of any package are found by their names: one that would run is there, and is never made."""
    made: list[object] = []

    class Runs(numcodecs.abc.Codec):
        codec_id = "runs"

        def __init__(self, **told: object) -> None:
            made.append(told)

        def encode(self, buf: object) -> object:
            return buf

        def decode(self, buf: object, out: object = None) -> object:
            return made.append(buf)

    monkeypatch.setitem(numcodecs.registry.codec_registry, "runs", Runs)
    for name, told in {
        "compressor": {"compressor": {"id": "runs"}}, "filter": {"filters": [{"id": "runs"}]},
        "3": codec("numcodecs.runs"), "type": {"dtype": "|O", "filters": [{"id": "runs"}]},
    }.items():  # fmt: skip
        with pytest.raises(DataError):
            read_table(Crafted("", told).made(tmp_path / name))
    assert made == []
    numcodecs.get_codec({"id": "runs"})
    assert made == [{}], "or the test could not see it"


def test_a_group_whose_arrays_lie_elsewhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "g.zarr").mkdir()
    (tmp_path / "g.zarr" / ".zgroup").write_text('{"zarr_format": 2}')
    Crafted("").made(tmp_path / "elsewhere")
    (tmp_path / "g.zarr" / "x").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match=r"g.zarr/x: is a link to a folder\. Name the array itself\."):
        read_table(tmp_path / "g.zarr")


def test_no_address_and_no_archive_is_opened(tmp_path: Path) -> None:
    for name in ("s3://bucket/x.zarr", "https://example.org/x.zarr", "memory://x.zarr", f"file://{tmp_path}/x.zarr"):
        with pytest.raises(DataError, match="no such file"):
            read_table(name)
    (tmp_path / "x.zarr.zip").write_bytes(b"PK\3\4")
    with pytest.raises(DataError, match="unknown extension '.zip'"):
        read_table(tmp_path / "x.zarr.zip")


@pytest.mark.slow
def test_commands_refuse_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = str(CRAFTED["pickle, 2"].made(tmp_path / "x.zarr"))
    for words in (
        ["discover", place, "--out", str(tmp_path / "run")], ["cost", place, "--depth", "3", "--kind", "connected"],
        ["fit", place, "--autoencode", "--ridge", "1e-3", "--out", str(tmp_path / "fit")],
    ):  # fmt: skip
        assert run(words) == 2
        assert "x.zarr/.zarray: uses the codec 'pickle', which is not read." in line_of(capsys.readouterr().err)
    assert [file.name for file in tmp_path.iterdir()] == ["x.zarr"]
