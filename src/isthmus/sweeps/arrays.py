"""The arrays of one run as a classic netCDF file. Larger tables, in groups: `discovery.files.netcdf`.

Classic rather than HDF5: a table by layer takes 7 ms to write instead of 125 ms, which would be most of a short run.
"""

import json
from pathlib import Path
from typing import Any

import xarray as xr

from isthmus.discovery.files.json_values import plain, restored


def write_arrays(path: Path, arrays: xr.Dataset) -> None:
    """Write a dataset; whole numbers come back with 32 bits, all else as it was.

    Raises:
        OSError: the file cannot be written. ValueError: whole numbers beyond 32 bits.
    """
    bare = arrays.copy()
    # netCDF attributes refuse None and bool, so they travel as one JSON string
    bare.attrs = {"json": json.dumps(plain(arrays.attrs, "attrs"))}
    for variable in bare.variables.values():
        variable.attrs = {}
        variable.encoding = {"_FillValue": None}  # NaN stays the very NaN it was
    # as bytes first: a full disk is then met by a write of ours, which says so
    path.write_bytes(bytes(bare.to_netcdf(engine="scipy")))


def read_arrays(path: Path) -> xr.Dataset:
    """The dataset that `write_arrays` wrote, in memory.

    Raises:
        OSError, ValueError, TypeError, KeyError: no such file, or a damaged one.
    """
    arrays = xr.load_dataset(path, engine="scipy")
    attributes: Any = restored(json.loads(arrays.attrs["json"]))
    arrays.attrs = attributes
    arrays.encoding = {}
    for variable in arrays.variables.values():
        variable.encoding = {}
    return arrays
