"""One self-contained HTML page with many figures: a table of verdicts, then each figure with its pictures and claims.

What the figures are: `figures`. The page about one result: `page`.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from isthmus.reports.page import page_figures, rendered
from isthmus.reports.picture import Picture
from isthmus.reports.tables import TableText
from isthmus.reports.words import VerdictText
from isthmus.writing.atomic import write_text


@dataclass(frozen=True, slots=True)
class Section:
    """One figure on the page.

    Attributes:
        anchor: by which links reach it.
        title: what it shows.
        setting: where it comes from and with what it was made, in sentences.
        state: "confident" or "doubtful", which chooses the colour at its side.
        headline: its verdict in one sentence.
        claims: its verdict claim by claim.
        pictures: its panels.
        provenance: versions, commit, seconds and the like.
    """

    anchor: str
    title: str
    setting: str
    state: str
    headline: str
    claims: TableText
    pictures: Sequence[Picture]
    provenance: Mapping[str, str]


def write_gallery(
    path: str | os.PathLike[str],
    headline: str,
    verdicts: TableText,
    sections: Sequence[Section],
    facts: Mapping[str, str],
) -> None:
    """Write the page.

    Args:
        path: the file to write, whole or not at all; its folder must exist.
        headline: the sum of all verdicts in one sentence.
        verdicts: the table of every claim.
        sections: the figures in the order of the page.
        facts: what is true of the whole page, by name.

    Raises:
        OSError: the file cannot be written.
    """
    content = {
        "title": "Figures of the papers",
        "state": "plain",
        "verdict": VerdictText(headline, ()),
        "verdicts": verdicts,
        "sections": [(section, page_figures(section.pictures, "")) for section in sections],
        "facts": facts,
    }
    write_text(Path(path), rendered("gallery.html", content))
