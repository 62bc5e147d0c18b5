"""CPU seconds of actions that take turns: what shares the machine meanwhile slows all of them alike."""

import statistics
import time
from collections.abc import Callable, Mapping


def interleaved(actions: Mapping[str, Callable[[], object]], *, seconds: float, least: int = 5) -> dict[str, float]:
    """Median CPU seconds of each action, run in turns for about so long, at least `least` rounds after a warm-up."""
    for action in actions.values():
        action()
    times: dict[str, list[float]] = {name: [] for name in actions}
    began = time.process_time()
    while time.process_time() - began < seconds or min(map(len, times.values())) < least:
        for name, action in actions.items():
            start = time.process_time()
            action()
            times[name].append(time.process_time() - start)
    return {name: statistics.median(taken) for name, taken in times.items()}
