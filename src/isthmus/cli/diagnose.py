"""`isthmus diagnose MODEL`: what every layer of any network does on data. The numbers: `diagnostics`.

What is asked for as plain values: here. What is done with it: `diagnose_run`.
"""

import math
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from isthmus.cli.discover import LOSS_HELP
from isthmus.cli.interrupts import terminate_like_interrupt, warnings_as_lines
from isthmus.cli.output_file import checked_output
from isthmus.cli.run_folder import check_writable
from isthmus.cli.shared_options import Factory, Key, Model, Samples, argument_words, with_options, words_of
from isthmus.cli.voice import announce
from isthmus.errors import DataError


@dataclass(frozen=True, slots=True)
class DiagnosisRequest:
    """The options of `isthmus diagnose`, by their names on the command line.

    Raises:
        DataError: a number is not positive; --no-jacobians with targets; a limit of passes without --no-jacobians.
    """

    model: Model
    data: Samples
    target: Annotated[str | None, typer.Option(help="Columns with target numbers: COL,COL; or a file.")] = None
    classes: Annotated[str | None, typer.Option(help="The column whose values are the classes, or a file.")] = None
    ridge: Annotated[float | None, typer.Option(help="Penalty that the network was trained with.")] = None
    out: Annotated[Path | None, typer.Option(help="The page to write, .html; default runs/MODEL-diagnosis.html.")] = (
        None
    )
    factory: Factory = None
    key: Key = None
    memory: Annotated[float | None, typer.Option(help="Working memory in MiB; default 2048.")] = None
    loss: Annotated[str | None, typer.Option(help=LOSS_HELP)] = None
    jacobians: Annotated[
        bool | None,
        typer.Option("--jacobians/--no-jacobians", help="Derivatives too, or forward passes alone; default by cost."),
    ] = None
    max_seconds: Annotated[float | None, typer.Option(help="End the forward passes after so many seconds.")] = None
    rows: Annotated[int | None, typer.Option(help="End the forward passes after so many samples.")] = None
    checkpoint: Annotated[
        Path | None, typer.Option(help="A .pt that keeps what forward passes summed; the same call goes on from there.")
    ] = None
    device: Annotated[
        str | None, typer.Option(help="cpu, cuda, or auto for a GPU where there is one; default cpu.")
    ] = None
    export: Annotated[
        Path | None, typer.Option(help="A .json to write: errors by rank of every layer, rank_pattern for peft.")
    ] = None

    def __post_init__(self) -> None:
        for name in ("ridge", "memory", "max_seconds", "rows"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise DataError(f"{_option(name)} {value:g}: needs a positive number.")
        targets = [name for name in ("target", "classes", "ridge", "loss") if getattr(self, name) is not None]
        if self.jacobians is False and targets:
            raise DataError(f"--no-jacobians: forward passes alone take no targets. Leave out --{targets[0]}.")
        for name, does in (("max_seconds", "ends"), ("rows", "ends"), ("checkpoint", "keeps")):
            if self.jacobians is not False and getattr(self, name) is not None:
                raise DataError(f"{_option(name)}: {does} a diagnosis by forward passes alone. Add --no-jacobians.")

    @property
    def bytes_of_memory(self) -> int | None:
        """Working memory in bytes, None where nothing was asked for."""
        return None if self.memory is None else int(self.memory * 2**20)

    @property
    def command(self) -> str:
        """The command line that asks for the same, without the place of the page."""
        asked = [
            "target",
            "classes",
            "ridge",
            "factory",
            "key",
            "memory",
            "loss",
            "max_seconds",
            "rows",
            "checkpoint",
            "device",
        ]
        words = ["isthmus", "diagnose", *argument_words(self.model)]
        words += words_of({"data": self.data} | {name: getattr(self, name) for name in asked})
        if self.jacobians is not None:
            words.append("--jacobians" if self.jacobians else "--no-jacobians")
        return shlex.join(words)

    def writable_page(self, *, replace: bool) -> Path:
        """The page to write, --out or runs/MODEL-diagnosis.html, after checking that it may be.

        Raises:
            DataError: it cannot be written, is an input, or is there and is not to be replaced.
        """
        if self.export is not None:
            checked_output(
                self.export, kinds=[".json"], inputs=[self.model, self.data], replace=replace, option="--export"
            )
        if self.checkpoint is not None:  # what is there is gone on from
            checked_output(
                self.checkpoint, kinds=[".pt"], inputs=[self.model, self.data], replace=True, option="--checkpoint"
            )
        page = self.out
        if page is None:
            check_writable(Path("runs"))
            page = Path("runs") / f"{self.model.name if self.model.is_dir() else self.model.stem}-diagnosis.html"
            if not page.parent.is_dir():
                return page
        return checked_output(page, kinds=[".html"], inputs=[self.model, self.data], replace=replace)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


@with_options(DiagnosisRequest)
def diagnose(
    request: DiagnosisRequest,
    replace: Annotated[bool, typer.Option("--replace", help="Replace an older file of that name.")] = False,
) -> int:
    """What each layer of a network does: its dimensions, how linear it is, what depends on it; and a page about it.

    Exit codes: 0 done, 2 bad input, 130 interrupted.
    """
    page = request.writable_page(replace=replace)

    announce(f"reading {request.model} ...")
    from isthmus.cli.diagnose_run import diagnose_to  # torch and the rest: only once the page may be written
    from isthmus.cli.terminal import Notes

    say = Notes()
    with terminate_like_interrupt(), warnings_as_lines(say):
        return diagnose_to(page, request, say=say)
