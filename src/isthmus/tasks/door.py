"""The door by which every file comes in: checked to be a file, and what a library throws turned into one line.

What is inside a file: the readers beside, `discovery.files`, `sweeps`. How large it may be: `memory`.
"""

import json
import os
import stat
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from isthmus.errors import DataError, DataWarning, IsthmusError
from isthmus.tasks.memory import check_memory

T = TypeVar("T")
MOST_BYTES = 16 << 20  # of a TOML file: a hundred thousand runs written out one by one
MOST_LEVELS = 16  # of tables within its tables; nothing of ours has more than 4
_LONGEST_REASON = 200
_OBJECTS_PER_BYTE = 20  # what parsed text takes at most, measured on [[],[],...]: 16 bytes for each


def through_door(
    path: str | os.PathLike[str],
    read: Callable[[Path], T],
    *,
    kind: str,
    remedy: str = "Write the file again.",
    error: type[IsthmusError] = DataError,
    check: Callable[..., Path] | None = None,
) -> T:
    """`read(path)`, with whatever it throws as one line that says which file, why and what to do.

    Libraries throw types of their own on damaged files, down to RuntimeError, SyntaxError and AssertionError, so that a
    list of them is never whole. Errors of ours pass as they are, and so do interrupts.

    Args:
        path: a regular file, or a link to one.
        read: reads it.
        kind: what it is read as, for the error: ".csv", "netCDF".
        remedy: what to do about a file that cannot be read, a sentence.
        error: the type to raise.
        check: what takes path and `error` in the place of `checked_file`, where a folder may be meant.

    Raises:
        DataError: no such file, a folder or a device, or one that cannot be read; or of the type `error`.
    """
    place = (check or checked_file)(path, error=error)
    try:
        return read(place)
    except (IsthmusError, DataWarning):  # the latter where warnings are errors
        raise
    except MemoryError as reason:
        raise error(f"{place}: needs more memory than there is, read as {kind}. Take a part of it.") from reason
    except RecursionError as reason:
        raise error(f"{place}: cannot be read as {kind} (it is nested too deeply). {remedy}") from reason
    except Exception as reason:
        raise error(f"{place}: cannot be read as {kind} ({in_one_line(reason)}). {remedy}") from reason


def checked_file(path: str | os.PathLike[str], *, error: type[IsthmusError] = DataError, hint: str = "") -> Path:
    """The path of a regular file.

    Args:
        path: to look at; nothing is opened, since opening a pipe waits and opening a device acts.
        error: the type to raise.
        hint: what to do where there is no such file.

    Raises:
        DataError: there is none, or it is a folder, pipe, socket or device.
    """
    place = Path(path)
    try:
        mode = place.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise error(f"{place}: no such file. {hint or 'Check the path.'}") from None
    except (OSError, ValueError) as reason:  # a name with NUL is a ValueError
        raise error(f"{str(place)[:200]!r}: cannot be opened ({in_one_line(reason)}). Check the path.") from reason
    if stat.S_ISDIR(mode):
        raise error(f"{place}: is a directory. Pass a file in it.")
    if not stat.S_ISREG(mode):
        what = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}.get(stat.S_IFMT(mode), "a device")
        raise error(f"{place}: is {what}, not a file. Save the data in a file.")
    return place


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Whether it is a folder, or a link to one; what cannot be looked at is none, and `checked_file` says why."""
    try:
        return Path(path).is_dir()
    except (OSError, ValueError):  # a name that is too long
        return False


def file_inside(folder: str | os.PathLike[str], name: str) -> Path:
    """A regular file that lies directly in `folder`, by a name that a file of that folder tells.

    Raises:
        DataError: `name` leads elsewhere (a path, a link out of the folder), or is no regular file.
    """
    place = Path(folder)
    if not name or name in {".", ".."} or "/" in name or "\\" in name or "\0" in name:
        raise DataError(f"{place}: names {name[:80]!r}, which is no file of that folder. Do not trust it.")
    file = checked_file(place / name)
    if file.resolve().parent != place.resolve():
        raise DataError(f"{file}: is a link out of its folder. Do not trust it.")
    return file


def in_one_line(error: BaseException) -> str:
    """What an error says, without line breaks and shortened; its type where it says nothing."""
    reason = str(error)
    if isinstance(error, OSError) and isinstance(error.strerror, str):  # h5py put other things there
        reason = error.strerror
    words = " ".join("".join(c if c.isprintable() else " " for c in reason).split())
    return words[:_LONGEST_REASON].rstrip(". ") or type(error).__name__


def read_json(path: str | os.PathLike[str], *, remedy: str = "Write the file again.") -> Any:  # noqa: ANN401
    """The value in a JSON file (UTF-8).

    Raises:
        DataError: it cannot be read, is nested too deeply, or would take more memory than there is for it.
    """
    return through_door(path, lambda place: json.loads(_text_of(place)), kind="JSON", remedy=remedy)


def read_toml(
    path: str | os.PathLike[str], *, where: str = "", needs: str = "tables", error: type[IsthmusError] = DataError
) -> dict[str, Any]:
    """The tables of a TOML file (UTF-8) that somebody else wrote.

    Args:
        path: of the file; a regular one of at most `MOST_BYTES`.
        where: stands before its name in an error: "--slurm ".
        needs: what it should be, in words.
        error: the type to raise.

    Raises:
        DataError: it cannot be read, is too long, would take more memory than there is, or has tables within tables
            without end; or of type `error`.
    """
    hint = f"Give {needs}, a TOML file."
    try:
        place = checked_file(path, error=error, hint=hint)
        if place.stat().st_size > MOST_BYTES:
            raise error(f"{place}: is longer than {MOST_BYTES >> 20} MiB. {hint}")
        content = through_door(
            place, lambda place: tomllib.loads(_text_of(place)), kind="TOML", remedy="Mend that place.", error=error
        )
        if _levels(content) > MOST_LEVELS:
            raise error(f"{place}: has tables within tables, more than {MOST_LEVELS} deep. Mend that place.")
    except error as reason:
        raise error(f"{where}{reason}") from None
    return content


def _levels(content: Mapping[str, object]) -> int:
    """How deep it goes; without recursion, for dotted keys nest without limit."""
    levels, found = 0, list[object]([content])
    while found and levels <= MOST_LEVELS:
        levels += 1
        inner = [item for value in found for item in (value.values() if isinstance(value, Mapping) else value)]  # pyright: ignore[reportGeneralTypeIssues] - lists and tables only
        found = [item for item in inner if isinstance(item, Mapping | list)]
    return levels


def _text_of(place: Path) -> str:
    check_memory(_OBJECTS_PER_BYTE * place.stat().st_size, str(place))
    return place.read_text(encoding="utf-8")
