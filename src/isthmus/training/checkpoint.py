"""Checkpoints of a running fit: plain Python and tensors, written atomically, never unpickled on the way back.

They carry a checksum (`writing.checksums`), for `torch.load` looks at none, and the name under which they were written,
so that two that were swapped are not taken for each other.
"""

import warnings
import zipfile
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from isthmus.errors import CheckpointError, DamagedCheckpoint, DataWarning, outside
from isthmus.writing.atomic import Place, atomic_path, place_at
from isthmus.writing.checksums import SealedFile, check_archive
from isthmus.writing.regular import NotAFile

VERSION = 1
State = dict[
    str, Any
]  # plain Python and tensors only: torch.save takes them, and gives them back with weights_only=True


def save_state(path: Path, state: State) -> None:
    """Write `state` so that `path` is at every moment either the old file or the new one; what is no file goes aside.

    Raises:
        OSError: it cannot be written; names the file.
    """
    if place_at(path) in {Place.STREAM, Place.OTHER}:  # which `load_state` has told
        _move_aside(path)
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        sealed = SealedFile(file)
        here = tree_map_only(Tensor, lambda tensor: tensor.cpu(), state)  # a machine without the device can read it
        content = {"version": VERSION, **here, "file": path.name}
        torch.save(content, sealed)  # pyright: ignore[reportArgumentType] - of a file it needs `write` and `flush` alone
        sealed.close()


def load_state(path: Path, *, renamed: bool = False) -> State | None:
    """The saved state, its tensors in the memory of the CPU, or None where there is no file.

    Args:
        path: of the file.
        renamed: whether it may have been written under another name.

    Raises:
        DamagedCheckpoint: the file is damaged. CheckpointError: written under another name or by another version.
        OSError: it is there and cannot be read.
    """
    if not path.exists():
        return None
    try:
        if not check_archive(path):
            _check_members(path)
        found: object = torch.load(path, weights_only=True, map_location="cpu")
    except Exception as error:
        is_readable = not isinstance(error, NotAFile) and not path.is_dir()
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and is_readable):
            raise
        detail = str(error) if isinstance(error, ValueError | NotAFile) else type(error).__name__
        if path.is_dir():
            raise DamagedCheckpoint(f"checkpoint {path}: cannot be read (a folder). Name a file.") from error
        raise DamagedCheckpoint(f"checkpoint {path}: cannot be read ({detail}); delete it to start over.") from error
    if not isinstance(found, dict) or "version" not in found:
        raise CheckpointError(f"checkpoint {path}: holds no saved work of isthmus; give another file.")
    state = cast(State, found)
    if state["version"] != VERSION:
        raise CheckpointError(f"checkpoint {path}: version {state['version']}, not {VERSION}; delete it to start over.")
    name = state.get("file", path.name)  # not noted by versions without a checksum
    if name != path.name and not renamed:
        raise CheckpointError(f"checkpoint {path}: was written as {name}; put it back, or delete it to start over.")
    return state


def save_twice(path: Path, state: State) -> None:
    """Write a small state that nothing could give again, and a copy of it."""
    save_state(path, state)
    save_state(_copy(path), state)


def load_twice(path: Path) -> State | None:
    """The state, from its copy if need be, which is said; None where there is neither.

    Raises:
        CheckpointError: it is damaged, and so is its copy, or there is none.
    """
    try:
        state = load_state(path)
        damage = f"{path}: is missing" if state is None else ""
    except CheckpointError as error:
        if not _copy(path).exists():
            raise
        state, damage = None, str(error).partition(";")[0]
    if state is None and (state := load_state(_copy(path))) is not None:
        if path.exists():
            _move_aside(path)
        save_state(path, state)
        warnings.warn(f"{damage}. It was written again from its copy.", DataWarning, stacklevel=outside())
    return state


def _copy(path: Path) -> Path:
    return path.with_name(f"{path.stem}.copy{path.suffix}")


def set_aside(path: Path, error: CheckpointError) -> None:
    """Move a file that cannot be used out of the way, and say that what it held is computed again."""
    place = _move_aside(path)
    reason = str(error).partition(";")[0].rstrip(".")
    text = f"{reason}. It was set aside as {place.name}; what it held is computed again."
    warnings.warn(text, DataWarning, stacklevel=outside())


def _move_aside(path: Path) -> Path:
    place = path.with_name(f"{path.name}.damaged")
    if place.is_dir() or path.is_dir():  # nothing is moved onto a folder, or a folder onto something
        place = path.with_name(f"{path.name}.damaged-{len(list(path.parent.iterdir()))}")
    return path.replace(place)


def _check_members(path: Path) -> None:
    """Compare the checksums of an archive without one of its own, which torch writes and does not look at."""
    with zipfile.ZipFile(path) as archive:
        name = archive.testzip()
    if name is not None:
        raise ValueError(f"the checksum of {name} differs")
