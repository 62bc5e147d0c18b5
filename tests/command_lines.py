"""What the tests of the command line share: one line on stderr, a table on disk, a command that is carried out here."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from isthmus.cli.main import run
from isthmus.training.threads import one_thread_each


def line_of(errors: str) -> str:
    """The one line on stderr."""
    assert errors.endswith("\n")
    assert errors.count("\n") == 1, errors
    return errors.strip()


def write_table(path: Path, names: list[str], rows: np.ndarray) -> Path:
    path.write_text("\n".join([",".join(names), *(",".join(map(repr, row)) for row in rows.tolist())]) + "\n")
    return path


def carried_out(words: Sequence[str]) -> None:
    """Run a command to its end in this process: the bits of one of its own, without the seconds of its imports.

    Beside processes that are started anew, whose networks a seed shift does not reach, a test takes the fixture
    `unshifted`.
    """
    with one_thread_each():
        assert run(list(words)) in {0, 3}
