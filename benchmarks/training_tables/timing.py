"""Seconds of actions that take turns: what shares the machine meanwhile slows all of them alike."""

import statistics
import time
from collections.abc import Callable, Mapping

import torch

Clock = Callable[[], float]


def clock_of(device: torch.device | str) -> Clock:
    """CPU seconds of this process; where it computes on a GPU seconds, after all that was begun there has ended."""
    return time.process_time if torch.device(device).type == "cpu" else _after_the_gpu


def _after_the_gpu() -> float:
    torch.cuda.synchronize()
    return time.perf_counter()


def interleaved(
    actions: Mapping[str, Callable[[], object]], *, seconds: float, least: int = 5, clock: Clock = time.process_time
) -> dict[str, float]:
    """Median seconds of each action, run in turns for about so long, at least `least` rounds after a warm-up."""
    for action in actions.values():
        action()
    times: dict[str, list[float]] = {name: [] for name in actions}
    began = clock()
    while clock() - began < seconds or min(map(len, times.values())) < least:
        for name, action in actions.items():
            start = clock()
            action()
            times[name].append(clock() - start)
    return {name: statistics.median(taken) for name, taken in times.items()}
