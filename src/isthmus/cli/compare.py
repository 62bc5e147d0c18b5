"""`isthmus compare RUN RUN`: two saved discoveries side by side: what they found, and what they were told."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from isthmus.cli.voice import tell


def compare(
    first: Annotated[Path, typer.Argument(help="Folder that discover wrote.")],
    second: Annotated[Path, typer.Argument(help="Another.")],
) -> int:
    """Two discoveries side by side: ranks, verdicts, errors, and the settings in which they differ.

    Exit codes: 0 done, also where they disagree; 2 bad input.
    """
    from rich.table import Table
    from rich.text import Text

    from isthmus.cli.terminal import terminal
    from isthmus.discovery import load
    from isthmus.discovery.evidence.side_by_side import differing_settings, facts_side_by_side

    runs = [load(folder) for folder in (first, second)]
    rows = facts_side_by_side(runs)
    settings = differing_settings(runs)
    tell(runs=[str(first), str(second)], found=rows, settings=settings)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("", str(first), str(second)):
        table.add_column(Text(heading), overflow="fold")
    told = {name: values for name, values in {**rows, **settings}.items() if any(v is not None for v in values)}
    for name, values in told.items():
        table.add_row(*(Text(_text(value)) for value in (name.replace("_", " "), *values)))
    terminal().print(table)
    return 0


def _text(value: object) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_text(item)}" for name, item in value.items())
    if (
        isinstance(value, list | tuple)
        and value
        and all(isinstance(item, Mapping) and "made" in item for item in value)
    ):
        kinds = Counter(item["made"] for item in value)  # how each input was made from the columns of a table
        return ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return "" if value is None else str(value)
