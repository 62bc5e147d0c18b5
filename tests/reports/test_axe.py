"""Pages of every kind as axe-core sees them; what a look of our own finds: `pages.ACCESSIBLE`."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser

import discoveries
from isthmus.reports import report
from isthmus.sweeps.sweep_page import write_sweep_page
from pages import axe_violations
from sweep_plans import finished_rows

BAD = """<html><body><h1>a</h1><h4>b</h4><img src="data:,"><p style="color:#999;background:#fff">words to read</p>"""


def straight(path: Path) -> None:
    modes = discoveries.straight(np.eye(5)[:2], kind="mode", outputs=4, target_names=tuple("abcde"))
    report(modes, path, x=discoveries.inputs()[:, : modes.encoder.dimensions[0]])


def with_control(path: Path) -> None:
    found = discoveries.discovery(control=True, depth_path=discoveries.depth_path())
    report(found, path, x=discoveries.inputs(), command="isthmus discover a.csv")


KINDS: dict[str, Callable[[Path], None]] = {
    "control": with_control,
    "modes": straight,
    "sweep": lambda path: write_sweep_page(path, finished_rows(), Path("runs/plan")),
    "diagnosis": lambda path: report(discoveries.discovery().diagnosis, path),
}
SCREENS = [(kind, scheme, width) for kind in KINDS for scheme in ("light", "dark") for width in (1280, 390)]
FIRST = ("diagnosis", "dark", 390)  # has the fewest pictures


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "scheme", "width"), [s if s == FIRST else pytest.param(*s, marks=pytest.mark.slow) for s in SCREENS]
)
def test_a_page_keeps_every_rule(browser: Browser, tmp_path: Path, kind: str, scheme: str, width: int) -> None:
    KINDS[kind](tmp_path / "page.html")
    page = browser.new_page(viewport={"width": width, "height": 844}, color_scheme=scheme)  # pyright: ignore[reportArgumentType] - two of its words
    page.goto((tmp_path / "page.html").as_uri())
    assert axe_violations(page) == []
    page.close()


@pytest.mark.slow
def test_what_breaks_a_rule_is_seen(browser: Browser) -> None:
    page = browser.new_page()
    page.set_content(BAD)
    rules = {line.partition(":")[0] for line in axe_violations(page)}
    assert rules >= {"color-contrast", "document-title", "heading-order", "html-has-lang", "image-alt"}
    page.close()
