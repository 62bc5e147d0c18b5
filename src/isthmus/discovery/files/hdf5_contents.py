"""What an HDF5 file of ours may consist of: its own bytes, unpacked by HDF5 itself, and no more than there is room for.

The tables in it: `netcdf`.
"""

from pathlib import Path

import h5py

from isthmus.tasks.memory import check_memory

# those of HDF5 itself: any other would be loaded as a library of machine code
_FILTERS = {h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32}


def check_contents(path: Path) -> None:
    """Refuse a file whose numbers would come from elsewhere: HDF5 follows names of other files without a word.

    Raises:
        ValueError: a link to another place, a dataset kept outside or put together from others, a foreign filter.
        DataError: more numbers than there is memory for. OSError, KeyError, RuntimeError: damaged, in h5py's words.
    """
    with h5py.File(path, "r") as file:
        file.attrs.get("_nc3_strict")  # on a file that is damaged here h5netcdf would print a traceback of its own
        waiting: list[h5py.Group] = [file]
        seen, size = set[h5py.Group](), 0
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
                    size += _size(found)
                elif isinstance(found, h5py.Group):
                    waiting.append(found)
    check_memory(size, str(path))


def _size(dataset: h5py.Dataset) -> int:
    """Bytes of a dataset once it is read.

    Raises:
        ValueError: its numbers do not lie in the file.
    """
    if dataset.external:
        raise ValueError(f"{dataset.name!r} keeps its numbers in another file")
    if dataset.is_virtual:
        raise ValueError(f"{dataset.name!r} is put together from other datasets")
    made = dataset.id.get_create_plist()
    if foreign := {made.get_filter(number)[0] for number in range(made.get_nfilters())} - _FILTERS:
        raise ValueError(f"{dataset.name!r} is packed by a foreign filter ({sorted(foreign)[0]})")
    return int(dataset.nbytes) if dataset.shape is not None else 0
