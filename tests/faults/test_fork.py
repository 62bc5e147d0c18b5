"""A process that is forked after threads of torch were at work computes on."""

import os
import sys

import pytest

from sweep_processes import ENVIRONMENT, finish, kill_all, start

PROGRAM = """
import os
import torch
import isthmus

torch.set_num_threads(2)


def use():
    x = torch.randn(3000, 50, generator=torch.Generator().manual_seed(0))
    network = isthmus.FullyConnected(50, 50, width=50, depth=3, seed=0)
    return isthmus.fit(network, x, x, ridge=1e-2, limits=isthmus.Limits(evaluations=5)).gradient_evaluations


if __name__ == "__main__":
    here = use()
    assert torch.get_num_threads() == 2
    child = os.fork()
    if child == 0:
        os._exit(0 if use() == here and torch.get_num_threads() == 1 else 3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert torch.get_num_threads() == 2
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_computes_on_after_two_threads_were_at_work() -> None:
    # threads that wait asleep: on a machine with other work, those that spin wait for each other's turn
    process = start([sys.executable, "-W", "ignore", "-c", PROGRAM], ENVIRONMENT | {"OMP_WAIT_POLICY": "passive"})
    try:
        finish(process, seconds=60)
    finally:
        kill_all(process)  # the child that hangs too
