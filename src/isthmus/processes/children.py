"""How processes of ours start Python again: no file of the working folder is a module to it.

A terminal that closes takes none of Python's own helpers along. Who starts them: `pool`, `sweeps.schedulers`,
`sweeps.slurm`, `figures.processes`. Only `--factory` searches that folder, and says so.
"""

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from multiprocessing import resource_tracker

from isthmus.processes.shared_state import held_in_common

_VARIABLE = "PYTHONSAFEPATH"
SAFE_LINE = f"export {_VARIABLE}=1"  # the same in a job's script


@held_in_common
@contextmanager
def safe_path() -> Generator[None]:
    """While it lasts, Python that this process starts leaves the working folder out of its path.

    multiprocessing starts workers as `python -c`, which searches that folder first: a `socket.py` beside the data ran
    in each of them. The variable goes again with the block, as the rest of the user's program may want another.
    """
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_VARIABLE, None)
        else:
            os.environ[_VARIABLE] = before


@contextmanager
def deaf_to(number: str) -> Generator[None]:
    """While it lasts, this thread and what it starts hear no such signal; what is started stays deaf to it."""
    if not hasattr(signal, "pthread_sigmask") or not hasattr(signal, number):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.Signals[number]})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def start_tracker() -> None:
    """Start Python's process that removes what others leave behind, deaf to a terminal that closes.

    Of SIGINT and SIGTERM it is deaf by itself. SIGHUP ended it, and whoever used it next started another one, which
    printed a traceback for each thing that the first had known.
    """
    with deaf_to("SIGHUP"), safe_path():
        resource_tracker.ensure_running()
