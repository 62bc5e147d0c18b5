"""Units of work handed to an executor, ours or the caller's, and what its workers do with them.

    FOLDER/KEY.partial.pt    state of a training, as where units run in threads
    FOLDER/KEY.heard         how far it is, written by the worker
    FOLDER/stop              there once the run is to stop

A worker that does not see the folder, on a host without it, computes all the same, but nothing of it is kept before it
is done and it does not hear of a stop. The order of the units, their results: `runner`. Our own workers:
`processes.pool`.
"""

import pickle
import struct
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Generator
from concurrent.futures import Executor, Future, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import torch
import xarray as xr

from isthmus.discovery.minimum import Minimum
from isthmus.discovery.work.unit import Session, Stopped, Unit, computed
from isthmus.errors import ProcessLost, outside
from isthmus.networks.devices import CPU
from isthmus.processes.pool import Processes, Where, errors_of_executor, let_go, num_cores
from isthmus.processes.shared_state import heard
from isthmus.training import FitEvent
from isthmus.training.steps.products import kept_choices
from isthmus.training.threads import one_thread_each
from isthmus.writing.regular import contents

UNDER_WAY = 64  # units that are handed at once to an executor that does not say how many workers it has
PATIENCE = 20.0  # seconds that a worker has to hear of a stop, or to end with its time: it may be lost
SILENCE = 2.0  # seconds beyond its time that a unit is waited for whose worker was never heard: it may have none
EVERY = 0.1  # seconds between two looks at what a worker has written
STOP, HEARD, CHOICES = "stop", "heard", "products.pt"
_WORDS = struct.Struct("<qqd")
_NOBODY = torch.nn.Identity()  # events are heard of networks that are elsewhere


@dataclass(frozen=True, slots=True)
class Parcel:
    """A unit as bytes, so that no executor shares memory for its tensors, and what its session needs.

    Attributes:
        key: of the unit.
        compute: what it computes, pickled.
        folder: of its files.
        until: when its time is over, in seconds since 1970, for other hosts too.
        keeps: whether the state of a training is kept there.
        device: where networks lie while they are trained.
        precision: of products in float32, as torch has it where the search runs: bits hang on it.
    """

    key: str
    compute: bytes
    folder: str
    until: float | None
    keeps: bool = True
    device: torch.device = CPU
    precision: str = "highest"


@dataclass(frozen=True, slots=True)
class Reply:
    """What became of a parcel.

    Attributes:
        minimum: pickled; empty where it failed.
        error: what was thrown, pickled, and
        text: its traceback.
        told: warnings.
    """

    minimum: bytes
    error: bytes
    text: str
    told: list[tuple[type[Warning], str]]


class Elsewhere:
    """Has units computed by an executor; called in a thread for each unit that is under way.

    Args:
        executor: of any kind; not ended here.
        folder: that its workers see, where there is one.
        ready: whether they are there; until then units are computed here.
        asked: whether the caller wanted it; else what it cannot compute is computed here.
    """

    def __init__(
        self, executor: Executor, folder: Path, ready: Callable[[], bool] = lambda: True, *, asked: bool = True
    ) -> None:
        self.executor, self.ready, self.asked = executor, ready, asked
        self.folder = folder.absolute()  # workers may stand in another one
        (folder / STOP).unlink(missing_ok=True)  # of a run that was stopped
        self._is_late = False  # whether a unit did not come back in the time that there was

    def __call__(self, unit: Unit, session: Session, stopped: Callable[[], bool]) -> Minimum:
        """The result of a unit.

        Raises:
            ProcessLost: the executor or its workers are gone. Stopped: as the run is. What units and listeners raise.
        """
        try:
            with _errors_of_executor():
                ready = self.ready()
            if ready and not self._is_late and (found := self._sent(unit, session, stopped)) is not None:
                return found
        except ProcessLost:
            if self.asked:
                raise
        return computed(unit, session)

    def _sent(self, unit: Unit, session: Session, stopped: Callable[[], bool]) -> Minimum | None:
        """The result as it comes back; None where it does not before the time is over."""
        until = None if session.seconds is None else time.time() + session.seconds
        parcel = Parcel(
            unit.key, _pickled(unit), str(self.folder), until, session.checkpoint is not None, session.device,
            torch.get_float32_matmul_precision(),
        )  # fmt: skip
        try:
            with _errors_of_executor():
                future = self.executor.submit(carried_out, parcel)
            if not self._await(future, parcel, session, stopped):
                self._is_late = True
                return None
            with _errors_of_executor():
                reply = future.result()
        finally:
            (self.folder / f"{unit.key}.{HEARD}").unlink(missing_ok=True)
        for category, text in reply.told:
            warnings.warn(text, category, stacklevel=outside())
        if reply.error:
            raise pickle.loads(reply.error) from RuntimeError(reply.text)
        found: Minimum = pickle.loads(reply.minimum)
        return found

    def _await(self, future: Future[Reply], parcel: Parcel, session: Session, stopped: Callable[[], bool]) -> bool:
        """Until the reply is there or its time is over; whether it is there.

        What the worker tells meanwhile is heard, and it is told of a stop. An error of whoever hears it stops the
        worker too, and is no error of the executor.
        """
        patience = SILENCE
        try:
            # one whose executor was ended is cancelled for good, but nobody who waits for it is woken
            while not (wait([future], timeout=EVERY).done or future.done()):
                if (event := _last_word(self.folder / f"{parcel.key}.{HEARD}")) is not None:
                    patience = PATIENCE
                    session.hear(event)
                if stopped():
                    raise Stopped(parcel.key)
                if parcel.until is not None and time.time() > parcel.until + patience:
                    future.cancel()
                    return False
        except BaseException:
            (self.folder / STOP).touch()
            if not future.cancel():
                wait([future], timeout=PATIENCE)
            raise
        return True


def _errors_of_executor() -> AbstractContextManager[None]:
    again = "The same call, with one that can, goes on from what the folder of the run holds, if one was given."
    return errors_of_executor("discover", again)


def partial_of(folder: Path, key: str) -> Path:
    """The file of the state of a training that is under way."""
    return folder / f"{key}.partial.pt"


def carried_out(parcel: Parcel) -> Reply:
    """Compute a unit: what a worker is asked to do. Nothing is thrown but interrupts."""
    with heard(unless_filtered=True) as told:
        try:
            found, error, text = pickle.dumps(_computed(parcel)), b"", ""
        except Exception as thrown:
            found, error, text = b"", _as_bytes(thrown), "".join(traceback.format_exception(thrown))
    return Reply(found, error, text, told)


def _computed(parcel: Parcel) -> Minimum:
    compute: Callable[[Session], Minimum] = pickle.loads(parcel.compute)
    torch.set_float32_matmul_precision(parcel.precision)
    unit, folder = Unit(parcel.key, compute, 0, ""), Path(parcel.folder)
    seconds = None if parcel.until is None else max(parcel.until - time.time(), 0.05)
    if not folder.is_dir():
        with one_thread_each():
            return computed(unit, Session(seconds=seconds, device=parcel.device))
    told, heard, stop = 0.0, folder / f"{parcel.key}.{HEARD}", folder / STOP

    def hear(event: FitEvent) -> bool:
        nonlocal told
        if time.monotonic() - told > EVERY:
            told = time.monotonic()
            with suppress(OSError):  # a full disk: what must be written says so itself
                heard.write_bytes(_WORDS.pack(event.evaluations, event.total, event.objective))
        return stop.exists()

    with one_thread_each(), kept_choices(folder / CHOICES, shared=True):
        partial = partial_of(folder, parcel.key) if parcel.keeps else None
        return computed(unit, Session(hear, partial, seconds, parcel.device))


def _last_word(path: Path) -> FitEvent | None:
    with suppress(OSError, struct.error):  # none yet, or half of one
        evaluations, total, objective = _WORDS.unpack(contents(path))
        return FitEvent(_NOBODY, evaluations, total, objective)
    return None


def _as_bytes(error: Exception) -> bytes:
    with suppress(Exception):
        pickle.loads(content := pickle.dumps(error))  # some that can be pickled cannot be made again
        return content
    return pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))


def _pickled(unit: Unit) -> bytes:
    try:
        return pickle.dumps(unit.compute)
    except Exception as error:
        raise TypeError(
            f"discover(executor=...): what it computes cannot be sent to another process ({error}). Define losses and "
            "networks of your own at the top of a module, or give executor='threads'."
        ) from error


def units_at_once(executor: Executor | Where | None, workers: int | None) -> int:
    """How many units are under way at once."""
    if workers is None and isinstance(executor, Executor):
        most = getattr(executor, "_max_workers", None)
        return most if isinstance(most, int) and most > 0 else UNDER_WAY
    return workers or num_cores()


@contextmanager
def opened(
    executor: Executor | Where, *, workers: int, folder: Path | None, asked: bool = True
) -> Generator[Elsewhere | None]:
    """Where units are computed while the block runs; None: in threads of the runner.

    Args:
        executor: an executor of the caller's is not ended.
        workers: how many processes.
        folder: of the work; without one, workers get a temporary one.
        asked: whether the caller wanted them there.
    """
    if executor is Where.THREADS:
        let_go()
        yield None
        return
    with ExitStack() as stack:
        if isinstance(executor, Executor):
            if folder is None:
                made = tempfile.TemporaryDirectory(prefix="isthmus-work-", ignore_cleanup_errors=True)
                folder = Path(stack.enter_context(made))
            yield Elsewhere(executor, folder)
        else:
            ours = Processes(workers)
            place = folder or Path(stack.enter_context(ours.folder()))
            stack.enter_context(ours)  # which end before it does
            yield Elsewhere(ours, place, ours.is_ready, asked=asked)


def load() -> None:
    """Load what units need, in the process that our own workers are forked from."""
    import_module("isthmus.discovery.discover")
    xr.Dataset(coords={"x": [0.0]})  # with the first one xarray looks for dask, half a second in every process
