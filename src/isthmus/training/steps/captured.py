"""A computation on memory that stays where it is, kept as a CUDA graph: launched whole, not kernel by kernel.

On other devices it is computed as it stands. Which computations: `steps`, `steps.leaky_step`.
"""

import threading
import warnings
from collections.abc import Callable
from typing import Generic, TypeVar

import torch

from isthmus.errors import NumericalWarning, outside

T = TypeVar("T")
WARM_UPS = 3  # before a capture, so that libraries have made their work space; as torch's own examples do


class Captured(Generic[T]):
    """A function without arguments whose tensors lie on `device`, replayed as a graph where that is a CUDA device.

    It must read and write the same memory at every call and may look at no number that it computes. Numbers of Python
    that it uses are fixed in the graph: they are passed as `settings`, and others make another graph.

    Args:
        device: where it computes.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._settings: object = None
        self._kept: tuple[torch.cuda.CUDAGraph, T] | None = None
        self._gives_up = device.type != "cuda"

    def __call__(self, compute: Callable[[], T], settings: object) -> T:
        """What `compute` returns, the same function at every call; it is not kept: it would keep its step alive."""
        if not self._gives_up and (self._kept is None or settings != self._settings):
            self._kept, self._settings = None, settings  # the old graph goes before the new one takes memory
            self._kept = self._captured(compute)
        if self._kept is None:
            return compute()
        graph, result = self._kept
        graph.replay()
        return result

    def stop(self) -> None:
        """Compute without a graph from now on: the memory is going to change."""
        self._kept, self._gives_up = None, True

    def _captured(self, compute: Callable[[], T]) -> tuple[torch.cuda.CUDAGraph, T] | None:
        """A graph and what it fills; None where the capture failed, which is said once."""
        try:
            with _CAPTURING, torch.cuda.device(self._device):
                return _capture(compute, self._device)
        except RuntimeError as error:
            self._gives_up = True
            warnings.warn(
                f"a step cannot be captured as a CUDA graph on {self._device} ({str(error).splitlines()[0]}); it goes "
                "on without one, with the same results and more time between kernels.",
                NumericalWarning,
                stacklevel=outside(),
            )
            return None


_CAPTURING = threading.Lock()  # torch allows one capture at a time in a process


def _capture(compute: Callable[[], T], device: torch.device) -> tuple[torch.cuda.CUDAGraph, T]:
    side, graph = torch.cuda.Stream(device), torch.cuda.CUDAGraph()
    before = torch.cuda.current_stream(device)
    side.wait_stream(before)
    with torch.cuda.stream(side):  # restores the stream also where the end of a failed capture raises
        for _ in range(WARM_UPS):
            compute()
        # "thread_local": starts in other threads may take memory meanwhile
        with torch.cuda.graph(graph, stream=side, capture_error_mode="thread_local"):
            result = compute()
    before.wait_stream(side)
    return graph, result
