"""What `isthmus diagnose` was asked for, as plain values, and the command that asks for it again.

Options as typer sees them: `diagnose`. What is done with a request: `diagnose_run`.
"""

import math
import shlex
from dataclasses import dataclass
from pathlib import Path

from isthmus.cli.output_file import checked_output
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

    def writable_page(self, *, replace: bool) -> Path:
        """The page to write, --out or runs/MODEL-diagnosis.html, after checking that it may be.

        Raises:
            DataError: it cannot be written, is an input, or is there and is not to be replaced.
        """
        page = self.out
        if page is None:
            check_writable(Path("runs"))
            page = Path("runs") / f"{self.model.name if self.model.is_dir() else self.model.stem}-diagnosis.html"
            if not page.parent.is_dir():
                return page
        return checked_output(page, inputs=[self.model, self.data], replace=replace)
