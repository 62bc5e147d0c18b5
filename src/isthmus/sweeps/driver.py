"""The driver: keeps the engine in work, writes the index, tells how far it is; the only writer of the sweep's index.

Where jobs run: `engine` and `cluster`. What a job does: `worker`. What lies in the folder: `store`.
"""

from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum

from isthmus.errors import SweepError
from isthmus.sweeps.engine import Engine, WorkersLost
from isthmus.sweeps.index import Index, Row, Status
from isthmus.sweeps.run_files import write_files
from isthmus.sweeps.runs import SweepRun
from isthmus.sweeps.store import Store, checked_run, done_row, run_folder, waiting_row
from isthmus.sweeps.sweep_progress import Pace, Running, SweepListener, SweepProgress
from isthmus.sweeps.worker import Ending, Job, Report, versions
from isthmus.writing.staying import check_stays

POLL_SECONDS = 0.25
AHEAD = 2  # jobs per worker that the engine holds: enough that none waits, few enough that a plan of any size fits


class SweepOutcome(Enum):
    """How a sweep ended; the value is the sentence that the user reads."""

    DONE = "done: every run is finished"
    SOME_FAILED = "some runs failed; isthmus sweep table shows why, the same command tries them again"
    INTERRUPTED = "interrupted: the state was saved; the same command goes on"
    WORKERS_LOST = "the scheduler was lost; what was finished is safe, the same command goes on"


@dataclass(slots=True)
class Summary:
    """What a sitting did.

    Attributes:
        outcome: how it ended.
        computed: runs computed in this sitting.
        found: runs that were there already.
        failed: id -> traceback.
    """

    outcome: SweepOutcome = SweepOutcome.DONE
    computed: int = 0
    found: int = 0
    failed: dict[str, str] = field(default_factory=dict[str, str])


class Driver:
    """One sitting over the runs of a plan.

    Args:
        runs: of the plan.
        store: the folder, locked by the caller.
        index: open for writing.
        retries: how often a run that raised is tried again.
        listener: hears how far it is.
        say: hears notes, one line each.
        device: where workers train, as `fit` takes it.
    """

    def __init__(
        self,
        runs: Sequence[SweepRun],
        store: Store,
        index: Index,
        *,
        retries: int,
        listener: SweepListener,
        say: Callable[[str], None],
        device: str | None = None,
    ) -> None:
        self.device = device
        self.runs = {run.id: run for run in runs}
        self.store, self.index = store, index
        self.retries, self.listener, self.say = retries, listener, say
        self.summary = Summary()
        self._pace = Pace()
        self._tries: dict[str, int] = {}
        self._marked: set[str] = set()
        self._versions = versions()

    def run(self, engine: Engine, runs: Sequence[str]) -> Summary:
        """Compute the runs that `reconcile` gave.

        Raises:
            SweepError: the folder can no longer be written, or a worker has other versions.
            FolderMoved: the folder was moved, removed or replaced.
        """
        waiting = deque(runs)
        held: dict[str, None] = {}  # in the order in which they were handed out
        try:
            while waiting or held:
                while waiting and len(held) < AHEAD * engine.workers:
                    held[run := waiting.popleft()] = None
                    engine.submit(self._job(run))
                self._mark(held)
                reports = engine.wait(POLL_SECONDS)
                check_stays(self.store.folder)  # workers, and the index, may write where the folder is now
                for report in reports:
                    held.pop(report.id, None)
                    if self._settle(report):
                        waiting.append(report.id)
                self._tell(engine, held)
            if self.summary.failed:
                self.summary.outcome = SweepOutcome.SOME_FAILED
        except KeyboardInterrupt:
            self.summary.outcome = SweepOutcome.INTERRUPTED
            engine.stop()
            for report in engine.wait(0.0):
                self._settle(report)
        except WorkersLost:
            self.summary.outcome = SweepOutcome.WORKERS_LOST
        finally:
            self._unmark()
        return self.summary

    def reconcile(self) -> list[str]:
        """The runs that are still to be computed, after index and folders were made to agree."""
        known = self.index.statuses()
        rows: list[Row] = []
        waiting: list[str] = []
        for run in self.runs.values():
            result = checked_run(self.store.folder, run.id, self.say)
            if result is None:
                waiting.append(run.id)
                if known.get(run.id) is not Status.WAITING:
                    rows.append(waiting_row(run.id, run.settings))
            elif known.get(run.id) is not Status.DONE:
                rows.append(done_row(result))
        self.index.put(rows)
        stale = {key for key, status in known.items() if status is Status.RUNNING and key not in self.runs}
        self.index.mark(stale, Status.WAITING)
        self.summary.found = len(self.runs) - len(waiting)
        self.store.forget_work(self.runs.keys() - set(waiting))
        return waiting

    def _job(self, key: str) -> Job:
        run = self.runs[key]
        folder = str(self.store.folder.resolve())
        return Job(key, run.settings, run.source, folder, self.store.token, self._versions, self.device)

    def _mark(self, held: Collection[str]) -> None:
        fresh = [key for key in held if key not in self._marked]
        self._marked.update(fresh)
        self.index.mark(fresh, Status.RUNNING)

    def _settle(self, report: Report) -> bool:
        """Write down how a job ended; True if the run is to be tried again."""
        self._marked.discard(report.id)
        if report.note:
            self.say(report.note)
        if report.ending is Ending.INTERRUPTED:
            return False
        if report.ending is Ending.UNWRITABLE:
            raise SweepError(report.error)
        settings = self.runs[report.id].settings
        if report.ending is Ending.DONE:
            folder = run_folder(self.store.folder, report.id)
            if report.files is not None:
                write_files(folder, report.files)
            self.index.put([Row(report.id, Status.DONE, settings, report.numbers)])
            self.store.forget_work([report.id])
            self.summary.computed += 1
            self._pace.ended += 1
            return False
        tries = self._tries[report.id] = self._tries.get(report.id, 0) + 1
        if tries <= self.retries:
            return True
        row = Row(report.id, Status.FAILED, settings, error=report.error)
        self.store.put_failure(row)
        self.index.put([row])
        self.summary.failed[report.id] = report.error
        self._pace.ended += 1
        last = report.error.strip().splitlines()[-1]
        self.say(f"run {report.id} ({self.runs[report.id].label}) failed: {last}")
        return False

    def _tell(self, engine: Engine, held: Collection[str]) -> None:
        told = {telling.id: telling for telling in engine.tellings()}
        ended = self.summary.found + self.summary.computed + len(self.summary.failed)
        at_work = sorted(held, key=lambda key: key not in told)[: engine.workers]
        self.listener(
            SweepProgress(
                total=len(self.runs),
                done=self.summary.found + self.summary.computed,
                failed=len(self.summary.failed),
                running=tuple(Running(self.runs[key].label, told.get(key)) for key in at_work),
                seconds_left=self._pace.seconds_left(len(self.runs) - ended),
            )
        )

    def _unmark(self) -> None:
        """No run is at work any more: the index says so, unless it cannot be written; the next sitting mends that."""
        with suppress(SweepError):
            self.index.mark(self._marked, Status.WAITING)
        self._marked.clear()
