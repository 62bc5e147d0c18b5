"""Figures one after the other: computed, judged, drawn, and put on one page.

What a figure is: `figure`. Where it computes: `workshop`. The page: `reports.gallery_page`.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import xarray as xr

from isthmus.figures.claims import Claim, Judgement, tally
from isthmus.figures.figure import FigurePlan, PaperFigure, Preset
from isthmus.figures.parts import Part
from isthmus.figures.workshop import PARTS, Workshop
from isthmus.reports.gallery_page import Gallery, Section, write_gallery
from isthmus.reports.picture import Picture
from isthmus.reports.pictures import save_pictures
from isthmus.reports.tables import TableText
from isthmus.reports.words import VerdictText
from isthmus.writing.atomic import write_text
from isthmus.writing.regular import contents

PAGE, VERDICTS, TABLE, PICTURES = "gallery.html", "verdicts.json", "verdicts.md", "pictures"
# what is read first stands first: a telephone shows two or three columns and scrolls to the others
_HEADINGS = ("verdict", "what the paper states", "value", "measured here", "refuted if", "where")


@dataclass(frozen=True, slots=True)
class Finished:
    """A figure with what came out.

    Attributes:
        figure: which.
        data: its arrays.
        claims: its verdict.
        pictures: its panels.
    """

    figure: PaperFigure
    data: xr.Dataset
    claims: tuple[Claim, ...]
    pictures: tuple[Picture, ...]


def gallery(
    figures: Sequence[PaperFigure],
    preset: Preset,
    workshop: Workshop,
    *,
    command: str | None = None,
    beside: Iterable[PaperFigure] = (),
) -> tuple[Finished, ...]:
    """Compute figures; write `gallery.html`, `verdicts.json`, `verdicts.md`, `pictures/` into the workshop's folder.

    The trainings of all figures run together first, then the parts of all. What is in the folder already is not
    computed again.

    Args:
        figures: which, in the order of the page.
        preset: how large.
        workshop: where.
        command: the command that asked for it, for the page.
        beside: those of them that were computed in this folder before, at this preset, stay on the page and in the
            verdicts; none of them is computed.

    Returns:
        Every figure that was asked for with its arrays, verdict and pictures.

    Raises:
        As `Workshop.train` and `Workshop.parts`.
    """
    plans = [figure.plan(preset) for figure in figures]
    names = {figure.name for figure in figures}
    before = [figure for figure in beside if figure.name not in names and _is_there(figure, preset, workshop)]
    workshop.train(sweep for plan in plans for sweep in plan.sweeps.values())
    workshop.make(part for plan in plans for part in plan.parts)
    found: list[Finished] = []
    for figure, plan in zip(figures, plans, strict=True):
        workshop.say(f"figure {figure.number}, {figure.name}")
        done = _finished(figure, plan, workshop)
        save_pictures(done.pictures, workshop.folder / PICTURES)
        found.append(done)
    if before:
        listed = ", ".join(f"{figure.number} {figure.name}" for figure in before)
        workshop.say(f"the page also shows what was computed here before: {listed}")
    if (other := preset_of(workshop.folder)) not in {None, preset.value}:
        workshop.say(f"{PAGE}, {VERDICTS} and {TABLE} were of the preset {other} and are now of {preset.value}")
    shown = [*found, *(_finished(figure, figure.plan(preset), workshop) for figure in before)]
    _write(sorted(shown, key=lambda done: done.figure.number), preset, workshop.folder, command)
    return tuple(found)


def _finished(figure: PaperFigure, plan: FigurePlan[object], workshop: Workshop) -> Finished:
    [data] = workshop.parts([_whole(figure, plan, workshop)])
    return Finished(figure, data, figure.verdict(data), figure.draw(data))


def _is_there(figure: PaperFigure, preset: Preset, workshop: Workshop) -> bool:
    return _whole(figure, figure.plan(preset), workshop).is_there(workshop.folder / PARTS, workshop.say)


def _whole(figure: PaperFigure, plan: FigurePlan[object], workshop: Workshop) -> Part:
    """The arrays of a figure, kept under its plan: its sizes, the ids of its trainings, and its code."""
    sweeps = {name: [run.id for run in sweep.runs()] for name, sweep in plan.sweeps.items()}
    sizes = asdict(plan.sizes)  # pyright: ignore[reportArgumentType] - a dataclass of whatever kind
    parts = [part.id for part in plan.parts]
    settings = {"sizes": sizes, "sweeps": sweeps, "parts": parts, "code": figure.code()}
    return Part(f"figure {figure.name}", settings, lambda _checkpoint, _hear: figure.compute(plan, workshop))


def preset_of(folder: Path) -> str | None:
    """That of the page in the folder, None where there is none or its verdicts cannot be read."""
    try:
        return str(json.loads(contents(folder / VERDICTS))["preset"])
    except (OSError, ValueError, TypeError, LookupError):
        return None


def verdict_table(found: Sequence[Finished]) -> TableText:
    """Every claim of the figures in one table."""
    rows = [(f"{done.figure.number} {done.figure.name}", *row) for done in found for row in _rows(done.claims)]
    return TableText(("figure", *_HEADINGS), tuple(rows), (0, 1, 2, 4, 5, 6))


def markdown(found: Sequence[Finished]) -> str:
    """The headline and every claim in a table, for documentation."""
    headings = ("figure", "what the paper states", "measured", "value", "refuted if", "verdict")
    rows = [headings, ("---",) * len(headings)]
    for done in found:
        for verdict, statement, value, quantity, refutation, _source in _rows(done.claims):
            rows.append((done.figure.name, statement, quantity, value, refutation, verdict))
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([headline(found), "", *lines]) + "\n"


def verdicts(found: Sequence[Finished], preset: Preset) -> dict[str, object]:
    """What `verdicts.json` holds: every claim by figure, with its thresholds, and over starts its spread."""
    figures = {
        done.figure.name: [
            {"judgement": claim.judgement.value, "measured": repr(claim.measured), "refuted": claim.refutation}
            | {name: getattr(claim, name) for name in ("statement", "source", "quantity", "doubt")}
            | _spread(claim)
            for claim in done.claims
        ]
        for done in found
    }
    return {"preset": preset.value, "headline": headline(found), "figures": figures}


def headline(found: Sequence[Finished]) -> str:
    """How many figures and claims, and how many of them hold."""
    figures = f"{len(found)} figure{'s' * (len(found) != 1)}"
    return f"{figures}, {tally([claim for done in found for claim in done.claims])}"


def _rows(claims: Sequence[Claim]) -> list[tuple[str, ...]]:
    return [
        (
            claim.judgement.value + (f" ({claim.doubt})" if claim.doubt else ""),
            claim.statement,
            claim.value,
            claim.quantity,
            claim.refutation,
            claim.source,
        )
        for claim in claims
    ]


def _write(found: Sequence[Finished], preset: Preset, folder: Path, command: str | None) -> None:
    sections = [_section(done) for done in found]
    lines = {f"preset {preset.value}": "the numbers of every plan; presets differ in nothing else"}
    lines |= {"command": command} if command else {}
    words = VerdictText(headline(found), ())
    page = Gallery("Figures of the papers", words, sections, lines, claims=verdict_table(found))
    write_gallery(folder / PAGE, page)
    write_text(folder / VERDICTS, json.dumps(verdicts(found, preset), indent=1) + "\n")
    write_text(folder / TABLE, markdown(found))


def _spread(claim: Claim) -> dict[str, object]:
    """Of a claim over starts their numbers, the interval around the mean that was judged, and how many they ask for."""
    if not claim.starts:
        return {}
    return {
        "interval": [repr(float(end)) for end in claim.interval],
        "starts": [repr(float(start)) for start in claim.starts],
        "looks": claim.looks,
        "needed_starts": claim.needed_starts,
    }


def _section(done: Finished) -> Section:
    figure = done.figure
    origin = {str(name): str(value) for name, value in done.data.attrs["provenance"].items()}
    claims = TableText(_HEADINGS, tuple(_rows(done.claims)), (0, 1, 3, 4, 5))
    state = "confident" if all(c.judgement is Judgement.HOLDS for c in done.claims) else "doubtful"
    return Section(
        f"figure-{figure.number}", f"{figure.number}. {figure.title}", f"{figure.source}. {figure.setting}", state,
        tally(done.claims), claims, done.pictures, origin,
    )  # fmt: skip
