"""The terminal as every command writes to it: text as it stands, notes on stderr, labelled lines.

What is said: the file of each command. Progress: `progress_bar`.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from isthmus.cli.voice import voice
from isthmus.writing.shown import harmless

_WITHOUT_EDGE = 100_000


def terminal(*, stderr: bool = False, always: bool = False) -> Console:
    """A console that takes all text as it stands: names of columns, classes, layers and folders are no markup.

    What goes into a pipe or a file is not folded: there is no edge. Where --json or --quiet is asked for, words are
    printed nowhere, unless they `always` are.
    """
    silent = not always and (voice().is_quiet if stderr else voice().as_json)
    console = _Harmless(stderr=stderr, markup=False, emoji=False, highlight=False, quiet=silent)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _WITHOUT_EDGE
        console.file = cast(IO[str], _WithoutPadding(console.file))
    return console


class _Harmless(Console):
    """A console that writes no character which a terminal obeys, but those of its own styles and cursor."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Segments of text without such characters, whoever gave the text."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=harmless(segment.text))


class _WithoutPadding:
    """A stream that takes lines without the blanks with which columns of a table are filled up."""

    def __init__(self, stream: Any) -> None:  # noqa: ANN401 - any stream of text
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text without blanks at the ends of its lines."""
        self._stream.write(re.sub(r" +(?=\n)", "", text))
        return len(text)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the stream has
        return getattr(self._stream, name)


class Notes:
    """Says one sentence after another on stderr, each as a line of its own, and keeps them: `lines`."""

    def __init__(self, console: Console | None = None) -> None:
        self._errors = terminal(stderr=True) if console is None else console
        self.lines: list[str] = []

    def __call__(self, text: str) -> None:
        """Say it, unless nothing is to be said."""
        self.lines.append(text)
        if not self._errors.quiet:
            self._errors.print(f"note: {text}", soft_wrap=True)


def labelled(lines: Iterable[tuple[str, str]]) -> Table:
    """Sentences or numbers beside their labels, folded where the terminal is narrow."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", overflow="fold")  # shortened only where texts are as narrow already
    grid.add_column(overflow="fold")
    for label, text in lines:
        grid.add_row(Text(label), Text(text))
    return grid


def print_headed(console: Console, headline: str, lines: Iterable[tuple[str, str]], *, style: str) -> None:
    """Print a verdict: its headline in a style, its sentences beside their labels."""
    for part in (Text(headline, style=style), labelled(lines)):
        console.print()
        console.print(part)
    console.print()


def print_place(console: Console, label: str, place: Path) -> None:
    """Print where something lies, never broken into two lines: it is there to be copied."""
    console.print(Text(f"{label}: {place}"), soft_wrap=True)
