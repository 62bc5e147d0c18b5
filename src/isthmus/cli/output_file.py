"""The file that --out names, before anything is computed: never an input, never a file of the user's unasked.

Folders of runs: `run_folder`. The writing itself: `writing.atomic`.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from isthmus.errors import DataError
from isthmus.writing.atomic import Place, place_at, remove_leftovers_of

# pictures, tables and pages, which nothing reads back: these alone may be replaced inside a folder that is an input,
# and there only in one of a run or a sweep, by these marks: a folder of pictures is made of them
_DRAWN, _OURS = {".png", ".svg", ".csv", ".parquet", ".html"}, ("result.json", "sweep.json")


def checked_output(
    path: Path, *, kinds: Sequence[str], inputs: Iterable[str | Path], replace: bool, option: str = "--out"
) -> Path:
    """The path itself, after checking that the file may be written; leftovers of killed writers beside it are removed.

    Args:
        path: where to write; a stream such as /dev/stdout is written into.
        kinds: the extensions that are what will be written: another one, or none, would open as something else.
        inputs: files and folders that the command reads; names that are no paths are let pass.
        replace: whether an older file may be replaced.
        option: what names the path on the command line.

    Raises:
        DataError: it has another extension; it is an input, also by another name; a file is there and is not to be
            replaced; it is a folder or a disk; its folder is missing.
    """
    if "\0" in str(path):
        raise DataError(f"{option} {str(path)!r}: a path has no NUL character. Give another file.")
    if path.is_dir():
        raise DataError(f"{option} {path}: is a folder. Give a file in it.")
    if not path.absolute().parent.is_dir():
        raise DataError(f"{option} {path}: its folder does not exist. Make it first, or give another file.")
    if not os.access(path.absolute().parent, os.W_OK) and place_at(path) is not Place.STREAM:
        raise DataError(f"{option} {path}: its folder cannot be written. Give another file.")
    place = place_at(path)
    if place is Place.OTHER:
        raise DataError(f"{option} {path}: is no regular file and is never replaced. Give another file.")
    if place is Place.STREAM:
        return path
    if place is Place.FILE:
        for given in inputs:
            if is_part_of(path, Path(given)):
                raise DataError(f"{option} {path}: is an input of this command. Give another file.")
    if path.suffix.lower() not in kinds:
        raise DataError(f"{option} {path}: unknown extension {path.suffix!r}. Use {' or '.join(kinds)}.")
    if place is Place.FILE:
        if not replace:
            raise DataError(f"{option} {path}: exists. Add --replace to replace it, or give another file.")
        if not os.access(path, os.W_OK):
            raise DataError(f"{option} {path}: is write-protected. Give another file.")
    remove_leftovers_of(path)
    return path


def is_part_of(path: Path, given: Path) -> bool:
    """Whether an existing file is the given one by whatever name, or one of those that make up a given folder."""
    try:
        if not given.is_dir():
            return path.samefile(given)
        drawn = _DRAWN if any((given / mark).is_file() for mark in _OURS) else set[str]()
        real = Path(os.path.realpath(path))
        if Path(os.path.realpath(given)) in real.parents and real.suffix.lower() not in drawn:
            return True
        # a hard link from elsewhere into the folder is the same file
        return path.stat().st_nlink > 1 and any(
            file.is_file() and path.samefile(file) for file in given.rglob("*") if file.suffix.lower() not in drawn
        )
    except (OSError, ValueError):  # "builtin:digits", or no file at all: the reader of the input says so
        return False
