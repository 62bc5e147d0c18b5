"""What the tests of the command line share: one line on stderr, a table on disk."""

from pathlib import Path

import numpy as np


def line_of(errors: str) -> str:
    """The one line on stderr."""
    assert errors.endswith("\n")
    assert errors.count("\n") == 1, errors
    return errors.strip()


def write_table(path: Path, names: list[str], rows: np.ndarray) -> Path:
    path.write_text("\n".join([",".join(names), *(",".join(map(repr, row)) for row in rows.tolist())]) + "\n")
    return path
