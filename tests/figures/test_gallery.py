import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from figure_arrays import MADE
from isthmus.cli.main import run
from isthmus.errors import DataError
from isthmus.figures import FIGURES, Finished, Judgement, PaperFigure, Preset, Workshop, gallery, named_figures
from isthmus.figures.gallery import headline, verdicts
from isthmus.sweeps.engine_choice import EngineChoice
from pages import Page, shown


def test_every_figure_has_claims_pictures_and_provenance(tiny: dict[str, Finished]) -> None:
    for done in tiny.values():
        assert len(done.claims) >= 2
        assert len(done.pictures) >= 2
        assert {"isthmus", "commit", "torch", "seconds"} <= set(done.data.attrs["provenance"])


def test_what_mathematics_promises_holds_at_any_size(tiny: dict[str, Finished]) -> None:
    judged = {claim.statement: claim.judgement for done in tiny.values() for claim in done.claims}
    wrong = {statement for statement, judgement in judged.items() if judgement is not Judgement.HOLDS}
    assert wrong == set()


def test_the_page_shows_every_claim_and_picture(tiny: dict[str, Finished], tiny_folder: Path) -> None:
    page = Page((tiny_folder / "gallery.html").read_text())
    words = " ".join(" ".join(page.text).split())
    assert headline(list(tiny.values())) in words
    for done in tiny.values():
        assert done.figure.title in words
        for claim in done.claims:
            assert words.count(claim.statement) == 1, "in the table of its figure"
            assert claim.quantity in words
    assert len(page.attributes("svg")) == sum(len(done.pictures) for done in tiny.values())
    assert not {"link", "iframe"} & {tag for tag, _ in page.elements}
    anchors = {a["href"] for a in page.attributes("a") if "download" not in a}
    assert anchors == {f"#figure-{done.figure.number}" for done in tiny.values()}


def test_the_files_beside_the_page(tiny: dict[str, Finished], tiny_folder: Path) -> None:
    written = json.loads((tiny_folder / "verdicts.json").read_text())
    assert set(written["figures"]) == set(tiny)
    for name, done in tiny.items():
        assert [v["judgement"] for v in written["figures"][name]] == [c.judgement.value for c in done.claims]
    lines = (tiny_folder / "verdicts.md").read_text().splitlines()
    assert lines[0] == headline(list(tiny.values()))
    claims = [claim for done in tiny.values() for claim in done.claims]
    assert len(lines) == 4 + len(claims)
    for line, claim in zip(lines[4:], claims, strict=True):
        cells = re.split(r"(?<!\\) \| ", line.removeprefix("| ").removesuffix(" |"))
        assert len(cells) == 6
        assert cells[1].replace("\\|", "|") == claim.statement
        assert cells[4:] == [claim.refutation, claim.judgement.value]
    pictures = {path.name for path in (tiny_folder / "pictures").glob("*.png")}
    assert pictures == {f"{picture.name}.png" for done in tiny.values() for picture in done.pictures}


@pytest.mark.parametrize("name", ["leaky-depth", "linear-networks"])
def test_verdicts_say_how_sure_a_claim_over_starts_is(name: str) -> None:
    data = MADE[name]()
    done = Finished(FIGURES[name], data, FIGURES[name].verdict(data), ())
    figures: Any = verdicts([done], Preset.TINY)["figures"]
    assert len(figures[name]) == len(done.claims)
    for written, claim in zip(json.loads(json.dumps(figures[name])), done.claims, strict=True):
        assert float(written["measured"]) == claim.measured
        assert tuple(map(float, written.get("starts", ()))) == claim.starts
        assert ("interval" in written) == bool(claim.starts) == (name == "leaky-depth")
        if claim.starts:
            assert tuple(map(float, written["interval"])) == claim.interval
            assert (written["looks"], written["needed_starts"]) == (claim.looks, claim.needed_starts)


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "width"), [("light", 390), pytest.param("dark", 1280, marks=pytest.mark.slow)])
def test_a_browser_shows_the_gallery(
    tiny: dict[str, Finished], tiny_folder: Path, browser: Browser, tmp_path: Path, scheme: str, width: int
) -> None:
    place = tiny_folder / "gallery.html"
    with shown(browser, place, tmp_path / "page.png", scheme=scheme, width=width) as (_, num_pictures):
        assert num_pictures == sum(len(done.pictures) for done in tiny.values())


def test_nothing_is_computed_twice(tiny: dict[str, Finished], tiny_folder: Path) -> None:
    before = _changed(tiny_folder)
    workshop = Workshop(tiny_folder, EngineChoice(workers=0))
    unseen = replace(FIGURES["linear-networks"], draw=lambda _data: ())  # trainings of a sweep, parts of its own
    [again] = gallery([unseen], Preset.TINY, workshop)
    assert again.data.identical(tiny["linear-networks"].data)
    assert _changed(tiny_folder) == before


def test_figures_that_were_computed_before_stay_on_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "figures"
    asked = ["--out", str(folder), "--preset", "tiny", "--workers", "0"]
    assert run(["figure", "linear-resnets", *asked]) == 0
    assert "computed here before" not in capsys.readouterr().err
    before = _changed(folder)
    assert run(["figure", "narrowness", *asked]) == 0
    assert "the page also shows what was computed here before: 11 linear-resnets" in capsys.readouterr().err
    words = " ".join(" ".join(Page((folder / "gallery.html").read_text()).text).split())
    assert set(json.loads((folder / "verdicts.json").read_text())["figures"]) == {"narrowness", "linear-resnets"}
    for name in ("narrowness", "linear-resnets"):
        assert FIGURES[name].title in words
    assert before.items() <= _changed(folder).items()
    (folder / "verdicts.json").write_text(json.dumps({"preset": "paper"}))
    assert run(["figure", "narrowness", *asked]) == 0
    assert "were of the preset paper and are now of tiny" in capsys.readouterr().err


def _changed(folder: Path) -> dict[str, float]:
    return {str(path): path.stat().st_mtime for path in folder.glob("*/runs/*/*/*")} | {
        str(path): path.stat().st_mtime for path in folder.glob("runs/runs/*/*/*")
    }


@pytest.mark.dear(1)
@pytest.mark.parametrize("preset", list(Preset))
@pytest.mark.parametrize("figure", FIGURES.values(), ids=lambda figure: figure.name)
def test_presets_differ_in_numbers_only(figure: PaperFigure, preset: Preset) -> None:
    tiny, other = figure.plan(Preset.TINY), figure.plan(preset)
    assert type(tiny.sizes) is type(other.sizes)
    assert set(tiny.sweeps) == set(other.sweeps)
    for name, sweep in other.sweeps.items():
        assert sweep.runs()
        assert {key for key, value in sweep.training.items() if isinstance(value, str)} == {
            key for key, value in tiny.sweeps[name].training.items() if isinstance(value, str)
        }
        assert set(sweep.axes()) == set(tiny.sweeps[name].axes())


def test_names_and_numbers() -> None:
    numbers = [figure.number for figure in FIGURES.values()]
    assert numbers == sorted(set(numbers))
    assert named_figures("12") == named_figures("linear-networks") == (FIGURES["linear-networks"],)
    assert named_figures("all") == tuple(FIGURES.values())
    for name, figure in FIGURES.items():
        assert re.fullmatch(r"[a-z-]+", name)
        assert figure.name == name
    with pytest.raises(DataError, match="Did you mean 'linear-resnets'"):
        named_figures("linear-resnet")


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_computed_judged_and_drawn(name: str, tmp_path: Path) -> None:
    [done] = gallery([FIGURES[name]], Preset.TINY, Workshop(tmp_path, EngineChoice(workers=0)))
    assert len(done.claims) >= 2
    assert len(list((tmp_path / "pictures").glob("*.svg"))) == len(done.pictures) >= 2
    assert Page((tmp_path / "gallery.html").read_text()).attributes("svg")


@pytest.mark.slow
def test_the_command_line_says_the_verdicts_in_words(
    tiny: dict[str, Finished], tiny_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["figure", "narrowness", "--preset", "tiny", "--workers", "0", "--out", str(tiny_folder)]) == 0
    said = capsys.readouterr().out
    assert any(claim.judgement.value in said for claim in tiny["narrowness"].claims)
    typed = f"isthmus figure narrowness --preset tiny --out {tiny_folder} --workers 0"
    assert typed in " ".join((tiny_folder / "gallery.html").read_text().split())
    assert "[green]" not in said
    assert "[/]" not in said
