"""Arrays of numbers that lie in a file: mapped, their pages let go after use, or written to a file without a name.

Which tables are taken so: `large_tables`. Who goes over them part by part: `arrays`.
"""

import math
import mmap
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterable
from typing import IO, Literal

import numpy as np

from isthmus.errors import DataError
from isthmus.tasks.memory import in_words

# without it a system refuses to map, so that it may be written to, what is larger than its memory; Python before 3.13
# has no name for it, and other processors have other numbers
_KNOWN = sys.platform == "linux" and platform.machine() in {"x86_64", "aarch64"}
_UNRESERVED: int = getattr(mmap, "MAP_NORESERVE", 0x4000 if _KNOWN else 0)
_DISK = 0.9  # of what is free there, that a table may take
_ZEROS = 2**23  # bytes that are written at once


class Pages(mmap.mmap):
    """Bytes of a file that nobody writes to, so that those in memory can be let go at any time."""


def mapped(
    stream: IO[bytes],
    dtype: np.dtype,
    shape: tuple[int, ...],
    *,
    offset: int = 0,
    order: Literal["C", "F"] = "C",
    pages: type[mmap.mmap] = Pages,
) -> np.ndarray:
    """The array in an open file; what is written to it stays in memory, as torch takes no array of which none may be.

    Args:
        stream: the file, which may be closed then.
        dtype: of the array.
        shape: of the array, with one number at least.
        offset: where it begins.
        order: C or Fortran.
        pages: what holds its bytes; `mmap.mmap` for an array that somebody may write to.
    """
    if sys.platform == "win32":
        return np.ndarray(shape, dtype, pages(stream.fileno(), 0, access=mmap.ACCESS_COPY), offset, order=order)
    flags, prot = mmap.MAP_PRIVATE | _UNRESERVED, mmap.PROT_READ | mmap.PROT_WRITE
    return np.ndarray(shape, dtype, pages(stream.fileno(), 0, flags=flags, prot=prot), offset, order=order)


def is_on_disk(array: object) -> bool:
    """Whether an array, or what it is a part of, lies in `Pages`."""
    return _pages(array) is not None


def let_go(array: object) -> None:
    """Take the pages of an array on disk out of memory; they are read again where they are used again."""
    pages = _pages(array)
    if pages is not None and hasattr(mmap, "MADV_DONTNEED"):
        pages.madvise(mmap.MADV_DONTNEED)


def _pages(array: object) -> Pages | None:
    while isinstance(array, np.ndarray):
        array = array.base
    return array if isinstance(array, Pages) else None


def filled_on_disk(
    parts: Iterable[tuple[tuple[slice, ...], np.ndarray]], shape: tuple[int, ...], dtype: np.dtype, where: str
) -> np.ndarray:
    """Numbers that come in any order, each part with its place, in a file of their own as `on_disk` makes it.

    Args:
        parts: of the array.
        shape: of it, with one number at least.
        dtype: of it.
        where: what an error calls it.

    Raises:
        DataError: the disk has no room for it.
    """
    size = math.prod(shape) * dtype.itemsize
    _check_disk(size, where)
    with tempfile.TemporaryFile() as stream:
        for start in range(0, size, _ZEROS):  # a hole that finds no room later would end the process
            stream.write(bytes(min(_ZEROS, size - start)))
        stream.flush()
        found = np.ndarray(shape, dtype, Pages(stream.fileno(), 0, access=mmap.ACCESS_WRITE))
        step = max(_ZEROS * shape[0] // size, 1)
        for (rows, *others), values in parts:
            for start in range(rows.start, rows.stop, step):
                stop = min(start + step, rows.stop)
                found[(slice(start, stop), *others)] = values[start - rows.start : stop - rows.start]
                let_go(found)
        return mapped(stream, dtype, shape)


def on_disk(parts: Iterable[np.ndarray], shape: tuple[int, int], where: str) -> np.ndarray:
    """Rows as float64 in a file of their own, which is gone with the array or the process.

    Args:
        parts: the rows, some at a time.
        shape: of all of them.
        where: what an error calls them.

    Raises:
        DataError: the disk has no room for it.
    """
    _check_disk(8 * shape[0] * shape[1], where)
    with tempfile.TemporaryFile() as stream:
        for part in parts:
            stream.write(np.ascontiguousarray(part, dtype=np.float64).data)
            let_go(part)
        stream.flush()
        return mapped(stream, np.dtype(np.float64), shape)


def _check_disk(size: int, where: str) -> None:
    folder = tempfile.gettempdir()
    if size > _DISK * shutil.disk_usage(folder).free:
        raise DataError(
            f"{where}: needs {in_words(size)} of disk in {folder} while it is worked on, which has not that much. Take "
            "fewer rows or columns, or name another folder with TMPDIR."
        )
