"""Exported programs (.pt2): the archive, whose members are read by ourselves or not at all.

torch.export.load of torch 2.13 unpickles members that fail weights_only, evaluates the expressions of shapes and the
guards as Python, and calls whatever function of torch a graph names: it never sees a file here. The graph:
`files.program_graphs`; its numbers: `files.program_tensors`.
"""

import json
import pickle
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, fx

from isthmus.discovery.files.pickles import odd_global
from isthmus.discovery.files.program_graphs import program_module
from isthmus.discovery.files.program_tensors import RefusedProgram, read_tensors
from isthmus.errors import DataError

_GRAPH = "models/model.json"
_TEXT = ("archive_format", "archive_version", "version", "byteorder", ".data/version", ".data/serialization_id")
# folder -> the list of its tensors, and with what the name of each begins
_LISTS = {
    "data/weights/": ("data/weights/model_weights_config.json", "weight_"),
    "data/constants/": ("data/constants/model_constants_config.json", "tensor_"),
}
_MOST_MEMBERS = 100_000
_SAMPLES = "data/sample_inputs/"
_REMEDY = "Ask for the weights as safetensors."


def read_program(path: Path) -> fx.GraphModule:
    """The module of a .pt2 file of torch.export.save, in eval mode, without gradients; nothing of the file is run.

    Raises:
        DataError: no such file, not a .pt2 of torch.export.save, or a member that is refused; says which and why.
    """
    members = _members(path)
    where = _GRAPH
    try:
        tensors: dict[str, Tensor] = {}
        for folder, (where, prefix) in _LISTS.items():
            tensors |= read_tensors(_json(members, where), members, folder, prefix)
        for where, content in members.items():
            if objection := _objection(where, content):
                raise RefusedProgram(objection)
        where = _GRAPH
        return program_module(_json(members, _GRAPH), tensors).eval().requires_grad_(False)
    except RefusedProgram as error:
        raise DataError(f"{path}: refused without running it: its member {where!r} {error}. {_REMEDY}") from error


def _json(members: Mapping[str, bytes], name: str) -> Any:
    try:
        return json.loads(members[name])
    except KeyError:
        raise RefusedProgram("is missing") from None
    except (ValueError, RecursionError) as error:
        raise RefusedProgram(f"is no JSON ({str(error)[:80]})") from error


def _members(path: Path) -> dict[str, bytes]:
    """The members of the archive by name below its root."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            _check_directory(path, entries)
            members = {entry.filename.partition("/")[2]: archive.read(entry) for entry in entries}
    except FileNotFoundError:
        raise DataError(f"{path}: no such file. Check the path.") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        detail = " ".join(str(error).split())
        raise DataError(f"{path}: is damaged or no exported program ({detail}). Export it again.") from error
    if _GRAPH not in members or len(members) != len(entries):
        raise DataError(f"{path}: is no exported program of torch.export.save (no {_GRAPH}). Export it again.")
    return members


def _check_directory(path: Path, entries: list[zipfile.ZipInfo]) -> None:
    """Refuse what two readers could read differently, and what is larger than the file, before anything is read."""
    # of a pair of one name, one would be looked at and the other loaded
    if len({entry.filename.lower() for entry in entries}) != len(entries):
        raise DataError(f"{path}: refused without running it: two of its members share a name. {_REMEDY}")
    # torch.export.save stores; what is packed, or lies on top of another, may be of any size once it is unpacked
    stored = all(entry.compress_type == zipfile.ZIP_STORED for entry in entries)
    if not stored or len(entries) > _MOST_MEMBERS or sum(entry.file_size for entry in entries) > path.stat().st_size:
        raise DataError(f"{path}: refused without unpacking it: its members are packed or overlap. {_REMEDY}")


def _objection(name: str, content: bytes) -> str:
    """Why an archive with this member is not read, although nothing that is loaded comes from it."""
    folder = name[: name.rfind("/") + 1]
    if (
        name in _TEXT
        or name.startswith("extra/")
        or name == _GRAPH
        or name in {config for config, _ in _LISTS.values()}
    ):
        return ""
    if folder in _LISTS and name.startswith(folder + _LISTS[folder][1]):
        return ""  # plain numbers, read where the list of its folder names them
    if folder != _SAMPLES:
        return "is no part of a program"
    try:  # never unpickled; what it names tells that the file was made to do harm
        odd = odd_global(content)
    except (ValueError, pickle.UnpicklingError) as error:
        return f"is no file of tensors: {error}"
    return f"would import {odd[:80]!r}" if odd else ""
