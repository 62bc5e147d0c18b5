"""The page about a sweep, of runs by hand: its words, its pictures, its table, and a browser that filters."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from isthmus.sweeps.index import Row
from isthmus.sweeps.sweep_page import write_sweep_page
from pages import HOSTILE, Page
from sweep_plans import finished_row, finished_rows


def written(path: Path, given: Sequence[Row]) -> Page:
    write_sweep_page(path, given, Path("runs/plan"))
    return Page(path.read_text())


def test_settings_that_end_alike_have_their_whole_names_and_what_is_swept_is_not_the_task(tmp_path: Path) -> None:
    """Two columns called seed, two called rank, and a task of rank 1 where the ranks 1 and 2 were swept."""
    rows: list[Row] = []
    for rank, seed, other in [(1, 0, 5), (2, 0, 5), (1, 1, 5), (2, 1, 6), (1, 0, 6), (2, 0, 6)]:
        row = finished_row(3, 0.1, seed)
        task = {**row.settings["task"], "rank": rank, "seed": other}
        settings = {**row.settings, "task": task}
        rows.append(Row(f"{rank}{seed}{other}", row.status, settings, row.numbers))
    page = written(tmp_path / "page.html", rows)
    words = " ".join(" ".join(page.text).split())
    head = words.partition("Ranks read")[0]
    assert "task rank" in head
    assert "network seed" in head
    assert "task seed" in head
    assert "teacher, rank 1" not in head
    titles = [attributes["id"] for attributes in page.attributes("section") if "id" in attributes]
    assert len(titles) == len(set(titles))


@pytest.mark.slow
def test_it_says_what_was_asked_and_how_it_ended(tmp_path: Path) -> None:
    page = written(tmp_path / "page.html", finished_rows())
    words = " ".join(" ".join(page.text).split())
    assert "16 runs over depth, seed and ridge: 15 done, 1 failed" in words
    assert "teacher, rank 2, d in 5" in words
    assert "2 in 13, 3 in 2 of 15 runs; the true rank is 2" in words
    assert "STEP_LIMIT (15): the gradient evaluations were used up" in words
    assert f"ValueError: {' '.join(HOSTILE.split())}" in words, "as text"
    assert len(page.attributes("script")) == 1
    titles = [attributes["id"] for attributes in page.attributes("section") if "id" in attributes]
    assert titles == ["against-ridge", "against-depth"]
    assert len(page.attributes("figure")) == 2 * len(("rank_estimate", "rank", "objective"))


def test_runs_that_differ_in_nothing_have_a_table_alone(tmp_path: Path) -> None:
    page = written(tmp_path / "page.html", finished_rows()[:1])
    assert (len(page.attributes("figure")), len(page.attributes("table"))) == (0, 1)
    assert "1 run: 1 done" in " ".join(" ".join(page.text).split())


def test_seeds_are_drawn_where_nothing_else_is(tmp_path: Path) -> None:
    page = written(tmp_path / "page.html", [finished_row(3, 0.1, seed) for seed in range(3)])
    assert [attributes["id"] for attributes in page.attributes("section") if "id" in attributes] == ["against-seed"]


@pytest.mark.slow
def test_a_field_leaves_the_runs_with_all_its_words(browser: Browser, tmp_path: Path) -> None:
    written(tmp_path / "page.html", finished_rows())
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    page.get_by_role("searchbox", name="Show rows with").fill("failed 0.0001")
    assert page.locator("tbody tr:visible").count() == 1
    assert page.get_by_role("status").inner_text() == "1 of 16"
    page.close()


@pytest.mark.dear(1)
@pytest.mark.parametrize("count", [12, 13])
def test_a_table_that_an_eye_holds_has_no_field(count: int, browser: Browser, tmp_path: Path) -> None:
    """The runs differ in nothing but their numbers, so that there is nothing to draw."""
    written(tmp_path / "page.html", [finished_row(3, 0.1, 0)] * count)
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    assert page.get_by_role("searchbox").count() == (count > 12)
    page.close()


def test_what_runs_say_and_lack_stands_on_the_page(tmp_path: Path) -> None:
    rows = [finished_row(3, ridge, 0) for ridge in (0.1, 0.01)]
    rows.append(finished_row(3, 0.001, 0, warnings="far from critical.", rank_hamiltonian=1.5, rank_jacobian=2))
    rows.append(finished_row(3, 0.0001, 0, outcome="COLLAPSED", rank=7))
    rows.append(finished_row(3, 0.00001, 0, outcome="DIVERGED", rank=7, objective=4.6e60))
    page = written(tmp_path / "page.html", rows)
    words = " ".join(" ".join(page.text).split())
    assert "Warnings of 1 run; the table has them" in words
    for text in ("far from critical.", "the training collapsed", "rank hamiltonian", "rank jacobian", "rank missing"):
        assert text in words
    assert "Left out: 1 DIVERGED, 1 COLLAPSED" in words
    assert "2 in 3 of 3 runs" in words, "those that were lost read no rank"
    assert "diverged or collapsed are not drawn" in words
