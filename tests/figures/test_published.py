"""docs/figures.md: every claim of every figure, counts that are those of its table, small pictures that are there."""

import re
from collections import Counter
from pathlib import Path

from figure_arrays import MADE
from isthmus.figures import FIGURES, Judgement

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "figures.md"
VERDICTS = {judgement.value for judgement in Judgement}
WITHOUT_FILES = {"denoising": {"set": slice(2)}}  # the page is made without MNIST


def rows() -> list[list[str]]:
    """The cells of the table of verdicts: figure, statement, quantity, value, refutation, verdict."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [row for row in cells if row[0] in FIGURES and row[-1] in VERDICTS]


def test_the_page_has_every_claim_of_every_figure_in_order() -> None:
    expected = [
        (name, claim.statement)
        for name, figure in FIGURES.items()
        for claim in figure.verdict(MADE[name]().isel(WITHOUT_FILES.get(name, {})))
    ]
    assert [(row[0], row[1]) for row in rows()] == expected


def test_the_headline_counts_the_table() -> None:
    counts = Counter(row[5] for row in rows())
    told = f"{len(FIGURES)} figures, {len(rows())} claims: {counts[Judgement.HOLDS.value]} hold, "
    assert told + f"{counts[Judgement.FAILS.value]} do not hold" in " ".join(PAGE.read_text().split())


def test_what_does_not_hold_is_explained() -> None:
    told = PAGE.read_text().partition("## What does not hold")[2].partition("\n## ")[0]
    for name in {row[0] for row in rows() if row[5] == Judgement.FAILS.value}:
        assert f"**{name}" in told


def test_the_pictures_are_there_one_at_least_of_each_figure_and_small() -> None:
    named = re.findall(r"\]\((images/figures/[a-z0-9-]+\.svg)\)", PAGE.read_text())
    there = {path.relative_to(PAGE.parent).as_posix() for path in (PAGE.parent / "images/figures").iterdir()}
    assert set(named) == there
    assert {name for name in FIGURES if not any(f"/{name}-" in path for path in named)} == set()
    assert sum((PAGE.parent / path).stat().st_size for path in there) < 1_000_000
