"""Where jobs run: the protocol of an engine, and the one that runs them in this process, with nothing else installed.

Workers in other processes and on other hosts: `cluster`. Which jobs run when: `driver`.
"""

import queue
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol, runtime_checkable

from isthmus.sweeps.telling import Telling
from isthmus.sweeps.worker import Job, Report, execute


class WorkersLost(Exception):  # noqa: N818 - the driver turns it into an outcome
    """The scheduler is gone and did not come back; what was finished is safe."""


@runtime_checkable
class Engine(Protocol):
    """Takes jobs and reports how they ended, in whatever order."""

    @property
    def workers(self) -> int:
        """How many jobs run at once."""
        ...

    @property
    def address(self) -> str:
        """Where it runs, in words."""
        ...

    def submit(self, job: Job) -> None:
        """Take a job; it starts when a worker is free."""

    def wait(self, seconds: float) -> list[Report]:
        """The jobs that have ended since the last call; waits so long for the first."""
        ...

    def tellings(self) -> list[Telling]:
        """How far the running jobs are, as far as they have said."""
        ...

    def stop(self) -> None:
        """Ask the running jobs to save their state and end, and wait for a while until they have."""

    def close(self) -> None:
        """Let go of the workers."""


class InProcess:
    """One job at a time in a thread of this process, so that an interrupt reaches the driver and not the training."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="isthmus-run")
        self._stop = threading.Event()
        self._ended: queue.Queue[Report | BaseException] = queue.Queue()
        self._told: dict[str, Telling] = {}

    @property
    def workers(self) -> int:
        """One."""
        return 1

    @property
    def address(self) -> str:
        """In this process."""
        return "this process"

    def submit(self, job: Job) -> None:
        """Take a job; it starts when the one before has ended."""
        self._pool.submit(self._one, job)

    def _one(self, job: Job) -> None:
        if self._stop.is_set():
            return
        try:
            report = execute(job, scratch=Path(job.folder), tell=self._hear, stop=self._stop.is_set)
        except BaseException as error:  # must reach the driver, which waits for every job
            self._ended.put(error)
            return
        self._told.pop(job.id, None)
        self._ended.put(report)

    def _hear(self, telling: Telling) -> None:
        self._told[telling.id] = telling

    def wait(self, seconds: float) -> list[Report]:
        """The job that has ended since the last call; waits so long for it."""
        try:
            ended = self._ended.get(timeout=seconds)
        except queue.Empty:
            return []
        if isinstance(ended, BaseException):
            raise ended
        return [ended]

    def tellings(self) -> list[Telling]:
        """How far the running job is."""
        return list(self._told.values())

    def stop(self) -> None:
        """Ask the running job to save its state and end, and wait until it has."""
        self._stop.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def close(self) -> None:
        """End the thread."""
        self.stop()
