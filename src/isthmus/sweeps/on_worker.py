"""What runs on a dask worker: its fitness, a job, the end of a session; and the driver's question whether it is fit.

Needs the extra `cluster`. Who asks: `cluster`.
"""

import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from distributed import get_worker

from isthmus.errors import SweepError
from isthmus.sweeps.plan_check import task_files
from isthmus.sweeps.runs import SweepRun
from isthmus.sweeps.store import run_folder
from isthmus.sweeps.task_fields import check_source
from isthmus.sweeps.telling import Telling
from isthmus.sweeps.worker import Job, Report, differences, execute, own_folder, versions

_stopped: set[str] = set()  # sessions whose jobs are to save and end


def topic(session: str) -> str:
    """Under which name the workers tell a session how far they are."""
    return f"isthmus-sweep-{session}"


def fitness(files: Mapping[str, Mapping[str, object]], dask_worker: Any) -> tuple[dict[str, str], str, int]:
    """Its versions, what is wrong with the task files there, and its threads."""
    threads = int(dask_worker.state.nthreads)
    for source, settings in files.items():
        try:
            check_source(settings, source)
        except ValueError as error:
            return versions(), str(error), threads
    return versions(), "", threads


def stop_session(session: str) -> None:
    """Let the jobs of this session save their state and end."""
    _stopped.add(session)


def drop_delivered(token: str, runs: set[str], dask_worker: Any) -> None:
    """Remove the runs that the driver has from the worker's own folder."""
    for run in runs:
        shutil.rmtree(run_folder(own_folder(_scratch(dask_worker), token), run), ignore_errors=True)


def _scratch(worker: Any) -> Path:
    """Where a worker may keep files; the folder above its own, for that goes when the worker dies."""
    return Path(worker.local_directory).parent


def work(job: Job, session: str) -> Report:
    """Carry out a job, and tell its session how far it is."""
    worker = get_worker()
    return execute(job, scratch=_scratch(worker), tell=partial(say, session), stop=lambda: session in _stopped)


def say(session: str, telling: Telling) -> None:
    """Tell a session how far a job is, from the worker that is at it."""
    # no dict: into one of those a scheduler writes which worker it is from
    get_worker().log_event(topic(session), [getattr(telling, name) for name in Telling.__slots__])


def said(event: tuple[float, Any]) -> Telling:
    """What a worker said."""
    return Telling(*event[1])


def check_workers(client: Any, runs: Sequence[SweepRun], *, address: str, first_worker: float) -> None:
    """Refuse workers that cannot do these runs.

    Args:
        client: of the scheduler.
        runs: of the plan.
        address: of the scheduler, for what is said.
        first_worker: seconds to wait for the first worker.

    Raises:
        SweepError: no workers, other versions, threads, or a task file that is missing there or another; says which
            worker.
    """
    if not client.nthreads():
        with suppress(TimeoutError):
            client.wait_for_workers(1, timeout=first_worker)
    answers = client.run(fitness, task_files(runs), on_error="return")
    if not answers:
        raise SweepError(f"{address}: has no workers. Start some with dask worker {address} --nthreads 1.")
    for worker, answer in answers.items():
        if isinstance(answer, BaseException):
            reason = " ".join(str(answer).split())[:160]
            raise SweepError(f"worker {worker}: cannot do a run ({reason}). Install the same isthmus there.")
        found, complaint, threads = answer
        if threads != 1:
            raise SweepError(f"worker {worker}: has {threads} threads, needs 1. Start it with --nthreads 1.")
        if different := differences(versions(), found):
            raise SweepError(f"worker {worker}: {'; '.join(different)}. Install the driver's versions there.")
        if complaint:
            raise SweepError(f"worker {worker}: {complaint}")
