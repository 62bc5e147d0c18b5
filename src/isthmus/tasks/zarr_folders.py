"""Which folders are of zarr, and which arrays they hold: one, or several by name. Their numbers: `zarr_arrays`.

All tables and arrays come in by `checked_data`, which lets these folders pass where files are meant.
"""

from pathlib import Path

import numpy as np

from isthmus.errors import DataError
from isthmus.tasks.door import checked_file, file_inside, is_folder, read_json
from isthmus.tasks.zarr_arrays import ZarrArray
from isthmus.tasks.zarr_heads import HEADS, read_head

EXTENSION = ".zarr"
_GROUP = ".zgroup"


def is_zarr(path: str | Path) -> bool:
    """Whether it is a folder that is called .zarr, or holds what an array or a group says of itself."""
    if not is_folder(path):
        return False
    try:
        return Path(path).suffix.lower() == EXTENSION or any((Path(path) / name).is_file() for name in (*HEADS, _GROUP))
    except OSError:  # it may not be looked into, which is said where it is opened
        return False


def checked_data(path: str | Path, *, error: type[DataError] = DataError, hint: str = "") -> Path:
    """The path of a regular file, or of a zarr folder; refused as by `checked_file`.

    Raises:
        DataError: it is neither.
    """
    if is_zarr(path):
        return Path(path)
    place = checked_file(path, error=error, hint=hint)
    if place.suffix.lower() == EXTENSION:
        raise error(f"{place}: is a file, and zarr is read from a folder. Unpack it.")
    return place


def is_array(folder: Path) -> bool:
    """Whether a folder is an array by itself.

    Raises:
        DataError: what it says of itself cannot be read.
    """
    if not (folder / HEADS[0]).exists():
        return (folder / HEADS[1]).exists()
    told = read_json(file_inside(folder, HEADS[0]))
    return not isinstance(told, dict) or told.get("node_type") != "group"


class ZarrFolder:
    """The arrays of a folder: one that is an array itself is called x, those of a group by their own folders.

    Attributes:
        names: of the arrays in it.
        is_archive: whether it is a group.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self.is_archive = folder, not is_array(folder)
        inside = sorted(one.name for one in folder.iterdir() if self._holds_array(one)) if self.is_archive else ["x"]
        self.names = tuple(inside)
        self.instead = f"Save x (and y) in it, or name one of them: {folder}/NAME"

    @staticmethod
    def _holds_array(place: Path) -> bool:
        return any((place / name).exists() for name in HEADS)

    def array(self, name: str) -> ZarrArray:
        """The array called `name`.

        Raises:
            DataError: it is a link to a folder, or cannot be read.
        """
        return ZarrArray(self._place(name))

    def _place(self, name: str) -> Path:
        place = self._folder / name if self.is_archive else self._folder
        if self.is_archive and place.is_symlink():
            raise DataError(f"{place}: is a link to a folder. Name the array itself.")
        return place

    def shape(self, name: str) -> tuple[int, ...]:
        """That of the array called `name`, as its head says.

        Raises:
            DataError: it is a link to a folder, or no array of numbers.
        """
        return read_head(self._place(name)).shape

    def read(self, name: str) -> np.ndarray:
        """All of the array called `name`.

        Raises:
            DataError: it cannot be read, or there is no memory for it.
        """
        array = self.array(name)
        array.say_missing()
        return array.read()
