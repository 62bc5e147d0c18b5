"""Arrays in .npy and .npz files, their sizes known before anything is unpacked, and in zarr folders: `zarr_folders`.

Nothing is ever unpickled. A header is believed only as far as the file is long enough and there is memory for it. What
arrays mean: `files`, `matrices`.
"""

import math
import warnings
import zipfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy_format

from isthmus.errors import DataError, DataWarning, outside
from isthmus.processes.shared_state import silenced
from isthmus.tasks.arrays import counted
from isthmus.tasks.door import through_door
from isthmus.tasks.memory import check_memory
from isthmus.tasks.names import shown
from isthmus.tasks.zarr_folders import EXTENSION, ZarrFolder, checked_data, is_array, is_zarr

_ARCHIVES = (b"PK\x03\x04", b"PK\x05\x06")
_LARGEST_SIDE = 2**62


class ArrayFile:
    """The arrays of one open file.

    Attributes:
        names: of the arrays in it; a .npy holds one, called x.
        instead: what to do where an array is missing.
    """

    instead = "Save x (and y) in it"

    def __init__(self, stream: IO[bytes], path: Path) -> None:
        self._stream, self._path = stream, path
        start = stream.read(4)
        if not start:
            raise EOFError("the file is empty")
        stream.seek(0)
        self._archive = zipfile.ZipFile(stream) if start in _ARCHIVES else None
        members = ["x"] if self._archive is None else [name.removesuffix(".npy") for name in self._archive.namelist()]
        self.names = tuple(dict.fromkeys(members))

    def read(self, name: str) -> np.ndarray:
        """The array called `name`.

        Raises:
            DataError: its header is damaged, or names more than the file holds or memory takes.
            ValueError: it holds Python objects; and whatever zipfile and the methods of compression raise.
        """
        with self._opened(name) as (stream, size, where):
            return _read_array(stream, size, where)

    def shape(self, name: str) -> tuple[int, ...]:
        """That of the array called `name`, as its header says.

        Raises:
            DataError: the header is damaged.
            ValueError: it holds Python objects, or is no array.
        """
        with self._opened(name) as (stream, size, where):
            return checked_header(stream, size, where)[0]

    @contextmanager
    def _opened(self, name: str) -> "Generator[tuple[IO[bytes] | zipfile.ZipExtFile, int, str]]":
        """What holds an array, its size in bytes, and where that is in words."""
        if self._archive is None:
            yield self._stream, self._path.stat().st_size, str(self._path)
            return
        known = self._archive.namelist()
        member = self._archive.getinfo(f"{name}.npy" if f"{name}.npy" in known else name)
        with self._archive.open(member) as stream:
            yield stream, member.file_size, f"{self._path}, {name[:80]}"


@contextmanager
def opened_arrays(path: Path) -> Generator[ArrayFile | ZarrFolder]:
    """The arrays of a .npy, an .npz or a zarr folder; inside `through_door`, which tells what goes wrong."""
    if is_zarr(path):
        yield ZarrFolder(path)
    else:
        with path.open("rb") as stream:
            yield ArrayFile(stream, path)


def is_archive(path: Path) -> bool:
    """Whether it holds arrays by name: an .npz, or a group of zarr.

    Raises:
        DataError: a zarr folder of which neither can be said.
    """
    return not is_array(path) if is_zarr(path) else path.suffix.lower() == ".npz"


def kind_of_array(path: Path) -> str:
    """`.npy`, `.npz` or `.zarr`, which a zarr array inside a folder is too; or another extension."""
    return EXTENSION if is_zarr(path) else path.suffix.lower()


def names_in_words(names: Sequence[str]) -> str:
    """The first of them, as one line can say them: an archive may call its members anything."""
    return ", ".join(map(shown, names[:20])) or "nothing"


def check_what_is_left(file: ArrayFile | ZarrFolder, path: Path) -> None:
    """Look at the arrays beside x and y, which are not used.

    Raises:
        DataError: x is a line of numbers beside an array of more dimensions, as the coordinates of a grid are.

    Warns:
        DataWarning: there are some.
    """
    others = [name for name in file.names if name not in {"x", "y"}]
    if not others or "x" not in file.names:
        return
    fields = [name for name in others if len(_shape_of(file, name)) > 1] if len(_shape_of(file, "x")) == 1 else []
    if fields:
        field = shown(fields[0])
        pass_it = f"Pass {path}/{field}" if is_zarr(path) else "Save it alone, or call it x"
        raise DataError(
            f"{path}: x is a line of {_shape_of(file, 'x')[0]} numbers beside {field} of shape "
            f"{_shape_of(file, fields[0])}, as the coordinates of a grid are. {pass_it}; samples of one number each "
            "are an x of shape (n, 1)."
        )
    used = "x and y are" if "y" in file.names else "x alone is"
    text = f"{path}: {used} used of it; it holds {names_in_words(others)} too."
    warnings.warn(text, DataWarning, stacklevel=outside())


def _shape_of(file: ArrayFile | ZarrFolder, name: str) -> tuple[int, ...]:
    """That of an array, or of none where it is damaged or of objects, which matters to nobody who does not read it."""
    try:
        return file.shape(name)
    except (DataError, ValueError):
        return ()


def say_flattened(shape: Sequence[int], where: str) -> None:
    """Say (DataWarning) that an array of more than two dimensions was taken as rows, by its first."""
    if len(shape) > 2:  # noqa: PLR2004 - rows and columns
        rows = f"{shape[0]} rows of {counted(math.prod(shape[1:]) if shape[0] else 0, 'column')}"
        text = f"{where}: of shape {tuple(shape)} was flattened to {rows}."
        warnings.warn(text, DataWarning, stacklevel=outside())


def arrays_of(path: Path) -> dict[str, np.ndarray]:
    """All arrays of a .npy or a zarr array (called x), of an .npz or of a group of zarr.

    Raises:
        DataError: the file cannot be read.
    """

    def read(place: Path) -> dict[str, np.ndarray]:
        with opened_arrays(place) as file:
            return {name: file.read(name) for name in file.names}

    return through_door(path, read, kind=kind_of_array(path), check=checked_data)


def mapped_array(path: Path) -> np.ndarray:
    """The array of a .npy file, of which only those pages are read that are used.

    Raises:
        DataError: the file cannot be read, or holds no numbers.
    """

    def read(place: Path) -> np.ndarray:
        with place.open("rb") as stream:
            _, dtype = checked_header(stream, place.stat().st_size, str(place))
        if dtype.kind not in "biuf":
            raise DataError(f"{place}: holds {dtype}, not numbers. Save an array of numbers.")
        with silenced():  # what numpy thinks of a header of Python 2
            return np.load(place, mmap_mode="r", allow_pickle=False)

    return through_door(path, read, kind=".npy")


def _read_array(stream: IO[bytes] | zipfile.ZipExtFile, size: int, where: str) -> np.ndarray:
    shape, dtype = checked_header(stream, size, where)
    count = math.prod(shape)
    # numbers of other types are turned into float64, beside what was read
    check_memory(count * (dtype.itemsize + (8 if dtype != np.float64 else 0)), where)
    stream.seek(0)
    with silenced():
        return np.asarray(npy_format.read_array(stream, allow_pickle=False))


def checked_header(stream: IO[bytes] | zipfile.ZipExtFile, size: int, where: str) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and type that the header of an array says, checked against the `size` in bytes of what holds it.

    Raises:
        DataError: it says what cannot be, or more than there is.
        ValueError: it is no header, or one of Python objects.
    """
    with silenced():  # what Python thinks of a damaged header, and numpy of one of Python 2
        version = npy_format.read_magic(stream)
        if version == (1, 0):
            shape, _, dtype = npy_format.read_array_header_1_0(stream)
        elif version == (2, 0):
            shape, _, dtype = npy_format.read_array_header_2_0(stream)
        else:  # 3.0 is written for records whose fields have names beyond Latin-1
            raise DataError(f"{where}: is of format {version[0]}.{version[1]}, for records. Save an array of numbers.")
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which cannot be loaded when allow_pickle=False")
    if not all(type(side) is int and 0 <= side <= _LARGEST_SIDE for side in shape):
        raise DataError(f"{where}: cannot be read (its header says shape {str(shape)[:80]}). Write the file again.")
    count = math.prod(shape)
    if count and not dtype.itemsize:
        raise DataError(f"{where}: holds {dtype}, values without content. Save an array of numbers.")
    if stream.tell() + count * dtype.itemsize > size:
        raise DataError(
            f"{where}: is cut short: its header says shape {str(shape)[:80]} of {str(dtype)[:40]}, for which {size} "
            "bytes are too few. Write the file again."
        )
    return shape, dtype
