"""The end of a run: pictures and page beside the result, the verdict on the terminal, the exit code.

The words themselves: `reports.verdict`. The numbers: `discovery`.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from isthmus.cli.exit_codes import ExitCode
from isthmus.discovery import Discovery, interpret
from isthmus.discovery.files.netcdf import write_tables
from isthmus.reports import VerdictText, report, verdict_of, write_pictures
from isthmus.theory import Verdict

_COLORS = {Verdict.CONFIDENT: "green", Verdict.DOUBTFUL: "yellow", Verdict.NO_SHARP_RANK: "magenta"}


def exit_code(verdict: Verdict) -> int:
    """0 for an answer ("no sharp rank" is one), 3 for a doubtful one."""
    return ExitCode.DOUBTFUL if verdict is Verdict.DOUBTFUL else ExitCode.DONE


def write_outputs(
    found: Discovery, folder: Path, x: np.ndarray, command: str, candidates: Mapping[str, np.ndarray] | None = None
) -> Path:
    """Write the pictures, what the coordinates mean, and the page of a discovery; returns the path of the page."""
    meaning = interpret(found, x, candidates=candidates) if found.rank else None
    if meaning is not None:
        write_tables(folder / "interpretation.nc", {"interpretation": meaning})
    pictures = write_pictures(found, folder / "plots", x, meaning)
    page = folder / "report.html"
    report(found, page, x=x, command=command, pictures=pictures, meaning=meaning)
    return page


def print_verdict(console: Console, found: Discovery, place: Path, *, label: str = "Report") -> None:
    """Say the rank, how sure it is and why, what one dimension fewer costs, and where the page lies, or the folder."""
    print_lines(console, verdict_of(found), f"bold {_COLORS[found.verdict]}")
    # a path is never broken into two lines: it is there to be copied
    console.print(Text(f"{label}: {place}"), soft_wrap=True)


def print_lines(console: Console, text: VerdictText, style: str) -> None:
    """Print the headline of a verdict in a style, and its sentences beside their labels."""
    console.print()
    console.print(Text(text.headline, style=style))
    console.print()
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for line in text.lines:
        grid.add_row(Text(line.label, style="dim"), Text(line.text))
    console.print(grid)
    console.print()
