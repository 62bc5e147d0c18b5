"""The subcommands of `isthmus` under one roof. What each does: the file of its name. Errors and signals: `main`."""

import platform
from collections.abc import Callable
from importlib.metadata import version
from typing import Annotated

import typer

from isthmus import __version__
from isthmus.cli.apply import apply
from isthmus.cli.compare import compare
from isthmus.cli.cost import cost
from isthmus.cli.diagnose import diagnose
from isthmus.cli.discover import discover
from isthmus.cli.doctor import doctor
from isthmus.cli.figure import figure
from isthmus.cli.fit import fit
from isthmus.cli.interpret import interpret
from isthmus.cli.model_exports import compress, factor
from isthmus.cli.region import region
from isthmus.cli.sweep import app as sweep
from isthmus.cli.typed import Command
from isthmus.cli.verify import verify
from isthmus.cli.voice import speaking

app = typer.Typer(
    no_args_is_help=True, help="How many dimensions a task really needs.",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="ISTHMUS_MEMORY (8G, 500M, unlimited) in the environment: how much memory data may take; default half.",
)  # fmt: skip
# command: a line that can be typed as it stands where the files that it names are there
EXAMPLES: dict[Callable[..., int], str] = {
    discover: "isthmus discover table.csv --target price --out runs/price",
    apply: "isthmus apply runs/price new.csv --what prediction --out predicted.csv",
    interpret: "isthmus interpret runs/price",
    compare: "isthmus compare runs/price runs/other",
    verify: "isthmus verify runs/price",
    diagnose: "isthmus diagnose network.safetensors --data rows.npy --out page.html",
    factor: "isthmus factor network.safetensors --data rows.npy --rank 8",
    compress: "isthmus compress network.safetensors --data rows.npy --tolerance 0.01",
    region: "isthmus region runs/price --data table.csv --slice area,age --out slice.png",
    cost: "isthmus cost matrix.csv --depth 10 --kind connected",
    fit: "isthmus fit table.parquet --target price --ridge 1e-3",
    figure: "isthmus figure all --preset tiny",
    doctor: "isthmus doctor",
}
for _command, _example in EXAMPLES.items():
    app.command(cls=Command, epilog=f"Example: {_example}")(speaking(_command))
app.add_typer(sweep, name="sweep", epilog="Example: isthmus sweep plan.toml --out runs/plan")


def _version(wanted: bool) -> bool:
    if wanted:
        versions = f"Python {platform.python_version()}, torch {version('torch')}"
        typer.echo(f"isthmus {__version__} finds how many dimensions a task really needs ({versions}).")
        raise typer.Exit
    return wanted


@app.callback()
def options(
    _show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version and end.")
    ] = False,
) -> None:
    """How many dimensions a task really needs, which ones they are, and how sure that is."""


commands = typer.main.get_command(app)  # once: typer would read every signature again for each command line
