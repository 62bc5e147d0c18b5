"""The door of files that isthmus wrote itself: opened only where a regular file lies, so that no reading waits or ends.

Somebody may have put a pipe into a folder of a run, or a link to a device: opening the one waits for a writer, reading
the other takes all memory there is. Files of users, and what is wrong with them in words: `tasks.door`.
"""

import stat
from pathlib import Path

_KINDS = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}


class NotAFile(OSError):
    """A pipe, a socket or a device lies where a file should."""


def regular(path: Path) -> Path:
    """The path of a regular file, or of a folder, which no opening takes for a file; links are followed.

    Raises:
        NotAFile: something else lies there. OSError: nothing does, or it cannot be looked at.
    """
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise NotAFile(f"is {_KINDS.get(stat.S_IFMT(mode), 'a device')}, not a file")
    return path


def contents(path: Path) -> bytes:
    """The bytes of a regular file.

    Raises:
        NotAFile: something else lies there. OSError: it cannot be read.
    """
    return regular(path).read_bytes()
