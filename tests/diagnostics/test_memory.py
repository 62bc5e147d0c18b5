"""The memory of a diagnosis, in a process of its own: as large as a data set of digits, and as announced."""

import os
import re
import subprocess
import sys

import pytest

NUM, WIDTH, DEPTH, BUDGET = 60_000, 512, 10, 2048.0

# what is resident beyond the data and the module once both have been used
PROGRAM = f"""
import torch
from torch import nn
from isthmus import diagnose
from isthmus.training.sharded.process_group import peak_memory

def resident():
    return peak_memory(torch.device("cpu")) / 2**20

torch.set_num_threads(1)
torch.manual_seed(0)
hidden = [part for _ in range({DEPTH - 2}) for part in (nn.Linear({WIDTH}, {WIDTH}), nn.ReLU())]
module = nn.Sequential(nn.Linear(784, {WIDTH}), nn.ReLU(), *hidden, nn.Linear({WIDTH}, 10))
x = torch.randn({NUM}, 784)
with torch.no_grad():
    module(x[:2])
before = resident()
found = diagnose(module, x)
assert found.layers.sizes["layer"] == {DEPTH}
print(found.layers.attrs["cost"])
print("peak", resident() - before)
"""


@pytest.mark.slow
def test_sixty_thousand_digits_stay_under_what_is_announced_and_under_the_budget() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    announced = re.search(r"at most ([\d,.]+) MiB", done.stdout)
    peak = re.search(r"peak ([\d.]+)", done.stdout)
    assert announced
    assert peak
    assert 1.0 < float(peak[1]) <= float(announced[1].replace(",", "")) <= BUDGET
