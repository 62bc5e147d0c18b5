"""What a worker does with one job: look for the finished run, carry it out, write it, report. Any process, any host.

A worker that sees the folder of the sweep writes there; one on a host that does not share it keeps checkpoints of its
own and sends the files. Two workers on the same run (one was believed dead) do no harm: both follow the same path, any
checkpoint of either is good, and the first finished folder stays.
"""

import errno
import os
import platform
import socket
import traceback
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import torch

from isthmus import __version__
from isthmus.errors import CheckpointError, SweepError
from isthmus.networks.devices import device_argument, trained_on
from isthmus.sweeps.execution import Computed, compute
from isthmus.sweeps.folder import HEAD, WORK
from isthmus.sweeps.run_files import RESULT, read_files, read_result, write_run
from isthmus.sweeps.runs import SCHEMA
from isthmus.sweeps.setup import Sections
from isthmus.sweeps.store import checkpoint_path, run_folder, set_aside
from isthmus.sweeps.telling import Telling, telling_callback
from isthmus.training import FitEvent
from isthmus.writing.atomic import write_bytes
from isthmus.writing.checksums import opened_json
from isthmus.writing.regular import contents
from isthmus.writing.staying import FolderMoved, check_stays, made_folder, staying

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO}
_PROBE_BYTES = 1 << 18
_UNWRITABLE = "{place}: cannot be written ({reason}). Make room or give write permission; the same command goes on."


class Ending(StrEnum):
    """How a job ended."""

    DONE = "done"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    UNWRITABLE = "unwritable"


@dataclass(frozen=True, slots=True)
class Job:
    """One run for one worker.

    Attributes:
        id: of the run.
        settings: canonical.
        source: the file of the task.
        folder: of the sweep, as the driver sees it.
        token: of the folder, by which a worker knows it again.
        versions: of the driver.
        device: where to train, as `fit` takes it.
    """

    id: str
    settings: Sections
    source: str | None
    folder: str
    token: str
    versions: Mapping[str, str]
    device: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What became of a job.

    Attributes:
        id: of the run.
        ending: how it ended.
        numbers: of a finished run.
        error: a traceback, or the reason why the folder cannot be written.
        files: a finished run as bytes, where the worker does not see the folder.
        fresh: whether it was computed now.
        note: what the user should know, or nothing.
    """

    id: str
    ending: Ending
    numbers: Mapping[str, Any] = field(default_factory=dict[str, Any])
    error: str = ""
    files: Mapping[str, bytes] | None = None
    fresh: bool = True
    note: str = ""


def versions() -> dict[str, str]:
    """What must be the same at the driver and at every worker: equal settings would not give equal bits else."""
    return {
        "isthmus": __version__,
        "schema": str(SCHEMA),
        "torch": torch.__version__,
        "python": ".".join(platform.python_version_tuple()[:2]),
    }


def differences(own: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """Every version that differs, as "torch 2.13.0 (driver), 2.12.1"."""
    return [f"{name} {own[name]} (driver), {other.get(name)}" for name in own if own[name] != other.get(name)]


def execute(job: Job, *, scratch: Path, tell: Callable[[Telling], None], stop: Callable[[], bool]) -> Report:
    """Carry out a job.

    Args:
        job: what to do.
        scratch: where a worker that does not see the sweep's folder keeps its checkpoints and runs.
        tell: hears how far it is, about once a second.
        stop: asked after every iteration; True ends it with its state saved.

    Raises:
        SweepError: the versions of driver and worker differ.
    """
    if different := differences(job.versions, versions()):
        raise SweepError(f"worker on {socket.gethostname()}: {'; '.join(different)}. Install the driver's versions.")
    try:
        check_stays(job.folder)  # else one that was moved would look like one that this worker does not see
        place, shared = _place(job, scratch)
        with staying(place) if shared else nullcontext():
            return _executed(job, place, shared=shared, listener=telling_callback(job.id, tell, stop))
    except FolderMoved as error:
        return Report(job.id, Ending.UNWRITABLE, error=str(error))
    except FileNotFoundError:  # between a look at it and the next; what a run raises is told by `_executed`
        return Report(job.id, Ending.UNWRITABLE, error=f"{job.folder}: was moved, removed or replaced. Put it back.")


def _executed(job: Job, place: Path, *, shared: bool, listener: Callable[[FitEvent], bool]) -> Report:
    finished = run_folder(place, job.id)
    try:
        if (finished / RESULT).exists():
            return _report(job, finished, shared=shared, fresh=False)
        checkpoint = checkpoint_path(place, job.id)
        made_folder(checkpoint.parent)
        _log(place, job.id, "begin")
        computed, note = _computed(job, checkpoint, place, listener)
        if computed is None:
            return Report(job.id, Ending.INTERRUPTED)
        write_run(finished, job.settings, computed)
        _log(place, job.id, "end")
        checkpoint.unlink(missing_ok=True)
        return _report(job, finished, shared=shared, fresh=True, note=note)
    except FolderMoved:
        raise
    except Exception as error:  # whatever a run raises is recorded, and the others go on
        reason = _why_unwritable(place, error)
        if reason is not None:
            return Report(job.id, Ending.UNWRITABLE, error=reason)
        return Report(job.id, Ending.FAILED, error=traceback.format_exc())


def own_folder(scratch: Path, token: str) -> Path:
    """Where a worker that does not see the sweep's folder keeps what belongs to it."""
    return scratch / f"isthmus-sweep-{token}"


def _place(job: Job, scratch: Path) -> tuple[Path, bool]:
    folder = Path(job.folder)
    try:
        shared = opened_json(contents(folder / HEAD))["token"] == job.token
    except (OSError, ValueError, KeyError, TypeError):
        shared = False
    return (folder, True) if shared else (own_folder(scratch, job.token), False)


def _computed(
    job: Job, checkpoint: Path, place: Path, listener: Callable[[FitEvent], bool]
) -> tuple[Computed | None, str]:
    """What came of a run, and a note where its checkpoint could not be used and it was computed from the start."""
    with trained_on(device_argument(job.device, f"device {job.device}")):
        try:
            return compute(job.settings, job.source, checkpoint, listener), ""
        except CheckpointError as error:
            if not checkpoint.exists():
                raise
            aside = set_aside(place, checkpoint)
            note = f"{str(error).partition(';')[0]}. It was set aside as {aside}, and the run computed from the start."
            return compute(job.settings, job.source, checkpoint, listener), note


def _report(job: Job, finished: Path, *, shared: bool, fresh: bool, note: str = "") -> Report:
    result = read_result(finished)
    files = None if shared else read_files(finished)
    return Report(job.id, Ending.DONE, result.told, files=files, fresh=fresh, note=note)


def _log(place: Path, run: str, what: str) -> None:
    """One line in attempts.log; a single short append is never torn on a local disk."""
    line = f"{run} {what} {socket.gethostname()} {os.getpid()}\n".encode()
    descriptor = os.open(place / WORK / "attempts.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def _why_unwritable(place: Path, error: Exception) -> str | None:
    """The reason, if it was the disk and not the run: torch hides a full disk behind errors of its own."""
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return _UNWRITABLE.format(place=place, reason=os.strerror(error.errno))
    probe = place / WORK / f".probe-{os.getpid()}"
    try:
        made_folder(probe.parent)
        write_bytes(probe, bytes(_PROBE_BYTES))
        probe.unlink()
    except OSError as refused:
        return _UNWRITABLE.format(place=place, reason=refused.strerror)
    return None
