"""The entry point `isthmus`: the subcommands, and errors as one line with an exit code.

What each subcommand does: the file of its name. Exit codes: 0 done, 2 bad input, 3 doubtful, 130 interrupted.
"""

import sys
from collections.abc import Sequence
from typing import Annotated, cast

import typer

from isthmus import __version__
from isthmus.cli.apply import apply
from isthmus.cli.compress import compress
from isthmus.cli.cost import cost
from isthmus.cli.diagnose import diagnose
from isthmus.cli.discover import discover
from isthmus.cli.factor import factor
from isthmus.cli.figure import figure
from isthmus.cli.fit import fit
from isthmus.cli.region import region
from isthmus.cli.sweep import app as sweep
from isthmus.cli.verify import verify
from isthmus.errors import IsthmusError

BAD_INPUT, INTERRUPTED = 2, 130
# typer brings its own copy of click since 0.24 and click itself before: this is the usage error of either
_UsageError = cast(type[Exception], typer.BadParameter.__mro__[1])

app = typer.Typer(add_completion=False, no_args_is_help=True, help="How many dimensions a task really needs.")
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


def run(arguments: Sequence[str]) -> int:
    """Run one command line; bad input is one line on stderr. Returns the exit code."""
    try:
        code = app(args=list(arguments), prog_name="isthmus", standalone_mode=False)
    except _UsageError as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "isthmus"
        message = getattr(error, "format_message", error.__str__)()
        if not message:  # no arguments at all: the help has been shown
            return BAD_INPUT
        return _complain(f"{message.rstrip('.')}. See {command} --help.")
    except IsthmusError as error:
        return _complain(str(error))
    except OSError as error:
        return _complain(f"{error.filename or 'a file'}: {error.strerror or error}. Check the path and free space.")
    except KeyboardInterrupt:
        typer.echo("isthmus: interrupted.", err=True)
        return INTERRUPTED
    return code if isinstance(code, int) else 0


def main() -> None:
    """The console script."""
    sys.exit(run(sys.argv[1:]))


def _complain(message: str) -> int:
    typer.echo(f"isthmus: {' '.join(message.split())}", err=True)
    return BAD_INPUT
