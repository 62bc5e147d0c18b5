"""A signal at any moment ends a discovery with 130, with nothing lost; the second one ends it at once."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import command_signals
from signal_stress import SIGNALS, SRC, started, stress, until_handled, write_data


@pytest.mark.slow
def test_signalled_children_end_well() -> None:
    told = stress(2, seed=int.from_bytes(b"doors"), options=("--no-pictures", "--effort", "quick"))
    assert told.failures == []
    assert sum(told.codes.values()) == 2


@pytest.mark.slow
def test_a_thousand_signalled_children_end_well() -> None:
    told = stress(1000, seed=1)
    assert told.failures == []
    assert told.finished > 0


@pytest.mark.slow
def test_hundreds_of_signalled_commands_end_well() -> None:
    """All of them, fresh and forked, one process or the whole group."""
    told = command_signals.stress(510, seed=1)
    assert told.failures == []
    assert told.codes.total() == 510


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_during_the_imports_ends_with_one_line(tmp_path: Path, number: signal.Signals) -> None:
    process = started(write_data(tmp_path / "data.csv"), tmp_path / "run")
    until_handled(process)
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err) == (130, "", "isthmus: interrupted.\n")
    assert not (tmp_path / "run").exists()


STUBBORN = """
import sys, time
sys.path.insert(0, {src!r})
from isthmus.cli.interrupts import leave_on_signals, noted_interrupts, terminate_like_interrupt
leave_on_signals()
try:
    with {block}:
        print("there", flush=True)
        time.sleep(60)
except KeyboardInterrupt:
    print("saving", flush=True)
    try:
        time.sleep(60)
    except BaseException as error:
        print(repr(error), flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("block", ["terminate_like_interrupt()", "noted_interrupts()"])
def test_the_second_signal_ends_at_once_without_a_traceback(block: str) -> None:
    program = STUBBORN.format(src=str(SRC), block=block)
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "there\n"
    process.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    assert process.poll() is None
    began = time.monotonic()
    process.send_signal(signal.SIGHUP)
    out, err = process.communicate(timeout=50)
    assert time.monotonic() - began < 30
    assert process.returncode == 130
    assert out in {"", "saving\n"}
    assert err in {"", "isthmus: interrupted.\n"}


@pytest.mark.slow
def test_two_signals_of_one_wish_are_one(tmp_path: Path) -> None:
    """A terminal that closes sends its signal twice: what runs is saved and said all the same."""
    folder = tmp_path / "run"
    process = started(write_data(tmp_path / "data.csv"), folder, evaluations=4000)
    deadline = time.monotonic() + 120
    while not list(folder.glob("work/belongs.pt")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGHUP)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert f"--resume {folder}" in err.splitlines()[-1]


def test_what_the_caller_ignores_stays_ignored(tmp_path: Path) -> None:
    """As nohup does with SIGHUP."""
    program = STUBBORN.format(src=str(SRC), block="terminate_like_interrupt()")
    process = subprocess.Popen(
        ["nohup", sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        cwd=tmp_path, env=os.environ,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "there\n"
    process.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == "saving\n"
    process.kill()
    process.communicate()
