"""The memory that a process says to have taken is its own."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PROGRAM = """
import resource, torch
from isthmus.training.sharded.process_group import peak_memory
before = peak_memory(torch.device("cpu"))
held = torch.ones(50_000_000)
grown = peak_memory(torch.device("cpu"))
print(before, grown, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere getrusage is right")
def test_the_process_that_started_it_is_not_counted() -> None:
    large = np.ones(150_000_000)  # 1.2 GB
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, close_fds=False,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src"), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    before, grown, usage = map(int, done.stdout.split())
    assert before < 0.8e9 < large.nbytes
    assert 0.19e9 < grown - before < 0.25e9
    assert usage > 1e9, "what this is about: getrusage counts the parent"
