"""`isthmus diagnose MODEL`: what every layer of any network does on data. The numbers: `diagnostics`."""

from pathlib import Path
from typing import Annotated

import typer


def diagnose(  # noqa: PLR0913 - one argument per option
    model: Annotated[Path, typer.Argument(help="A folder of discover, .safetensors, a state dict (.pt), or .pt2.")],
    data: Annotated[str, typer.Option(help="Samples that the network takes: a file, or builtin:NAME.")],
    target: Annotated[str | None, typer.Option(help="Columns with target numbers: COL,COL.")] = None,
    classes: Annotated[str | None, typer.Option(help="The column whose values are the classes.")] = None,
    ridge: Annotated[float | None, typer.Option(help="Penalty that the network was trained with.")] = None,
    out: Annotated[Path | None, typer.Option(help="The page to write; default runs/MODEL-diagnosis.html.")] = None,
    factory: Annotated[str | None, typer.Option(help="module:callable that makes the network; runs your code.")] = None,
    memory: Annotated[float | None, typer.Option(help="Working memory in MiB; default 2048.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace an older file of that name.")] = False,
) -> int:
    """What each layer of a network does: its dimensions, how linear it is, what depends on it; and a page about it.

    Exit codes: 0 done, 2 bad input, 130 interrupted.
    """
    from isthmus.cli.diagnosis_request import DiagnosisRequest
    from isthmus.cli.interrupts import terminate_like_interrupt, warnings_as_lines

    request = DiagnosisRequest(model, data, target, classes, ridge, out, factory, memory)
    page = request.writable_page(replace=replace)

    from isthmus.cli.diagnose_run import diagnose_to  # torch and the rest: only once the page may be written

    def say(text: str) -> None:
        typer.echo(f"note: {text}", err=True)

    with terminate_like_interrupt(), warnings_as_lines(say):
        return diagnose_to(page, request, say=say)
