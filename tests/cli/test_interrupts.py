import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator

import pytest

from isthmus.cli.interrupts import heard_again, terminate_like_interrupt, warnings_as_lines
from isthmus.errors import DataWarning, NumericalWarning


def terminated() -> None:
    with terminate_like_interrupt():
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()


def test_sigterm_is_an_interrupt_and_the_handler_is_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        terminated()
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.fixture
def _as_on_a_command_line() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction] - pytest calls it
    """The handler of Ctrl-C that Python starts with; a worker of the tests has another."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_as_on_a_command_line")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_that_was_lost_stops_at_the_next_event(number: signal.Signals) -> None:
    class Interrupted:
        def __del__(self) -> None:  # what is raised here is dropped by Python
            os.kill(os.getpid(), number)
            sum(range(1000))  # signals are heard of between two instructions

    heard: list[int] = []
    before = signal.getsignal(number)
    with terminate_like_interrupt() as stop_again:
        hear = heard_again(heard.append, stop_again)
        hear(1)
        Interrupted()
        with pytest.raises(KeyboardInterrupt):
            hear(2)
    assert heard == [1]
    assert signal.getsignal(number) is before


HALF_MADE = """
import os, signal, sys
from isthmus.cli.interrupts import leave_on_signals, terminate_like_interrupt

class Archive:
    def __init__(self):
        if {interrupted}:
            os.kill(os.getpid(), signal.{number})
            sum(range(1000))  # signals are heard of between two instructions
        else:
            return
        self.open = True

    def __del__(self):
        self.open

leave_on_signals()
try:
    with terminate_like_interrupt():
        Archive()
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_what_an_interrupt_left_half_made_is_dropped_without_a_traceback(number: str) -> None:
    stopped = run_python(HALF_MADE.format(interrupted=True, number=number))
    assert (stopped.returncode, stopped.stderr) == (130, "")


def test_what_is_half_made_without_an_interrupt_still_shows_its_traceback() -> None:
    assert "AttributeError" in run_python(HALF_MADE.format(interrupted=False, number="SIGINT")).stderr


def run_python(code: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)


def test_an_interrupt_that_the_caller_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with terminate_like_interrupt() as stop_again:
            os.kill(os.getpid(), signal.SIGINT)
            stop_again()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_our_warnings_become_sentences_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []
    with warnings_as_lines(said.append):
        for _ in range(2):
            warnings.warn("column 'a' is\n constant", DataWarning, stacklevel=1)
        warnings.warn("added 1e-9", NumericalWarning, stacklevel=1)
    assert said == ["column 'a' is constant", "added 1e-9"]
    assert capsys.readouterr() == ("", "")


def test_other_warnings_stay_what_they_are() -> None:
    with pytest.raises(UserWarning, match="not ours"), warnings_as_lines(pytest.fail):
        warnings.warn("not ours", UserWarning, stacklevel=1)
