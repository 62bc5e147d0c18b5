"""Tables that are taken for too large, as tables that are not: the same numbers, names, words and refusals."""

import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from isthmus.errors import DataError
from isthmus.tasks import read_table
from isthmus.tasks.arrays import check_finite, chosen_rows, constant_columns, in_parts
from isthmus.tasks.mapped import filled_on_disk, is_on_disk, mapped, on_disk
from isthmus.tasks.table_options import TableOptions
from isthmus.tasks.task import Task

ROWS = 4000
RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=(ROWS, 6))
FRAME = pd.DataFrame(
    {
        "a": NUMBERS[:, 0],
        "kind": np.array(["x", "y", "ü"])[np.arange(ROWS) % 3],
        "b": NUMBERS[:, 1].astype(np.float32),
        "flag": NUMBERS[:, 2] > 0,
        "count": np.arange(ROWS) // 7,
        "label": np.array(["one", "two"])[np.arange(ROWS) % 2],
        "y": NUMBERS[:, 3],
    }
)  # fmt: skip


def both(path: Path, monkeypatch: pytest.MonkeyPatch, **options: object) -> tuple[Task, Task]:
    """The file as it is read whole, and as it is where memory is short; what is said of both is the same."""
    found: list[Task] = []
    said: list[list[str]] = []
    for memory in ("1G", "180K"):
        monkeypatch.setenv("ISTHMUS_MEMORY", memory)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found.append(read_table(path, **{"drop_constant": False} | options))  # pyright: ignore[reportArgumentType]
        said.append([str(warning.message) for warning in caught])
    assert said[0] == said[1]
    assert (is_on_disk(found[0].x), is_on_disk(found[1].x)) == (False, True)
    return found[0], found[1]


def assert_same(first: Task, second: Task) -> None:
    assert np.array_equal(first.x, second.x)
    assert first.x.dtype == second.x.dtype
    assert (first.y is None) == (second.y is None)
    assert first.y is None or second.y is None or np.array_equal(first.y, second.y)
    names = ("x_names", "y_names", "x_columns", "kind", "source")
    assert [getattr(first, name) for name in names] == [getattr(second, name) for name in names]
    assert (first.groups is None) == (second.groups is None)
    assert first.groups is None or second.groups is None or np.array_equal(first.groups, second.groups)


@pytest.mark.parametrize(
    "array",
    [
        NUMBERS,
        np.asfortranarray(NUMBERS),
        NUMBERS.astype(np.float32),
        NUMBERS.astype(">f8"),
        (10 * NUMBERS).astype(np.int16),
        NUMBERS > 0,
        NUMBERS.reshape(ROWS, 3, 2),
    ],
    ids=["float64", "Fortran", "float32", "big-endian", "int16", "bool", "images"],
)
@pytest.mark.parametrize("target", [(), ("c6",), ("c3", "c1")])
def test_an_array_is_read_as_one_that_fits(
    array: np.ndarray, target: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "x.npy", array)
    assert_same(*both(tmp_path / "x.npy", monkeypatch, target=target))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"target": ["y"]},
        {"target": ["y", "a"], "groups": "count"},
        {"classes": "label", "aside": ["a"]},
        {"target": ["y"], "options": TableOptions(leave_out=("kind", "b"))},
        {"target": ["y"], "groups": "label"},
    ],
)
def test_a_table_is_read_as_one_that_fits(
    options: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FRAME.set_index(pd.Index(range(5, ROWS + 5), name="number")).to_parquet(tmp_path / "t.parquet", row_group_size=900)
    assert_same(*both(tmp_path / "t.parquet", monkeypatch, **options))


def told(path: Path, monkeypatch: pytest.MonkeyPatch, **options: object) -> list[str]:
    """The line of the refusal, of the file read whole and where memory is short."""
    lines: list[str] = []
    for memory in ("1G", "180K"):
        monkeypatch.setenv("ISTHMUS_MEMORY", memory)
        with pytest.raises(DataError) as error:
            read_table(path, **options)  # pyright: ignore[reportArgumentType]
        lines.append(str(error.value))
    return lines


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*became one 0/1 column")
def test_what_is_refused_is_refused_in_the_same_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = FRAME.assign(
        a=FRAME["a"].where(FRAME.index % 600 != 5), b=np.where(FRAME.index == 3999, np.inf, FRAME["b"]),
        kind=FRAME["kind"].where(FRAME.index != 17), flag=FRAME["flag"].astype(object).where(FRAME.index != 2500),
        when=pd.Timestamp("2020-01-01"), each=[f"t{i}" for i in range(ROWS)],
    )  # fmt: skip
    many.to_parquet(tmp_path / "t.parquet", row_group_size=1000)
    array = NUMBERS.copy()
    array[[7, 3000], [2, 4]] = np.nan
    np.save(tmp_path / "x.npy", array)
    np.save(tmp_path / "f.npy", np.where(np.isnan(array), 1e300, array))
    for name, options in (
        ("t.parquet", {"target": ["y"]}),
        ("t.parquet", {"target": ["nowhere"]}),
        ("t.parquet", {"groups": "kind"}),
        ("t.parquet", {"target": list(many.columns)}),
        ("t.parquet", {"options": TableOptions(leave_out=("nothing",))}),
        ("x.npy", {"target": ["c1"]}),
        ("f.npy", {}),
    ):
        whole, by_parts = told(tmp_path / name, monkeypatch, **options)
        assert whole == by_parts
        assert name in whole


def test_a_file_that_packs_much_into_little_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pd.DataFrame({f"c{i}": np.zeros(10**6) for i in range(8)}).to_parquet(tmp_path / "zeros.parquet")
    monkeypatch.setenv("ISTHMUS_MEMORY", "10M")
    with pytest.raises(DataError, match=r"zeros.parquet: needs 122 MiB of memory; data may take 10 MiB"):
        read_table(tmp_path / "zeros.parquet")


def test_a_disk_without_room_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        DataError, match=r"t: needs .* of disk in .* Take fewer rows or columns, or name another folder"
    ):
        on_disk([], (2**50, 3), "t")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems say elsewhere what is in memory")
def test_parts_in_any_order_do_not_stay_in_memory() -> None:
    resident: list[int] = []
    shape = (1_000_000, 8)

    def parts() -> Iterator[tuple[tuple[slice, ...], np.ndarray]]:
        for column in range(8):
            resident.append(int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
            yield (slice(0, 1_000_000), slice(column, column + 1)), np.full((1_000_000, 1), float(column))

    found = filled_on_disk(parts(), shape, np.dtype(np.float64), "t")
    assert is_on_disk(found)
    assert all((part == np.arange(8.0)).all() for part in in_parts(found))
    assert max(resident) - resident[0] < 32e6
    with pytest.raises(DataError, match="t: needs .* of disk"):
        filled_on_disk([], (2**50, 3), np.dtype(np.float64), "t")


def test_rows_on_disk_are_looked_at_and_chosen_as_rows_in_memory() -> None:
    many = RNG.normal(size=(300_000, 7))
    many[:, 3] = 2.0
    many[299_000, 6] = np.nan
    there = on_disk(in_parts(many), many.shape, "many")
    strided = there[:, 1:5]
    assert np.array_equal(constant_columns(strided), constant_columns(many[:, 1:5]))
    for which in (RNG.random(len(many)) < 0.01, np.array([3, 299_999]), np.array([], dtype=int)):
        assert np.array_equal(chosen_rows(strided, which), many[:, 1:5][which])
    with pytest.raises(DataError, match="many: column 7 holds a missing value or NaN in row 299001"):
        check_finite(there, "many")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems count what is mapped otherwise")
def test_a_file_larger_than_memory_is_mapped(tmp_path: Path) -> None:
    path, rows = tmp_path / "hole", int(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES") // 16
    path.touch()
    os.truncate(path, 32 * rows)  # a hole, twice as large as what this machine has
    with path.open("rb") as stream:
        there = mapped(stream, np.dtype(np.float64), (rows, 4))
    there[-1, 0] = 1.0  # as torch wants it: in memory, not in the file
    assert there[-1].tolist() == [1.0, 0.0, 0.0, 0.0]
    assert path.stat().st_blocks == 0
