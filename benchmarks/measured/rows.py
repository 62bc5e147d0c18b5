"""What a benchmark has measured so far, in one file: a run that was stopped goes on where it was.

Which cases there are, and what is measured: the benchmarks. Tables of sweeps: `isthmus.sweeps`.
"""

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isthmus.errors import DataError
from isthmus.writing.atomic import write_text

Row = dict[str, Any]


def head() -> str:
    """Hash of the commit that is checked out, or nothing outside a repository."""
    here = Path(__file__).parent
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, check=False)
    return done.stdout.strip()


@dataclass
class Rows:
    """Measured rows by name.

    Attributes:
        commit: whose hash the cases are drawn from.
        path: the file they are kept in, written whole after each row; None keeps them in memory.
        found: the rows so far; each says in `measured_at` which commit was checked out when its run began.
        measured_at: that of this run.
    """

    commit: str
    path: Path | None = None
    found: dict[str, Row] = field(default_factory=dict[str, Row])
    measured_at: str = field(default_factory=head)

    @classmethod
    def of(cls, path: Path | None, *, commit: str | None = None) -> "Rows":
        """The rows of a file; none where there is no file yet.

        Raises:
            DataError: the file is not one of these, or holds the cases of another commit than asked for.
        """
        if path is None or not path.exists():
            return cls(commit or head(), path)
        try:
            kept = json.loads(path.read_text())
            known = cls(kept["commit"], path, kept["rows"])
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path}: is no file of measured rows ({error!r}). Give --out another name.") from error
        if commit not in {None, known.commit}:
            raise DataError(
                f"{path}: holds the cases of commit {known.commit}, not of {commit}. Leave out --commit, or give --out "
                "another name."
            )
        return known

    def add(self, name: str, row: Row) -> None:
        """Keep a row, on disk before this returns."""
        self.found[name] = row | {"measured_at": self.measured_at}
        if self.path is not None:
            write_text(self.path, json.dumps({"commit": self.commit, "rows": self.found}, indent=1) + "\n")
