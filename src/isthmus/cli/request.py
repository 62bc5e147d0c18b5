"""What `isthmus discover` was asked for, as plain values, and the command that asks for it again.

Options as typer sees them: `discover`. What is done with a request: `discovery_run`.
"""

import shlex
from dataclasses import dataclass
from pathlib import Path

from isthmus.cli.run_folder import default_folder
from isthmus.errors import DataError

# three ReLU layers on either side, one linear layer between them, and the output
LEAST_CONNECTED_DEPTH = 8
LARGEST = 2**63 - 1  # of seeds and counts: what generators and files take


@dataclass(frozen=True, slots=True)
class Request:
    """The options of `isthmus discover`, by their names on the command line.

    Raises:
        DataError: --max-seconds is not positive, --ridge holds no positive numbers, --depth is too small for the
            network, --depth-path is asked of a residual one, or --candidates names nothing.
    """

    data: str
    target: str | None = None
    autoencode: bool = False
    classes: str | None = None
    seed: int = 0
    max_seconds: float | None = None
    ordered: bool = False
    groups: str | None = None
    control: bool = False
    ridge: str | None = None
    starts: int | None = None
    depth: int | None = None
    evaluations: int | None = None
    network: str | None = None
    depth_path: bool = False
    candidates: str | None = None

    def __post_init__(self) -> None:
        if self.max_seconds is not None and not 0 < self.max_seconds < float("inf"):
            raise DataError(f"--max-seconds {self.max_seconds:g}: needs a positive number of seconds.")
        least = LEAST_CONNECTED_DEPTH if self.network in {None, "fully-connected"} else 2
        if self.depth is not None and self.depth < least:
            raise DataError(
                f"--depth {self.depth}: needs at least {least} with --network {self.network or 'fully-connected'}."
            )
        if self.depth_path and self.network not in {None, "fully-connected"}:
            raise DataError(
                f"--depth-path --network {self.network}: a depth path needs a fully connected network; leave out one."
            )
        if self.candidates is not None and not self.candidate_names:
            raise DataError("--candidates: names no column. Give one or several, separated by commas.")
        _ = self.ridges  # refuses what is no list of ridges

    @property
    def candidate_names(self) -> tuple[str, ...]:
        """The columns that --candidates names."""
        if not self.candidates:
            return ()
        from isthmus.tasks.names import names_in  # brings torch with it

        return names_in(self.candidates)

    @property
    def ridges(self) -> list[float] | None:
        """The ridges that --ridge names, largest first."""
        if self.ridge is None:
            return None
        try:
            ridges = [float(part) for part in self.ridge.split(",")]
        except ValueError:
            ridges = []
        if not ridges or not all(0 < value < float("inf") for value in ridges):
            raise DataError(f"--ridge {self.ridge}: needs positive numbers separated by commas, as in 1e-2,1e-3.")
        return sorted(set(ridges), reverse=True)

    @property
    def default_folder(self) -> Path:
        """Where the run goes unless --out says it: named after the data, the targets and whatever was asked for."""
        words = [*(self.target or "").split(","), "autoencode" if self.autoencode else ""]
        own = {"data", "target", "autoencode"}
        options = {name.replace("_", "-"): getattr(self, name) for name in self.__dataclass_fields__ if name not in own}
        options["seed"] = self.seed or None
        if self.max_seconds is not None:
            options["max-seconds"] = f"{self.max_seconds:g}"
        return default_folder(self.data, words, options)

    @property
    def command(self) -> str:
        """The command line that asks for the same, without its folder."""
        words = ["isthmus", "discover", self.data]
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            option = f"--{name.replace('_', '-')}"
            if name == "data" or value is None or value is False or (name == "seed" and value == 0):
                continue
            words += [option] if value is True else [option, f"{value:g}" if name == "max_seconds" else str(value)]
        return shlex.join(words)
