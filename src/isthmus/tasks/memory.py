"""How much memory a file may take once it is read. Who asks: the readers, and `training.sharded.row_step`.

Sizes are compared before anything is unpacked: a few kilobytes can name a table of a terabyte.
"""

import os
import sys
from pathlib import Path

from isthmus.errors import DataError

VARIABLE = "ISTHMUS_MEMORY"
_SUFFIXES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_UNKNOWN = 16 * 2**30  # taken where the system does not say what there is
_CGROUPS = Path("/sys/fs/cgroup")


def memory_limit(*, share: float = 0.5) -> float:
    """Bytes that data may take: half of what is free, the rest is for the work on them; or what ISTHMUS_MEMORY says.

    Args:
        share: of what is free; 1 where the work is counted.

    Raises:
        DataError: ISTHMUS_MEMORY is set to what is no size.
    """
    text = os.environ.get(VARIABLE, "").strip().upper().removesuffix("B").removesuffix("I")
    if not text:
        return share * available_memory()
    if text == "UNLIMITED":
        return float("inf")
    number, suffix = (text[:-1], text[-1]) if text[-1] in "KMGT" else (text, "")
    try:
        size = float(number) * _SUFFIXES[suffix]
    except ValueError:
        size = 0.0
    if not size > 0:
        raise DataError(f"{VARIABLE}={os.environ[VARIABLE]}: is no size. Set it to 8G, 500M or unlimited.")
    return size


def check_memory(
    needed: int | float, where: str, *, share: float = 0.5, instead: str = "Take fewer rows or columns"
) -> None:
    """Refuse what would take more memory than there is for it.

    Args:
        needed: bytes once it is read.
        where: file, and place in it, for the error.
        share: of what is free that it may take, see `memory_limit`.
        instead: what can be done.

    Raises:
        DataError: it is more than `memory_limit`.
    """
    limit = memory_limit(share=share)
    if needed > limit:
        raise DataError(
            f"{where}: needs {in_words(needed)} of memory; {'data' if share < 1 else 'it'} may take {in_words(limit)}. "
            f"{instead}, or allow more with {VARIABLE}={in_words(1.1 * needed, spaced=False)}."
        )


def in_words(size: int | float, *, spaced: bool = True) -> str:
    """`1.4 GiB`, or as the environment variable takes it, `1.4G`."""
    power = next((i for i in range(4) if size < 1000 * 1024**i), 4)
    size, suffix = size / 1024**power, ("", "K", "M", "G", "T")[power]
    number = f"{size:.3g}" if size < 1e6 else f"{size:.0f}"
    return f"{number} {suffix}{'iB' if suffix else 'bytes'}" if spaced else f"{number}{suffix}"


def available_memory() -> float:
    """Bytes that this process can still take: of the machine, of its control group and of its own limit."""
    return min(_free_on_machine(), _free_in_group(), _free_of_limit())


def _free_on_machine() -> float:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
    except (OSError, ValueError):
        pass
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows has no sysconf
        return float(_UNKNOWN)


def _free_in_group() -> float:
    """The least that the control groups around this process leave (containers, batch systems); infinite without one."""
    try:
        entry = next(l for l in Path("/proc/self/cgroup").read_text().splitlines() if l.startswith("0::"))
    except (OSError, StopIteration):
        return float("inf")
    place = _CGROUPS / entry.removeprefix("0::").strip("/")
    free = float("inf")
    for group in (place, *place.parents):
        if not group.is_relative_to(_CGROUPS):
            break
        try:
            most = int((group / "memory.max").read_text())  # "max" is no number: no limit
            used = int((group / "memory.current").read_text())
            cached = next(int(l.split()[1]) for l in (group / "memory.stat").read_text().splitlines()
                          if l.startswith("inactive_file "))  # fmt: skip
        except (OSError, ValueError, StopIteration):
            continue
        free = min(free, max(0.0, float(most - used + cached)))
    return free


def _free_of_limit() -> float:
    """What `ulimit -v` leaves."""
    if sys.platform == "win32":
        return float("inf")
    import resource  # not on Windows

    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most == resource.RLIM_INFINITY:
        return float("inf")
    try:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        used = 0
    return max(0.0, float(most - used))
