"""The folder of a sweep for those who only look: its names, its head, its lock, its index; nothing heavy is imported.

What lies in it, and writing it: `store`.
"""

import sqlite3
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from isthmus.errors import SweepError
from isthmus.sweeps.index import Index
from isthmus.writing.checksums import opened_json
from isthmus.writing.folder_lock import FolderInUse, only_writer
from isthmus.writing.staying import FolderMoved

FORMAT, FORMAT_VERSION = "isthmus sweep", 1
HEAD, INDEX, LOCK = "sweep.json", "index.sqlite", "driver.lock"
_MOST_HEAD = 4096
RUNS, FAILED, WORK, DAMAGED = "runs", "failed", "work", "damaged"


def _head(path: Path) -> bytes:
    """The few lines of a head; a device or a folder in its place is no head, and is not read."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError
    with path.open("rb") as file:
        return file.read(_MOST_HEAD)


class SweepFolder:
    """An existing folder of a sweep.

    Attributes:
        path: of the folder.
        token: by which a worker knows the folder again.

    Raises:
        SweepError: no sweep is there, or one of a newer format.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            head = opened_json(_head(path / HEAD))
            if head["format"] != FORMAT or not isinstance(head["token"], str):
                raise ValueError
            version, self.token = int(head["format_version"]), head["token"]
        except (FileNotFoundError, NotADirectoryError):
            raise SweepError(f"{path}: holds no sweep. Start one with isthmus sweep PLAN --out {path}.") from None
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            raise SweepError(f"{path / HEAD}: is damaged. Remove this one file; the next sweep writes it.") from None
        if version > FORMAT_VERSION:
            raise SweepError(f"{path}: has format version {version}, not {FORMAT_VERSION}; use the newer isthmus.")

    @contextmanager
    def locked(self) -> Generator[None]:
        """Be the only driver here; the operating system lets go when the process ends, however it ends.

        Raises:
            SweepError: another driver is at work (says which, where and since when), or the folder was moved.
        """
        try:
            with only_writer(self.path, name=LOCK, keep=True):
                yield
        except (FolderInUse, FolderMoved) as error:
            raise SweepError(str(error)) from error

    def is_driven(self) -> bool:
        """Whether a driver is at work here now; nothing is written to find out but the lock."""
        lock = FileLock(self.path / LOCK, timeout=0)
        try:
            with lock:
                return False
        except Timeout:
            return True
        except OSError:  # somebody else's folder, where nothing may be locked and so nothing driven by us
            return False

    def reader(self) -> Index:
        """The index, for reading beside a driver.

        Raises:
            SweepError: missing or damaged.
        """
        try:
            index = Index(self.path / INDEX, read_only=True)
            index.check()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise SweepError(
                f"{self.path / INDEX}: cannot be read ({error}). Make it again: isthmus sweep reindex {self.path}"
            ) from None
        return index
