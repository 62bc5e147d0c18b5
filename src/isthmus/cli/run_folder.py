"""The folder of a run before the run: new, continued or replaced; refused early when it cannot be written.

What is written into it: `discovery.files` and `reports`. Only files of isthmus are ever removed.
"""

import re
import shutil
from enum import Enum
from pathlib import Path

from isthmus.errors import DataError

RESULT, WORK = "result.json", "work"
_TABLES = ("curves.nc", "runs.nc", "layers.nc", "interpretation.nc")
_FILES = (RESULT, *_TABLES, "weights.safetensors", "report.html", "network.safetensors")


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
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        return FolderState.FOREIGN
    return FolderState.FREE


def chosen_folder(data: str, out: Path | None, resume: Path | None, *, replace: bool) -> Path:
    """The folder of the run, after checking that the options agree with each other and with what stands there.

    Raises:
        DataError: the options contradict each other, or the folder holds a run or something else.
    """
    if resume is not None:
        if replace or (out is not None and out != resume):
            raise DataError("--resume names the folder of the run: leave out --out and --replace.")
        if state_of(resume) not in {FolderState.UNFINISHED, FolderState.FINISHED}:
            raise DataError(f"{resume}: holds no run to resume. Start one with --out {resume}.")
        return resume
    folder = out if out is not None else Path("runs") / _name_of(data)
    state = state_of(folder)
    if state is FolderState.FOREIGN:
        raise DataError(f"{folder}: holds other files. Give a new or empty folder with --out.")
    if state is not FolderState.FREE and not replace:
        raise DataError(f"{folder}: holds {state.value}. Go on with --resume {folder}, or start over with --replace.")
    return folder


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
    if (folder / "control").is_dir():
        clear(folder / "control")
    for place in (folder / "plots", folder / "control"):
        if place.is_dir() and not any(place.iterdir()):
            place.rmdir()


def _name_of(data: str) -> str:
    """A folder name for the data: "builtin:digits" gives "digits", "a/My table.csv" gives "My_table"."""
    stem = data.removeprefix("builtin:") if data.startswith("builtin:") else Path(data).stem
    return re.sub(r"[^\w.-]+", "_", stem).strip("._") or "run"
