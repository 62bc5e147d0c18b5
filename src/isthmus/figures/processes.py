"""Parts of figures made side by side, each in one of a few processes of its own; nothing but Python is needed.

What a part is: `parts`. Trainings of sweeps have workers of their own: `sweeps.cluster`.
"""

import multiprocessing
import queue
import signal
import traceback
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Executor, Future
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path

from isthmus.errors import SweepError
from isthmus.figures.part_progress import PartProgress
from isthmus.figures.parts import Part
from isthmus.processes.children import deaf_to, safe_path, start_tracker
from isthmus.processes.pool import errors_of_executor
from isthmus.sweeps.telling import Telling, telling_callback

_PATIENCE = 5.0  # seconds that a worker has to end after it was told to


def made_side_by_side(
    parts: Sequence[Part], root: Path, *, workers: int, hears: PartProgress, device: str | None = None
) -> None:
    """Make every part in `root`, so many at a time; the bits are those that one process would give.

    An interrupt ends the workers at once: what is finished stays, a training goes on from its last checkpoint.

    Args:
        parts: none of them there yet.
        root: the folder of parts, as `parts.opened` leaves it.
        workers: how many processes, at least 1.
        hears: of each part that is done, and how far the others are.
        device: where trainings run, as `fit` takes it.

    Raises:
        SweepError: a part raised, or a worker was killed; says which part.
    """
    waiting = deque(parts)
    crew = [_Worker(root, device) for _ in range(min(workers, len(parts)))]
    try:
        for worker in crew:
            worker.take(waiting)
        while busy := {worker.pipe: worker for worker in crew if worker.part is not None}:
            for pipe in wait(list(busy)):
                worker = busy[pipe]  # pyright: ignore[reportArgumentType] - what was given is what comes back
                if (said := worker.hear()) is not None:
                    hears.told(said)
                    continue
                hears.finished(worker.done())
                worker.take(waiting)
    finally:
        for worker in crew:
            worker.end()


def made_by(
    executor: Executor, parts: Sequence[Part], root: Path, *, hears: PartProgress, device: str | None = None
) -> None:
    """Make every part in `root` by the workers of an executor, which see that folder; else as `made_side_by_side`.

    Raises:
        ProcessLost: it takes no parts. SweepError: a part raised, or the executor was ended under it.
    """
    with errors_of_executor("figure"):
        futures: dict[Future[object], Part] = {
            executor.submit(part.compute, root, device=device): part for part in parts
        }
    ended: queue.SimpleQueue[Future[object]] = queue.SimpleQueue()
    try:
        for future in futures:  # told also of one that is cancelled, for which `as_completed` waits for ever
            future.add_done_callback(ended.put)
        for _ in futures:
            part = futures[future := ended.get()]
            if future.cancelled():
                raise SweepError(f"{part.name} {part.id}: its executor was ended\nThe same command tries it again.")
            if (error := future.exception()) is not None:
                text = f"{type(error).__name__}: {error}"
                raise SweepError(f"{part.name} {part.id}: {text}\nThe same command tries it again.") from error
            hears.finished(part.id)
    finally:
        for future in futures:
            future.cancel()


class _Worker:
    """One process and the part that it is at."""

    def __init__(self, root: Path, device: str | None) -> None:
        context = multiprocessing.get_context("spawn")  # forked threads of torch would hang
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, root, device), daemon=True)
        start_tracker()
        with safe_path(), deaf_to("SIGINT"):  # at its imports too, whose tracebacks nobody asked for
            self.process.start()
        theirs.close()
        self.part: Part | None = None

    def take(self, waiting: deque[Part]) -> None:
        """Start the next part, if one is left."""
        self.part = waiting.popleft() if waiting else None
        if self.part is not None:
            with suppress(BrokenPipeError):  # a process that has ended is heard of by `hear`
                self.pipe.send(self.part)

    def hear(self) -> Telling | None:
        """Hear how far the part is; None: it is done. Raises where it never will be."""
        assert self.part is not None
        try:
            said: Telling | str = self.pipe.recv()
            if isinstance(said, Telling):
                return said
            error = said
        except EOFError:
            self.process.join()
            error = f"its process ended with code {self.process.exitcode}"
        if error:
            raise SweepError(f"{self.part.name} {self.part.id}: {error.strip()}\nThe same command tries it again.")
        return None

    def done(self) -> str:
        """The id of the part that it is done with."""
        assert self.part is not None
        return self.part.id

    def end(self) -> None:
        """Let an idle process go; stop one that is at work."""
        self.pipe.close()
        if self.part is not None:
            self.process.terminate()
        self.process.join(_PATIENCE)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def _serve(pipe: Connection, root: Path, device: str | None) -> None:
    """Make parts until the other end is closed. An interrupt is the other end's affair."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    while True:
        try:
            part: Part = pipe.recv()
        except EOFError:
            return
        try:
            part.compute(root, telling_callback(part.id, pipe.send), device)
            pipe.send("")
        except Exception:  # the other end says it and stops
            pipe.send(traceback.format_exc())
