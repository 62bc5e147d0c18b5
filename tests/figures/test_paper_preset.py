"""The plans at the papers' sizes: each expands to runs that can be carried out, and its first run starts."""

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from isthmus.figures import FIGURES, FigurePlan, PaperFigure, Preset
from isthmus.figures.leaky_depth import PRESETS
from isthmus.figures.leaky_training import leaky_part
from isthmus.figures.parts import Part, opened
from isthmus.sweeps.execution import compute
from isthmus.sweeps.plan_check import checked_runs
from isthmus.training import FitEvent

CLOSED_FORMS = {"narrowness"}  # no training in it
HEAVY = {"leaky-depth", "discretisation"}  # one step of a leaky network takes minutes at the paper's size
LEAKY = PRESETS[Preset.PAPER].network
SHARED = {"boundedness"}  # the networks of leaky-depth


def tiered(figure: PaperFigure) -> object:
    return pytest.param(figure, id=figure.name, marks=[pytest.mark.slow] if figure.name in HEAVY else [])


class Started(Exception):  # noqa: N818 - what the test waits for
    """A training has made its first step."""


def start(event: FitEvent) -> bool:
    raise Started(f"{event.evaluations} of {event.total}")


def paper(figure: PaperFigure) -> FigurePlan[object]:
    return figure.plan(Preset.PAPER)


@pytest.mark.dear(1)
@pytest.mark.parametrize("figure", FIGURES.values(), ids=lambda figure: figure.name)
def test_every_plan_expands(figure: PaperFigure) -> None:
    plan = paper(figure)
    ids = [run.id for sweep in plan.sweeps.values() for run in checked_runs(sweep)] + [part.id for part in plan.parts]
    assert len(ids) == len(set(ids)) >= 1
    others = [figure.plan(preset) for preset in (Preset.QUICK, Preset.TINY)]
    assert all(plan.sizes != other.sizes for other in others)


@pytest.mark.dear(1)
@pytest.mark.parametrize("figure", [tiered(figure) for name, figure in FIGURES.items() if name not in SHARED])
def test_the_first_training_of_each_kind_starts(figure: PaperFigure, tmp_path: Path) -> None:
    plan = paper(figure)
    for sweep in plan.sweeps.values():
        run = sweep.runs()[0]
        with pytest.raises(Started):
            compute(run.settings, run.source, tmp_path / "state.pt", start)
    if plan.parts and figure.name not in CLOSED_FORMS:
        with pytest.raises(Started):
            plan.parts[0].compute(opened(tmp_path), start)
    assert plan.sweeps or plan.parts


def test_figures_that_share_their_networks_have_the_same_plan() -> None:
    ids = [[part.id for part in paper(FIGURES[name]).parts] for name in ("leaky-depth", "boundedness")]
    assert ids[0] == ids[1]


def test_a_first_start_is_known_by_the_id_that_it_had_alone() -> None:
    first, second = (leaky_part(replace(LEAKY, start=start)) for start in range(2))
    assert first.id == Part("leaky network", {k: v for k, v in asdict(LEAKY).items() if k != "start"}, first.make).id
    assert second.id != first.id


def test_closed_forms_are_computed(tmp_path: Path) -> None:
    for name in CLOSED_FORMS:
        part = paper(FIGURES[name]).parts[0]
        part.compute(opened(tmp_path))
        assert part.result(tmp_path).sizes
