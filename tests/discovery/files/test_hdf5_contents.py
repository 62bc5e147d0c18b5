"""Tables whose numbers would come from somewhere else: each is read as it stands by h5py, and refused by us."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr

import discoveries
import isthmus
from isthmus.discovery.files.netcdf import checksum, read_table, write_tables
from isthmus.errors import DataError
from isthmus.writing.checksums import opened_json, sealed_json

SECRET = np.arange(4.0) + 17


def external_storage(group: h5py.Group, folder: Path) -> None:
    SECRET.tofile(folder / "secret")
    group.create_dataset("a", (4,), np.float64, external=[(str(folder / "secret"), 0, h5py.h5f.UNLIMITED)])


def virtual(group: h5py.Group, folder: Path) -> None:
    with h5py.File(folder / "other.h5", "w") as other:
        other["a"] = SECRET
    layout = h5py.VirtualLayout((4,), np.float64)
    layout[:] = h5py.VirtualSource(folder / "other.h5", "a", (4,))
    group.create_virtual_dataset("a", layout)


def external_link(group: h5py.Group, folder: Path) -> None:
    with h5py.File(folder / "other.h5", "w") as other:
        other["a"] = SECRET
    group["a"] = h5py.ExternalLink(folder / "other.h5", "/a")


def soft_link(group: h5py.Group, _folder: Path) -> None:
    group.file["elsewhere"] = SECRET
    group["a"] = h5py.SoftLink("/elsewhere")


def foreign_filter(group: h5py.Group, _folder: Path) -> None:
    group.create_dataset("a", data=SECRET, compression="lzf")


CRAFTED = [external_storage, virtual, external_link, soft_link, foreign_filter]


def craft(path: Path, change: Callable[[h5py.Group, Path], None], folder: Path, group: str = "runs") -> None:
    """A table with the column `a`, made otherwise than ours are."""
    write_tables(path, {group: xr.Dataset({"a": ("start", np.zeros(4))})})
    file: Any
    with h5py.File(path, "r+") as file:
        attributes = dict(file[group]["a"].attrs)
        del file[group]["a"]
        change(file[group], folder)
        file[group]["a"].attrs["json"] = attributes["json"]


@pytest.mark.parametrize("change", CRAFTED, ids=lambda change: change.__name__)
def test_numbers_from_elsewhere_are_refused(tmp_path: Path, change: Callable[[h5py.Group, Path], None]) -> None:
    craft(tmp_path / "runs.nc", change, tmp_path)
    file: Any
    with h5py.File(tmp_path / "runs.nc") as file:
        assert np.array_equal(file["runs/a"], SECRET), "the payload is dead"
    with pytest.raises(ValueError, match=r"link|another file|other datasets|foreign filter"):
        read_table(tmp_path / "runs.nc", "runs")


def test_a_run_folder_shows_no_other_file(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    discoveries.discovery().save(folder)
    before = checksum(folder / "runs.nc")
    craft(folder / "runs.nc", external_storage, tmp_path)
    result = folder / "result.json"
    content = json.dumps(opened_json(result.read_bytes())).replace(before, checksum(folder / "runs.nc"))
    result.write_bytes(sealed_json(json.loads(content)))
    with pytest.raises(DataError, match=r"runs\.nc: cannot be read.*another file"):
        isthmus.load(folder)


def test_more_numbers_than_there_is_memory_for_are_refused(tmp_path: Path) -> None:
    def huge(group: h5py.Group, _folder: Path) -> None:
        group.create_dataset("a", (10**13,), np.float64, chunks=(1024,))

    craft(tmp_path / "runs.nc", huge, tmp_path)
    assert (tmp_path / "runs.nc").stat().st_size < 100_000
    with pytest.raises(DataError, match=r"runs\.nc: needs .* of memory"):
        read_table(tmp_path / "runs.nc", "runs")


def test_groups_in_a_ring_are_walked_once(tmp_path: Path) -> None:
    write_tables(tmp_path / "t.nc", {"runs": xr.Dataset({"a": ("start", np.ones(3))})})
    with h5py.File(tmp_path / "t.nc", "r+") as file:
        file["runs/again"] = file["runs"]
    assert np.array_equal(read_table(tmp_path / "t.nc", "runs")["a"], np.ones(3))
