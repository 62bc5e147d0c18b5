"""Where numbers come from: version and commit of this library, versions of others, machine, seconds; which code.

Seeds stand in the plans.
"""

import ast
import hashlib
import os
import platform
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path

import torch

from isthmus import __version__
from isthmus.discovery.files.netcdf import checksum

_PACKAGES = ("torch", "numpy", "xarray", "matplotlib")


def provenance(seconds: float, device: torch.device | None = None) -> dict[str, object]:
    """What to keep beside numbers that took so many seconds, and were trained on that device."""
    found: dict[str, object] = {"isthmus": __version__, "commit": commit(), "python": platform.python_version()}
    found |= {name: version(name) for name in _PACKAGES}
    gpu = f", {torch.cuda.get_device_name(device)}" if device is not None and device.type == "cuda" else ""
    return found | {"machine": f"{platform.machine()}, {os.cpu_count()} cores{gpu}", "seconds": round(seconds, 3)}


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


def code_of(path: Path) -> str:
    """Checksum of a file of this room and of all files of the room that it imports, directly or through others."""
    waiting, found = [path], set[Path]()
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting += _imported(file)
    text = " ".join(checksum(file) for file in sorted(found))
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def _imported(file: Path) -> list[Path]:
    """The files beside it that a file imports."""
    found: list[Path] = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [f"{node.module}.{alias.name}" for alias in node.names] + [node.module]
            found += [file.with_name(f"{name.rpartition('.')[2]}.py") for name in names if _is_here(name)]
    return [path for path in found if path.exists()]


def _is_here(name: str) -> bool:
    return name.rpartition(".")[0] == __name__.rpartition(".")[0]
