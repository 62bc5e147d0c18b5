"""The folder of a sweep: folders of runs (the truth), the index (made from them), failures, checkpoints, the lock.

    sweep.json          format and a token by which a worker knows the folder again
    runs/ab/ab12.../    one finished run: `run_files`
    failed/ab12....json the traceback of a run that failed
    work/               checkpoints of unfinished runs, and attempts.log: one line per begin and end
    index.sqlite        `index`
    damaged/            what was found damaged, set aside

Nothing here asks a clock: what is finished is decided by which folders are there, never by which is newer.
"""

import sqlite3
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from isthmus.errors import SweepError
from isthmus.sweeps.folder import (
    DAMAGED,
    FAILED,
    FORMAT,
    FORMAT_VERSION,
    HEAD,
    INDEX,
    LOCK,
    RUNS,
    WORK,
    SweepFolder,
)
from isthmus.sweeps.index import Index, Row, Status, unwritable
from isthmus.sweeps.run_files import Result, read_result
from isthmus.sweeps.runs import SweepRun, run_id
from isthmus.sweeps.setup import Sections
from isthmus.writing.atomic import is_leftover, remove_leftovers, write_bytes
from isthmus.writing.checksums import opened_json, sealed_json
from isthmus.writing.regular import NotAFile, contents


def run_folder(folder: Path, run: str) -> Path:
    """Where a finished run lies; 256 folders keep each short."""
    return folder / RUNS / run[:2] / run


def checkpoint_path(folder: Path, run: str) -> Path:
    """Where the training of a run keeps its state."""
    return folder / WORK / f"{run}.pt"


def as_kept(folder: Path, run: SweepRun) -> SweepRun:
    """The run as it lies in a folder: of an earlier version under its former settings, if so and not otherwise."""
    if run.former is None or run_folder(folder, run.id).exists():
        return run
    former = run_id(run.former)
    is_kept = run_folder(folder, former).exists() or checkpoint_path(folder, former).exists()
    return replace(run, settings=run.former, former=None) if is_kept else run


def set_aside(folder: Path, path: Path) -> Path:
    """Move something damaged out of the way, losing nothing; where it lies now."""
    (folder / DAMAGED).mkdir(exist_ok=True)
    return path.rename(folder / DAMAGED / f"{path.name}.{uuid.uuid4().hex[:8]}")


def checked_run(folder: Path, run: str, say: Callable[[str], None]) -> Result | None:
    """A finished run with good checksums; None if there is none, or if it was damaged and is set aside now."""
    finished = run_folder(folder, run)
    if not finished.exists():
        return None
    try:
        return read_result(finished)
    except SweepError as error:
        say(f"{error} It was set aside in {folder / DAMAGED}.")
        set_aside(folder, finished)
        return None


class Store:
    """An existing folder of a sweep.

    Args:
        folder: as `Store.make` or an earlier sweep left it.

    Attributes:
        place: the same, for those who only look, and its lock.

    Raises:
        SweepError: see `SweepFolder`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.place = folder, SweepFolder(folder)

    @property
    def token(self) -> str:
        """By which a worker knows the folder again."""
        return self.place.token

    @classmethod
    def make(cls, folder: Path) -> "Store":
        """The sweep in a folder, made if there is none.

        Raises:
            SweepError: the folder holds something else. OSError: it cannot be written.
        """
        if folder.exists() and not folder.is_dir():
            raise SweepError(f"{folder}: is a file. Give a new or empty folder with --out.")
        if not (folder / HEAD).exists():
            known = {RUNS, FAILED, WORK, DAMAGED, INDEX, LOCK}
            inside = list(folder.iterdir()) if folder.is_dir() else []
            others = [p.name for p in inside if p.name not in known and not is_leftover(p)]  # which a kill leaves here
            if others and not (folder / RUNS).is_dir():
                raise SweepError(f"{folder}: holds other files ({others[0]}). Give a new or empty folder with --out.")
            folder.mkdir(parents=True, exist_ok=True)
            head = {"format": FORMAT, "format_version": FORMAT_VERSION, "token": uuid.uuid4().hex}
            write_bytes(folder / HEAD, sealed_json(head, indent=None))
        for name in (RUNS, FAILED, WORK):  # one that was removed too: what the index knows is not lost with it
            (folder / name).mkdir(exist_ok=True)
        return cls(folder)

    def opened_index(self, say: Callable[[str], None]) -> Index:
        """The index, open for writing; a damaged or missing one is made again from the folders of the runs."""
        path = self.folder / INDEX
        try:
            if path.exists():
                index = Index(path)
                index.check()
                return index
        except sqlite3.OperationalError as error:  # a full disk is no damage
            raise unwritable(path, error) from error
        except sqlite3.DatabaseError as error:
            say(f"{path}: is damaged ({error}); it was set aside and is made again from the folders of the runs.")
            set_aside(self.folder, path)
        return self.rebuilt_index(say)

    def rebuilt_index(self, say: Callable[[str], None]) -> Index:
        """A new index from the folders; damaged runs are set aside, to be computed again."""
        for suffix in ("", "-wal", "-shm"):
            (self.folder / f"{INDEX}{suffix}").unlink(missing_ok=True)
        try:
            index = Index(self.folder / INDEX)
        except sqlite3.OperationalError as error:
            raise unwritable(self.folder / INDEX, error) from error
        try:
            finished = [
                result for folder in self.finished_folders() if (result := checked_run(self.folder, folder.name, say))
            ]
            done = {result.id for result in finished}
            index.put(done_row(result) for result in finished)
            index.put(row for row in self._failures() if row.id not in done)
        except BaseException:
            index.close()
            raise
        return index

    def finished_folders(self) -> Iterator[Path]:
        """Every folder of a finished run, good or damaged."""
        yield from sorted(path for path in self.folder.glob(f"{RUNS}/*/*") if not path.name.startswith("."))

    def put_failure(self, row: Row) -> None:
        """Keep the traceback of a run that failed as a file, too: the index can be made again from it."""
        content = {"id": row.id, "settings": row.settings, "error": row.error}
        write_bytes(self.folder / FAILED / f"{row.id}.json", sealed_json(content))

    def _failures(self) -> Iterator[Row]:
        for path in sorted((self.folder / FAILED).glob("*.json")):
            try:
                content = opened_json(contents(path))
                if content["id"] != path.stem:
                    raise ValueError("it is of another run")
                yield Row(content["id"], Status.FAILED, content["settings"], error=content["error"])
            except (NotAFile, ValueError, KeyError, TypeError):
                path.unlink()  # a failed run is tried again anyway

    def forget_work(self, runs: Iterable[str]) -> None:
        """Remove the checkpoints and failures of finished runs."""
        for run in runs:
            checkpoint_path(self.folder, run).unlink(missing_ok=True)
            (self.folder / FAILED / f"{run}.json").unlink(missing_ok=True)

    def tidy(self) -> None:
        """Remove what killed processes left half-written; only for the driver, before any worker starts."""
        places = [self.folder, *(self.folder / name for name in (FAILED, WORK)), *(self.folder / RUNS).iterdir()]
        for place in places:
            if place.is_dir():
                remove_leftovers(place)


def done_row(result: Result) -> Row:
    """The row of a finished run."""
    return Row(result.id, Status.DONE, result.settings, result.told)


def waiting_row(run: str, settings: Sections) -> Row:
    """The row of a run that is still to be computed."""
    return Row(run, Status.WAITING, settings)
