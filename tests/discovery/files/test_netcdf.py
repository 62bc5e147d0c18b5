"""Tables come back as they were, whatever they hold; a crafted file is refused within its own size."""

import gzip
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy.io import netcdf_file

import discoveries
import isthmus
from isthmus.discovery.files.netcdf import checksum, read_table, write_table
from isthmus.errors import DataError
from isthmus.writing.checksums import opened_json, sealed_json

LARGE = 2**31 - 1
TABLES: dict[str, dict[str, Any]] = {
    "nan, infinity, minus nothing": {"a": ("layer", np.array([np.nan, np.inf, -0.0, 5e-324]))},
    "whole numbers": {"a": ("layer", np.array([0, -LARGE, LARGE]))},
    "larger whole numbers": {"a": ("layer", np.array([2**63 - 1, -(2**63)])), "b": ("u", np.array([2**64 - 1, 0]))},
    "small types": {
        f"of {kind}": (f"d {kind}", np.array([0, 1, 100], kind))
        for kind in ("int8", "uint8", "int16", "uint32", "f2", "f4")
    },
    "truths": {"a": (("layer", "b"), np.array([[True, False]])), "one": ((), True)},
    "text": {"a": ("layer", np.array(["", "ä\U0001f600", " x "])), "o": ("o", np.array(["one", ""], dtype=object))},
    "empty text": {"a": ("layer", np.array(["", ""])), "b": ((), "")},
    "no rows": {"a": ("layer", np.zeros(0)), "n": (("layer", "other", "c"), np.zeros((0, 0, 3), dtype=int))},
    "no text": {"a": ("layer", np.array([], dtype="<U4")), "b": ("z", np.array([], dtype=bool))},
    "nothing": {},
}


def table(value: float) -> xr.Dataset:
    return xr.Dataset({"a": ("layer", [value, np.nan])}, attrs={"whole": True, "none": None})


@pytest.mark.parametrize("columns", TABLES.values(), ids=list(TABLES))
def test_every_table_comes_back_as_it_was(tmp_path: Path, columns: dict[str, Any]) -> None:
    before = xr.Dataset(columns, attrs={"none": None, "is": True, "list": (1, float("inf")), "text": "ä\x00"})
    for number, column in enumerate(before.data_vars.values()):
        column.attrs = {"number": number, "none": None}
    write_table(tmp_path / "t.nc", before)
    after = read_table(tmp_path / "t.nc")
    assert after.identical(before)
    for name, column in before.variables.items():
        assert after[name].dtype.kind == column.dtype.kind
        if column.dtype.kind in "fiub":
            assert after[name].values.tobytes() == column.values.tobytes()
            assert after[name].dtype == column.dtype


def test_coordinates_stay_coordinates(tmp_path: Path) -> None:
    names = np.array(["layer 1", "ä"])
    large = np.array([2**40, 1])
    before = xr.Dataset(
        {"a": (("layer", "seed"), np.eye(2))}, {"layer": [1, 2], "name": ("layer", names), "seed": large, "z": 1.0}
    )
    write_table(tmp_path / "t.nc", before)
    after = read_table(tmp_path / "t.nc")
    xr.testing.assert_identical(after, before)
    assert set(after.coords) == set(before.coords)
    assert after.sel(layer=2, seed=2**40)["a"].item() == 0.0


@pytest.mark.parametrize(
    "values", [np.array([None, "a"]), np.array(["a\0b"]), np.array([1j]), np.array(["2020"], "M8[s]")]
)
@pytest.mark.filterwarnings("ignore:Converting non-nanosecond")  # older xarray, of the last one
def test_what_would_come_back_otherwise_is_not_written(tmp_path: Path, values: np.ndarray) -> None:
    with pytest.raises((TypeError, ValueError), match=r"t\.a|complex|number"):
        write_table(tmp_path / "t.nc", xr.Dataset({"a": ("layer", values)}))
    assert not (tmp_path / "t.nc").exists()


def test_other_programs_read_it(tmp_path: Path) -> None:
    write_table(tmp_path / "t.nc", discoveries.discovery().scree)
    with netcdf_file(tmp_path / "t.nc", mmap=False) as file:
        assert np.array_equal(file.variables["heldout_error"][:], discoveries.discovery().scree["heldout_error"])


def test_one_flipped_byte_changes_the_checksum(tmp_path: Path) -> None:
    write_table(tmp_path / "t.nc", table(1.0))
    before = checksum(tmp_path / "t.nc")
    content = bytearray((tmp_path / "t.nc").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "t.nc").write_bytes(content)
    assert checksum(tmp_path / "t.nc") != before


def crowded(columns: int, numbers: int, *, apart: bool) -> bytes:
    """So many columns of so many numbers, on top of each other or one behind the other."""

    def word(text: bytes) -> bytes:
        return struct.pack(">i", len(text)) + text + bytes(-len(text) % 4)

    def head(begin: int) -> bytes:
        found = b"CDF\x01" + struct.pack(">iii", 0, 10, 1) + word(b"d") + struct.pack(">i", numbers)
        found += bytes(8) + struct.pack(">ii", 11, columns)
        for column in range(columns):
            place = begin + 8 * numbers * column * apart
            found += word(b"c%05d" % column) + struct.pack(">ii", 1, 0) + bytes(8)
            found += struct.pack(">iii", 6, 8 * numbers, place)
        return found

    return head(len(head(0))) + np.zeros(numbers * (columns if apart else 1)).tobytes()


def test_columns_on_top_of_each_other_are_refused_before_they_take_memory(tmp_path: Path) -> None:
    path = tmp_path / "t.nc"
    path.write_bytes(crowded(2000, 5000, apart=False))
    with netcdf_file(path, mmap=True) as file:
        numbers = sum(variable.data.size for variable in file.variables.values())
        assert numbers == 2000 * 5000, "the payload is dead"
        file.variables.clear()
    with pytest.raises(ValueError, match="more numbers than bytes"):
        read_table(path)


def test_many_columns_side_by_side_are_read(tmp_path: Path) -> None:
    (tmp_path / "t.nc").write_bytes(crowded(200, 500, apart=True))
    assert len(read_table(tmp_path / "t.nc").data_vars) == 200


@pytest.mark.dear(1)
@pytest.mark.parametrize(
    "content", [b"", b"\x89HDF\r\n\x1a\n" + bytes(500), gzip.compress(bytes(10**6), mtime=0), b"CDF", b"CDF\x09"]
)
def test_other_formats_are_refused(tmp_path: Path, content: bytes) -> None:
    """HDF5, whose library may never come back from a crafted file, does not see one; nothing is unpacked."""
    (tmp_path / "t.nc").write_bytes(content)
    with pytest.raises((ValueError, TypeError, KeyError, IndexError)):
        read_table(tmp_path / "t.nc")


def test_what_scipy_and_xarray_only_warn_of_is_refused(tmp_path: Path) -> None:
    """A column with one dimension twice; in a good file nothing is warned of."""
    with netcdf_file(tmp_path / "t.nc", "w") as file:
        file.createDimension("d", 2)
        file.createVariable("a", "d", ("d", "d"))[:] = np.eye(2)
    with pytest.raises(UserWarning, match="Duplicate dimension"):
        read_table(tmp_path / "t.nc")


HOSTILE = [
    {"isthmus_type": "<U999999999"}, {"isthmus_type": "V999999999"}, {"isthmus_type": "M8[s]"}, {"isthmus_type": 3.0},
    {"isthmus_empty": json.dumps([["a"], [10**12], "<f8"])}, {"isthmus_empty": json.dumps([["a"], [1], "<f8"])},
    {"isthmus_empty": json.dumps([["a"], [0], "<U99999"])}, {"json": "[1]"}, {"json": "["},
    {"json": json.dumps({"a": {"$array": ["x"] * 100, "dtype": "<U999999999", "shape": [100]}})},
    {"json": json.dumps({"a": {"$array": [0], "dtype": "V999999999", "shape": [1]}})},
]  # fmt: skip


@pytest.mark.parametrize("attributes", HOSTILE, ids=str)
def test_crafted_attributes_take_no_memory(tmp_path: Path, attributes: dict[str, object]) -> None:
    written = xr.Dataset({"a": ("layer", np.arange(3.0), {"json": "{}", **attributes})})
    (tmp_path / "t.nc").write_bytes(bytes(written.to_netcdf(engine="scipy")))
    try:
        found = read_table(tmp_path / "t.nc")
    except (ValueError, TypeError, KeyError):
        return
    assert found["a"].attrs["a"].nbytes < 1000  # as wide as its text, whatever the file says


def test_a_folder_with_a_crafted_table_of_the_right_checksum_is_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    discoveries.discovery().save(folder)
    before = checksum(folder / "runs.nc")
    (folder / "runs.nc").write_bytes(crowded(2000, 5000, apart=False))
    result = folder / "result.json"
    content = json.dumps(opened_json(result.read_bytes())).replace(before, checksum(folder / "runs.nc"))
    result.write_bytes(sealed_json(json.loads(content)))
    with pytest.raises(DataError, match=r"runs\.nc: cannot be read.*more numbers than bytes"):
        isthmus.load(folder)
