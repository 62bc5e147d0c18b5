"""Threads inside torch and the libraries beside it: one while trainings run side by side, all of them put back.

Torch keeps their number by thread of Python, and one for threads that are yet to come.
"""

import sys
import threading
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from typing import Any

import torch
from threadpoolctl import ThreadpoolController

from isthmus.processes.shared_state import held_in_common

_LOCK = threading.Lock()
_INSIDE: list[int] = []  # for each thread in a block, how many it had before
_HERE = threading.local()  # whether this thread is in one


@contextmanager
def one_thread_each() -> Generator[None]:
    """One thread inside torch for this thread and those that it begins, while the block runs; then as many as before.

    Blocks may overlap in several threads. One that used torch for the first time while others were in a block, and so
    began with one, gets what the first of those had.
    """
    if getattr(_HERE, "inside", False):
        yield
        return
    with _LOCK:
        before = torch.get_num_threads()
        before = _INSIDE[0] if before == 1 and _INSIDE else before
        _INSIDE.append(before)
        torch.set_num_threads(1)
    _HERE.inside = True
    try:
        yield
    finally:
        _HERE.inside = False
        with _LOCK:
            _INSIDE.remove(before)
            torch.set_num_threads(before)


def one_thread_here() -> None:
    """One thread inside torch for this thread, for good: of a pool whose threads train side by side."""
    _HERE.inside = True
    torch.set_num_threads(1)


@contextmanager
def threads_of_torch() -> Generator[None]:
    """Hold the libraries of numpy and scipy to `torch.get_num_threads()`; what they had before comes back.

    They have a pool of their own beside torch's: the two wait for each other on busy cores.
    """
    with _of_libraries(torch.get_num_threads()):
        yield


@held_in_common
def _of_libraries(threads: int) -> AbstractContextManager[Any]:
    return _libraries(len(sys.modules)).limit(limits=threads, user_api="blas")


@lru_cache(maxsize=1)
def _libraries(_num_modules: int) -> ThreadpoolController:
    """Looked for again only after something was imported: it takes 3 to 15 ms."""
    return ThreadpoolController()
