"""Whatever a command throws as one line and an exit code: what is refused, where, and what to do.

Errors of ours say it themselves; here are those of the operating system and of libraries. What is none of these is a
bug of isthmus and says so: ISTHMUS_DEBUG=1 shows where.
"""

import errno
import os
import re
from collections.abc import Iterator

from isthmus.cli.interrupts import ExitCode
from isthmus.errors import IsthmusError

_REMEDIES = {
    errno.ENOSPC: "Free some space",
    errno.EDQUOT: "Free some space",
    errno.EFBIG: "Raise the limit on the size of files (ulimit -f)",
    errno.EROFS: "Give a place that can be written",
    errno.EACCES: "Give a place that can be read and written",
    errno.EPERM: "Give a place that can be read and written",
    errno.EMFILE: "Raise the limit on open files (ulimit -n)",
    errno.ENFILE: "Close other programs",
    errno.ENOMEM: "Close other programs, or raise the limit on memory (ulimit -v)",
    errno.EAGAIN: "Close other programs, or raise the limit on processes (ulimit -u)",
    errno.ENAMETOOLONG: "Give a shorter name",
    errno.EBADF: "Open it, or send it to a file",
}
# numbers of errors in the words of libraries: Rust, HDF5, Python
_NUMBER = re.compile(r"(?:os error |errno = |\[Errno )(\d+)")
_WORDS = {os.strerror(number): number for number in (errno.ENOSPC, errno.EMFILE, errno.EFBIG, errno.EROFS)}
_MEMORY = re.compile(
    r"allocate memory|can't allocate|bad_alloc|out of memory|failed to map segment|unable to allocate|cannot allocate",
    re.IGNORECASE,
)
_THREADS = re.compile(r"start new thread|failed to create thread|Resource temporarily unavailable", re.IGNORECASE)
_WRITING = re.compile(
    r"PytorchStreamWriter|unexpected pos|file write failed|inline_container|iostream error", re.IGNORECASE
)


def complaint(error: BaseException) -> tuple[str, int]:
    """One line and the exit code; an empty line where nothing is to be said."""
    text, code = _said(error)
    notes = " ".join(getattr(error, "__notes__", []))
    return " ".join(f"{text} {notes}".split()), code


def _said(error: BaseException) -> tuple[str, int]:
    if isinstance(error, SystemExit):
        return "", error.code if isinstance(error.code, int) else ExitCode.BUG
    if isinstance(error, KeyboardInterrupt):
        return "interrupted.", ExitCode.INTERRUPTED
    if isinstance(error, BrokenPipeError):
        return "", ExitCode.UNREAD
    if hasattr(error, "format_message"):  # a usage error of click, or of the copy of it that typer brings
        return _usage(error), ExitCode.BAD_INPUT
    if isinstance(error, IsthmusError):
        return str(error), ExitCode.BAD_INPUT
    for link in _chain(error):
        if refused := _refused(link):
            return refused, ExitCode.BAD_INPUT
    where = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}".rstrip(".: ")
    return (
        f"this is a bug of isthmus ({where}). Please report it; ISTHMUS_DEBUG=1 in the environment shows where it is.",
        ExitCode.BUG,
    )


def _usage(error: BaseException) -> str:
    """What is wrong with the command line; nothing after a help that was shown because there were no arguments."""
    context = getattr(error, "ctx", None)
    message = str(getattr(error, "format_message")())  # noqa: B009 - of either copy of the class
    return f"{message.rstrip('.')}. See {context.command_path if context else 'isthmus'} --help." if message else ""


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what led to it, each once."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _refused(error: BaseException) -> str:
    """The words for a refused resource, or nothing."""
    text = str(error)
    if isinstance(error, OSError) and error.errno is not None:
        return _of_number(error.errno, error.filename)
    if isinstance(error, MemoryError) or _MEMORY.search(text):
        return "not enough memory. Close other programs, raise the limit on memory (ulimit -v), or give fewer rows."
    if isinstance(error, RuntimeError) and _THREADS.search(text):
        return f"no more threads can be started. {_REMEDIES[errno.EAGAIN]}."
    if number := _NUMBER.search(text):
        return _of_number(int(number[1]), "a file")
    for words, known in _WORDS.items():
        if words in text:
            return _of_number(known, "a file")
    if isinstance(error, OSError | RuntimeError) and _WRITING.search(text):
        return f"a file could not be written. {_REMEDIES[errno.ENOSPC]}, and see that its folder can be written."
    if isinstance(error, OSError):
        return f"{text.rstrip('.')}. Check the path and free space."
    return ""


def _of_number(number: int, name: object) -> str:
    # files of ours are named (see `writing.atomic`); what has no name is the terminal, or what it was led into
    what = name if isinstance(name, str | bytes | os.PathLike) else "stdout"
    return f"{what}: {os.strerror(number)}. {_REMEDIES.get(number, 'Check the path and free space')}."
