"""Labelled tables as netCDF-3 files, whole or absent, and back without loss; nothing is ever unpickled.

The classic format and not netCDF-4: that is HDF5, whose C library goes round in circles or takes gigabytes on crafted
files of a few kilobytes, where nobody can stop it. scipy reads this one in Python, and every program for netCDF does.
Files of older versions are read by a process apart, which sends JSON: `files.hdf5_tables`.

Which tables a discovery consists of: `files.storage`; the arrays of a sweep's runs: `sweeps.run_files`.
"""

import hashlib
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from isthmus.discovery.files.json_values import plain, restored
from isthmus.processes.children import safe_path
from isthmus.processes.shared_state import raised
from isthmus.writing.atomic import write_bytes
from isthmus.writing.regular import contents

_LARGEST = 2**31 - 1  # of the whole numbers that the format has
# names of attributes: all attributes of a table or column, for netCDF has no None and no bool; the type that a column
# had; dimensions and type of a column without values, which stands in the file as a single number
_ATTRIBUTES, _TYPE, _EMPTY = "json", "isthmus_type", "isthmus_empty"
_TYPES = re.compile(r"[<>|=]?[iuf][1248]|[|]b1|U|[<>]U\d{1,3}|[|]O")
_OLDER_READER = Path(__file__).with_name("hdf5_tables.py")
_OLDER_KINDS = {"f": float, "i": np.int64, "u": np.uint64, "b": bool, "U": str, "O": str}
_LONGEST = 600.0  # seconds by the clock for an older file; the processor's are counted by the process itself
_HDF5 = b"\x89HDF\r\n\x1a\n"
# how often the bytes of a file may be read: in a good one every byte belongs to one column
_MOST_READINGS, _HEAD = 4, 2**16


def write_table(path: Path, table: xr.Dataset) -> None:
    """Write a table as a file of its own, in which whole numbers beyond 32 bits stand as text.

    Raises:
        OSError: the file cannot be written.
        TypeError, ValueError: an attribute has no plain form; a column is neither of numbers nor of text.
    """
    stored = {name: _stored(variable, f"{path.stem}.{name}") for name, variable in table.variables.items()}
    columns = {name: stored[name] for name in table.data_vars}
    attributes = {_ATTRIBUTES: json.dumps(plain(table.attrs, f"{path.stem}.attrs"), ensure_ascii=False)}
    file = xr.Dataset(columns, {name: stored[name] for name in table.coords}, attributes)
    # as bytes first: a full disk is then met by a write of ours, which says so
    write_bytes(path, bytes(file.to_netcdf(engine="scipy")))


def read_table(path: Path, name: str = "") -> xr.Dataset:
    """The table that `write_table` wrote, in memory.

    Args:
        path: of the file; one of netCDF-4, as older versions wrote, is read by a process apart.
        name: of the table, which tells it from others in a file of netCDF-4.

    Raises:
        OSError, ValueError, TypeError, KeyError, IndexError: no such file, or a damaged one, in the words of scipy.
        ValueError: it has more numbers than bytes, or was made otherwise.
    """
    content = contents(path)
    if content[: len(_HDF5)] == _HDF5:
        return _read_older(path, name)
    if content[:3] != b"CDF":
        raise ValueError("no classic netCDF")
    with raised(UserWarning), raised(RuntimeWarning):  # what overflows, or has a dimension twice, is damaged
        return _read_classic(_Metered(content))


def _read_classic(content: io.BytesIO) -> xr.Dataset:
    options: dict[str, Any] = {"mask_and_scale": False, "decode_times": False, "decode_timedelta": False}
    with xr.open_dataset(content, engine="scipy", **options) as file:
        found = {name: _restored(variable.load()) for name, variable in file.variables.items()}
        columns = {name: found[name] for name in file.data_vars}
        table = xr.Dataset(columns, {name: found[name] for name in file.coords})
        table.attrs = _attributes(file.attrs)
    return table


def checksum(path: Path) -> str:
    """SHA-256 of a file's bytes, hexadecimal."""
    return hashlib.sha256(contents(path)).hexdigest()


class _Metered(io.BytesIO):
    """The bytes of a file, read a few times at most: columns may lie on top of each other, and take any memory."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.left = _MOST_READINGS * len(content) + _HEAD

    def read(self, size: int | None = -1, /) -> bytes:
        found = super().read(size)
        self.left -= len(found)
        if self.left < 0:
            raise ValueError("more numbers than bytes")
        return found


def _stored(variable: xr.Variable, where: str) -> xr.Variable:
    """A column as the format has it."""
    values = variable.values
    attributes = {_ATTRIBUTES: json.dumps(plain(variable.attrs, f"{where}.attrs"))}
    is_text = values.dtype.kind in "UO" and all(isinstance(value, str) for value in values.flat)
    if not is_text and values.dtype.kind not in "biuf":
        raise TypeError(f"save: {where} is neither of numbers nor of text.")
    if is_text and any("\0" in value for value in values.flat):
        raise ValueError(f"save: {where} has a text with a NUL, which netCDF lacks.")
    if not values.size:
        attributes[_EMPTY] = json.dumps([list(variable.dims), list(values.shape), values.dtype.str])
        return xr.Variable((), 0, attributes)
    if values.dtype.kind in "iu":
        attributes[_TYPE] = values.dtype.str
        is_small = int(values.min()) >= -_LARGEST and int(values.max()) <= _LARGEST
        values = values.astype(np.int32) if is_small else values.astype(str)
    elif values.dtype.kind == "U":
        attributes[_TYPE] = "U"
    elif values.dtype == np.float16:
        attributes[_TYPE], values = values.dtype.str, values.astype(np.float32)
    # no fill value: NaN stays the very NaN it was
    return xr.Variable(variable.dims, values, attributes, {"_FillValue": None} if values.dtype.kind == "f" else {})


def _restored(variable: xr.Variable) -> xr.Variable:
    """A column as it was before `_stored`."""
    attributes, values, dimensions = _attributes(variable.attrs), variable.values, variable.dims
    if _EMPTY in variable.attrs:
        dimensions, shape, kind = json.loads(variable.attrs[_EMPTY])
        if 0 not in shape:
            raise ValueError("a column without values has a shape with some")
        values = np.zeros(shape, _type(kind))
    elif _TYPE in variable.attrs:
        values = values.astype(_type(variable.attrs[_TYPE]))
    return xr.Variable(dimensions, values, attributes)


def _type(text: object) -> np.dtype[Any]:
    if not isinstance(text, str) or not _TYPES.fullmatch(text):
        raise ValueError(f"{str(text)[:40]!r} is no type of a column")
    return np.dtype(text)


def _attributes(stored: dict[Any, Any]) -> dict[Any, Any]:
    """The attributes of a table or column; columns of older sweeps have none."""
    found: Any = restored(json.loads(stored[_ATTRIBUTES])) if stored else {}
    if not isinstance(found, dict):
        raise TypeError("its attributes are no dictionary")
    return found


def _read_older(path: Path, group: str) -> xr.Dataset:
    """One group of a file of netCDF-4, in memory.

    Raises:
        OSError: no process can be started.
        ValueError, KeyError, TypeError: no such group, a damaged or crafted file, one that takes too long, or the extra
            `older` is not installed.
    """
    command = [sys.executable, str(_OLDER_READER), str(path), group]
    try:
        with safe_path():
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_LONGEST, check=False,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
            )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ValueError("its library does not come back from it") from None
    if done.returncode < 0:
        raise ValueError("its library does not come back from it, or ends the process")
    if done.returncode:
        raise ValueError((done.stderr.decode(errors="replace").strip().splitlines() or ["its library gives up"])[-1])
    content = json.loads(done.stdout)
    columns = {name: _older_column(column) for name, column in content["columns"].items()}
    coordinates = {name: columns.pop(name) for name in content["coords"]}
    table = xr.Dataset(columns, coordinates)
    table.attrs = _attributes({_ATTRIBUTES: content["attrs"]})
    return table


def _older_column(column: Mapping[str, Any]) -> xr.Variable:
    values = np.array(column["values"], dtype=_OLDER_KINDS[column["kind"]]).reshape(column["shape"])
    return xr.Variable(column["dims"], values, _attributes({_ATTRIBUTES: column["attrs"]}))
