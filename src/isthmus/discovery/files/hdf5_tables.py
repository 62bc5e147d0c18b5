"""A table of netCDF-4, as runs of format version 1 have it, printed as JSON: by a process apart, with nothing of ours.

    PYTHONSAFEPATH=1 python hdf5_tables.py FILE GROUP

netCDF-4 is HDF5, whose library goes round in circles or takes gigabytes on crafted files of a few kilobytes, without a
moment in which Python could stop it. The system stops this process instead. Who starts it: `files.netcdf`.
"""

import importlib
import io
import json
import sys
from pathlib import Path
from typing import Any

SECONDS, ROOM = 20, 512 * 2**20  # of the processor; beyond what the libraries take, and eight times the file


def limit(path: str) -> None:
    """Let the system end this process where it takes too long, and refuse it memory; where it can (POSIX, Linux)."""
    try:
        import resource  # noqa: PLC0415 - not on Windows

        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + ROOM + 8 * Path(path).stat().st_size
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    except (ImportError, OSError):
        return


def read_nothing() -> None:
    """Ask a table of our own for its numbers: at the first ones xarray loads pint, sparse and cupy with all of CUDA."""
    import xarray as xr  # noqa: PLC0415

    made = xr.Dataset({"n": ("i", [0.0])}).to_netcdf(engine="h5netcdf")
    _ = xr.load_dataset(io.BytesIO(made), engine="h5netcdf")["n"].values


def check_contents(path: str) -> None:
    """Refuse a file whose numbers would come from elsewhere: HDF5 follows names of other files without a word.

    Raises:
        ValueError: a link to another place, a dataset kept outside or put together from others, a foreign filter, or
            far more numbers than bytes.
        OSError, KeyError, RuntimeError: damaged, in h5py's words.
    """
    import h5py  # noqa: PLC0415 - limits are set when this is there

    own = {h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32}
    with h5py.File(path, "r") as file:
        file.attrs.get("_nc3_strict")  # on a file that is damaged here h5netcdf would print a traceback of its own
        waiting: list[Any] = [file]
        seen, size = set[Any](), 0
        while waiting:
            group = waiting.pop()
            if group in seen:  # groups may stand in each other
                continue
            seen.add(group)
            for name in group:
                if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                    raise ValueError(f"{name!r} is a link to another place")
                found = group[name]
                if isinstance(found, h5py.Dataset):
                    made = found.id.get_create_plist()
                    if found.external:
                        raise ValueError(f"{name!r} keeps its numbers in another file")
                    if found.is_virtual:
                        raise ValueError(f"{name!r} is put together from other datasets")
                    if {made.get_filter(number)[0] for number in range(made.get_nfilters())} - own:
                        raise ValueError(f"{name!r} is packed by a foreign filter")
                    size += int(found.nbytes) if found.shape is not None else 0
                elif isinstance(found, h5py.Group):
                    waiting.append(found)
    if size > ROOM:
        raise ValueError(f"needs {size} bytes of memory")


def as_json(path: str, group: str) -> dict[str, Any]:
    """The columns of a table: dimensions, kind, values and attributes of each."""
    import xarray as xr  # noqa: PLC0415

    table = xr.load_dataset(path, engine="h5netcdf", group=group)
    columns = {
        str(name): {
            "dims": column.dims, "kind": column.dtype.kind, "values": column.values.tolist(),
            "shape": column.shape, "attrs": str(column.attrs.get("json", "{}")),
        }
        for name, column in table.variables.items()
    }  # fmt: skip
    return {"columns": columns, "coords": [str(name) for name in table.coords], "attrs": str(table.attrs["json"])}


def main() -> None:
    """Print the table, or why there is none."""
    path, group = sys.argv[1:]
    try:
        for name in ("h5netcdf", "h5py", "xarray"):  # before the limits, which are those of the file
            importlib.import_module(name)
        read_nothing()
    except ImportError as error:
        sys.exit(f"{error}; pip install 'isthmus[older]'")
    limit(path)
    try:
        check_contents(path)
        sys.stdout.write(json.dumps(as_json(path, group)))
    except Exception as error:  # noqa: BLE001 - whatever a library throws of a damaged file
        sys.exit(" ".join(str(error).split())[:300] or type(error).__name__)


if __name__ == "__main__":
    main()
