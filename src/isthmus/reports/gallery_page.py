"""One self-contained HTML page of many pictures in sections: figures with their claims, a sweep with its runs.

What the figures are: `figures`; what a sweep is: `sweeps`. The page about one result: `page`.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from isthmus.reports.page import page_figures, rendered
from isthmus.reports.picture import Picture
from isthmus.reports.tables import TableText
from isthmus.reports.words import VerdictText
from isthmus.writing.atomic import write_text


@dataclass(frozen=True, slots=True)
class Section:
    """One figure on the page, or one setting of a sweep.

    Attributes:
        anchor: by which links reach it.
        title: what it shows.
        setting: where it comes from and with what it was made, in sentences.
        state: "confident", "doubtful" or "plain", which chooses the colour at its side.
        headline: its verdict in one sentence.
        claims: its verdict claim by claim, or None.
        pictures: its panels.
        provenance: versions, commit, seconds and the like.
    """

    anchor: str
    title: str
    setting: str
    state: str
    headline: str
    claims: TableText | None
    pictures: Sequence[Picture]
    provenance: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Gallery:
    """What stands on the page.

    Attributes:
        title: what it is about.
        verdict: the sum of it in words.
        sections: in the order of the page.
        facts: what is true of the whole page, by name.
        claims: every claim of every section in one table, to be downloaded; None where there are none. Each stands
            once on the page, in its section, and one filter goes through all of them.
        runs: a table of all that the pictures show; None where there is none.
    """

    title: str
    verdict: VerdictText
    sections: Sequence[Section]
    facts: Mapping[str, str]
    claims: TableText | None = None
    runs: TableText | None = None


def write_gallery(path: str | os.PathLike[str], page: Gallery) -> None:
    """Write the page.

    Args:
        path: the file to write, whole or not at all; its folder must exist.
        page: what stands on it.

    Raises:
        OSError: the file cannot be written.
    """
    content = {
        "title": page.title,
        "state": "plain",
        "verdict": page.verdict,
        "claims": page.claims,
        "runs": page.runs,
        "sections": [(section, page_figures(section.pictures, "")) for section in page.sections],
        "facts": page.facts,
    }
    write_text(Path(path), rendered("gallery.html", content))
