"""Zarr folders as the .npy of the same numbers: the same bits, names and words, and no more memory."""

import os
import shutil
import sys
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isthmus.errors import DataError, DataWarning
from isthmus.tasks import read_matrix, read_table
from isthmus.tasks.array_files import arrays_of
from isthmus.tasks.mapped import is_on_disk
from isthmus.tasks.shards import open_rows, read_numbers
from isthmus.tasks.table_options import TableOptions
from isthmus.tasks.task import Task
from isthmus.tasks.zarr_arrays import ZarrArray
from isthmus.tasks.zarr_folders import is_zarr

zarr = pytest.importorskip("zarr", reason="the extra zarr is not installed")
numcodecs = pytest.importorskip("numcodecs", reason="the extra zarr is not installed")
RNG = np.random.default_rng(0)
ROWS = 2500
X = RNG.normal(size=(ROWS, 6))


def written(place: Path, array: np.ndarray, **options: Any) -> Path:
    """The array as zarr writes it."""
    made = zarr.create_array(place, shape=array.shape, dtype=array.dtype, **({"chunks": (300, 4)} | options))
    made[...] = array
    return place


def group(place: Path, *, zarr_format: Any = 3, **arrays: np.ndarray) -> Path:
    zarr.open_group(place, mode="w", zarr_format=zarr_format)
    for name, array in arrays.items():
        chunks = (300, *array.shape[1:])
        written(place / name, array, chunks=chunks, zarr_format=zarr_format)
    return place


def read_by_both(folder: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
    """Asserts that x.zarr and x.npy are the same table, read whole and where memory is short, with the same words."""
    for memory, is_large in (("1G", False), ("100K", True)):
        monkeypatch.setenv("ISTHMUS_MEMORY", memory)
        tasks, said = list[Task](), list[list[str]]()
        for name in ("x.npy", "x.zarr"):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                tasks.append(read_table(folder / name, drop_constant=False, **options))
            said.append([str(warning.message).replace(name, "x") for warning in caught])
        npy, found = tasks
        assert said[0] == said[1]
        assert np.array_equal(npy.x, found.x)
        assert (npy.x.dtype, npy.x_names, npy.y_names) == (found.x.dtype, found.x_names, found.y_names)
        assert npy.y is None or (found.y is not None and np.array_equal(npy.y, found.y))
        assert is_on_disk(npy.x) == is_on_disk(found.x) == is_large


ARRAYS = {
    "float64": X, "float32": X.astype(np.float32), "float16": X.astype(np.float16), "big-endian": X.astype(">f8"),
    "int16": (10 * X).astype(np.int16), "uint8": (10 * np.abs(X)).astype(np.uint8), "bool": X > 0,
    "images": X.reshape(ROWS, 3, 2),
}  # fmt: skip


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("kind", ARRAYS)
def test_an_array_is_read_as_a_npy(
    kind: str, zarr_format: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = ARRAYS[kind]
    chunks = (300, *(2 for _ in array.shape[1:]))  # that fit neither the rows nor, in places, the columns
    written(tmp_path / "x.zarr", array, zarr_format=zarr_format, chunks=chunks)
    np.save(tmp_path / "x.npy", array)
    monkeypatch.setenv("ISTHMUS_MEMORY", "1G")
    npy, found = (arrays_of(tmp_path / name)["x"] for name in ("x.npy", "x.zarr"))
    assert np.array_equal(npy, found)
    assert npy.dtype.newbyteorder("=") == found.dtype
    read_by_both(tmp_path, monkeypatch)


def codecs(name: str) -> Any:
    return getattr(zarr.codecs, name)


WAYS: dict[str, Callable[[], dict[str, Any]]] = {
    "nothing, 2": lambda: {"zarr_format": 2, "compressors": None},
    "gzip, 2": lambda: {"zarr_format": 2, "compressors": numcodecs.GZip()},
    "zlib, 2": lambda: {"zarr_format": 2, "compressors": numcodecs.Zlib()},
    "lz4, 2": lambda: {"zarr_format": 2, "compressors": numcodecs.LZ4()},
    "zstd, 2": lambda: {"zarr_format": 2, "compressors": numcodecs.Zstd()},
    "blosc, 2": lambda: {"zarr_format": 2, "compressors": numcodecs.Blosc(shuffle=numcodecs.Blosc.BITSHUFFLE)},
    "columns first, 2": lambda: {"zarr_format": 2, "order": "F"},
    "folders of chunks, 2": lambda: {
        "zarr_format": 2, "chunk_key_encoding": {"name": "v2", "separator": "/"},
    },
    "nothing": lambda: {"compressors": None},
    "gzip": lambda: {"compressors": codecs("GzipCodec")()},
    "zstd": lambda: {"compressors": codecs("ZstdCodec")(level=3, checksum=True)},
    "blosc": lambda: {"compressors": codecs("BloscCodec")(cname="blosclz", shuffle="bitshuffle")},
    "checksum": lambda: {"compressors": [codecs("BloscCodec")(cname="lz4"), codecs("Crc32cCodec")()]},
    "checksum alone": lambda: {"compressors": [codecs("Crc32cCodec")()]},
    "turned": lambda: {"filters": [codecs("TransposeCodec")(order=(1, 0))]},
    "points in names": lambda: {"chunk_key_encoding": {"name": "default", "separator": "."}},
    "names of 2": lambda: {"chunk_key_encoding": {"name": "v2", "separator": "."}},
    "one chunk for each column": lambda: {"chunks": (ROWS, 1)},
    "one chunk for each row": lambda: {"chunks": (1, 6)},
}  # fmt: skip


@pytest.mark.parametrize("way", [pytest.param(w, marks=pytest.mark.slow if "each row" in w else ()) for w in WAYS])
def test_however_it_is_packed(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = X.round(2)  # that can be packed
    written(tmp_path / "x.zarr", x, **WAYS[way]())
    np.save(tmp_path / "x.npy", x)
    read_by_both(tmp_path, monkeypatch, target=("c6",))


@pytest.mark.parametrize("kind", [".npz", ".zarr"])
@pytest.mark.parametrize("memory", ["1G", "100K"])
def test_the_coordinates_of_a_grid_are_not_taken_for_the_samples(
    kind: str, memory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A field with its axes x and y, as simulations are written, was read as "predict y from x", with confidence."""
    monkeypatch.setenv("ISTHMUS_MEMORY", memory)
    line, field, path = np.linspace(0, 1, 32), np.ones((40, 32, 32)), tmp_path / f"sim{kind}"
    arrays: dict[str, Any] = {"x": line, "y": line, "time": np.arange(40.0), "u": field}
    if kind == ".npz":
        np.savez(path, **arrays)
    else:
        group(path, zarr_format=3, **arrays)
    instead = r"Pass .*sim.zarr/u" if kind == ".zarr" else "Save it alone, or call it x"
    with pytest.raises(DataError, match=rf"x is a line of 32 numbers beside u of shape \(40, 32, 32\).*{instead}"):
        read_table(path)


def test_a_line_of_samples_beside_others_is_read_and_what_is_left_out_is_said(tmp_path: Path) -> None:
    line = np.linspace(0, 1, 40)
    np.savez(tmp_path / "lines.npz", x=line, y=line**2, error=0.1 * line, names=np.array(["a", None], dtype=object))
    with pytest.warns(DataWarning, match=r"x and y are used of it; it holds error, names too\."):
        found = read_table(tmp_path / "lines.npz")
    assert found.x.shape == (40, 1)
    np.savez(tmp_path / "alone.npz", x=line[:, None], y=line)
    read_table(tmp_path / "alone.npz")  # nothing is said


@pytest.mark.parametrize("kind", [".npz", ".zarr"])
def test_arrays_of_more_dimensions_are_flattened_aloud_in_archives_too(kind: str, tmp_path: Path) -> None:
    path, x = tmp_path / f"f{kind}", np.arange(240.0).reshape(20, 3, 4)
    if kind == ".npz":
        np.savez(path, x=x, y=2 * x)
    else:
        group(path, zarr_format=3, x=x, y=2 * x)
    with pytest.warns(DataWarning, match=r"of shape \(20, 3, 4\) was flattened") as caught:
        found = read_table(path)
    assert [str(one.message).split(": of")[0][-3:] for one in caught] == [", x", ", y"]
    assert found.x.shape == (20, 12)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_group_is_read_as_a_npz_and_its_arrays_by_their_paths(
    zarr_format: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = X[:, :4], np.tanh(X[:, :2])
    group(tmp_path / "g.zarr", zarr_format=zarr_format, x=x, y=y, other=x[:, 0] > 0)
    np.savez(tmp_path / "g.npz", x=x, y=y)
    npz = read_table(tmp_path / "g.npz")
    for memory in ("1G", "100K"):  # an x that stays on disk has its targets too
        monkeypatch.setenv("ISTHMUS_MEMORY", memory)
        with pytest.warns(DataWarning, match=r"g.zarr: x and y are used of it; it holds other too\."):
            found = read_table(tmp_path / "g.zarr", target="y1")
        assert found.y is not None
        assert npz.y is not None
        assert np.array_equal(found.x, npz.x)
        assert np.array_equal(found.y, npz.y[:, :1])
        assert is_on_disk(found.x) == (memory == "100K")
    by_path = read_table(tmp_path / "g.zarr" / "x", target=str(tmp_path / "g.zarr" / "y"))
    assert by_path.y is not None
    assert np.array_equal(by_path.x, x)
    assert np.array_equal(by_path.y, y)
    assert open_rows(tmp_path / "g.zarr" / "x").rows == ROWS
    assert set(arrays_of(tmp_path / "g.zarr")) == {"x", "y", "other"}
    with pytest.raises(DataError, match=r"g.zarr: is a group of other, x, y. Name one of them: .*g.zarr/NAME\."):
        open_rows(tmp_path / "g.zarr")
    shutil.rmtree(tmp_path / "g.zarr" / "x")
    with pytest.raises(DataError, match=r"holds no array x, but other, y. Save x .*, or name one of them: .*/NAME\."):
        read_table(tmp_path / "g.zarr")


def test_a_matrix(tmp_path: Path) -> None:
    written(tmp_path / "m.zarr", X[:5])
    assert np.array_equal(read_matrix(tmp_path / "m.zarr"), X[:5])


def test_only_the_chunks_of_wanted_rows_are_read(tmp_path: Path) -> None:
    place = written(tmp_path / "x.zarr", X)
    for column in "01":  # of rows 301 to 600
        (place / "c" / "1" / column).write_bytes(b"no chunk")
    source = open_rows(place)
    assert (source.rows, source.names) == (ROWS, ("c1", "c2", "c3", "c4", "c5", "c6"))
    found = read_numbers(source, slice(601, 2000), ("c6", "c2"), "x")
    assert np.array_equal(found, X[601:2000][:, [5, 1]])
    with pytest.raises(DataError, match=r"x.zarr/c/1/0: is damaged, or not packed as the array says\. Write"):
        read_numbers(source, slice(0, 700), ("c1",), "x")


def large(folder: Path, *, chunks: tuple[int, int], count: int) -> tuple[Path, np.ndarray]:
    """An array of so many chunks side by side or below each other, all the same, and what is in one."""
    one = RNG.integers(0, 9, size=chunks).astype(np.float64)
    place = written(folder / "large.zarr", one, chunks=chunks)
    is_below = chunks[1] > 1
    shape = [count * chunks[0], chunks[1]] if is_below else [chunks[0], count]
    head = place / "zarr.json"
    head.write_text(head.read_text().replace(f"{chunks[0]},\n    {chunks[1]}", f"{shape[0]},\n    {shape[1]}", 1))
    for number in range(1, count):
        there = place / "c" / (f"{number}/0" if is_below else f"0/{number}")
        there.parent.mkdir(exist_ok=True)
        os.link(place / "c" / "0" / "0", there)
    return place, one


def peak_of(read: Callable[[], Any]) -> tuple[Any, int]:
    tracemalloc.start()
    try:
        return read(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_some_rows_take_no_more_memory_than_their_chunks(tmp_path: Path) -> None:
    """240 MB in chunks of 400 kB: of two of them."""
    place, one = large(tmp_path, chunks=(5000, 10), count=600)
    open_rows(place)  # what is imported stays
    found, peak = peak_of(lambda: read_numbers(open_rows(place), slice(2_994_000, 2_996_000), ("c1", "c4"), "large"))
    assert np.array_equal(found, np.concatenate([one[4000:], one[:1000]])[:, [0, 3]])
    assert peak < 4e6


@pytest.mark.parametrize(("chunks", "count"), [((5000, 10), 50), ((100_000, 1), 40)])
def test_what_stays_on_disk_takes_no_more_memory_than_some_chunks(
    chunks: tuple[int, int], count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """20 and 32 MB: the parts in which it is read, also where each column is a chunk."""
    place, one = large(tmp_path, chunks=chunks, count=count)
    monkeypatch.setenv("ISTHMUS_MEMORY", "12M")
    read_table(written(tmp_path / "small.zarr", X))  # what is imported stays
    task, peak = peak_of(lambda: read_table(place, drop_constant=False))
    assert is_on_disk(task.x)
    assert np.array_equal(task.x[-5000:, -1], one[-5000:, -1])
    assert peak < 0.7 * task.x.nbytes


def test_a_folder_that_packs_much_into_little_needs_a_place_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = written(tmp_path / "zeros.zarr", np.zeros((400_000, 8)), chunks=(50_000, 8), fill_value=1.0)
    monkeypatch.setenv("ISTHMUS_MEMORY", "10M")
    with pytest.raises(DataError, match=r"zeros.zarr: needs 24.4 MiB of memory; data may take 10 MiB"):
        read_table(place)


def without(place: Path, *chunks: str) -> Path:
    for chunk in chunks:
        (place / "c" / chunk).unlink()
    return place


def test_missing_chunks_are_what_the_array_says_and_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = without(written(tmp_path / "x.zarr", X, fill_value=2.5), "1/0", "3/1")
    should = X.copy()
    should[300:600, :4] = should[900:1200, 4:] = 2.5
    for memory in ("1G", "100K"):
        monkeypatch.setenv("ISTHMUS_MEMORY", memory)
        with pytest.warns(DataWarning, match=r"x.zarr: 2 chunks are missing, of 18; by the rules of zarr .* are 2.5\."):
            assert np.array_equal(read_table(place).x, should)
    monkeypatch.setenv("ISTHMUS_MEMORY", "1G")
    with pytest.warns(DataWarning, match="2 chunks are missing"):
        source = open_rows(place)
    assert np.array_equal(read_numbers(source, slice(0, ROWS), source.names, "x"), should)


@pytest.mark.filterwarnings("ignore:.* chunk is missing")
def test_missing_chunks_of_an_array_without_a_number_for_them_are_missing_values(tmp_path: Path) -> None:
    place = without(written(tmp_path / "x.zarr", X, fill_value=float("nan")), "1/0")
    with pytest.raises(DataError, match=r"x.zarr: columns 1, 2, 3, 4 hold a missing value or NaN in rows 301, 302"):
        read_table(place)
    with pytest.warns(DataWarning, match="300"):
        assert np.array_equal(
            read_table(place, options=TableOptions(drop_missing=True)).x, np.delete(X, slice(300, 600), axis=0)
        )


def test_without_the_package_one_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = written(tmp_path / "x.zarr", X)
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(
        DataError, match=r"^[^\n]*x.zarr: reading it needs the package zarr. Install isthmus\[zarr\], or"
    ):
        read_table(place)


def test_folders_of_other_things_are_none(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "x.zarr").write_text("")
    assert not is_zarr(tmp_path / "pictures")
    assert not is_zarr(tmp_path / "x.zarr")
    assert not is_zarr("a" * 5000)
    with pytest.raises(DataError, match=r"x.zarr: is a file, and zarr is read from a folder\. Unpack it\."):
        read_table(tmp_path / "x.zarr")
    with pytest.raises(DataError, match=r"none.zarr: no such file"):
        read_table(tmp_path / "none.zarr")


def test_a_chunk_may_be_larger_than_the_array_and_needs_a_place_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = written(tmp_path / "x.zarr", X, chunks=(4000, 9))
    assert np.array_equal(read_table(place).x, X)
    monkeypatch.setenv("ISTHMUS_MEMORY", "100K")
    with pytest.raises(DataError, match=r"x.zarr, a chunk: needs 844 KiB of memory; .* Write it in smaller chunks, or"):
        read_table(place)


def test_rows_that_are_put_together_at_once_end_with_a_chunk(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"empty.zarr: is empty, shape \(30, 0\)"):
        open_rows(written(tmp_path / "empty.zarr", np.ones((30, 0))))
    array = ZarrArray(written(tmp_path / "x.zarr", X))
    assert array.rows_at_once % 300 == 0
    assert np.array_equal(array.read(slice(299, 301)), X[299:301])


def test_a_pipe_in_the_place_of_a_chunk_is_refused(tmp_path: Path) -> None:
    zarr.save_array(str(tmp_path / "a.zarr"), np.arange(20.0).reshape(10, 2), zarr_format=2)
    assert read_table(tmp_path / "a.zarr").x.shape == (10, 2)
    (chunk,) = (path for path in (tmp_path / "a.zarr").iterdir() if path.name[0].isdigit())
    chunk.unlink()
    os.mkfifo(chunk)
    with pytest.raises(DataError, match="where a chunk of the array should be"):
        read_table(tmp_path / "a.zarr")
