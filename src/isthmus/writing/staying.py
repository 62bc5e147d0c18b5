"""Folders that must stay where they are while a process writes in them: once moved, the next write says so.

A path says where to write, not in what. A folder that was renamed would be made anew by the next write, and its files
lie in two places. Writing as such, which asks here first: `atomic`. Who may write in a folder: `folder_lock`.
"""

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from isthmus.errors import DataError


class FolderMoved(DataError):
    """A folder was moved, removed or replaced while this process worked in it."""


class _Stay:
    """One folder in which somebody writes, known by what it is and by every path by which it is called."""

    def __init__(self, folder: Path) -> None:
        self.paths = {folder.absolute(), Path(os.path.realpath(folder))}
        self._was = folder.stat()
        self._descriptor: int | None = None
        with suppress(OSError):  # open: no folder made later gets its number. Windows opens none, and moves none
            self._descriptor = os.open(folder, os.O_RDONLY)

    def is_here(self) -> bool:
        """Whether each of its paths still leads to it."""
        try:
            return all(os.path.samestat(path.stat(), self._was) for path in self.paths)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def close(self) -> None:
        """Let go of it."""
        if self._descriptor is not None:
            os.close(self._descriptor)


_stays: dict[Path, list[_Stay]] = {}


@contextmanager
def staying(folder: str | os.PathLike[str]) -> Generator[None]:
    """While the block runs, writing below a folder is refused once something else, or nothing, is at its path.

    Raises:
        FolderMoved: so it is at the end of a block that raises nothing, or before it where another block is in it.
        OSError: there is no such folder.
    """
    try:
        stay = _Stay(Path(folder))
    except FileNotFoundError:
        check_stays(folder)
        raise
    for path in stay.paths:
        _stays.setdefault(path, []).append(stay)
    try:
        yield
        check_stays(folder)
    finally:
        for path in stay.paths:
            _stays[path].remove(stay)
            if not _stays[path]:
                del _stays[path]
        stay.close()


def check_stays(path: str | os.PathLike[str]) -> None:
    """Refuse to write at a path in a folder that is not where it was when its block began.

    Raises:
        FolderMoved: says which folder.
    """
    if not _stays:
        return
    place = Path(path).absolute()
    for folder in (*reversed(place.parents), place):
        if any(not stay.is_here() for stay in tuple(_stays.get(folder, ()))):
            raise FolderMoved(
                f"{folder}: was moved, removed or replaced while this process worked in it. What it wrote lies where "
                "that folder is now; put it back, and the same command goes on."
            )


def made_folder(folder: Path) -> Path:
    """The folder, made if missing, with those above it, but none in the place of one that was moved.

    Raises:
        FolderMoved: see `check_stays`. OSError: it cannot be made.
    """
    check_stays(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
