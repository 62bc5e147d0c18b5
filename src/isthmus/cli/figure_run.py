"""Figures carried out from the command line: notes and progress on stderr, the verdicts as a table, an exit code."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from isthmus.cli.interrupts import ExitCode, heard_again, terminate_like_interrupt, warnings_as_lines
from isthmus.cli.progress_bar import shown_sweep
from isthmus.cli.run_folder import check_writable, is_free
from isthmus.cli.shared_options import words_of
from isthmus.cli.terminal import Notes, print_place, terminal
from isthmus.cli.voice import tell
from isthmus.errors import DataError, SweepError
from isthmus.figures import FIGURES, Finished, Judgement, Preset, Workshop, gallery, named_figures, with_mnist
from isthmus.figures.gallery import PAGE, VERDICTS, headline
from isthmus.figures.workshop import PARTS, RUNS
from isthmus.sweeps.engine_choice import EngineChoice
from isthmus.sweeps.folder import HEAD
from isthmus.writing.atomic import remove_leftovers
from isthmus.writing.folder_lock import FolderInUse, only_writer

_STYLES = {Judgement.HOLDS: "green", Judgement.FAILS: "bold red", Judgement.OPEN: "yellow"}


def run_figures(name: str, preset: str, folder: Path, choice: EngineChoice, mnist: Path | None) -> int:
    """Compute figures in a folder and print their verdicts; returns the exit code.

    Raises:
        DataError: no such figure, or none that reads MNIST; MNIST cannot be read. OSError: the folder
            cannot be written.
    """
    figures = named_figures(name)
    if mnist is not None:
        figures = with_mnist(figures, mnist, folder)
    errors = terminal(stderr=True)
    check_writable(folder)
    _check_ours(folder)
    options = {"preset": preset, "out": folder, "workers": choice.workers, "device": choice.device}
    command = shlex.join(["isthmus", "figure", name, *words_of(options)]) + ("" if mnist is None else " --mnist FILES")

    say = Notes(errors)
    try:
        with (
            terminate_like_interrupt() as stop_again,
            warnings_as_lines(say),
            only_writer(folder),
            shown_sweep(errors) as listener,
        ):
            remove_leftovers(folder)
            workshop = Workshop(folder, choice, listener=heard_again(listener, stop_again), say=say)
            found = gallery(figures, Preset(preset), workshop, command=command, beside=FIGURES.values())
    except KeyboardInterrupt:
        text = "isthmus: interrupted: the state was saved; the same command goes on"
        terminal(stderr=True, always=True).print(text, soft_wrap=True)
        return ExitCode.INTERRUPTED
    except SweepError as error:
        if isinstance(error.__cause__, FolderInUse):
            raise
        terminal(stderr=True, always=True).print(f"isthmus: {error}", soft_wrap=True)
        return ExitCode.DOUBTFUL
    claims = [(done.figure.name, claim) for done in found for claim in done.claims]
    tell(gallery=folder / PAGE, claims=[
        {"figure": name, "verdict": c.judgement, "claim": c.statement, "measured": c.measured} for name, c in claims
    ])  # fmt: skip
    _print(found, folder / PAGE)
    return ExitCode.DONE


def _check_ours(folder: Path) -> None:
    """Refuse a folder of other files: those of figures have plain names, which may be taken."""
    marks = (folder / PARTS, folder / RUNS / HEAD, folder / VERDICTS)
    if not is_free(folder) and not any(mark.exists() for mark in marks):
        raise DataError(f"{folder}: holds other files. Give a new or empty folder, or one of figures, with --out.")


def _print(found: Sequence[Finished], page: Path) -> None:
    console = terminal()
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("figure", "verdict", "claim", "measured", "refuted if"):
        table.add_column(heading, overflow="fold", justify="right" if heading == "measured" else "left")
    for done in found:
        for claim in done.claims:
            judgement = Text(claim.judgement.value, style=_STYLES[claim.judgement])
            table.add_row(done.figure.name, judgement, claim.statement, claim.value, claim.refutation)
    console.print(table)
    console.print(headline(found))
    print_place(console, "Gallery", page)
