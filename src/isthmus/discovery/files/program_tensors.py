"""Weights and constants of an exported program: raw numbers in members of the archive, never an object of Python.

The archive: `files.programs`. The graph that takes them: `files.program_graphs`.
"""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

# the numbers by which torch.export names types, of those that hold plain numbers
TYPES = {
    1: torch.uint8, 2: torch.int8, 3: torch.int16, 4: torch.int32, 5: torch.int64, 6: torch.float16, 7: torch.float32,
    8: torch.float64, 9: torch.complex32, 10: torch.complex64, 11: torch.complex128, 12: torch.bool,
    13: torch.bfloat16, 28: torch.uint16, 34: torch.uint32, 35: torch.uint64,
}  # fmt: skip
_STRIDED = 7
_MOST_DIMENSIONS = 64
# a tensor may show the same numbers again (expanded), up to so many more than are stored
_MOST_REPEATED = 1 << 20


class RefusedProgram(ValueError):  # noqa: N818 - the sentence goes on after the name of the member
    """A part of a program that is not read; the text says why."""


def read_tensors(config: Any, members: Mapping[str, bytes], folder: str, prefix: str) -> dict[str, Tensor]:
    """The tensors that a list of weights or constants names, on the CPU.

    Args:
        config: what stands in ..._config.json.
        members: of the archive.
        folder: of the members.
        prefix: with which the name of every member of the kind begins.

    Raises:
        RefusedProgram: the list names something that is no tensor of plain numbers, or does not fit its member.
    """
    try:
        entries = {str(name): entry for name, entry in config["config"].items()}
        facts = [(e["path_name"], e["use_pickle"], e["tensor_meta"]) for e in entries.values()]
    except (KeyError, TypeError, AttributeError):
        raise RefusedProgram("does not list its tensors") from None
    copies: dict[str, bytearray] = {}  # one of each member, whatever it is read as
    storages: dict[tuple[str, int], Tensor] = {}
    found: dict[str, Tensor] = {}
    for name, (path, pickled, meta) in zip(entries, facts, strict=True):
        if not isinstance(path, str) or not path.startswith(prefix) or pickled is not False:
            raise RefusedProgram(f"names {str(path)[:80]!r}, which is no tensor of plain numbers")
        if folder + path not in members:
            raise RefusedProgram(f"names {path[:80]!r}, which the archive lacks")
        try:
            number = int(meta["dtype"])
            key = (path, number)
            if key not in storages:
                if path not in copies:
                    copies[path] = bytearray(members[folder + path])
                storages[key] = _storage(copies[path], TYPES[number])
            found[name] = _view(storages[key], meta)
        except (KeyError, TypeError, ValueError, RuntimeError, OverflowError) as error:
            raise RefusedProgram(f"describes the tensor {name[:80]!r} so that it does not fit {path[:80]!r}") from error
    return found


def _storage(content: bytearray, dtype: torch.dtype) -> Tensor:
    if not content:
        return torch.empty(0, dtype=dtype)
    if dtype is torch.bool:  # a byte other than 0 and 1 is no truth value
        return torch.frombuffer(content, dtype=torch.uint8).ne(0)
    return torch.frombuffer(content, dtype=dtype)


def _view(storage: Tensor, meta: Mapping[str, Any]) -> Tensor:
    if meta["layout"] != _STRIDED:
        raise ValueError("not strided")
    sizes, strides = ([_whole(entry["as_int"]) for entry in meta[key]] for key in ("sizes", "strides"))
    offset = _whole(meta["storage_offset"]["as_int"])
    if len(sizes) > _MOST_DIMENSIONS or math.prod(sizes) > max(storage.numel(), _MOST_REPEATED):
        raise ValueError("more numbers than are stored")
    return torch.as_strided(storage, sizes, strides, offset)  # which refuses to leave the storage


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("no size")
    return value
