import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Browser

import discoveries
import isthmus
from isthmus.discovery import Discovery
from isthmus.reports import report
from pages import ACCESSIBLE, HOSTILE, Page, filled, shown


def hostile() -> Discovery:
    found = discoveries.discovery(control=True)
    found.diagnosis.skipped.append((HOSTILE, HOSTILE))
    found.runs["kind"] = ("run", np.full(9, HOSTILE))
    return discoveries.discovery(
        input_names=(HOSTILE,),
        target_names=(HOSTILE,),
        reasons=(HOSTILE,),
        warnings=(HOSTILE,),
        settings={HOSTILE: HOSTILE},
        readings={HOSTILE: 1},
        diagnosis=found.diagnosis,
        runs=found.runs,
    )


@pytest.fixture(scope="module")
def page_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    isthmus.report(discoveries.discovery(control=True), path, x=discoveries.inputs(), command="isthmus discover a.csv")
    return path


@pytest.fixture(scope="module")
def hostile_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "hostile.html"
    report(hostile(), path, command=HOSTILE)
    return path


def test_the_page_is_well_formed_and_the_verdict_comes_first(page_path: Path) -> None:
    page = Page(page_path.read_text())
    words = [text.strip() for text in page.text if text.strip()]
    body = words[next(i for i, word in enumerate(words) if re.fullmatch(r"Rank of a task.*, \d{4}-\d\d-\d\d", word)) :]
    assert body[1] == "This task needs 3 dimensions."
    assert "With 2 dimensions the error is 101 times as large." in body
    assert "isthmus discover a.csv" in body
    assert "column 'probe 4' was constant and was dropped" in body
    assert "Control: random data of the same covariance" in body


def test_nothing_is_fetched_and_nothing_runs(page_path: Path) -> None:
    text = page_path.read_text()
    page = Page(text)
    fetching = {"src", "href", "xlink:href", "srcset", "data", "action", "poster"}
    for _tag, attributes in page.elements:
        for name in fetching & set(attributes):
            assert re.match(r"#|data:(image/png|text/csv|application/json)[;,]", attributes[name] or ""), attributes
    assert not {"link", "iframe", "object"} & {tag for tag, _ in page.elements}
    assert not re.search(r"@import|url\((?!#)", text)


def test_every_picture_has_a_title_and_a_description(page_path: Path) -> None:
    page = Page(page_path.read_text())
    ids = Counter(a["id"] for _, a in page.elements if "id" in a)
    pictures = page.attributes("svg")
    assert len(pictures) == 5 + 3 + 2  # of the result, its coordinates, the control
    for attributes in pictures:
        assert attributes["role"] == "img"
        assert [ids[name] for name in (attributes["aria-labelledby"] or "").split()] == [1, 1]
    assert set(ids.values()) == {1}
    assert not page.attributes("img")


def test_references_inside_pictures_are_kept(page_path: Path) -> None:
    text = page_path.read_text()
    ids = set(re.findall(r'\bid="([^"]+)"', text))
    used = set(re.findall(r'(?:xlink:href="#|url\(#)([^")]+)', text))
    assert used
    assert used <= ids


def test_no_page_styles_an_element_by_itself(page_path: Path) -> None:
    """Such a style would be refused by the policy, and the page would look otherwise than it was drawn."""
    text = page_path.read_text()
    assert text.count("<style") == 1
    assert not re.search(r"<[^>]*\sstyle=", text)
    assert text.count("<svg") == 10


def test_the_page_follows_the_readers_scheme(page_path: Path) -> None:
    svg = "".join(re.findall(r"<svg.*?</svg>", page_path.read_text(), flags=re.DOTALL))
    assert "prefers-color-scheme: dark" in page_path.read_text()
    assert "var(--ink)" in svg
    assert "#1b1e23" not in svg


def test_hostile_names_are_shown_not_run(hostile_path: Path) -> None:
    page = Page(hostile_path.read_text())
    assert len(page.attributes("script")) == 1  # our own
    assert "<script>document" not in hostile_path.read_text()
    words = " ".join(page.text)
    assert words.count(HOSTILE) >= 10


@pytest.mark.parametrize(
    ("columns", "listed", "more"), [(100, 100, ""), (5000, 100, " and 4,900 more, see result.json")]
)
def test_of_many_columns_the_first_are_listed(tmp_path: Path, columns: int, listed: int, more: str) -> None:
    found = discoveries.discovery(input_names=tuple(f"pixel_{i}" for i in range(columns)))
    report(found, tmp_path / "report.html", pictures=())  # the words only
    words = Page((tmp_path / "report.html").read_text()).text
    assert f"{columns} inputs" in words
    assert ", ".join(f"pixel_{i}" for i in range(listed)) + more in words


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1, 2, 9])
def test_unusual_ranks_have_pages(tmp_path: Path, rank: int) -> None:
    found = discoveries.discovery(rank=rank)
    report(found, tmp_path / "report.html", x=discoveries.inputs() if rank == 2 else None)
    assert Page((tmp_path / "report.html").read_text()).attributes("svg")


@pytest.mark.slow
def test_the_same_result_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.html", "b.html"):
        report(discoveries.discovery(), tmp_path / name)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        ("light", 390),
        pytest.param("dark", 1280, marks=pytest.mark.slow),
        pytest.param("dark", 390, marks=pytest.mark.slow),
        pytest.param("light", 1280, marks=pytest.mark.slow),
    ],
)
def test_a_browser_shows_everything(page_path: Path, browser: Browser, tmp_path: Path, scheme: str, width: int) -> None:
    with shown(browser, page_path, tmp_path / f"{scheme}_{width}.png", scheme=scheme, width=width) as (_, num_pictures):
        assert num_pictures == 10


def test_a_browser_does_not_run_hostile_names(browser: Browser, hostile_path: Path) -> None:
    page = browser.new_page()
    page.goto(hostile_path.as_uri())
    assert page.title().startswith("Rank of a task")
    page.close()


@pytest.mark.slow
def test_tables_and_numbers_can_be_taken_away_and_sorted(tmp_path: Path, browser: Browser) -> None:
    found = discoveries.discovery()
    report(found, tmp_path / "page.html", command="isthmus discover 'my data.csv' --target y", pictures=())
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    assert page.title().startswith("Rank of a task: my data.csv, 2")
    with page.expect_download() as coming:
        page.click("text=Download all numbers as .json")
    assert json.loads(Path(coming.value.path()).read_text()) == found.to_dict()
    with page.expect_download() as coming:
        page.click("a[download='every_training_start.csv']")
    table = pd.read_csv(coming.value.path())
    column = list(table.columns).index("objective")
    head = page.locator("table:has(caption:text('Every training start')) th").nth(column)
    cells = f"table:has(caption:text('Every training start')) td:nth-child({column + 1})"
    for press, order in ((head.click, 1), (lambda: head.press("Enter"), -1)):
        press()
        shown = [float(text) for text in page.locator(cells).all_inner_texts()]
        assert shown == sorted(table["objective"], key=lambda value: order * value)
    assert head.get_attribute("aria-sort") == "descending"
    page.close()


# each breaks one rule of a page that readers without sight, without a mouse or in the dark can use
BAD = """<html><body><main><h1>a</h1><h3>b</h3><img src="data:,"><svg id="x"></svg><p id="x">c</p>
<table><tr><th>d</th></tr></table><a href="#">&#8203;</a><dl><p>e</p></dl><ul><p>f</p></ul><p tabindex="2">g</p>
<p style="overflow:auto;height:5px" id="s">h<br>i</p><p style="color:#999;background:#fff">j</p></main>
<p>k</p></body></html>"""


def test_what_keeps_readers_out_is_seen(browser: Browser) -> None:
    page = browser.new_page()
    page.set_content(BAD)
    rules = {line.partition(":")[0] for line in page.evaluate(ACCESSIBLE)}
    assert rules >= {
        "language", "title", "heading order", "id twice", "alternative text", "name of a picture", "caption", "scope",
        "list", "order of focus", "contrast of text", "outside of the landmark",
    }  # fmt: skip
    page.close()


@pytest.mark.slow
def test_on_paper_the_first_page_is_full_and_small_print_can_be_read(page_path: Path, browser: Browser) -> None:
    page = browser.new_page()
    page.goto(page_path.as_uri())
    page.emulate_media(media="print")
    margins = dict.fromkeys(("top", "right", "bottom", "left"), "1cm")
    shares = filled(page.pdf(format="A4", margin=margins))  # pyright: ignore[reportArgumentType] - a dictionary of them
    assert shares[0] > 0.6
    every = "[...document.querySelectorAll('td, th, dd, p, li, figcaption')]"
    sizes = f"{every}.map(e => parseFloat(getComputedStyle(e).fontSize))"
    assert min(page.evaluate(sizes)) >= 9
    page.close()
