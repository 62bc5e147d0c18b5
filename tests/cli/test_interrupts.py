import os
import signal
import warnings

import pytest

from isthmus.cli.interrupts import terminate_like_interrupt, warnings_as_lines
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
