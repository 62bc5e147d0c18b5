"""The folder of a run or an export before it is written: named, new, continued or replaced, or refused early.

What is written into it: `discovery.files`, `reports`, `export_run`. Only files of isthmus are ever removed.
"""

import hashlib
import re
import shutil
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path

from isthmus.errors import DataError
from isthmus.writing.atomic import is_leftover, remove_leftovers
from isthmus.writing.folder_lock import is_bookkeeping

RESULT, WORK = "result.json", "work"
SUMMARY = "export.json"  # of `factor` and `compress`
_BUILTIN = "builtin:"
_LONGEST_NAME = 60  # characters; a name of a file may have 255 bytes
# all that a run may write, of `discovery.files.storage` and of older versions: what is not here, `--replace` leaves
_TABLES = (
    "curves.nc", "depth.nc", "scree.nc", "objective_curve.nc", "runs.nc", "layers.nc", "depth_path.nc",
    "combinations.nc", "interpretation.nc",
)  # fmt: skip
_FURTHER = ("control", "index", "mode", "rank")  # runs in folders of their own
ROWS = "rows.csv"  # the file of each row
_FILES = (RESULT, ROWS, *_TABLES, "weights.safetensors", "report.html", "network.safetensors")


class FolderState(Enum):
    """What stands in a folder that is to hold a run."""

    FREE = "no such folder, or an empty one"
    UNFINISHED = "work of a run that was stopped"
    FINISHED = "a finished run"
    FOREIGN = "other files"


def state_of(folder: Path) -> FolderState:
    """What stands in `folder`."""
    if (folder / RESULT).exists():
        return FolderState.FINISHED
    if (folder / WORK).exists():
        return FolderState.UNFINISHED
    return FolderState.FREE if is_free(folder) else FolderState.FOREIGN


def is_free(folder: Path) -> bool:
    """Whether `folder` is missing or empty, but for traces of a process that was killed or is at work."""
    if not folder.exists():
        return True
    return folder.is_dir() and all(is_bookkeeping(file) or is_leftover(file) for file in folder.iterdir())


def chosen_folder(default: Path, out: Path | None, resume: Path | None, *, replace: bool) -> Path:
    """The folder of the run, after checking that the options agree with each other.

    Raises:
        DataError: the options contradict each other, or there is nothing to resume.
    """
    for option, path in (("--out", out), ("--resume", resume)):
        if "\0" in str(path):
            raise DataError(f"{option} {str(path)!r}: a path has no NUL character. Give another folder.")
    if resume is None:
        return out if out is not None else default
    if replace or (out is not None and out != resume):
        raise DataError("--resume names the folder of the run: leave out --out and --replace.")
    if state_of(resume) not in {FolderState.UNFINISHED, FolderState.FINISHED}:
        raise DataError(f"{resume}: holds no run to resume. Start one with --out {resume}.")
    return resume


def check_free(folder: Path, *, resumed: bool, replace: bool) -> None:
    """Refuse a folder that holds something that was not asked for.

    Raises:
        DataError: it holds a run that is neither resumed nor replaced, or other files.
    """
    state = state_of(folder)
    if state is FolderState.FOREIGN:
        raise DataError(f"{folder}: holds other files. Give a new or empty folder with --out.")
    if state is not FolderState.FREE and not resumed and not replace:
        raise DataError(f"{folder}: holds {state.value}. Go on with --resume {folder}, or start over with --replace.")


def chosen_export_folder(model: Path, data: str, out: Path | None, command: str, *, replace: bool) -> Path:
    """The folder that `factor` or `compress` may write, after checks: --out, or runs/MODEL-command.

    Raises:
        DataError: it holds an older export and `replace` is false, or other files, or the model or the data, or cannot
            be written.
    """
    folder = out if out is not None else Path("runs") / f"{model.name if model.is_dir() else model.stem}-{command}"
    if not is_free(folder):
        if not (folder / SUMMARY).is_file():
            raise DataError(f"{folder}: holds other files. Give a new or empty folder with --out.")
        for given in (model, Path(data)):
            if given.exists() and folder.resolve() in {given.resolve(), *given.resolve().parents}:
                raise DataError(f"{folder}: {given} is an input of this command. Give another folder with --out.")
        if not replace:
            raise DataError(f"{folder}: holds an older export. Add --replace, or give another folder with --out.")
    check_writable(folder)
    return folder


def tidy(folder: Path) -> None:
    """Remove what killed processes left half-written; only where no other process writes."""
    for place in (folder, *(folder / name for name in (WORK, "plots", *_FURTHER))):
        if place.is_dir():
            remove_leftovers(place)


def check_writable(folder: Path) -> None:
    """Make `folder` and a file in it, and remove again what was made.

    Raises:
        DataError: it cannot be made or written.
    """
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    made: list[Path] = []
    try:
        for place in reversed(missing):
            place.mkdir()
            made.append(place)
        probe = folder / ".isthmus-probe"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise DataError(f"{folder}: cannot be written ({error.strerror}). Give another folder with --out.") from error
    finally:
        for place in reversed(made):
            place.rmdir()


def clear(folder: Path) -> None:
    """Remove an older run from `folder`; files that are not of isthmus stay."""
    for name in _FILES:  # result.json first: without it the rest is no result
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / WORK, ignore_errors=True)
    for picture in [*folder.glob("plots/*.png"), *folder.glob("plots/*.svg")]:
        picture.unlink()
    for name in _FURTHER:
        if (folder / name).is_dir():
            clear(folder / name)
    for place in (folder / name for name in ("plots", *_FURTHER)):
        if place.is_dir() and not any(place.iterdir()):
            place.rmdir()


def builtin_name(data: str) -> str | None:
    """NAME where DATA is builtin:NAME; None where it is a file."""
    return data.removeprefix(_BUILTIN) if data.startswith(_BUILTIN) else None


def default_folder(data: str, words: Iterable[str], options: Mapping[str, object]) -> Path:
    """A folder in runs for a request, so that two different ones on the same data have two.

    "a/My table.csv" with the words "y" and "fit" and the option seed 1 gives runs/My_table-y-fit-seed-1.

    Args:
        data: path of the data, or builtin:NAME.
        words: columns and kind of run.
        options: options by name that were given; None, False and empty ones are left out, True is the name alone.
    """
    parts = [_plain(builtin_name(data) or Path(data).stem) or "run", *words]
    for name, value in options.items():
        if value is not None and value is not False and value != "":
            parts.append(name if value is True else f"{name}-{value}")
    name = "-".join(filter(None, map(_plain, parts)))
    if len(name) > _LONGEST_NAME:
        name = f"{name[:_LONGEST_NAME]}-{hashlib.sha256('-'.join(parts).encode()).hexdigest()[:8]}"
    return Path("runs") / name


def _plain(text: str) -> str:
    return re.sub(r"[^\w.-]+", "_", text).strip("._-")
