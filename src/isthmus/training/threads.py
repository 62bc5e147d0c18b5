"""Threads inside torch: one while trainings run side by side, so that they do not wait for each other's."""

import threading
from collections.abc import Generator
from contextlib import contextmanager

import torch

_LOCK = threading.Lock()
_INSIDE: list[int] = []  # for each block that runs, how many threads there were before the first


@contextmanager
def one_thread_each() -> Generator[None]:
    """One thread inside torch while the block runs, put back after the last of those that run at once."""
    with _LOCK:
        _INSIDE.append(_INSIDE[0] if _INSIDE else torch.get_num_threads())
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _LOCK:
            before = _INSIDE.pop()
            if not _INSIDE:
                torch.set_num_threads(before)
