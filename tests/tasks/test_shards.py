"""Tables of which only some rows are read."""

import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from isthmus.errors import DataError
from isthmus.tasks.shards import open_rows, read_labels, read_numbers

HUGE = 2_000_000_000  # rows: 64 GB, of which the disk holds what is written


def test_rows_at_the_end_of_a_huge_array_are_read_alone(tmp_path: Path) -> None:
    path = tmp_path / "huge.npy"
    array = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=(HUGE, 4))  # a hole in the file
    array[-3:] = np.arange(12.0).reshape(3, 4)
    del array
    tracemalloc.start()
    try:
        source = open_rows(path)
        found = read_numbers(source, slice(HUGE - 1000, HUGE), ("c1", "c4"), "huge")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert source.rows == HUGE
    assert found[-3:].tolist() == [[0.0, 3.0], [4.0, 7.0], [8.0, 11.0]]
    assert not found[:-3].any()
    assert peak < 10**6


def test_only_the_row_groups_of_wanted_rows_are_read(tmp_path: Path) -> None:
    table = pd.DataFrame({"a": np.arange(500.0), "b": np.arange(500.0) ** 2, "label": list("xyzuv") * 100})
    path = tmp_path / "table.parquet"
    table.to_parquet(path, row_group_size=100)
    group = pq.ParquetFile(path).metadata.row_group(1)
    starts = [group.column(i).dictionary_page_offset or group.column(i).data_page_offset for i in range(3)]
    content = bytearray(path.read_bytes())
    for i, start in enumerate(starts):  # what rows 101 to 200 consist of is destroyed
        content[start : start + group.column(i).total_compressed_size] = bytes(group.column(i).total_compressed_size)
    path.write_bytes(content)
    source = open_rows(path)
    assert source.rows == 500
    assert source.names == ("a", "b", "label")
    found = read_numbers(source, slice(250, 450), ("b", "a"), "table")
    assert np.array_equal(found, table[["b", "a"]].to_numpy()[250:450])
    assert read_labels(source, slice(395, 405), "label", "table").tolist() == list("xyzuv") * 2
    with pytest.raises(DataError, match=r"table.parquet: cannot be read as .parquet .*Write the file again\.$"):
        read_numbers(source, slice(150, 450), ("a",), "table")


def test_pieces_of_an_array_follow_one_another(tmp_path: Path) -> None:
    array = np.random.default_rng(0).normal(size=(70_000, 2)).astype(np.float32)
    np.save(tmp_path / "x.npy", array)
    found = read_numbers(open_rows(tmp_path / "x.npy"), slice(10, 69_990), ("c2", "c1"), "x")
    assert np.array_equal(found, array[10:69_990, ::-1].astype(np.float64))


def test_a_bad_value_is_named_by_its_row_in_the_whole_table(tmp_path: Path) -> None:
    array = np.ones((200, 2))
    array[149, 1] = np.nan
    np.save(tmp_path / "x.npy", array)
    pd.DataFrame({"k": ["a"] * 120 + [None] + ["b"] * 79}).to_parquet(tmp_path / "k.parquet", row_group_size=50)
    source = open_rows(tmp_path / "x.npy")
    with pytest.raises(DataError, match=r"data: column 'c2' holds a missing value or NaN in row 150\. Fill in"):
        read_numbers(source, slice(100, 200), source.names, "data")
    with pytest.raises(DataError, match="column 'k' holds a missing value or NaN in row 121"):
        read_labels(open_rows(tmp_path / "k.parquet"), slice(100, 200), "k", "data")
    with pytest.raises(DataError, match=r"has no column 'c3'\."):
        read_numbers(source, slice(0, 10), ("c3",), "data")


def test_files_that_cannot_be_read_by_rows_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a\n1\n")
    (tmp_path / "bad.npy").write_bytes(b"no array")
    (tmp_path / "bad.parquet").write_bytes(b"no table")
    np.save(tmp_path / "empty.npy", np.ones((0, 3)))
    pd.DataFrame({"a": np.ones(0)}).to_parquet(tmp_path / "empty.parquet")
    np.save(tmp_path / "objects.npy", np.array([{}, None]), allow_pickle=True)
    for name, message in {
        "x.csv": "each process reads its own rows", "none.npy": "no such file", "bad.npy": "cannot be read as .npy",
        "bad.parquet": "cannot be read as .parquet", "empty.npy": "is empty", "empty.parquet": "has no rows",
        "objects.npy": "cannot be read as .npy",
    }.items():  # fmt: skip
        with pytest.raises(DataError, match=message):
            open_rows(tmp_path / name)
