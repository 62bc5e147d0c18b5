"""Where numbers come from: version and commit of this library, versions of others, machine, seconds.

Seeds stand in the plans.
"""

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path

from isthmus import __version__

_PACKAGES = ("torch", "numpy", "xarray", "matplotlib")


def provenance(seconds: float) -> dict[str, object]:
    """What to keep beside numbers that took so many seconds."""
    found: dict[str, object] = {"isthmus": __version__, "commit": commit(), "python": platform.python_version()}
    found |= {name: version(name) for name in _PACKAGES}
    return found | {"machine": f"{platform.machine()}, {os.cpu_count()} cores", "seconds": round(seconds, 3)}


@cache
def commit() -> str:
    """The commit of the source, with a plus sign where files were changed since; "none" outside of a checkout."""
    source = Path(__file__).parents[1]
    try:
        top = _git(source, "rev-parse", "--show-toplevel")
        if source != Path(top) / "src" / "isthmus":  # installed into somebody else's checkout
            return "none"
        changed = _git(source, "status", "--porcelain", "--untracked-files=no", "--", ".")
        return _git(source, "rev-parse", "HEAD")[:12] + "+" * bool(changed)
    except (OSError, subprocess.CalledProcessError):
        return "none"


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
