"""Files and folders that are whole or absent: written under a temporary name beside their place, synced, then moved.

Every room from here to the right writes files through this module. What stands in the files: `discovery.files`,
`reports`, the checkpoints of training.
"""

import os
import shutil
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_MARK = ".isthmus-tmp"


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Generator[Path]:
    """Temporary path in the folder of `path`, moved onto `path` when the block ends without an error.

    Readers see the old file or the new one, never a part. The temporary name keeps the suffix, by which some writers
    choose their format. If the block raises, also by an interrupt, the temporary file is removed and `path` stays as it
    was. A kill leaves a temporary file behind: see `remove_leftovers`.

    Args:
        path: the file to write; its folder must exist.

    Yields:
        The path to write to; the block must create it.

    Raises:
        OSError: the folder is missing or cannot be written, or the disk is full.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.stem}.{uuid.uuid4().hex[:12]}{_MARK}{target.suffix}")
    try:
        yield temporary
        _sync(temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(target.parent)


@contextmanager
def atomic_folder(path: str | os.PathLike[str]) -> Generator[Path]:
    """Temporary folder beside `path`, moved to `path` when the block ends without an error; the first one stays.

    A folder that is at `path` already (another process was faster) is left as it is, and the new one is dropped.

    Args:
        path: the folder to make; its parent must exist.

    Yields:
        An empty folder to write files into.

    Raises:
        OSError: the parent is missing or cannot be written, or the disk is full.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex[:12]}{_MARK}")
    temporary.mkdir()
    try:
        yield temporary
        for file in temporary.iterdir():
            _sync(file)
        _sync_folder(temporary)
        try:
            temporary.rename(target)
        except OSError:
            if not target.is_dir():
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    _sync_folder(target.parent)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` as UTF-8 (newlines as given), whole or not at all."""
    write_bytes(path, text.encode())


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write `content`, whole or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)


def remove_leftovers(folder: str | os.PathLike[str]) -> int:
    """Remove the temporary files and folders that a kill left directly in `folder`; returns how many there were.

    Call it only where no other process writes to `folder`.
    """
    leftovers = [p for p in Path(folder).iterdir() if p.name.startswith(".") and _MARK in p.name]
    for leftover in leftovers:
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)
    return len(leftovers)


def _sync(path: Path) -> None:
    # r+b: Windows refuses to sync a descriptor that is open for reading only
    with path.open("r+b") as file:
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Make the move itself durable; some file systems and Windows refuse to sync a folder, and lose only time by it."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)
