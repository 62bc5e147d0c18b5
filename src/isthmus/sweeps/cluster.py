"""Jobs on dask.distributed: handed to a scheduler, asked for, sent again when it or a worker is lost.

Needs the extra `cluster`. Where schedulers come from: `schedulers`, `slurm`. What a job does: `worker`, `on_worker`; in
this process without dask: `engine`.
"""

import queue
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from typing import Any, Protocol, runtime_checkable

from distributed import CancelledError, Client, Future
from distributed.scheduler import KilledWorker

from isthmus.errors import SweepError
from isthmus.processes.shared_state import silenced
from isthmus.sweeps.engine import WorkersLost
from isthmus.sweeps.on_worker import check_workers, drop_delivered, said, stop_session, topic, work
from isthmus.sweeps.runs import SweepRun
from isthmus.sweeps.telling import Telling
from isthmus.sweeps.worker import Ending, Job, Report

CONNECT_SECONDS = 10.0
STOP_SECONDS = 20.0
REVIVE_SECONDS = 60.0
MOST_DEATHS = 20  # workers that die over one run before it is called a failure: a run that kills its worker must end


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

        def is_shown() -> bool:  # an inner function is sent whole: the scheduler of others may be without isthmus
            return "distributed.dashboard.scheduler" in sys.modules

        with suppress(Exception):  # a dashboard is no reason to stop
            if self._client.run_on_scheduler(is_shown):
                return str(self._client.dashboard_link)
        return "none, bokeh is missing where the scheduler runs (isthmus[cluster] has it), or it was told to show none"

    def executor(self) -> Executor:
        """The workers as an executor, for work that is no run of a sweep; what a worker leaves is given to another."""
        return self._client.get_executor(retries=MOST_DEATHS, pure=False)

    def check(self, runs: Sequence[SweepRun]) -> None:
        """Refuse workers that cannot do these runs, before anything starts.

        Raises:
            SweepError: no workers, other versions, or a task file that is missing there or another; says which worker.
        """
        check_workers(self._client, runs, address=self.address, first_worker=self._first_worker)

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
        future = self._client.submit(work, job, self._session, key=key, pure=False)
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
        with silenced():  # versions are compared by `check`, with words of our own
            client = self._connect()
        client.subscribe_topic(topic(self._session), self._hear)
        return client

    def _hear(self, event: tuple[float, Any]) -> None:
        telling = said(event)
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
            self._client.run(stop_session, self._session, on_error="ignore")
            until = time.monotonic() + STOP_SECONDS
            while time.monotonic() < until and any(not f.done() for f in self._futures.values()):
                time.sleep(0.05)

    def close(self) -> None:
        """Drop the client, and the workers if they are ours."""
        for run in list(self._futures):
            self._forget(run)
        with suppress(Exception):
            for token, runs in self._delivered.items():
                self._client.run(drop_delivered, token, runs, on_error="ignore")
        for closable in (self._client, self._owned):
            if closable is not None:
                with suppress(Exception):
                    closable.close()
