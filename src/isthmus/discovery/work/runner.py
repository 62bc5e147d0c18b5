"""Units of work of a discovery: run side by side, one core each, kept in a folder so that nothing is computed twice.

A unit is a deterministic function of its key, the data and the settings. Its result is written when it is finished,
its training state every few seconds before that; a run that was stopped or killed goes on from these files and ends
with the same numbers, bit for bit, wherever its units run: `elsewhere`.
"""

import hashlib
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

import torch

from isthmus.discovery.minimum import Minimum
from isthmus.discovery.work.elsewhere import CHOICES, Elsewhere, partial_of
from isthmus.discovery.work.unit import Progress, ProgressListener, Session, Stopped, Unit, computed
from isthmus.errors import CheckpointError, DataError
from isthmus.networks.devices import CPU
from isthmus.processes.pool import num_cores
from isthmus.training import FitEvent, Outcome
from isthmus.training.checkpoint import load_state, load_twice, save_state, save_twice, set_aside
from isthmus.training.limits import FIRST_SECONDS
from isthmus.training.steps.products import kept_choices
from isthmus.training.threads import one_thread_each, one_thread_here

ENDING = 2000  # gradients that an answer takes once time is over: ranks are cut and read, however little trained


@dataclass(slots=True)
class Tracker:
    """How far the whole run is, and how long it will take at the pace so far."""

    listener: ProgressListener
    planned: int
    deadline: float | None = None
    done: int = 0
    fresh: int = 0  # computed in this sitting, the base of the pace
    began: float = field(default_factory=time.monotonic)
    rank: int | None = None
    part: str = ""  # what the work is for that came besides the first
    _before: int = 0  # work of the parts before
    _share: float = 0.0  # that was told last of this part
    _running: dict[str, int] = field(default_factory=dict[str, int])
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _told: float = 0.0
    _stages_told: set[str] = field(default_factory=set[str])

    def at(self, unit: Unit, event: FitEvent) -> None:
        """Hear one iteration of a unit; tells the listener of each stage once, and at most ten times a second."""
        with self._lock:
            self._running[unit.key] = min(event.evaluations, unit.cost)
            now = time.monotonic()
            if unit.stage in self._stages_told and now - self._told < 0.1:
                return
            self._told = now
            self._stages_told.add(unit.stage)
            self._tell(unit, event)

    def finished(self, unit: Unit, *, fresh: bool) -> None:
        """A unit is done, now or in an earlier sitting."""
        with self._lock:
            self._running.pop(unit.key, None)
            self.done += unit.cost
            self.fresh += unit.cost if fresh else 0

    def finished_beforehand(self, unit: Unit) -> None:
        """A unit is done that was not asked for: it tells of the pace alone."""
        with self._lock:
            self._running.pop(unit.key, None)
            self.fresh += unit.cost

    def skip(self, cost: int) -> None:
        """Work that was planned and turns out not to be needed."""
        with self._lock:
            self.planned = max(self.planned - cost, self.done)

    def left(self) -> int:
        """Planned work that is not done."""
        return self.planned - self.done

    def foresee(self, cost: int) -> None:
        """So much work is left, whatever was planned before."""
        with self._lock:
            self.planned = self.done + cost

    def begin(self, part: str, cost: int) -> None:
        """So much work is left, some of it for something new, whose share begins anew instead of running backwards."""
        with self._lock:
            self.part, self._before, self._share = part, self.done, 0.0
            self.planned = self.done + cost

    def seconds_for(self, cost: int) -> float:
        """About how long so much work takes at the pace of this sitting; 0 where none was done yet."""
        done = self.fresh + sum(self._running.values())
        return (time.monotonic() - self.began) * cost / done if done else 0.0

    def _tell(self, unit: Unit, event: FitEvent) -> None:
        running = sum(self._running.values())
        share = min((self.done + running - self._before) / max(self.planned - self._before, 1), 1.0)
        self._share = max(self._share, share)  # where more turns out to be needed it waits
        left = None
        if (
            self.fresh + running and time.monotonic() - self.began >= FIRST_SECONDS
        ):  # the first gradients load libraries
            left = self.seconds_for(max(self.planned - self.done - running, 0))
        if left is not None and self.deadline is not None:
            left = min(left, max(self.deadline - time.monotonic(), 0.0))
        self.listener(
            Progress(unit.stage, self._share, unit.ridge, unit.start, event.evaluations, unit.cost, event.objective,
                     self.rank, left, self.part)
        )  # fmt: skip


class UnitRunner:
    """Runs units, with files of finished and half-finished work in `folder` if there is one.

    A file there that is damaged, or of another unit or `run`, is set aside, and what it held is computed again. Each
    unit that is under way has a thread, in which it is computed, or waited for where it is computed elsewhere.
    """

    def __init__(
        self,
        folder: Path | None,
        tracker: Tracker,
        *,
        workers: int | None = None,
        run: str = "",
        elsewhere: Elsewhere | None = None,
        device: torch.device = CPU,
    ) -> None:
        self.folder, self.tracker, self.run_stamp = folder, tracker, run
        self.elsewhere, self.device = elsewhere, device
        self._stop = threading.Event()
        self._done: dict[str, Minimum] = {}  # without a folder
        self._beforehand: set[str] = set()  # units that nobody has asked for yet
        self.workers = workers or num_cores()

    def out_of_time(self) -> bool:
        """Whether the time limit is over, but for what an answer takes from here."""
        left = self._left()
        return left is not None and left <= 0

    def seconds_left(self) -> float | None:
        """Until the time limit; at least a moment, so that a unit that was begun leaves something behind."""
        left = self._left()
        return None if left is None else max(left, 0.05)

    def _left(self) -> float | None:
        if self.tracker.deadline is None:
            return None
        left, whole = (self.tracker.deadline - when for when in (time.monotonic(), self.tracker.began))
        return left - min(self.tracker.seconds_for(ENDING) or whole, whole / 2)

    def run(self, units: Iterable[Unit], *, ahead: Sequence[Unit] = ()) -> list[Minimum]:
        """The results of all units, in order. An interrupt stops the running ones, their states saved.

        Args:
            units: that are needed.
            ahead: what may be needed next, the likeliest first. As many as there are workers who would stand idle are
                computed besides; what is never asked for changes nothing.
        """
        units = list(units)
        missing = sum(not self._is_there(unit) for unit in units)
        idle = -missing % self.workers if not self.out_of_time() else 0
        asked = {unit.key for unit in units}
        others = {unit.key: unit for unit in ahead if unit.key not in asked and not self._is_there(unit)}
        besides = list(others.values())[:idle]
        self._beforehand |= {unit.key for unit in besides}
        return self._results([*units, *besides])[: len(units)]

    def _is_there(self, unit: Unit) -> bool:
        return unit.key in self._done or (self.folder is not None and (self.folder / f"{unit.key}.pt").exists())

    def _results(self, units: Sequence[Unit]) -> list[Minimum]:
        folder = self.elsewhere.folder if self.elsewhere else self.folder
        choices = kept_choices(folder / CHOICES if folder else None, shared=self.elsewhere is not None)
        with one_thread_each(), choices, ThreadPoolExecutor(self.workers, initializer=one_thread_here) as pool:
            futures: list[Future[Minimum]] = []
            try:  # an interrupt may come while units are handed out: those that began must hear of it
                for unit in units:
                    futures.append(pool.submit(self._one, unit))
                finished, _ = wait(futures, return_when=FIRST_EXCEPTION)
                for future in finished:  # one that failed is heard of before those that began earlier are through
                    future.result()
                return [future.result() for future in futures]
            except BaseException:
                self._stop.set()
                for future in futures:
                    future.cancel()
                raise

    def _one(self, unit: Unit) -> Minimum:
        done = self.folder / f"{unit.key}.pt" if self.folder else None
        saved = self._kept(done) if done else self._done.get(unit.key)
        if saved is not None:
            self._beforehand.discard(unit.key)
            self.tracker.finished(unit, fresh=False)
            return saved
        partial = partial_of(self.folder, unit.key) if self.folder else None

        def hear(event: FitEvent) -> bool:
            if self._stop.is_set():  # silently: a thread that had just begun may come after the last word
                return True
            self.tracker.at(unit, event)
            return self._stop.is_set()

        session = Session(hear, partial, self.seconds_left(), self.device)
        result = self.elsewhere(unit, session, self._stop.is_set) if self.elsewhere else computed(unit, session)
        if self._stop.is_set():
            raise Stopped(unit.key)
        if result.outcome is Outcome.INTERRUPTED:  # a worker heard a stop that was not ours: no end of a training
            result = computed(unit, session)
        if done and partial and result.outcome is not Outcome.TIME_LIMIT:  # that one may go on another day
            save_state(done, {"result": result.as_state(), "run": self.run_stamp})
            partial.unlink(missing_ok=True)  # only now: it holds the fit while nothing else does
        elif not done:
            self._done[unit.key] = result
        if unit.key in self._beforehand:
            self.tracker.finished_beforehand(unit)
        else:
            self.tracker.finished(unit, fresh=True)
        return result

    def _kept(self, done: Path) -> Minimum | None:
        """What an earlier sitting made of a unit; None where it must be computed."""
        try:
            saved = load_state(done)
            if saved is not None and saved.get("run", self.run_stamp) != self.run_stamp:
                raise CheckpointError(f"{done}: is of another run.")
        except CheckpointError as error:
            set_aside(done, error)
            return None
        return None if saved is None else Minimum.of_state(saved["result"])


def check_same_run(folder: Path, stamp: dict[str, str]) -> str:
    """Write what the work in `folder` belongs to, or raise if it belongs to something else.

    Returns:
        A digest of it, by which units know each other.

    Raises:
        DataError: it does, or what says so is damaged together with its copy.
    """
    path = folder / "belongs.pt"
    saved = load_twice(path)
    if saved is None:
        save_twice(path, stamp)
    for name, value in stamp.items():
        if saved is not None and saved.get(name) != value:
            raise DataError(
                f"{folder}: the unfinished run there has other {name}; resume it with the same command and data, "
                "or start over in another folder."
            )
    return hashlib.sha256(repr(sorted(stamp.items())).encode()).hexdigest()
