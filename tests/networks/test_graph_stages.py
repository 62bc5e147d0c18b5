"""Tracing, beside other threads that trace or run modules."""

import threading

import torch
from torch import nn

from isthmus.networks.graph_stages import traced


def test_a_module_is_traced_while_others_run_and_others_are_traced() -> None:
    """torch has the calls of all modules of the process go through the tracer meanwhile."""
    before, failed = nn.Module.__call__, list[Exception]()
    going, x = threading.Event(), torch.zeros(2, 3)

    def run() -> None:
        layer = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        while not going.is_set():
            try:
                layer(x)
            except Exception as error:  # whatever it makes of a stranger
                failed.append(error)
                return

    def trace() -> None:
        for _ in range(30):
            traced(nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.ReLU(), nn.Linear(4, 3))))

    runner, tracers = threading.Thread(target=run), [threading.Thread(target=trace) for _ in range(3)]
    for thread in (runner, *tracers):
        thread.start()
    for thread in tracers:
        thread.join()
    going.set()
    runner.join()
    assert failed == []
    assert nn.Module.__call__ is before
