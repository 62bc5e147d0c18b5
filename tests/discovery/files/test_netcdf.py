from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from isthmus.discovery.files.netcdf import checksum, read_table, write_tables


def table(value: float) -> xr.Dataset:
    return xr.Dataset({"a": ("layer", [value, np.nan])}, attrs={"whole": True, "none": None})


def test_every_group_comes_back_as_it_was(tmp_path: Path) -> None:
    tables = {"first": table(1.0), "second": table(2.0), "third": table(3.0)}
    write_tables(tmp_path / "t.nc", tables)
    for name, expected in tables.items():
        assert read_table(tmp_path / "t.nc", name).identical(expected), name


def test_one_flipped_byte_changes_the_checksum(tmp_path: Path) -> None:
    write_tables(tmp_path / "t.nc", {"first": table(1.0)})
    before = checksum(tmp_path / "t.nc")
    content = bytearray((tmp_path / "t.nc").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "t.nc").write_bytes(content)
    assert checksum(tmp_path / "t.nc") != before


def test_a_missing_group_is_an_error(tmp_path: Path) -> None:
    write_tables(tmp_path / "t.nc", {"first": table(1.0)})
    with pytest.raises(OSError, match="second"):
        read_table(tmp_path / "t.nc", "second")
