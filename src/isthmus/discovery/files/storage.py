"""A discovery as a folder: result.json, its netCDF tables and the weights, whole or absent, and never unpickled.

Its pictures and its page are written by `reports`, checkpoints of a running search by `training`.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import xarray as xr
from safetensors.torch import load_file, save
from torch import Tensor

from isthmus.diagnostics import Diagnosis
from isthmus.discovery.depth.path import DepthPath
from isthmus.discovery.files.json_values import plain, restored
from isthmus.discovery.files.netcdf import checksum, read_table, write_table
from isthmus.discovery.files.networks import architecture, network_from, tensors_of
from isthmus.discovery.halves import RANK_KINDS
from isthmus.errors import DataError
from isthmus.tasks.door import file_inside, through_door
from isthmus.theory import RankEstimate, Verdict
from isthmus.writing.atomic import remove_leftovers, write_bytes
from isthmus.writing.checksums import opened_json, sealed_json
from isthmus.writing.regular import contents, regular
from isthmus.writing.staying import made_folder

T = TypeVar("T")
FORMAT, FORMAT_VERSION = "isthmus discovery", 2
RESULT, WORK = "result.json", "work"
PAGE = "report.html"  # which the command line writes beside
SWEEP_HEAD = "sweep.json"  # what `sweeps`, to the right of here, writes into a folder of its own
TABLES = ("scree", "objective_curve", "runs", "layers")
DEPTH = "depth_path"
OPTIONAL = (DEPTH, "combinations")  # there only if it was asked for, or the encoder is linear
_FILES_BEFORE = {"scree": "curves.nc", "objective_curve": "curves.nc", DEPTH: "depth.nc"}  # format version 1: netCDF-4
WEIGHTS = "weights.safetensors"
CONTROL = "control"
BESIDE = "beside"  # entry of result.json: checksums of what is not read with it, or has its own result.json
INTERPRETATION = "interpretation.nc"
_NETWORKS = ("network", "encoder", "decoder")
_PLAIN = {
    "rank": int, "reasons": tuple, "warnings": tuple, "task": str, "input_names": tuple, "target_names": tuple,
    "settings": dict, "readings": dict,
}  # fmt: skip
_LATER = {"remedies": ()}  # plain fields that runs of older versions lack, and what they had


def write_fields(folder: str | os.PathLike[str], fields: Mapping[str, object]) -> None:
    """Write the fields of a `Discovery` (but for its control) into `folder`, made if missing.

    An older result there stops counting first and result.json comes last: while it is missing, the folder is no result.

    Raises:
        OSError: the folder cannot be written.
        TypeError: a setting, reading or piece of evidence has no plain form.
    """
    place = Path(folder)
    content = _content(fields)  # first: what has no plain form is refused before anything is touched
    made_folder(place)
    remove_leftovers(place)
    (place / RESULT).unlink(missing_ok=True)
    diagnosis = fields["diagnosis"]
    assert isinstance(diagnosis, Diagnosis)
    tables = {**fields, "layers": diagnosis.layers}
    for name in _FILES_BEFORE.values():
        (place / name).unlink(missing_ok=True)
    written = [WEIGHTS]
    for field in (*TABLES, *OPTIONAL):
        name, table = _file_of(field), tables.get(field)
        (place / name).unlink(missing_ok=True)
        if table is not None:
            table = table.table if isinstance(table, DepthPath) else table
            assert isinstance(table, xr.Dataset)
            write_table(place / name, table)
            written.append(name)
    write_bytes(place / WEIGHTS, save(tensors_of({name: fields[name] for name in _NETWORKS})))
    checksums = {name: checksum(place / name) for name in written}
    further = [*([CONTROL] if fields["control"] is not None else []), *_others_of(fields)]
    beside = {f"{name}/{RESULT}": checksum(place / name / RESULT) for name in further}
    head = {"format": FORMAT, "format_version": FORMAT_VERSION, "checksums": checksums, BESIDE: beside}
    write_bytes(place / RESULT, sealed_json(head | content))


def write_beside(folder: str | os.PathLike[str], name: str, table: xr.Dataset) -> None:
    """Write a table into the folder of a finished run, whose result.json then knows it.

    Raises:
        OSError: it cannot be written. DataError: there is no finished run.
    """
    place = Path(folder)
    write_table(place / name, table)
    content = _result_content(place)
    beside = {**content.get(BESIDE, {}), name: checksum(place / name)}
    write_bytes(place / RESULT, sealed_json({**content, BESIDE: beside}))


def read_beside(folder: str | os.PathLike[str], name: str) -> xr.Dataset | None:
    """The table that `write_beside` wrote; None where there is none.

    Raises:
        DataError: it is damaged or of another run; in a run from before such tables were known, only where it is seen.
    """
    place = Path(folder)
    if not os.path.lexists(place / name):
        return None
    known = _result_content(place).get(BESIDE)
    if known is not None and _guarded(place / name, checksum) != known.get(name):
        raise DataError(f"load: {place / name} is damaged or of another run (its checksum differs); make it again.")
    return _guarded(place / name, lambda path: read_table(path, Path(name).stem))


def _others_of(fields: Mapping[str, object]) -> list[str]:
    """The kinds of the other ranks."""
    others = fields.get("others")
    return [name for name in RANK_KINDS if name in others] if isinstance(others, Mapping) else []


def _content(fields: Mapping[str, object]) -> dict[str, object]:
    """What result.json says beside its head."""
    diagnosis, interval, verdict = fields["diagnosis"], fields["interval"], fields["verdict"]
    assert isinstance(diagnosis, Diagnosis)
    assert isinstance(interval, RankEstimate)
    assert isinstance(verdict, Verdict)
    content: dict[str, object] = {name: plain(fields[name], name) for name in _PLAIN}
    content |= {name: plain(fields.get(name, none), name) for name, none in _LATER.items()}
    content["verdict"] = verdict.name
    content["interval"] = _estimate_content(interval)
    content["diagnosis"] = {
        "rank": _estimate_content(diagnosis.rank),
        "skipped": plain(diagnosis.skipped, "diagnosis.skipped"),
        "warnings": plain(diagnosis.warnings, "diagnosis.warnings"),
    }
    content["architectures"] = {name: architecture(fields[name]) for name in _NETWORKS}
    content["has_control"] = fields["control"] is not None
    content["others"] = _others_of(fields)
    return content


def read_fields(folder: str | os.PathLike[str]) -> tuple[dict[str, Any], bool, list[str]]:
    """The fields of a `Discovery` from `folder`, whether there is a control, and the kinds of other ranks there.

    Raises:
        DataError: a file is missing, damaged, of another run or of a newer format; one line says which and what to do.
    """
    place = Path(folder)
    content = _result_content(place)
    for name, expected in content["checksums"].items():
        if _guarded(place / name, checksum) != expected:
            raise DataError(f"load: {place / name} is damaged or of another run (its checksum differs); run again.")
    files = {field: _file_of(field, content["format_version"]) for field in (*TABLES, *OPTIONAL)}
    tables = {
        field: _guarded(place / name, lambda path, field=field: read_table(path, field))
        for field, name in files.items()
        if name in content["checksums"]
    }
    tensors = _guarded(place / WEIGHTS, _read_weights)
    found = _guarded(place / RESULT, lambda _path: _fields(content, tables, tensors))
    found |= {field: tables[field] for field in OPTIONAL if field in tables}
    if DEPTH in tables:
        found[DEPTH] = _guarded(place / files[DEPTH], lambda _path: DepthPath.of(tables[DEPTH]))
    others = content.get("others", [])  # a run from before there were any has none
    if not isinstance(others, list) or not set(map(str, others)) <= set(RANK_KINDS):
        raise DataError(f"load: {place / RESULT} is damaged (other ranks {str(others)[:60]}); run again.")
    has_control = _guarded(place / RESULT, lambda _path: bool(content["has_control"]))
    for name in [*([CONTROL] if has_control else []), *map(str, others)]:
        part = place / name / RESULT
        expected = content.get(BESIDE, {}).get(f"{name}/{RESULT}")  # None of a run from before they were noted
        if expected is not None and _guarded(part, checksum) != expected:
            raise DataError(f"load: {part} is damaged or of another run (its checksum differs); run again.")
    return found, has_control, [str(name) for name in others]


def _fields(
    content: Mapping[str, Any], tables: Mapping[str, xr.Dataset], tensors: Mapping[str, Tensor]
) -> dict[str, object]:
    found: dict[str, object] = {name: _of_kind(restored(content[name]), kind, name) for name, kind in _PLAIN.items()}
    found |= {name: restored(content[name]) if name in content else none for name, none in _LATER.items()}
    found |= {name: tables[name] for name in ("scree", "objective_curve", "runs")}
    found |= {name: network_from(content["architectures"][name], name, tensors) for name in _NETWORKS}
    found["verdict"] = Verdict[content["verdict"]]
    found["interval"] = _estimate(content["interval"])
    notes = content["diagnosis"]
    skipped = [(name, reason) for name, reason in notes["skipped"]]
    found["diagnosis"] = Diagnosis(tables["layers"], _estimate(notes["rank"]), skipped, tuple(notes["warnings"]))
    return found


def _of_kind(value: object, kind: type, name: str) -> object:
    parts = value if isinstance(value, tuple) else value.values() if isinstance(value, dict) else ()
    needed = {"readings": (int, float, type(None)), "settings": object}.get(name, str)  # of each part
    if not isinstance(value, kind) or not all(isinstance(part, needed) for part in parts):
        raise ValueError(f"{name} holds something else than a discovery does")  # the door says where
    return value


def _result_content(place: Path) -> dict[str, Any]:
    if not (place / RESULT).exists():
        if (place / SWEEP_HEAD).is_file():
            raise DataError(f"load: {place} is the folder of a sweep; isthmus sweep table {place} shows its runs.")
        how = f"finish it with isthmus discover DATA --resume {place}" if (place / WORK).is_dir() else "check the path"
        raise DataError(f"load: {place} holds no finished run ({RESULT} is missing); {how}.")
    content = _guarded(place / RESULT, lambda path: opened_json(contents(path)))
    if isinstance(content, dict) and content.get("format") == "isthmus fit":
        raise DataError(f"load: {place} is a run of fit; give its network.safetensors.")
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DataError(f"load: {place / RESULT} is not a result of isthmus; give the folder that discover wrote.")
    version = content.get("format_version")
    if version not in (1, FORMAT_VERSION):  # whatever it is, also a list
        raise DataError(
            f"load: {place / RESULT} has format version {version}, this isthmus reads "
            f"1 and {FORMAT_VERSION}; install the version that wrote it."
        )
    required, optional = ({_file_of(field, version) for field in fields} for fields in (TABLES, OPTIONAL))
    if not isinstance(content.get("checksums"), dict) or set(content["checksums"]) - optional != required | {WEIGHTS}:
        raise DataError(f"load: {place / RESULT} is damaged (no checksums); run again.")
    if not isinstance(content.get(BESIDE, {}), dict):
        raise DataError(f"load: {place / RESULT} is damaged ({BESIDE} is no table); run again.")
    return content


def _file_of(field: str, version: int = FORMAT_VERSION) -> str:
    return _FILES_BEFORE.get(field, f"{field}.nc") if version == 1 else f"{field}.nc"


def _guarded(path: Path, read: Callable[[Path], T]) -> T:
    """`read(path)` through the door; a link out of the folder, a device or a pipe in the place of a file stays shut."""
    if not os.path.lexists(path):
        raise DataError(f"load: {path} is missing; the folder is incomplete, run again.")
    return through_door(file_inside(path.parent, path.name), read, kind="a part of a run", remedy="Run again.")


def _read_weights(path: Path) -> dict[str, Tensor]:
    return load_file(regular(path))


def _estimate_content(estimate: RankEstimate) -> dict[str, object]:
    return {name: plain(getattr(estimate, name), name) for name in RankEstimate.__dataclass_fields__}


def _estimate(content: Mapping[str, object]) -> RankEstimate:
    # files of older versions lack what came later
    values: dict = {name: restored(content[name]) for name in RankEstimate.__dataclass_fields__ if name in content}
    return RankEstimate(**values)
