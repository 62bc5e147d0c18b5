"""The task of a plan: which arguments it takes, and the same data again on whichever worker asks for them.

Making and reading tasks: `tasks`. The keys of networks and training: `fields`.
"""

import hashlib
import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

from isthmus import tasks
from isthmus.discovery.files.netcdf import checksum
from isthmus.errors import DataError, PlanError
from isthmus.networks.argument_fields import Field, choice, listed, optional, real, switch, whole, words
from isthmus.sweeps.fields import Settings, canonical, shown, unknown
from isthmus.tasks import BUILTIN, Task, builtin, read_table
from isthmus.tasks.builtin import MEASURED
from isthmus.tasks.table_options import TableOptions
from isthmus.tasks.zarr_folders import is_zarr

_FILE: Mapping[str, Field] = {
    "file": words(),
    "target": listed(words(), also_single=True, default=[]),
    "classes": optional(words()),
    "autoencode": switch(default=False),
    "leave_out": listed(words(), also_single=True, default=[]),
}
_BY_TYPE: Mapping[object, Callable[[object], Field]] = {
    int: lambda default: whole(0, default=default),
    float: lambda default: real("a number", lambda _value: True, default=default),
    bool: lambda default: switch(default=bool(default)),
    int | None: lambda _default: optional(whole(0)),
}


def canonical_task(given: Mapping[str, object], *, where: str, folder: Path) -> tuple[Settings, str | None]:
    """The settings of a task, canonical, and the file that it is read from.

    A file enters by the checksum of its bytes and never by its path: moved data are the same data.

    Args:
        given: `name` with the arguments of that task, or `file` with `target`, `classes` or `autoencode` and, of its
            columns, those to `leave_out`.
        where: how an error names the place.
        folder: where a relative path starts.

    Raises:
        PlanError: unknown or missing keys, values out of range, or no such file.
    """
    if "file" in given:
        found = canonical(given, _FILE, section="task", where=where)
        path = folder / str(found.pop("file"))
        if not _is_file(path):
            raise PlanError(f"{where}: task.file is {shown(str(path))}; needs a file that is there. Check the path.")
        for key in ("target", "leave_out"):
            found[key] = [found[key]] if isinstance(found[key], str) else found[key]
        if not found["leave_out"]:  # ids of runs from before there was this key stay what they are
            del found["leave_out"]
        return {"sha256": _checksum(path), "suffix": path.suffix.lower(), **found}, str(path.resolve())
    name = given.get("name")
    if not isinstance(name, str) or name not in BUILTIN:
        if not isinstance(name, str):
            raise PlanError(f"{where}, [task]: needs a name or a file. Names are {', '.join(BUILTIN)}.")
        raise unknown(name, list(BUILTIN), f"{where}, task.name")
    return canonical(given, _fields(name, given), section="task", where=where), None


def task_keys(given: Mapping[str, object]) -> list[str]:
    """What may be said of such a task, whether it is said or not; of one that is not known, what any task has."""
    name = given.get("name")
    if "file" in given or not isinstance(name, str) or name not in BUILTIN:
        return ["file", *_FILE] if "file" in given else ["name", "seed"]
    return list(_fields(name, {**given, "seed": 0, **(_usual(name) or {})}))


def task_spelling(settings: Mapping[str, object]) -> Settings:
    """The one way to write a canonical task: columns left out in no order, nothing that is usual or not heeded."""
    found = dict(settings)
    if settings.get("name") in MEASURED and "seed" in settings:
        found["seed"] = 0
    if isinstance(left_out := settings.get("leave_out"), list):
        found["leave_out"] = sorted(set(map(str, left_out)))
    name = settings.get("name")
    usual = _usual(name) if isinstance(name, str) else None
    if usual is not None and all(settings[key] == usual[key] for key in settings if key not in {"name", "seed"}):
        return {"name": name, "seed": found.get("seed", 0)}
    return found


@lru_cache(maxsize=64)
def _usual(name: str) -> Mapping[str, object] | None:
    """Arguments of a task that comes along, with the values that they have unless given."""
    maker = getattr(tasks, name, None)
    parameters = () if maker is None else inspect.signature(inspect.unwrap(maker)).parameters.values()
    return {p.name: p.default for p in parameters} or None


def _is_file(path: Path) -> bool:
    """Whether it is one, or a zarr, and no device or other folder; a name that no file can have is none."""
    try:
        return path.is_file() or is_zarr(path)
    except (OSError, ValueError):
        return False


def _fields(name: str, given: Mapping[str, object]) -> dict[str, Field]:
    """The keys of a task that comes along: those of its function, or the seed alone where none else is given."""
    head = {"name": choice(*BUILTIN)}
    maker = getattr(tasks, name, None)
    if maker is None or not set(given) - {"name", "seed"}:
        return head | {"seed": whole(0, default=0)}
    parameters = inspect.signature(inspect.unwrap(maker)).parameters.values()
    return head | {p.name: _field(p) for p in parameters if p.annotation in _BY_TYPE}


def _field(parameter: inspect.Parameter) -> Field:
    made = _BY_TYPE[parameter.annotation](parameter.default)
    if parameter.default is inspect.Parameter.empty:
        return Field(made.needs, made.read)
    return made


def _checksum(path: Path) -> str:
    files = _files(path)
    return _cached_checksum(str(path), tuple((file.stat().st_size, file.stat().st_mtime_ns) for file in files))


@lru_cache(maxsize=64)
def _cached_checksum(path: str, _states: tuple[tuple[int, int], ...]) -> str:
    return _content(Path(path))


def _files(path: Path) -> list[Path]:
    """The file itself, or those of a zarr."""
    return sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]


def _content(path: Path) -> str:
    """The checksum of a file, or of the names and checksums of the files of a zarr."""
    if not path.is_dir():
        return checksum(path)
    lines = (f"{file.relative_to(path).as_posix()}\0{checksum(file)}\n" for file in _files(path))
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def make_task(settings: Mapping[str, object], source: str | None) -> Task:
    """The task of canonical settings.

    Args:
        settings: as `canonical_task` gives them.
        source: the file that it is read from.

    Raises:
        DataError: the file is missing or has changed. ValueError: arguments that do not fit together.
    """
    if "sha256" not in settings:
        arguments = {key: value for key, value in settings.items() if key != "name"}
        name = str(settings["name"])
        maker = getattr(tasks, name, None)
        if maker is None or not set(arguments) - {"seed"}:
            return builtin(name, seed=int(str(arguments.get("seed", 0))))
        return maker(**arguments)
    check_source(settings, source)
    classes, target, left_out = settings["classes"], settings["target"], settings.get("leave_out", [])
    assert isinstance(target, list)
    assert isinstance(left_out, list)
    return read_table(
        str(source),
        target=[str(column) for column in target],
        classes=None if classes is None else str(classes),
        autoencode=bool(settings["autoencode"]),
        options=TableOptions(leave_out=tuple(map(str, left_out))),
    )


def check_source(settings: Mapping[str, object], source: str | None) -> None:
    """Refuse a task file that is missing here, or that is another than the one of the plan.

    Raises:
        DataError: says which.
    """
    if "sha256" not in settings:
        return
    path = Path(str(source))
    if not _is_file(path):
        raise DataError(f"{path}: no such file. Put the task's file at this path on every worker.")
    if _content(path) != settings["sha256"]:
        raise DataError(f"{path}: is not the file of the plan, its checksum differs. Copy it again.")
