"""Labelled tables as netCDF files, whole or absent, and back without loss; nothing is ever unpickled.

Which tables a discovery consists of: `files.storage`; the arrays of a sweep's runs: `sweeps.run_files`.
"""

import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5netcdf
import xarray as xr
from xarray.backends import H5NetCDFStore

from isthmus.discovery.files.hdf5_contents import check_contents
from isthmus.discovery.files.json_values import plain, restored
from isthmus.writing.atomic import write_bytes


def write_tables(path: Path, tables: Mapping[str, object]) -> None:
    """Write datasets into one file, each a group of its name.

    Raises:
        OSError: the file cannot be written.
        TypeError: an attribute has no plain form.
    """
    # in memory first: HDF5 that meets a full disk hides it, and takes the process down with it later
    buffer = io.BytesIO()
    with h5netcdf.File(buffer, "w") as file:
        for group, table in tables.items():
            assert isinstance(table, xr.Dataset)
            with_plain_attributes(table, group).dump_to_store(H5NetCDFStore(file.create_group(group)))
    write_bytes(path, buffer.getvalue())


def read_table(path: Path, group: str) -> xr.Dataset:
    """One group of a file that `write_tables` wrote, in memory.

    Raises:
        OSError, KeyError, ValueError, RuntimeError: no such file or group, or a damaged one, in the words of h5py.
        ValueError, DataError: see `check_contents`.
    """
    check_contents(path)
    return with_own_attributes(xr.load_dataset(path, engine="h5netcdf", group=group))


def with_plain_attributes(table: xr.Dataset, name: str) -> xr.Dataset:
    """A copy whose attributes are one JSON string each, for those of netCDF refuse None and bool.

    Raises:
        TypeError: an attribute of the table, called `name`, has no plain form.
    """
    bare = table.copy()
    bare.attrs = {"json": json.dumps(plain(table.attrs, f"{name}.attrs"), ensure_ascii=False)}
    for column, variable in bare.variables.items():
        variable.attrs = {"json": json.dumps(plain(variable.attrs, f"{name}.{column}.attrs"))}
        # no fill value: NaN stays the very NaN it was
        variable.encoding = {"_FillValue": None}
    return bare


def with_own_attributes(table: xr.Dataset) -> xr.Dataset:
    """A table as it was before `with_plain_attributes`, in place; variables of older sweeps have no attributes.

    Raises:
        KeyError, ValueError, TypeError: the attributes are others.
    """
    table.encoding = {}
    for holder in (table, *(variable for variable in table.variables.values() if variable.attrs)):
        attributes: Any = restored(json.loads(holder.attrs["json"]))
        holder.attrs = attributes
    for variable in table.variables.values():
        variable.encoding = {}
    return table


def checksum(path: Path) -> str:
    """SHA-256 of a file's bytes, hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
