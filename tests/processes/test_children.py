"""The helper that multiprocessing starts outlives what a terminal sends to its whole group when it closes."""

import signal
import subprocess
import sys
from contextlib import nullcontext

import pytest

from isthmus.processes.children import deaf_to

PROGRAM = """
import os, signal, time
from multiprocessing import get_context, resource_tracker
from isthmus.processes.children import safe_path, start_tracker

signal.signal(signal.SIGHUP, lambda number, frame: None)
os.setpgrp()
with safe_path():
    start_tracker()
lock = get_context("spawn").Lock()  # known to the tracker
first = resource_tracker._resource_tracker._pid
os.killpg(0, getattr(signal, "{name}"))
time.sleep(0.5)
resource_tracker.ensure_running()
assert resource_tracker._resource_tracker._pid == first, "it was started anew"
"""


@pytest.mark.dear(1)
@pytest.mark.parametrize("name", ["SIGHUP", "SIGINT", "SIGTERM"])
def test_a_signal_to_the_group_leaves_the_tracker_as_it_was(name: str) -> None:
    program = PROGRAM.format(name=name).replace("signal.SIGHUP", f"signal.{name}")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert hasattr(signal, name)


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="this system has no masks of signals")
@pytest.mark.parametrize("deaf", [True, False])
def test_what_is_started_deaf_hears_no_ctrl_c_at_its_imports(deaf: bool) -> None:
    words = [sys.executable, "-c", "print(1, flush=True); import time; time.sleep(0.5)"]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, set())
    with deaf_to("SIGINT") if deaf else nullcontext():
        child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "1\n"
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert (child.returncode == 0) is deaf
    assert ("KeyboardInterrupt" not in said) is deaf
    assert signal.pthread_sigmask(signal.SIG_BLOCK, set()) == before
