"""Jobs on dask.distributed: workers of this machine, of a scheduler that is running, or of any cluster object.

Needs the extra `cluster`. What a job does: `worker`. Slurm: `slurm`. In this process without dask: `engine`.
"""

import importlib.util
import logging
import queue
import shutil
import time
import uuid
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import dask
from distributed import CancelledError, Client, Future, LocalCluster, get_worker
from distributed.scheduler import KilledWorker

from isthmus.errors import SweepError
from isthmus.sweeps.engine import WorkersLost
from isthmus.sweeps.plan_check import task_files
from isthmus.sweeps.runs import Run
from isthmus.sweeps.store import run_folder
from isthmus.sweeps.task_fields import check_source
from isthmus.sweeps.worker import Ending, Job, Report, Telling, differences, execute, own_folder, versions

CONNECT_SECONDS = 10.0
ANY_PORT = "127.0.0.1:0"  # of the dashboard: the usual one may be taken
STOP_SECONDS = 20.0
REVIVE_SECONDS = 60.0
MOST_DEATHS = 20  # workers that die over one run before it is called a failure: a run that kills its worker must end
_stopped: set[str] = set()  # in a worker: sessions whose jobs are to save and end


@runtime_checkable
class _Closable(Protocol):
    def close(self) -> object: ...


class Cluster:
    """The workers of one scheduler.

    Args:
        connect: makes a client; called again when the scheduler was lost.
        owned: closed with this.
        patience: seconds to wait for a lost scheduler.
        first_worker: seconds to wait for the first worker.
        revive: starts workers that were given up; called while there are none.
    """

    def __init__(
        self,
        connect: Callable[[], Client],
        *,
        owned: _Closable | None = None,
        patience: float = 0.0,
        first_worker: float = CONNECT_SECONDS,
        revive: Callable[[], object] | None = None,
    ) -> None:
        self._connect, self._owned, self._patience, self._first_worker = connect, owned, patience, first_worker
        self._revive, self._revived = revive, time.monotonic()
        self._session = uuid.uuid4().hex[:12]
        self._ended: queue.Queue[str] = queue.Queue()
        self._jobs: dict[str, Job] = {}
        self._futures: dict[str, Future] = {}
        self._deaths: dict[str, int] = {}
        self._told: dict[str, Telling] = {}
        self._delivered: dict[str, set[str]] = {}  # token -> runs whose files came as bytes
        self._client: Any = self._fresh_client()

    @classmethod
    def local(cls, workers: int) -> "Cluster":
        """Workers on this machine: one process and one thread each, started again when they die."""
        dask.config.set(
            {
                "distributed.scheduler.allowed-failures": MOST_DEATHS,
                # on a busy machine a killed worker takes more than the usual 15 and 30 s to come back, and is given up
                "distributed.deploy.lost-worker-timeout": "1h",
                "distributed.comm.timeouts.connect": "300s",
            }
        )
        owned = LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=ANY_PORT,
            silence_logs=logging.CRITICAL,
        )  # fmt: skip
        return cls(partial(Client, owned), owned=owned, revive=partial(owned.scale, workers))

    @classmethod
    def joined(cls, address: str, *, patience: float) -> "Cluster":
        """The workers of a running scheduler.

        Raises:
            SweepError: it cannot be reached, or has no workers.
        """
        try:
            return cls(partial(Client, address, timeout=CONNECT_SECONDS, set_as_default=False), patience=patience)
        except (OSError, ValueError, TypeError) as error:
            reason = " ".join(str(error).split())[:120] or type(error).__name__
            raise SweepError(
                f"--scheduler {address}: cannot be reached ({reason}). "
                "Start it with dask scheduler, or check the address."
            ) from None

    @property
    def workers(self) -> int:
        """How many jobs run at once: never less than one, for workers come and go."""
        with suppress(OSError, RuntimeError):  # a client that has just lost its scheduler
            return max(sum(self._client.nthreads().values()), 1)
        return 1

    @property
    def address(self) -> str:
        """The scheduler's address."""
        return str(self._client.scheduler.address) if self._client.scheduler else "a lost scheduler"

    @property
    def dashboard(self) -> str:
        """The dashboard's address, or why there is none."""
        if not importlib.util.find_spec("bokeh"):
            return "none, it needs bokeh"
        return self._client.dashboard_link or "none"

    def check(self, runs: Sequence[Run]) -> None:
        """Refuse workers that cannot do these runs, before anything starts.

        Raises:
            SweepError: no workers, other versions, or a task file that is missing there or another; says which worker.
        """
        if not self._client.nthreads():
            with suppress(TimeoutError):
                self._client.wait_for_workers(1, timeout=self._first_worker)
        answers = self._client.run(_fitness, task_files(runs), on_error="return")
        if not answers:
            raise SweepError(
                f"{self.address}: has no workers. Start some with dask worker {self.address} --nthreads 1."
            )
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

    def submit(self, job: Job) -> None:
        """Take a job; the scheduler gives it to a worker that is free."""
        self._jobs[job.id] = job
        try:
            self._send(job)
        except (OSError, RuntimeError):
            self._rejoin()

    def _send(self, job: Job) -> None:
        # the number makes a key that no earlier attempt has: a lost one may linger at the scheduler
        key = f"isthmus-{job.id}-{self._session}-{uuid.uuid4().hex[:6]}"
        future = self._client.submit(_work, job, self._session, key=key, pure=False)
        self._futures[job.id] = future
        future.add_done_callback(lambda _future, run=job.id: self._ended.put(run))

    def wait(self, seconds: float) -> list[Report]:
        """The jobs that have ended since the last call; waits so long for the first."""
        ended: list[str] = []
        with suppress(queue.Empty):
            ended.append(self._ended.get(timeout=seconds) if seconds else self._ended.get_nowait())
            while True:
                ended.append(self._ended.get_nowait())
        reports = [report for run in dict.fromkeys(ended) if (report := self._fetched(run)) is not None]
        if self._client.status not in {"running", "connecting"}:
            self._rejoin()
        elif self._revive and time.monotonic() - self._revived > REVIVE_SECONDS:
            self._revived = time.monotonic()
            if not self._client.nthreads():
                self._revive()
        return reports

    def _fetched(self, run: str) -> Report | None:
        """`_report`, or None where the connection broke while it came: the job is sent again."""
        try:
            return self._report(run)
        except SweepError:
            raise
        except (OSError, RuntimeError, CancelledError):
            # if the scheduler is gone, the client says so in a moment and every job goes to the next one
            with suppress(OSError, RuntimeError):
                self._send(self._jobs[run])
            return None

    def _report(self, run: str) -> Report | None:
        """What became of a job; None if it was sent again or is no longer waited for."""
        future = self._futures.get(run)
        if future is None or run not in self._jobs or not future.done():
            return None
        if future.status == "finished":
            report: Report = future.result()
        elif future.status == "error":
            error = future.exception()
            if isinstance(error, SweepError):
                raise error
            if isinstance(error, KilledWorker) and self._deaths.get(run, 0) + 4 < MOST_DEATHS:
                self._deaths[run] = self._deaths.get(run, 0) + 4  # a scheduler of others gives up after so many
                self._send(self._jobs[run])
                return None
            report = Report(run, Ending.FAILED, error=f"{type(error).__name__}: {error}")
        else:  # cancelled: the scheduler forgot it
            self._send(self._jobs[run])
            return None
        if report.files is not None:
            self._delivered.setdefault(self._jobs[run].token, set()).add(run)
        self._forget(run)
        return report

    def _forget(self, run: str) -> None:
        self._jobs.pop(run, None)
        self._told.pop(run, None)
        if (future := self._futures.pop(run, None)) is not None:
            with suppress(Exception):  # releasing what a lost scheduler held
                future.release()

    def _fresh_client(self) -> Client:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # versions are compared by `check`, with words of our own
            client = self._connect()
        client.subscribe_topic(_topic(self._session), self._hear)
        return client

    def _hear(self, event: tuple[float, Any]) -> None:
        telling = Telling(**event[1])
        if telling.id in self._jobs:
            self._told[telling.id] = telling

    def _rejoin(self) -> None:
        """Wait for a lost scheduler and give it every unfinished job again.

        Raises:
            WorkersLost: it did not come back.
        """
        until = time.monotonic() + self._patience
        while True:
            with suppress(Exception):
                self._client.close(timeout=1)
            if time.monotonic() > until:
                raise WorkersLost
            try:
                self._client = self._fresh_client()
                break
            except (OSError, RuntimeError, ValueError):
                time.sleep(min(1.0, max(until - time.monotonic(), 0.0)))
        self._futures.clear()
        for job in self._jobs.values():
            self._send(job)

    def tellings(self) -> list[Telling]:
        """How far the running jobs are, as far as they have said."""
        return list(self._told.values())

    def stop(self) -> None:
        """Ask the running jobs to save their state and end, and wait for a while until they have."""
        with suppress(Exception):  # workers that cannot be reached keep what their last checkpoint holds
            self._client.run(_stop_session, self._session, on_error="ignore")
            until = time.monotonic() + STOP_SECONDS
            while time.monotonic() < until and any(not f.done() for f in self._futures.values()):
                time.sleep(0.05)

    def close(self) -> None:
        """Drop the client, and the workers if they are ours."""
        for run in list(self._futures):
            self._forget(run)
        with suppress(Exception):
            for token, runs in self._delivered.items():
                self._client.run(_drop_delivered, token, runs, on_error="ignore")
        for closable in (self._client, self._owned):
            if closable is not None:
                with suppress(Exception):
                    closable.close()


def _topic(session: str) -> str:
    return f"isthmus-sweep-{session}"


def _fitness(files: dict[str, Any], dask_worker: Any) -> tuple[dict[str, str], str, int]:
    """Runs on a worker: its versions, what is wrong with the task files there, and its threads."""
    threads = int(dask_worker.state.nthreads)
    for source, settings in files.items():
        try:
            check_source(settings, source)
        except ValueError as error:
            return versions(), str(error), threads
    return versions(), "", threads


def _stop_session(session: str) -> None:
    """Runs on a worker: its jobs of this session save their state and end."""
    _stopped.add(session)


def _drop_delivered(token: str, runs: set[str], dask_worker: Any) -> None:
    """Runs on a worker: remove the runs that the driver has from the worker's own folder."""
    for run in runs:
        shutil.rmtree(run_folder(own_folder(_scratch(dask_worker), token), run), ignore_errors=True)


def _scratch(worker: Any) -> Path:
    """Where a worker may keep files; the folder above its own, for that goes when the worker dies."""
    return Path(worker.local_directory).parent


def _work(job: Job, session: str) -> Report:
    """Runs on a worker."""
    worker = get_worker()

    def tell(telling: Telling) -> None:
        content = {name: getattr(telling, name) for name in Telling.__slots__}
        worker.log_event(_topic(session), content)

    return execute(job, scratch=_scratch(worker), tell=tell, stop=lambda: session in _stopped)
