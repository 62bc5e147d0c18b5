"""The page about a diagnosis: what stands in it, and what a real browser makes of it."""

import re
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
import torch
from playwright.sync_api import Browser

import discoveries
import isthmus
from foreign_modules import Images, samples, seeded
from isthmus.diagnostics import Diagnosis
from isthmus.networks import LeakyResNet
from isthmus.reports import report, verdict_of
from isthmus.reports.tables import layer_table
from pages import HOSTILE, Page, filled, shown

COMMAND = "isthmus diagnose stream.pt --data rows.csv --target y --ridge 0.01"
PICTURES = [
    "layer_spectra",
    "jacobian_spectrum",
    "dimensions",
    "departures",
    "tangent_kernel",
    "energies",
    "hamiltonian",
]
MANY = 60


def stream() -> Diagnosis:
    """A leaky network on targets, with energies and Hamiltonian."""
    network = LeakyResNet(4, 2, width=6, depth=8, effective_depth=2.0, seed=0, dtype=torch.float64)
    x, y = samples(30, 4, dtype=torch.float64), samples(30, 2, seed=1, dtype=torch.float64)
    return isthmus.diagnose(network, x, y, ridge=1e-2)


def hostile() -> Diagnosis:
    """Names, reasons and warnings that would run in a page, and many layers."""
    found = stream()
    rows = np.arange(MANY) % found.layers.sizes["layer"]
    layers = found.layers.isel(layer=rows).assign_coords(layer=np.arange(1, MANY + 1))
    layers["name"] = ("layer", [f"{HOSTILE}{'deep.' * 30}{k}" for k in range(MANY)])
    layers.attrs |= {HOSTILE: HOSTILE}
    return Diagnosis(layers, found.rank, [(HOSTILE, HOSTILE)], (HOSTILE,))


@pytest.fixture(scope="module")
def found() -> Diagnosis:
    return stream()


@pytest.fixture(scope="module")
def page_path(tmp_path_factory: pytest.TempPathFactory, found: Diagnosis) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    report(found, path, command=COMMAND)
    return path


@pytest.fixture(scope="module")
def hostile_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "hostile.html"
    report(hostile(), path, command=HOSTILE)
    return path


def test_the_verdict_comes_first_then_evidence_layers_and_provenance(page_path: Path, found: Diagnosis) -> None:
    page = Page(page_path.read_text())
    words = [text.strip() for text in page.text if text.strip()]
    body = words[next(i for i, word in enumerate(words) if re.fullmatch(r"Rank of a network.*-\d\d", word)) :]
    text = verdict_of(found)
    assert body[1:4] == [text.headline, "Interval", text.lines[0].text]
    sections = body[body.index("Warnings") :]  # "Layers" is a label of the verdict too
    order = [sections.index(h) for h in ("Warnings", "Evidence", "Layers", "Where this comes from")]
    assert order == sorted(order)
    assert COMMAND in body
    assert str(found.layers.attrs["cost"]) in body
    assert any(f"torch {version('torch')}" in word for word in body)  # as installed: torch itself says more
    assert "none: no seed enters" in body


def test_every_number_of_every_layer_is_in_the_table(page_path: Path, found: Diagnosis) -> None:
    text = page_path.read_text()
    for name in ("dimension_participation", "tangent_kernel_trace", "hamiltonian", "kinetic_energy"):
        for value in found.layers[name].values:
            assert np.isnan(value) or f">{value:.4g}</td>" in text
    page = Page(text)
    assert [a.get("scope") for a in page.attributes("th")] == ["col"] * len(page.attributes("th"))
    assert len(page.attributes("table")) == len(page.attributes("caption")) >= 1


def test_every_picture_is_there_with_its_words(page_path: Path) -> None:
    page = Page(page_path.read_text())
    assert [a["id"] for a in page.attributes("figure")] == [f"figure-{name}" for name in PICTURES]
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))
    for attributes in page.attributes("svg"):
        assert attributes["role"] == "img"
        assert {*(attributes["aria-labelledby"] or "").split()} <= set(ids)


def test_pixels_as_samples_and_modules_without_rows_are_said(tmp_path: Path) -> None:
    found = isthmus.diagnose(seeded(Images, 3), samples(20, 1, 8, 8))
    report(found, tmp_path / "page.html", pictures=())  # the words only
    page = Page((tmp_path / "page.html").read_text())
    said = " ".join(page.text)
    assert "pixels are treated as samples in 2 of 4 layers" in said
    assert "Modules without a row" in said
    assert len(found.skipped) == 2
    for name, reason in found.skipped:
        assert name in page.text
        assert reason in page.text


def test_hostile_names_are_shown_not_run(hostile_path: Path) -> None:
    text = hostile_path.read_text()
    page = Page(text)
    assert len(page.attributes("script")) == 1  # our own
    assert "<script>document" not in text
    assert " ".join(page.text).count(HOSTILE) >= MANY + 5
    assert not re.search(r"@import|url\((?!#)|\bsrc=|https?://(?!www\.w3\.org)", text)


NUMBERS_WITHOUT_WORDS = """[...document.querySelectorAll('td')].filter(d => d.innerText)
  .filter(d => ['none', 'normal', '""'].includes(getComputedStyle(d, '::before').content)).length"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("which", "scheme", "width"),
    [
        ("plain", "dark", 390),
        *(
            pytest.param(which, scheme, width, marks=pytest.mark.slow)
            for which, scheme, width in (
                ("plain", "light", 390),
                ("plain", "light", 1280),
                ("hostile", "dark", 1280),
                ("hostile", "dark", 390),
                ("hostile", "light", 1280),
            )
        ),
    ],
)
def test_a_browser_shows_everything(  # noqa: PLR0913 - fixtures
    page_path: Path, hostile_path: Path, browser: Browser, tmp_path: Path, which: str, scheme: str, width: int
) -> None:
    path = page_path if which == "plain" else hostile_path
    shot = tmp_path / f"diagnosis_{which}_{scheme}_{width}.png"  # kept with the other artefacts of the test
    with shown(browser, path, shot, scheme=scheme, width=width) as (page, num_pictures):
        assert shot.stat().st_size > 30_000
        assert page.title().startswith("Rank of a network")
        assert num_pictures == len(PICTURES)
        if width == 390:  # rows are stacked: nothing to scroll sideways, and every number says what it is
            assert page.evaluate("[...document.querySelectorAll('.scroll')].every(s => s.scrollWidth <= s.clientWidth)")
            assert page.evaluate(NUMBERS_WITHOUT_WORDS) == 0


@pytest.mark.slow
def test_the_page_prints_on_paper_without_losing_columns(page_path: Path, browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 718, "height": 1000})  # A4 with margins of 1 cm
    page.goto(page_path.as_uri())
    page.emulate_media(media="print")
    wide = "[...document.querySelectorAll('table')].map(t => t.getBoundingClientRect().right)"
    assert max(page.evaluate(wide)) <= 718
    sizes = "[...document.querySelectorAll('td, th')].map(e => parseFloat(getComputedStyle(e).fontSize))"
    assert min(page.evaluate(sizes)) >= 9
    margins = dict.fromkeys(("top", "right", "bottom", "left"), "1cm")
    shares = filled(page.pdf(format="A4", margin=margins))  # pyright: ignore[reportArgumentType] - a dictionary of them
    assert len(shares) >= 3
    assert shares[0] > 0.6
    assert min(shares[:-1]) > 0.5
    page.close()


def test_every_heading_of_a_section_and_of_the_layers_is_explained(tmp_path: Path) -> None:
    report(discoveries.discovery().diagnosis, tmp_path / "page.html", pictures=())  # the words only
    text = (tmp_path / "page.html").read_text()
    bare = re.findall(r"<h2>([^<]*)</h2>\s*(?!\s*<p)", text)
    assert bare == []
    table = layer_table(discoveries.discovery().diagnosis)
    said = {"layer", "where", "position", "of", "stationarity", "norm of momentum", "rank from Hamiltonian"}
    assert {name for name in table.headings if name not in table.explained} <= said
    assert {"gap", "nonlinearity impact"} <= set(table.explained)
    assert all(f"<dt>{name}</dt><dd>" in text for name in table.explained)
