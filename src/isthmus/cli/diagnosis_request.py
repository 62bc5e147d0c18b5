"""What `isthmus diagnose` was asked for, as plain values, and the command that asks for it again.

Options as typer sees them: `diagnose`. What is done with a request: `diagnose_run`.
"""

import math
import shlex
from dataclasses import dataclass
from pathlib import Path

from isthmus.cli.run_folder import check_writable
from isthmus.errors import DataError


@dataclass(frozen=True, slots=True)
class DiagnosisRequest:
    """The options of `isthmus diagnose`, by their names on the command line.

    Raises:
        DataError: --ridge or --memory is not positive.
    """

    model: Path
    data: str
    target: str | None = None
    classes: str | None = None
    ridge: float | None = None
    out: Path | None = None
    factory: str | None = None
    memory: float | None = None

    def __post_init__(self) -> None:
        for name in ("ridge", "memory"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise DataError(f"--{name} {value:g}: needs a positive number.")

    @property
    def bytes_of_memory(self) -> int | None:
        """Working memory in bytes, None where nothing was asked for."""
        return None if self.memory is None else int(self.memory * 2**20)

    @property
    def command(self) -> str:
        """The command line that asks for the same, without the place of the page."""
        words = ["isthmus", "diagnose", str(self.model), "--data", self.data]
        for name in ("target", "classes", "ridge", "factory", "memory"):
            value = getattr(self, name)
            if value is not None:
                words += [f"--{name}", f"{value:g}" if isinstance(value, float) else value]
        return shlex.join(words)

    def writable_page(self) -> Path:
        """The page to write, --out or runs/MODEL-diagnosis.html, after checking that its folder can be written.

        Raises:
            DataError: it is a folder, or the folder of --out is missing.
        """
        if self.out is None:
            folder = Path("runs")
            check_writable(folder)
            return folder / f"{self.model.stem}-diagnosis.html"
        if self.out.is_dir():
            raise DataError(f"{self.out}: is a folder. Give the page's file with --out, as in report.html.")
        if not self.out.absolute().parent.is_dir():
            raise DataError(f"{self.out}: its folder does not exist. Make it first, or give another file with --out.")
        return self.out
