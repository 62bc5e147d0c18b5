"""Which files of a folder are its pictures, and in which order. Reading them: `picture_files`, `picture_folders`."""

import os
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from isthmus.errors import DataError
from isthmus.tasks.arrays import listing
from isthmus.tasks.door import in_one_line, is_folder
from isthmus.tasks.names import quoted
from isthmus.tasks.picture_files import PICTURES
from isthmus.tasks.zarr_folders import is_zarr

_MADE_BY_SYSTEMS = ("thumbs.db", "desktop.ini")
_REFUSED = ("Cc", "Cs")  # kinds of characters: no line of a table holds them


@dataclass(frozen=True, slots=True)
class Listing:
    """What lies in a folder of pictures.

    Attributes:
        files: the pictures, as paths within the folder, in the order of their names, numbers in them by size.
        folders: those in which they lie, if there are several.
        others: files of other kinds, hidden ones apart.
    """

    files: tuple[str, ...]
    folders: tuple[str, ...]
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Level:
    pictures: list[str]
    others: list[str]
    folders: list[str]


def is_picture_folder(path: str | Path) -> bool:
    """Whether it is a folder in which pictures are looked for: any but those of zarr."""
    return is_folder(path) and not is_zarr(path)


def listed(path: Path) -> Listing:
    """The pictures in a folder, or in the folders in it; nothing is opened.

    Raises:
        DataError: there is none, they lie in several depths, a link leads out, or a name that no text can hold.
    """
    top = _level(path, path)
    inside = {name: _level(path / name, path) for name in top.folders}
    full = [name for name in top.folders if inside[name].pictures]
    if top.pictures:
        if full:
            _refuse_depths(path, full)
        return Listing(tuple(top.pictures), (), tuple(top.others))
    for name in full:
        if deeper := [one for one in inside[name].folders if _level(path / name / one, path).pictures]:
            _refuse_depths(path / name, deeper)
    files = tuple(f"{name}/{file}" for name in full for file in inside[name].pictures)
    if not files:
        raise DataError(
            f"{path}: is a directory, and no pictures ({', '.join(PICTURES)}) lie in it or in folders in it. Pass a "
            "file, or a folder of pictures."
        )
    others = tuple(f"{name}/{file}" for name in full for file in inside[name].others)
    return Listing(files, tuple(full) if len(full) > 1 else (), (*top.others, *others))


def _refuse_depths(path: Path, folders: list[str]) -> None:
    where = listing(map(quoted, folders), "folder")
    raise DataError(f"{path}: pictures lie in it and in the {where} in it. Pass a folder with one kind of place.")


def _level(folder: Path, top: Path) -> _Level:
    """What lies directly in a folder, sorted; hidden things left out."""
    found = _Level([], [], [])
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.name.startswith(".") and entry.name.lower() not in _MADE_BY_SYSTEMS:
                    is_picture = Path(entry.name).suffix.lower() in PICTURES
                    kept = found.folders if entry.is_dir() else found.pictures if is_picture else found.others
                    kept.append(_checked(entry, folder, top) if kept is not found.others else entry.name)
    except OSError as reason:
        raise DataError(f"{folder}: cannot be opened ({in_one_line(reason)}). Check the path.") from reason
    for names in (found.pictures, found.others, found.folders):
        names.sort(key=_by_numbers)
    return found


def _checked(entry: os.DirEntry[str], folder: Path, top: Path) -> str:
    """The name of a picture or folder, which a table, a page and a terminal can hold, and which lies where it says."""
    if odd := next((c for c in entry.name if unicodedata.category(c) in _REFUSED), None):
        raise DataError(
            f"{quoted(str(folder))}: the name {quoted(entry.name)} holds U+{ord(odd):04X}, which no line can hold. "
            "Rename it."
        )
    if entry.is_symlink() and not (folder / entry.name).resolve().is_relative_to(top.resolve()):
        raise DataError(f"{folder / entry.name}: is a link out of the folder. Put a copy there, or take it out.")
    return entry.name


def _by_numbers(name: str) -> tuple[list[str | int], str]:
    """`frame 9` before `frame 10`."""
    parts = re.split("([0-9]+)", name)
    return [int(part) if place % 2 else part for place, part in enumerate(parts)], name
