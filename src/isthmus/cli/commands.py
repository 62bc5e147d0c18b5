"""The subcommands of `isthmus` under one roof. What each does: the file of its name. Errors and signals: `main`."""

from typing import Annotated

import typer

from isthmus import __version__
from isthmus.cli.apply import apply
from isthmus.cli.cost import cost
from isthmus.cli.diagnose import diagnose
from isthmus.cli.discover import discover
from isthmus.cli.figure import figure
from isthmus.cli.fit import fit
from isthmus.cli.model_exports import compress, factor
from isthmus.cli.region import region
from isthmus.cli.sweep import app as sweep
from isthmus.cli.verify import verify

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="How many dimensions a task really needs.",
    epilog="ISTHMUS_MEMORY (8G, 500M, unlimited) in the environment: how much memory data may take; default half.",
)  # fmt: skip
app.command()(discover)
app.command()(apply)
app.command()(cost)
app.command()(fit)
app.command()(region)
app.command()(verify)
app.command()(diagnose)
app.command()(factor)
app.command()(compress)
app.command()(figure)
app.add_typer(sweep, name="sweep")


def _version(wanted: bool) -> bool:
    if wanted:
        typer.echo(f"isthmus {__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def options(
    _show_version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Say it.")] = False,
) -> None:
    """How many dimensions a task really needs, which ones they are, and how sure that is."""
