"""Tables of netCDF-4 are read by a process apart: what comes from elsewhere, or never comes back, is refused."""

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr

import isthmus
from isthmus.discovery.files import hdf5_tables
from isthmus.discovery.files.netcdf import checksum, read_table
from isthmus.errors import DataError
from isthmus.writing.checksums import opened_json, sealed_json

SECRET = np.arange(4.0) + 17
ARCHIVE = Path(__file__).parents[2] / "older" / "files_0_1.zip"


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A run of format version 1."""
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(tmp_path)
    return tmp_path / "discovery"


@pytest.mark.slow
def test_an_older_table_has_its_numbers_names_and_attributes(older: Path) -> None:
    found = read_table(older / "runs.nc", "runs")
    before = xr.load_dataset(older / "runs.nc", engine="h5netcdf", group="runs")
    assert {str(name) for name in found.variables} == {str(name) for name in before.variables}
    for name, column in found.variables.items():
        assert column.dims == before[name].dims
        assert np.array_equal(column.values, before[name].values, equal_nan=column.dtype.kind == "f"), name
    assert found.attrs == json.loads(before.attrs["json"])
    assert found["objective"].values.tobytes() == before["objective"].values.tobytes()


@pytest.mark.slow
def test_a_run_that_is_written_again_leaves_no_older_file(older: Path) -> None:
    found = isthmus.load(older)
    found.save(older)
    assert not (older / "curves.nc").exists()
    assert isthmus.load(older).scree.identical(found.scree)


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


def craft(path: Path, change: Callable[[h5py.Group, Path], None], folder: Path, group: str = "runs") -> None:
    """A table with the column `a`, made otherwise than ours were."""
    xr.Dataset({"a": ("start", np.zeros(4), {"json": "{}"})}, attrs={"json": "{}"}).to_netcdf(
        path, engine="h5netcdf", group=group
    )
    file: Any
    with h5py.File(path, "r+") as file:
        del file[group]["a"]
        change(file[group], folder)
        file[group]["a"].attrs["json"] = "{}"


# in this process: that of the file apart is the same code, and starts in a second
@pytest.mark.parametrize(
    "change", [external_storage, virtual, external_link, soft_link, foreign_filter], ids=lambda change: change.__name__
)
def test_numbers_from_elsewhere_are_refused(tmp_path: Path, change: Callable[[h5py.Group, Path], None]) -> None:
    craft(tmp_path / "runs.nc", change, tmp_path)
    file: Any
    with h5py.File(tmp_path / "runs.nc") as file:
        assert np.array_equal(file["runs/a"], SECRET), "the payload is dead"
    with pytest.raises(ValueError, match=r"link|another file|other datasets|foreign filter"):
        hdf5_tables.check_contents(str(tmp_path / "runs.nc"))


@pytest.mark.slow
def test_a_run_folder_shows_no_other_file(older: Path, tmp_path: Path) -> None:
    before = checksum(older / "runs.nc")
    (older / "runs.nc").unlink()
    craft(older / "runs.nc", external_storage, tmp_path)
    result = older / "result.json"
    content = json.dumps(opened_json(result.read_bytes())).replace(before, checksum(older / "runs.nc"))
    result.write_bytes(sealed_json(json.loads(content)))
    with pytest.raises(DataError, match=r"runs\.nc: cannot be read.*another file"):
        isthmus.load(older)


def test_more_numbers_than_there_is_room_for_are_refused(tmp_path: Path) -> None:
    def huge(group: h5py.Group, _folder: Path) -> None:
        group.create_dataset("a", (10**13,), np.float64, chunks=(1024,))

    craft(tmp_path / "runs.nc", huge, tmp_path)
    assert (tmp_path / "runs.nc").stat().st_size < 100_000
    with pytest.raises(ValueError, match="of memory"):
        hdf5_tables.check_contents(str(tmp_path / "runs.nc"))


def test_groups_in_a_ring_are_walked_once(tmp_path: Path) -> None:
    xr.Dataset({"a": ("start", np.ones(3))}).to_netcdf(tmp_path / "t.nc", engine="h5netcdf", group="runs")
    with h5py.File(tmp_path / "t.nc", "r+") as file:
        file["runs/again"] = file["runs"]
    hdf5_tables.check_contents(str(tmp_path / "t.nc"))


def endless(content: bytes) -> bytes:
    """The file with a heap of text whose first entry ends where it begins: HDF5 walks it for ever."""
    place = content.index(b"GCOL") + 16  # behind its signature, version and size
    index = content[place : place + 2]
    size = (2**64 - 16).to_bytes(8, "little")  # with its own head of 16 bytes that is nothing
    return content[:place] + index + content[place + 2 : place + 8] + size + content[place + 16 :]


@pytest.mark.slow
def test_the_process_that_does_not_come_back_is_ended(older: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = older / "runs.nc"
    path.write_bytes(endless(path.read_bytes()))
    script = Path(hdf5_tables.__file__).read_text().replace("SECONDS, ROOM = 20,", "SECONDS, ROOM = 1,")
    assert "SECONDS, ROOM = 1," in script
    (older / "quick.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "-P", str(older / "quick.py"), str(path), "runs"], capture_output=True, check=False
    )
    assert done.returncode < 0, "the payload is dead"
    monkeypatch.setattr("isthmus.discovery.files.netcdf._OLDER_READER", older / "quick.py")
    with pytest.raises(ValueError, match="does not come back"):
        read_table(path, "runs")


@pytest.mark.slow
def test_libraries_that_take_much_memory_when_they_are_loaded_do_not_count(older: Path, tmp_path: Path) -> None:
    """As cupy, which xarray loads with the first numbers that it is asked for, brings those of a GPU."""
    (tmp_path / "cupy.py").write_text(
        f"import mmap\nspace = mmap.mmap(-1, {2 * hdf5_tables.ROOM})\nclass ndarray: ...\n"
    )
    done = subprocess.run(
        [sys.executable, hdf5_tables.__file__, str(older / "runs.nc"), "runs"],
        capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert "objective" in json.loads(done.stdout)["columns"]
