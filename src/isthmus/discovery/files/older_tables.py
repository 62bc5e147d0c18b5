"""Tables of runs of format version 1, which are netCDF-4; a process apart reads them, and sends plain JSON.

What that process does and may take: `files.hdf5_tables`. Tables of today: `files.netcdf`.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from isthmus.discovery.files.json_values import restored

_READER = Path(__file__).with_name("hdf5_tables.py")
_KINDS = {"f": float, "i": np.int64, "u": np.uint64, "b": bool, "U": str, "O": str}
_LONGEST = 600.0  # seconds by the clock; the processor's are counted by the process itself


def read_older_table(path: Path, group: str) -> xr.Dataset:
    """One group of a file of netCDF-4, in memory.

    Raises:
        OSError: no process can be started.
        ValueError, KeyError, TypeError: no such group, a damaged or crafted file, one that takes too long, or the extra
            `older` is not installed.
    """
    command = [sys.executable, "-P", str(_READER), str(path), group]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, timeout=_LONGEST, check=False
        )
    except subprocess.TimeoutExpired:
        raise ValueError("its library does not come back from it") from None
    if done.returncode < 0:
        raise ValueError("its library does not come back from it, or ends the process")
    if done.returncode:
        raise ValueError((done.stderr.decode(errors="replace").strip().splitlines() or ["its library gives up"])[-1])
    content = json.loads(done.stdout)
    columns = {name: _column(column) for name, column in content["columns"].items()}
    coordinates = {name: columns.pop(name) for name in content["coords"]}
    table = xr.Dataset(columns, coordinates)
    table.attrs = _attributes(content["attrs"])
    return table


def _column(column: Mapping[str, Any]) -> xr.Variable:
    values = np.array(column["values"], dtype=_KINDS[column["kind"]]).reshape(column["shape"])
    return xr.Variable(column["dims"], values, _attributes(column["attrs"]))


def _attributes(text: str) -> dict[Any, Any]:
    found: Any = restored(json.loads(text))
    return found
