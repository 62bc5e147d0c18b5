"""The page of many figures, on paper: made of figures by hand; those of the papers: `tests/figures/test_gallery.py`."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

import discoveries
from isthmus.reports.gallery_page import Gallery, Section, write_gallery
from isthmus.reports.pictures import pictures_of
from isthmus.reports.tables import TableText
from isthmus.reports.words import VerdictText
from pages import filled

HEADINGS = ("verdict", "what the paper states", "value", "measured here", "refuted if", "where")
ROW = ("inconclusive", "The hidden representations are two-dimensional.", "1.07 (0.9 to 1.3)", "least gap of the "
       "centred activations over the hidden layers", "below 2 or above 2", "Jacot 2023a, Figure 2")  # fmt: skip
CLAIMS = TableText(HEADINGS, (ROW,) * 6, (0, 1, 3, 4, 5))


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = discoveries.discovery()
    sections = [
        Section(
            f"figure-{i}", f"{i}. A figure of a paper", "Made by hand.", "doubtful", "6 claims: 6 inconclusive", CLAIMS,
            [picture for picture in pictures_of(found) if picture.name == name], {"seed": "0"},
        )
        for i, name in enumerate(("scree", "objective_curve", "starts"), 1)
    ]  # fmt: skip
    path = tmp_path_factory.mktemp("gallery") / "gallery.html"
    claims = TableText(HEADINGS, (ROW,) * 18, CLAIMS.words)
    words = VerdictText("3 figures, 18 claims", ())
    write_gallery(path, Gallery("Figures of the papers", words, sections, {"a": "b"}, claims=claims))
    return path


# lines of the cells of words that hold less than a word: the browser broke it
BROKEN = """() => [...document.querySelectorAll('td.words, th.words')].flatMap(cell => { const found = [];
  for (const node of cell.childNodes) for (const word of (node.textContent || '').matchAll(/[\\w-]+/g)) {
    const range = document.createRange(); range.setStart(node, word.index);
    range.setEnd(node, word.index + word[0].length);
    if (!word[0].includes('-') && new Set([...range.getClientRects()].map(r => r.top)).size > 1) found.push(word[0]); }
  return found; })"""


@pytest.mark.slow
def test_one_field_leaves_the_claims_with_all_its_words_and_the_figures_that_have_one(
    gallery: Path, browser: Browser
) -> None:
    page = browser.new_page()
    page.goto(gallery.as_uri())
    field = page.get_by_role("searchbox", name="Show claims with")
    field.fill("two-dim  INCONCLUSIVE")
    seen = "[...document.querySelectorAll('tbody tr')].filter(r => r.getBoundingClientRect().height > 0).length"
    sections = "[...document.querySelectorAll('section[id]')].filter(s => s.getBoundingClientRect().height > 0).length"
    assert (page.evaluate(seen), page.evaluate(sections)) == (18, 3)
    field.fill("holds")
    assert (page.evaluate(seen), page.evaluate(sections)) == (0, 0)
    assert page.get_by_role("status").inner_text() == "0 of 18"
    field.fill("")
    assert (page.evaluate(seen), page.evaluate(sections)) == (18, 3)
    page.close()


@pytest.mark.slow
def test_on_paper_claims_stand_once_and_whole_words_beside_their_heading(gallery: Path, browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 718, "height": 1000})  # A4 with margins of 1 cm
    page.goto(gallery.as_uri())
    seen = "[...document.querySelectorAll('table')].filter(t => t.getBoundingClientRect().height > 0).length"
    assert page.evaluate(seen) == 3, "each claim once"
    page.emulate_media(media="print")
    assert page.evaluate(seen) == 3
    assert page.get_by_role("searchbox").count() == 0, "nobody types on paper"
    assert page.evaluate(BROKEN) == []
    kept = "[...document.querySelectorAll('section > .verdict')].map(e => getComputedStyle(e).breakInside)"
    assert page.evaluate(kept) == ["avoid"] * 3
    assert page.evaluate("[...document.querySelectorAll('table')].every(t => t.getBoundingClientRect().right <= 718)")
    margins = dict.fromkeys(("top", "right", "bottom", "left"), "1cm")
    shares = filled(page.pdf(format="A4", margin=margins))  # pyright: ignore[reportArgumentType] - a dictionary of them
    assert min(shares[:-1]) > 0.5
    page.close()
