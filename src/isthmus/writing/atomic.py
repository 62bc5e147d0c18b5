"""Files and folders that are whole or absent: written under a temporary name beside their place, synced, then moved.

Every room from here to the right writes files through this module. What stands in the files: `discovery.files`,
`reports`, the checkpoints of training. Whether a file may be replaced at all: `cli.output_file`.
"""

import errno
import functools
import hashlib
import os
import platform
import shutil
import stat
import tempfile
import uuid
from collections.abc import Generator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path

from isthmus.errors import DataError
from isthmus.writing.staying import check_stays

_MARK = ".isthmus-tmp"
_LONGEST_STEM = 40  # characters kept in a temporary name, so that it is never too long where the target's is not


class Place(Enum):
    """What is at the path of a file that is to be written."""

    ABSENT = "nothing"
    FILE = "a regular file"
    STREAM = "a stream"  # a terminal, /dev/null, a pipe, a descriptor of this process: written into, never replaced
    OTHER = "something else"


def place_at(path: str | os.PathLike[str]) -> Place:
    """What is at `path`; links are followed."""
    if _is_descriptor(Path(path)):
        return Place.STREAM
    try:
        mode = Path(path).stat().st_mode
    except FileNotFoundError:
        return Place.ABSENT
    if stat.S_ISREG(mode):
        return Place.FILE
    return Place.STREAM if stat.S_ISCHR(mode) or stat.S_ISFIFO(mode) else Place.OTHER


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Generator[Path]:
    """Temporary path beside the file at `path`, moved onto it when the block ends without an error.

    Readers see the old file or the new one, never a part. The temporary name keeps the suffix, by which some writers
    choose their format. If the block raises, also by an interrupt, the temporary file is removed and `path` stays as it
    was. A kill leaves a temporary file behind: see `remove_leftovers`. A link stays and its target is replaced; the new
    file has the permissions of the old one, or those that the umask gives. Into a terminal, /dev/null, a pipe or
    /dev/stdout the content is written at the end, and nothing is replaced.

    Args:
        path: the file to write; its folder must exist.

    Yields:
        The path to write to; the block must create it.

    Raises:
        DataError: a folder, a socket or a disk is at `path`.
        FolderMoved: `path` is in a folder that was to stay, and did not.
        OSError: the folder is missing or cannot be written, or the disk is full.
    """
    check_stays(path)
    place = place_at(path)
    if place is Place.OTHER:
        raise DataError(f"{path}: is no regular file and is never replaced. Give the path of a file.")
    if place is Place.STREAM:
        with _through_a_copy(Path(path)) as temporary:
            yield temporary
        return
    target = Path(os.path.realpath(path))
    stem, unique = target.stem[:_LONGEST_STEM], uuid.uuid4().hex[:12]
    temporary = target.with_name(f".{stem}.{os.getpid()}-{_here()}-{unique}{_MARK}{target.suffix}")
    try:
        with _named(target, temporary):
            mode = _mode_of(target, temporary)
            yield temporary
            _sync(temporary)
            with suppress(OSError):  # some file systems have no permissions
                temporary.chmod(mode)
            check_stays(path)
            temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(target.parent)


@contextmanager
def _named(target: Path, temporary: Path | None = None) -> Generator[None]:
    """The name of the file in errors of the operating system that have none, or that of the temporary one."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename not in {None, str(temporary)}:
            raise
        raise OSError(error.errno, error.strerror, str(target)) from error


def _mode_of(target: Path, temporary: Path) -> int:
    """The permissions of the old file; else those of a new one, asked of the folder: reading the umask sets it."""
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except FileNotFoundError:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        return stat.S_IMODE(os.fstat(descriptor).st_mode)
    finally:
        os.close(descriptor)
        temporary.unlink()  # some writers insist on making their file


@contextmanager
def _through_a_copy(stream: Path) -> Generator[Path]:
    """A temporary path whose content goes into a stream at the end."""
    with tempfile.TemporaryDirectory(prefix="isthmus-") as folder:
        temporary = Path(folder) / stream.name
        yield temporary
        try:  # without waiting for a reader of a pipe that may never come
            descriptor = os.open(stream, os.O_WRONLY | os.O_APPEND | getattr(os, "O_NONBLOCK", 0))
        except OSError as error:
            if error.errno == errno.ENXIO:
                raise DataError(f"{stream}: nobody reads from this pipe. Start the reader first.") from error
            raise
        os.set_blocking(descriptor, True)
        with (
            _named(stream),
            open(descriptor, "wb") as out,  # noqa: PTH123 - a descriptor
            temporary.open("rb") as content,
        ):
            shutil.copyfileobj(content, out)


def _is_descriptor(path: Path) -> bool:
    """Whether `path` names an open descriptor, as /dev/stdout does: the file behind it must not be exchanged."""
    for _ in range(8):  # links to links
        if path.absolute().parent in {Path("/dev/fd"), Path("/proc/self/fd"), Path(f"/proc/{os.getpid()}/fd")}:
            return True
        if not path.is_symlink():
            return False
        path = path.parent / path.readlink()
    return False


@contextmanager
def atomic_folder(path: str | os.PathLike[str]) -> Generator[Path]:
    """Temporary folder beside `path`, moved to `path` when the block ends without an error; the first one stays.

    A folder that is at `path` already (another process was faster) is left as it is, and the new one is dropped.

    Args:
        path: the folder to make; its parent must exist.

    Yields:
        An empty folder to write files into.

    Raises:
        FolderMoved: `path` is in a folder that was to stay, and did not.
        OSError: the parent is missing or cannot be written, or the disk is full.
    """
    check_stays(path)
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex[:12]}{_MARK}")
    try:
        with _named(target, temporary):
            temporary.mkdir()
            yield temporary
            for file in temporary.iterdir():
                _sync(file)
            _sync_folder(temporary)
            check_stays(path)
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
    return _removed([path for path in Path(folder).iterdir() if is_leftover(path)])


def is_leftover(path: Path) -> bool:
    """Whether a file or folder is the temporary one of a writer, at work or killed."""
    return path.name.startswith(".") and _MARK in path.name


def remove_leftovers_of(path: str | os.PathLike[str]) -> int:
    """Remove what writers of the file at `path` left beside it when they were killed; returns how many there were.

    Other processes may be at work in that folder: what belongs to one that lives, or to another machine, stays.
    """
    target = Path(os.path.realpath(path))
    start = f".{target.stem[:_LONGEST_STEM]}."
    found: list[Path] = []
    for beside in target.parent.iterdir():
        if beside.name.startswith(start) and beside.name.endswith(_MARK + target.suffix):
            writer, _, rest = beside.name[len(start) :].partition("-")
            if writer.isdecimal() and rest.startswith(_here()) and not _lives(int(writer)):
                found.append(beside)
    return _removed(found)


def _removed(leftovers: list[Path]) -> int:
    for leftover in leftovers:
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)
    return len(leftovers)


@functools.cache
def _here() -> str:
    """Where process numbers mean the same as here: this boot of this machine, and this container."""
    parts = [platform.node()]
    with suppress(OSError):
        parts += [Path("/proc/sys/kernel/random/boot_id").read_text(), str(Path("/proc/self/ns/pid").readlink())]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:8]


def _lives(process: int) -> bool:
    if os.name == "nt":  # there a signal 0 would end it
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # of another user
        return True
    return True


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
