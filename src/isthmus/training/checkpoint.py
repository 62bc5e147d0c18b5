"""Checkpoints of a running fit: plain Python and tensors, written atomically, never unpickled on the way back."""

from pathlib import Path
from typing import Any

import torch

from isthmus.errors import DataError
from isthmus.training.atomic import atomic_path

VERSION = 1


def save_state(path: Path, state: dict[str, Any]) -> None:
    """Write `state` so that `path` is at every moment either the old file or the new one."""
    with atomic_path(path) as temporary:
        torch.save({"version": VERSION, **state}, temporary)


def _here(storage: Any, location: str) -> Any:
    """What lay on a CUDA device goes to that of this process, whichever it was; what lay in memory stays there."""
    return storage.cuda() if location.startswith("cuda") and torch.cuda.is_available() else storage


def load_state(path: Path) -> dict[str, Any] | None:
    """The saved state, or None where there is no file.

    Raises:
        DataError: the file is damaged or was written by another version.
    """
    if not path.exists():
        return None
    try:
        state: dict[str, Any] = torch.load(path, weights_only=True, map_location=_here)
    except Exception as error:
        name = type(error).__name__
        raise DataError(f"checkpoint {path}: cannot be read ({name}); delete it to start over.") from error
    if state.get("version") != VERSION:
        raise DataError(f"checkpoint {path}: version {state.get('version')}, not {VERSION}; delete it to start over.")
    return state
