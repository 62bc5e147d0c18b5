"""What a linear half says, in sentences and as a table: combinations of the inputs, or modes of the outputs.

The numbers: `discovery.evidence.straight_halves`. The pictures beside them: `straight_pictures`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from isthmus.discovery import Discovery
from isthmus.discovery.combinations import IDLE
from isthmus.discovery.evidence.straight_halves import sources_of
from isthmus.discovery.evidence.straight_terms import in_words, terms_of
from isthmus.discovery.halves import INDEX, RANK_KINDS
from isthmus.reports.steepest_words import has_steepest, steepest_notes, steepest_table
from isthmus.reports.tables import TableText
from isthmus.reports.words import Line
from isthmus.tasks.arrays import counted
from isthmus.tasks.names import shown
from isthmus.theory import Verdict

_SHORT_TERMS, _SHORT_DIRECTIONS, _SHORT_NAME = 4, 4, 28
_MOST_NAMES = 40  # columns without a part that are named
TERMS = 8


@dataclass(frozen=True, slots=True)
class StraightText:
    """A section of a page about a linear half.

    Attributes:
        title: its heading.
        lead: the answer in one sentence.
        table: one row for each direction.
        notes: what takes no part, and what is a choice.
        steepest: of several combinations, the directions of largest slope, one row each; None where none are known.
        steepest_notes: what these are, and how they differ from what loses least.
    """

    title: str
    lead: str
    table: TableText
    notes: tuple[str, ...]
    steepest: TableText | None = None
    steepest_notes: tuple[str, ...] = ()


def straight_section(found: Discovery, half: xr.Dataset) -> StraightText:
    """The section about the linear half of a discovery, of its table `straight_half`."""
    index = found.kind == INDEX.name
    title = "Combinations of the inputs" if index else "Modes of the outputs"
    notes = _without_part(half), _what_is_chosen(half) + _of_text(half)
    if not has_steepest(half):
        return StraightText(title, lead(found), _table(half), notes)
    return StraightText(title, lead(found), _table(half), notes, steepest_table(half), steepest_notes(half))


def lead(found: Discovery) -> str:
    """What depends on how many combinations, or moves in how many modes: "yield depends on 2 combinations of ..."."""
    index, rank = found.kind == INDEX.name, found.rank
    inputs = len(set(sources_of(found, found.input_names))) or found.encoder.dimensions[0]
    noun = RANK_KINDS[found.kind].noun
    if found.verdict is Verdict.NO_SHARP_RANK:
        return f"No number of {noun}s stands out; {counted(rank, noun)}, the best single reading, would be these."
    maybe = "" if found.verdict is Verdict.CONFIDENT else "probably "
    names = found.target_names
    if found.task == "autoencoding":
        what = f"The {counted(inputs, 'column')} can {maybe}be rebuilt"
        return f"{what} from {counted(rank, noun)} of them." if index else f"{what} from {counted(rank, noun)}."
    one = len(names) == 1 or found.task == "classification"
    who = "The class" if found.task == "classification" else shown(names[0]) if one else f"The {len(names)} targets"
    verb = ("depend" if index else "move") + "s" * one
    if index:
        return f"{who} {maybe}{verb} on {counted(rank, noun)} of the {counted(inputs, 'input')}."
    return f"{who} {maybe}{verb} in {counted(rank, noun)}."


def short_line(half: xr.Dataset) -> Line:
    """The first few directions in one line, for a terminal."""
    shown_first = half.isel(direction=slice(_SHORT_DIRECTIONS))
    terms = terms_of(half, most=_SHORT_NAME)
    texts = [in_words(terms, row, most=_SHORT_TERMS) for row in shown_first["loading"].values]
    numbered = [f"({i}) {text}" for i, text in enumerate(texts, 1)] if half.sizes["direction"] > 1 else texts
    if rest := half.sizes["direction"] - len(texts):
        numbered.append(f"and {rest} more")
    units = "in standardised columns" if half.attrs["standardised"] else "in your units, of length 1"
    label = "Combinations" if half.attrs["kind"] == INDEX.name else "Modes"
    return Line(label, f"{units}: {'; '.join(numbered)}")


def _table(half: xr.Dataset) -> TableText:
    terms, index = terms_of(half), half.attrs["kind"] == INDEX.name
    loadings = half["loading"].values
    columns: dict[str, list[str]] = {"combination" if index else "mode": [str(i) for i in half["direction"].values]}
    if "share" in half:
        what = "share of the squared slopes" if index else "share of the variance"
        columns[what] = [f"{100 * share:.3g} %" for share in half["share"].values]
    if "cone" in half:
        columns["uncertain by"] = [f"{np.degrees(cone):.2g}°" for cone in half["cone"].values]
    numbers = range(1, len(columns))
    if not half.attrs["standardised"]:
        columns["in your units, of length 1"] = [in_words(terms, row, most=TERMS, digits=".3g") for row in loadings]
    else:
        columns["in standardised columns"] = [in_words(terms, row, most=TERMS) for row in loadings]
        if "coefficient" in half:
            rows = zip(loadings, half["coefficient"].values, strict=True)
            columns["the same in your units"] = [in_words(terms, a, b, most=TERMS, digits=".3g") for a, b in rows]
    # the first column counts as words too: on a telephone a text behind a number would have a narrow place beside it
    words = tuple(place for place in range(len(columns)) if place not in numbers)
    return TableText(tuple(columns), tuple(zip(*columns.values(), strict=True)), words)


def _without_part(half: xr.Dataset) -> str:
    index = half.attrs["kind"] == INDEX.name
    noun = "input" if index else "output"
    where = "standardised columns" if half.attrs["standardised"] else "your units"
    spread = f" in every {'combination' if index else 'mode'}" if half.sizes["direction"] > 1 else ""
    below = f"in {where} a loading below {IDLE:g}{spread}"
    sources = half["source"].values.tolist()
    idle = list(
        dict.fromkeys(source for source, part in zip(sources, half["takes_part"].values, strict=True) if not part)
    )
    if not idle:
        return f"All {counted(len(set(sources)), noun)} take part: none has {below}."
    verb = "is ignored" if index else "does not move"
    if len(idle) > 1:
        verb = "are ignored" if index else "do not move"
    by = " by this network" if index else " with this network"
    has = "it has" if len(idle) == 1 else "each has"
    return f"{counted(len(idle), noun)} {verb}{by}: {_listed(idle)}. {has.capitalize()} {below}."


def _of_text(half: xr.Dataset) -> str:
    """That of values of one column, which add up to 1, only differences count."""
    sources = half["source"].values.tolist()
    of_text = [source for source in dict.fromkeys(sources) if sources.count(source) > 1]
    if not of_text:
        return ""
    return f" Of the values of {_listed(of_text)} only differences count, since they add up to 1 in every row."


def _listed(names: Sequence[str]) -> str:
    text = ", ".join(shown(name) for name in names[:_MOST_NAMES])
    return text if len(names) <= _MOST_NAMES else f"{text} and {len(names) - _MOST_NAMES} more"


def _what_is_chosen(half: xr.Dataset) -> str:
    index = half.attrs["kind"] == INDEX.name
    unit = (
        "Standardised columns have mean 0 and spread 1. "
        if half.attrs["standardised"]
        else "Loadings are of columns in your units: they say little of how much each matters. "
    )
    what = "combinations" if index else "modes"
    if half.sizes["direction"] == 1:
        return f"{unit}The one {what[:-1]} is determined but for its sign and scale."
    return (
        f"{unit}What the data determine is the span of the {what}, that is all sums of multiples of them; which ones "
        f"are shown is a choice, made so that each uses few columns (varimax)."
    )
