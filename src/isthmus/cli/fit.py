"""`isthmus fit DATA`: options in, one trained network out; in one process or, under torchrun, in several.

What is asked for as plain values: here. How it is carried out: `fit_run`. The training: `training.sharded`.
"""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import typer

from isthmus.cli.discover import LOSS_HELP
from isthmus.cli.run_folder import default_folder
from isthmus.cli.shared_options import Classes, Target, check_sizes, with_options
from isthmus.cli.voice import announce
from isthmus.errors import DataError


@dataclass(frozen=True, slots=True)
class FitRequest:
    """The options of `isthmus fit` that decide what comes out.

    Raises:
        DataError: the ridge is negative, --linear holds no numbers of hidden layers, or the type is unknown.
    """

    data: Annotated[
        str,
        typer.Argument(
            help="A .npy, .parquet or zarr array, whose rows each process reads for itself, or builtin:NAME."
        ),
    ]
    ridge: Annotated[float, typer.Option(help="Penalty of the squared norm of all parameters.")]
    target: Target = None
    autoencode: Annotated[bool, typer.Option("--autoencode", help="Reconstruct the data themselves.")] = False
    classes: Classes = None
    depth: Annotated[int, typer.Option(min=1, help="Number of weight matrices.")] = 4
    width: Annotated[int, typer.Option(min=1, help="Neurons of each hidden layer.")] = 64
    linear: Annotated[str | None, typer.Option(help="Hidden layers without activation: 2,3.")] = None
    slope: Annotated[float, typer.Option(help="Slope of the activation for negative inputs.")] = 0.0
    seed: Annotated[int, typer.Option(min=0, help="Of builtin data and the initial weights.")] = 0
    dtype: Annotated[str, typer.Option(help="float32 or float64.")] = "float64"
    evaluations: Annotated[int | None, typer.Option(min=10, help="Gradients: fewer is rougher.")] = None
    split_parameters: Annotated[
        bool,
        typer.Option(
            "--split-parameters",
            help="Each process keeps its part of the parameters, for networks too wide for one: slower, and the "
            "activations of its rows must fit instead. Any number of processes ends with the same bits, one too.",
        ),
    ] = False
    loss: Annotated[str | None, typer.Option(help=LOSS_HELP)] = None

    def __post_init__(self) -> None:
        check_sizes(self)
        if not 0 <= self.ridge < float("inf"):
            raise DataError(f"--ridge {self.ridge:g}: needs a finite number >= 0.")
        if not abs(self.slope) < 1:
            raise DataError(f"--slope {self.slope:g}: needs a number above -1 and below 1; 0 is ReLU.")
        if self.dtype not in {"float32", "float64"}:
            raise DataError(f"--dtype {self.dtype}: needs float32 or float64.")
        if outside := [l for l in self.linear_layers if not 1 <= l < self.depth]:
            raise DataError(f"--linear {self.linear}: needs hidden layers 1 to {self.depth - 1}, got {outside[0]}.")

    @property
    def linear_layers(self) -> tuple[int, ...]:
        """The hidden layers without activation."""
        try:
            return tuple(int(part) for part in self.linear.split(",")) if self.linear else ()
        except ValueError:
            raise DataError(f"--linear {self.linear}: needs numbers separated by commas, as in 2,3.") from None

    @property
    def default_folder(self) -> Path:
        """Where the run goes unless --out says it: named after the data, the targets and whatever was asked for."""
        words = [
            *(self.target or "").split(","),
            f"classes-{self.classes}" if self.classes else "",
            "autoencode" if self.autoencode else "",
            "fit",
        ]
        options: dict[str, object] = {"ridge": f"{self.ridge:g}"}
        for option in fields(self):
            value = getattr(self, option.name)
            if option.name not in {"data", "target", "autoencode", "classes", "ridge"} and value != option.default:
                options[option.name.replace("_", "-")] = value
        return default_folder(self.data, words, options)


@with_options(FitRequest)
def fit(
    request: FitRequest,
    out: Annotated[Path | None, typer.Option(help="Folder of the run; default runs/DATA-TARGET-fit-....")] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on with the run in this folder.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Remove an older run from the folder first.")] = False,
    timeout: Annotated[float, typer.Option(min=1.0, help="Seconds to wait for a silent process.")] = 600.0,
    device: Annotated[
        str | None,
        typer.Option(help="cpu, cuda, or auto for a GPU where there is one; default cpu, under torchrun one for each."),
    ] = None,
) -> int:
    """Train one network on DATA to a minimum of loss + ridge * penalty; for several processes start it with torchrun.

    Exit codes: 0 done, 2 bad input or a lost process, 3 ended away from a minimum, 130 interrupted.
    """
    if not timeout < float("inf"):
        raise DataError(f"--timeout {timeout:g}: needs a finite number of seconds.")
    announce(f"reading {request.data} ...")
    from isthmus.cli.fit_run import run_fit  # torch and the rest: only once the request makes sense

    return run_fit(request, out=out, resume=resume, replace=replace, timeout=timeout, device=device)
