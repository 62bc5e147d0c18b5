"""`Processes`: an executor whose workers are processes, each forked from one that has imported what they need.

They are in a session of their own, so no signal of a terminal reaches them, load no script of the user's again, and end
with the process that started them, however it ends. What they compute: `discovery.work.elsewhere`. Nothing heavy is
imported here, so that the first of them can begin before anything else is.
"""

import atexit
import os
import pickle
import queue
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Generator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from enum import StrEnum
from multiprocessing.connection import Connection
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import isthmus
from isthmus.errors import ProcessLost
from isthmus.processes.children import safe_path

T = TypeVar("T")
PRELOADED = "work of processes"  # torch and the rest: the seconds that a worker would take to begin
MOST_DEATHS = 3  # of workers over one call before it is called a failure: a call that kills its worker must end
READY = b"."
# a frozen program, or a host of Python, has no interpreter to start: it would start itself
HAS_INTERPRETER = "python" in Path(sys.executable or "").name.lower() and not hasattr(sys, "frozen")
CAN_FORK = hasattr(os, "fork") and hasattr(socket, "send_fds") and HAS_INTERPRETER


class Where(StrEnum):
    """Executors of our own."""

    THREADS = "threads"
    PROCESSES = "processes"


def executor_argument(executor: object, call: str) -> Executor | Where | None:
    """What the caller of a function means; None leaves the choice to us.

    Raises:
        ValueError: nothing of ours, or what this system lacks.
    """
    if executor is None or isinstance(executor, Executor):
        return executor
    if executor not in [*Where]:
        known = ", ".join(map(repr, map(str, Where)))
        raise ValueError(
            f"{call}(executor={str(executor)[:60]!r}): needs one of {known}, or a concurrent.futures.Executor."
        )
    where = Where(str(executor))
    if where is Where.PROCESSES and not CAN_FORK:
        raise ValueError(f"{call}(executor='processes'): this system cannot fork processes. Give 'threads'.")
    return where


@contextmanager
def errors_of_executor(
    call: str, remedy: str = "Give one that can.", *, kinds: tuple[type[Exception], ...] = (Exception,)
) -> Generator[None]:
    """Say as `ProcessLost` what an executor itself raises inside the block.

    Args:
        call: that was given the executor.
        remedy: what to do.
        kinds: of errors: all, where its work tells its own otherwise.
    """
    try:
        yield
    except kinds as error:
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise ProcessLost(
            f"{call}: the executor was ended, lost a worker or cannot go on ({text}). {remedy}"
        ) from error


class Processes(Executor):
    """So many processes of this machine, begun when they are needed; the calls of one that is killed are sent again.

    Functions, arguments and results are pickled; what stands in `__main__` cannot be.

    Args:
        workers: how many, at least 1.
    """

    def __init__(self, workers: int) -> None:
        if not CAN_FORK:
            raise ValueError("executor='processes': this system cannot fork processes. Give executor='threads'.")
        self._nursery = nursery()  # begins at once: it takes seconds
        self._nursery.is_used = True
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="isthmus-process")
        self._idle: queue.SimpleQueue[Connection] = queue.SimpleQueue()

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Have a process call a function of a module."""
        return self._threads.submit(self._called, pickle.dumps((fn, args, kwargs)))

    def is_ready(self) -> bool:
        """Whether calls begin at once; before, they wait for the seconds that imports take.

        Raises:
            BrokenExecutor: they never will: imports failed, or the process that others are forked from was killed.
        """
        if not (ready := self._nursery.is_ready()) and not self._nursery.is_alive():
            raise BrokenExecutor("the process that others are forked from ended while it began")
        return ready

    def folder(self) -> "tempfile.TemporaryDirectory[str]":
        """A temporary folder, removed also where this process is killed."""
        return self._nursery.folder()

    def _called(self, call: bytes) -> Any:
        for _ in range(MOST_DEATHS):
            worker = self._worker()
            try:
                worker.send_bytes(call)
                answer = worker.recv_bytes()
            except (EOFError, OSError):  # it was killed
                worker.close()
                continue
            self._idle.put(worker)
            error, text, result = pickle.loads(answer)
            if error is not None:
                raise error from RuntimeError(text)
            return result
        raise BrokenExecutor(f"{MOST_DEATHS} worker processes that computed the same were killed")

    def _worker(self) -> Connection:
        with suppress(queue.Empty):
            return self._idle.get_nowait()
        return nursery().born()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as in concurrent.futures
        """End the processes once they are through."""
        self._threads.shutdown(wait=wait, cancel_futures=cancel_futures)
        with suppress(queue.Empty):
            while True:
                self._idle.get_nowait().close()


def num_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Nursery:
    """The process that others are forked from, seen from here."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._door, theirs = socket.socketpair()
        self._mark = f"isthmus-work-{secrets.token_hex(4)}-"  # of no other one's folders
        # Python itself looks at words alone: scripts put paths, which are none, into theirs
        places: list[object] = [*sys.path]
        place, path = tempfile.gettempdir(), [str(place) for place in places if isinstance(place, str) and place]
        begin = f"from isthmus.processes.pool import bring_up; bring_up({theirs.fileno()}, {place!r}, {self._mark!r})"
        line = f"import sys; sys.path[:] = {path!r}; {begin}"
        with ExitStack() as unless_begun, theirs, safe_path():
            unless_begun.callback(self._door.close)
            self._process = subprocess.Popen(
                [sys.executable, "-c", line],
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
            unless_begun.pop_all()
        self._is_ready, self._lock = False, threading.Lock()
        self.is_used = False  # whether somebody is forked from it, or will be
        atexit.register(self.close)
        Finalize(None, self.close, exitpriority=0)  # children of multiprocessing end without atexit

    def is_alive(self) -> bool:
        """Whether it is there, and ours: a forked child must not share the processes of its parent."""
        return self.owner == os.getpid() and self._process.poll() is None

    def is_ready(self) -> bool:
        """Whether it has imported what it imports."""
        with self._lock, suppress(OSError):  # nothing to be read yet
            self._is_ready = self._is_ready or self._door.recv(1, socket.MSG_DONTWAIT) == READY
        return self._is_ready

    def born(self) -> Connection:
        """The way to a new process; where there is none, whoever uses it hears of that."""
        self.is_used = True
        ours, theirs = socket.socketpair()
        with ours, theirs:
            with suppress(OSError):
                socket.send_fds(self._door, [b"+"], [theirs.fileno()])
            return Connection(ours.detach())

    def folder(self) -> "tempfile.TemporaryDirectory[str]":
        """A temporary folder that it removes with its end, should this process be killed before it does so itself."""
        return tempfile.TemporaryDirectory(prefix=self._mark, ignore_cleanup_errors=True)

    def close(self) -> None:
        """Let it go."""
        if self.owner == os.getpid():
            self._process.kill()  # its children end with the ways to them
            self._process.wait()
            self._door.close()  # behind it: an open one that closes says that this process is gone


_LOCK = threading.Lock()
_NURSERIES: list[Nursery] = []


def nursery() -> Nursery:
    """That of this process, begun if there is none."""
    with _LOCK:
        if not _NURSERIES or not _NURSERIES[-1].is_alive():
            _NURSERIES.append(Nursery())
        return _NURSERIES[-1]


def is_begun() -> bool:
    """Begin it if there is none; whether the system let it, as far as is known. One that failed is not begun again."""
    with _LOCK:
        failed = bool(_NURSERIES) and not _NURSERIES[-1].is_alive() and not _NURSERIES[-1].is_ready()
    try:
        return not failed and nursery().is_alive()
    except OSError:  # no more processes, or files
        return False


def let_go() -> None:
    """End the one of this process if it was begun for nothing: it holds what it imported."""
    with _LOCK:
        if _NURSERIES and _NURSERIES[-1].is_alive() and not _NURSERIES[-1].is_used:
            _NURSERIES.pop().close()


def bring_up(number: int, place: str, mark: str) -> None:
    """Be the nursery: fork a worker for every socket that comes through this one, until its other end is closed.

    Args:
        number: of the socket.
        place: where temporary folders lie, and
        mark: how the names of those begin that go with whoever began this one.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system buries them
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a batch system tells all processes; this one tidies up behind them
    isthmus.provided(PRELOADED).load()
    door = socket.socket(fileno=number)
    try:
        door.send(READY)
    except OSError:  # whoever began this one is through
        _end(place, mark)
    while True:
        word, files = b"", []
        with suppress(OSError):  # it was ended with something of ours unread
            word, files, _, _ = socket.recv_fds(door, 1, 1)
        if not word:
            _end(place, mark)
        try:
            child = os.fork()
        except OSError:  # no room: whoever asked sees the way closed
            child = None
        if child == 0:
            for heard in (signal.SIGCHLD, signal.SIGTERM):
                signal.signal(heard, signal.SIG_DFL)
            door.close()
            _serve(Connection(files[0]))
        os.close(files[0])


def _end(place: str, mark: str) -> NoReturn:
    """Remove what a process that was killed has left, and end: where it lives, it ends this one first."""
    with suppress(ChildProcessError):  # there is none any more: they end as this one does, and may write until then
        os.wait()
    for folder in Path(place).glob(f"{mark}*"):
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def _serve(pipe: Connection) -> None:
    """Answer calls until the other end is closed: also in the middle of one, for then nobody waits for it."""
    calls: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def listen() -> None:
        with suppress(EOFError, OSError):
            while True:
                calls.put(pipe.recv_bytes())
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        pipe.send_bytes(_answer(calls.get()))


def _answer(call: bytes) -> bytes:
    try:
        function, arguments, named = pickle.loads(call)
        return pickle.dumps((None, "", function(*arguments, **named)))
    except BaseException as error:  # whoever called hears it
        text = "".join(traceback.format_exception(error))
        try:
            return pickle.dumps((error, text, None))
        except Exception:  # an error that cannot be pickled
            return pickle.dumps((RuntimeError(f"{type(error).__name__}: {error}"), text, None))
