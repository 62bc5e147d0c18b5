"""Exported programs (.pt2) read without running anything they bring: every member is checked before it is loaded.

torch.export.load of torch 2.13 unpickles members that fail weights_only, evaluates the expressions of shapes and the
guards as Python, and calls whatever function of torch a graph names. What may stand in the graph:
`files.program_graphs`.
"""

import io
import json
import re
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from isthmus.discovery.files.program_graphs import graph_objection
from isthmus.errors import DataError
from isthmus.networks.export_noise import without_export_noise

_TEXT = ("archive_format", "archive_version", "version", "byteorder", ".data/version", ".data/serialization_id")
_CONFIGS = {
    "data/weights/": "data/weights/model_weights_config.json",
    "data/constants/": "data/constants/model_constants_config.json",
}
NAMES = "it names"
_NAMED = re.compile(r"GLOBAL ([\w.]+)")
_ROOT = "model"
_REMEDY = "Ask for the weights as safetensors."


def read_program(path: Path) -> torch.export.ExportedProgram:
    """The exported program of a .pt2 file, of which nothing was run.

    Raises:
        DataError: no such file, not a .pt2 of torch.export.save, or a member that would run code; says which and why.
    """
    members = _members(path)
    for name, content in members.items():
        if objection := _objection(name, content, members):
            raise DataError(f"{path}: refused without running it: its member {name} {objection}. {_REMEDY}")
    try:
        with without_export_noise():
            return torch.export.load(_archive(members))
    except Exception as error:  # torch raises what it likes about a damaged archive
        detail = " ".join(str(error).split())[:200]
        raise DataError(f"{path}: cannot be read as an exported program ({detail}). Export it again.") from error


def unpickling_objection(content: bytes) -> str:
    """Why a pickled member may not be loaded, in words; empty where it holds tensors and plain values only."""
    try:
        torch.load(io.BytesIO(content), weights_only=True, map_location="cpu")
    except Exception as error:  # torch, zip and pickle raise types of their own
        return f"cannot be loaded without running code ({first_reason(error)})"
    return ""


def first_reason(error: Exception) -> str:
    """What torch.load says about the content that it refuses, without its advice."""
    text = " ".join(str(error).split())
    if named := _NAMED.search(text):
        return f"{NAMES} {named[1]}"
    text = text[max(text.find("WeightsUnpickler error:"), 0) :].removeprefix("WeightsUnpickler error:").strip()
    return f"{type(error).__name__}: {text[:120].split('. ')[0].split(' Check the')[0]}"


def _members(path: Path) -> dict[str, bytes]:
    """The members of the archive by name below its root."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [info.filename for info in archive.infolist()]
            # two readers may take different ones of a pair, so that the one that is loaded was never looked at
            if len({name.lower() for name in names}) != len(names):
                raise DataError(f"{path}: refused without running it: two of its members share a name. {_REMEDY}")
            members = {name.partition("/")[2]: archive.read(name) for name in names}
    except FileNotFoundError:
        raise DataError(f"{path}: no such file. Check the path.") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        detail = " ".join(str(error).split())
        raise DataError(f"{path}: is damaged or no exported program ({detail}). Export it again.") from error
    if "models/model.json" not in members or len(members) != len(names):
        raise DataError(f"{path}: is no exported program of torch.export.save (no models/model.json). Export it again.")
    return members


def _objection(name: str, content: bytes, members: Mapping[str, bytes]) -> str:
    if name in _TEXT or name.startswith("extra/"):
        return ""
    if name.endswith(".json"):
        try:
            value = json.loads(content)
        except ValueError as error:
            return f"is no JSON ({error})"
        return _config_objection(name, value) if name in _CONFIGS.values() else graph_objection(value)
    folder = name[: name.rfind("/") + 1]
    if folder in _CONFIGS and name in _raw_members(folder, members):
        return ""  # bytes of numbers
    return unpickling_objection(content)


def _config_objection(name: str, value: Any) -> str:
    """Why the list of weights or constants may not be used."""
    try:
        entries = [(entry["path_name"], entry["use_pickle"]) for entry in value["config"].values()]
    except (KeyError, TypeError, AttributeError):
        return "does not list its tensors"
    prefix = "weight_" if "weights" in name else "tensor_"
    # torch takes other names of constants for objects, and unpickles them
    odd = [path for path, _ in entries if not str(path).startswith(prefix) or "/" in path]
    return f"names {odd[0]!r}, which is no tensor" if odd else ""


def _raw_members(folder: str, members: Mapping[str, bytes]) -> set[str]:
    """The members that are read as plain numbers by every entry that names them."""
    try:
        entries = json.loads(members[_CONFIGS[folder]])["config"].values()
        pickled = {folder + e["path_name"] for e in entries if e["use_pickle"] is not False}
        return {folder + e["path_name"] for e in entries} - pickled
    except (KeyError, TypeError, ValueError, AttributeError):
        return set()


def _archive(members: Mapping[str, bytes]) -> io.BytesIO:
    """A new archive of exactly these members: what is loaded is what was checked, whatever else the file holds."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(f"{_ROOT}/{name}", content)
    buffer.seek(0)
    return buffer
