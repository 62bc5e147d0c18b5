"""Who writes in a folder: one process, known by name; the operating system lets go when it ends, however it ends."""

import errno
import json
import os
import platform
import threading
import warnings
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from filelock import FileLock, Timeout

from isthmus.errors import DataError, DataWarning, outside
from isthmus.writing.atomic import write_text
from isthmus.writing.regular import contents
from isthmus.writing.staying import FolderMoved, check_stays, staying

LOCK = ".isthmus.lock"
_TRIES = 20
_ASKING = 1.0  # seconds for which a lock is waited for that others take for a moment, to ask whether somebody is here
_WITHOUT_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP}
_held: dict[Path, int] = {}  # lock file -> the thread of this process that holds it


class FolderInUse(DataError):
    """Another process works in the folder: says which, and since when."""


@contextmanager
def only_writer(folder: str | os.PathLike[str], *, name: str = LOCK, keep: bool = False) -> Generator[None]:
    """Be the only one that writes in a folder while the block runs; the folder is made if missing.

    A thread that holds it may enter again (but for a lock that is kept, by which others ask whether somebody is
    here). The lock lies in the folder beside a note on who holds it; both are removed
    at the end, and folders that were made here and are empty then. What a killed process leaves does not lock.

    Args:
        folder: where to write.
        name: of the lock file.
        keep: leave the lock file there, for folders whose other readers look at it.

    Raises:
        FolderInUse: another process, or another thread of this one, is at work here.
        FolderMoved: the folder was moved, removed or replaced meanwhile; raised by the next write, or at the end.
        OSError: the folder cannot be made or written.
    """
    place = Path(folder)
    lock_file = Path(os.path.realpath(place)) / name
    if not keep and _held.get(lock_file) == threading.get_ident():
        yield
        return
    missing = [above for above in (place, *place.parents) if not above.exists()]
    lock, note = FileLock(lock_file, timeout=_ASKING if keep else 0), lock_file.with_suffix(".owner")
    try:
        _make_and_acquire(lock, place, note)
        _held[lock_file] = threading.get_ident()
        try:
            with suppress(OSError):  # it is a courtesy to the others
                write_text(note, json.dumps(_myself()) + "\n")
            with staying(place), _forgotten(note, lock_file, keep=keep):
                yield
        finally:
            del _held[lock_file]
            lock.release()
    finally:
        for made in missing:
            with suppress(OSError):  # not empty: it holds what was to be written
                made.rmdir()


@contextmanager
def _forgotten(note: Path, lock_file: Path, *, keep: bool) -> Generator[None]:
    """Remove the note, and the lock file, at the end; where the folder was replaced they are those of another."""
    try:
        yield
    finally:
        with suppress(FolderMoved):
            check_stays(note)
            note.unlink(missing_ok=True)
            if not keep:
                with suppress(OSError):  # Windows cannot remove what is open
                    lock_file.unlink(missing_ok=True)


@contextmanager
def folder_made(folder: Path, said: str) -> Generator[None]:
    """The folder is there while the block runs; folders that were made here and stay empty go with it.

    Raises:
        DataError: it is a file, or cannot be made there; `said` is what the caller wrote.
    """
    missing = [above for above in (folder, *folder.parents) if not above.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "it is a file" if folder.is_file() else error.strerror
        raise DataError(f"{said}: no folder can be made at {folder} ({reason}). Give another one.") from error
    try:
        yield
    finally:
        for made in missing:
            with suppress(OSError):  # not empty: it holds what was written
                made.rmdir()


def is_bookkeeping(path: Path) -> bool:
    """Whether a file is only there because somebody works, or worked, in its folder."""
    return path.name in {LOCK, Path(LOCK).with_suffix(".owner").name}


def _make_and_acquire(lock: FileLock, place: Path, note: Path) -> None:
    """Make the folder and lock it; another process may take it away in between, where it was made in vain."""
    for tries_left in reversed(range(_TRIES)):
        try:
            place.mkdir(parents=True, exist_ok=True)
            return _acquire(lock, place, note)
        except (FileExistsError, FileNotFoundError):
            if not tries_left or (place.exists() and not place.is_dir()):
                raise
    return None


def _acquire(lock: FileLock, place: Path, note: Path) -> None:
    try:
        lock.acquire()
    except Timeout:
        raise FolderInUse(
            f"{place}: another process works here{_known_of(note)}. Wait until it has ended, or give another folder."
        ) from None
    except (OSError, NotImplementedError) as error:
        if isinstance(error, OSError) and error.errno not in _WITHOUT_LOCKS:
            raise
        warnings.warn(
            f"{place}: this file system has no locks. See to it that no other process works there.",
            DataWarning,
            stacklevel=outside(),
        )


def _myself() -> dict[str, object]:
    since = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
    return {"pid": os.getpid(), "host": platform.node(), "since": since}


def _known_of(note: Path) -> str:
    """Who holds the lock, in words; nothing where the note is missing or damaged."""
    try:
        owner = json.loads(contents(note))
        return f" (pid {int(owner['pid'])} on {str(owner['host'])[:80]}, since {str(owner['since'])[:40]})"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""
