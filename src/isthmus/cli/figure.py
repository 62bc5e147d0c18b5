"""`isthmus figure NAME|all`: options in, a table of verdicts and exit codes out. The figures themselves: `figures`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from isthmus.cli.shared_options import Workers
from isthmus.cli.workplace import Device


class PresetName(StrEnum):
    """The presets by name, before anything heavy is imported."""

    PAPER = "paper"
    QUICK = "quick"
    TINY = "tiny"


def figure(
    name: Annotated[str, typer.Argument(help="A figure by name or number, or all.")],
    preset: Annotated[PresetName, typer.Option(help="How large: the papers' sizes, minutes, or seconds.")] = (
        PresetName.QUICK
    ),
    out: Annotated[Path | None, typer.Option(help="Folder of the figures; default runs/figures.")] = None,
    workers: Workers = None,
    device: Device = None,
    mnist: Annotated[
        Path | None, typer.Option(help="MNIST for figure denoising: an .npz, or the folder of its four idx files.")
    ] = None,
) -> int:
    """Reproduce figures of the papers, and say claim by claim whether they hold here.

    Writes gallery.html, verdicts.json, verdicts.md and pictures/. What is computed is kept; the same command goes on
    after any interruption. Exit codes: 0 done, whatever the verdicts; 2 bad input; 3 a training failed; 130
    interrupted.
    """
    from isthmus.cli.figure_run import run_figures  # torch and the rest: only once the command line makes sense
    from isthmus.sweeps.engine_choice import EngineChoice

    return run_figures(name, preset.value, out or Path("runs") / "figures", EngineChoice(workers, device=device), mnist)
