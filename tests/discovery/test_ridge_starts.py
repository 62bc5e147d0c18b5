"""Which starts are trained along the ridges, and from where, with objectives that are known beforehand."""

from collections.abc import Mapping, Sequence

import pytest

from isthmus.discovery.data.checking import checked_data
from isthmus.discovery.data.sample import Sample
from isthmus.discovery.minimum import Minimum
from isthmus.discovery.ridge_starts import RidgeStarts, Workbench
from isthmus.discovery.settings import Settings
from isthmus.discovery.work.runner import Tracker, UnitRunner
from isthmus.discovery.work.unit import Session, Unit, silent
from isthmus.tasks import teacher
from isthmus.training import Outcome
from minima import minimum

SMALL = Settings(width=9, linear_width=3).scaled_to(60)
MIDDLE = 3e-3


class Known(Workbench):
    """Objectives by number of the start; remembers what was asked for."""

    def __init__(self, settings: Settings, objectives: Mapping[int, float], *, workers: int = 1) -> None:
        task = teacher(1, d_in=6, d_out=3, num_samples=60, latent_dim=2, seed=0)
        problem = Sample.of(checked_data(task.x, task.y, None), settings).posed(settings)
        assert problem is not None
        runner = UnitRunner(None, Tracker(silent, 1), workers=workers)
        super().__init__(problem, settings, runner, prefix="", label="")
        self.objectives, self.asked = objectives, list[str]()
        self.collapsing: set[str] = set()

    def minima(self, units: Sequence[Unit], ahead: Sequence[Unit] = ()) -> list[Minimum]:  # noqa: ARG002
        self.asked += [unit.key for unit in units]
        return [self._of(unit) for unit in units]

    def _of(self, unit: Unit) -> Minimum:
        assert unit.ridge is not None
        assert unit.start is not None
        outcome = Outcome.COLLAPSED if unit.key in self.collapsing else Outcome.PLATEAU
        kind, objective = self.settings.starts[unit.start], self.objectives[unit.start]
        error = abs(self.settings.ridges.index(unit.ridge) - 3) + 1.0  # least at the middle
        return minimum(objective, ridge=unit.ridge, start=unit.start, kind=kind, outcome=outcome, heldout_error=error)


def test_random_starts_that_lost_at_one_ridge_are_not_trained_beside_it() -> None:
    bench = Known(SMALL, {0: 1.0, 1: 1.2})
    starts = RidgeStarts(bench).along()
    assert bench.asked == [
        "warm-up-0.003-0", "warm-up-0.003-1", "start-0.003-0", "start-0.003-1", "start-0.001-0", "start-0.01-0",
    ]  # fmt: skip
    assert {ridge: len(minima) for ridge, minima in starts.items()} == {1e-2: 1, 3e-3: 2, 1e-3: 1}


def test_random_starts_that_won_are_trained_everywhere() -> None:
    bench = Known(SMALL, {0: 1.0, 1: 0.9})
    starts = RidgeStarts(bench).along()
    assert {ridge: len(minima) for ridge, minima in starts.items()} == {1e-2: 2, 3e-3: 2, 1e-3: 2}


@pytest.mark.parametrize("starts", [("linear", "random", "random"), ("random", "random")])
def test_starts_that_were_asked_for_are_all_trained(starts: tuple[str, ...]) -> None:
    settings = Settings(width=9, linear_width=3, starts=starts)
    found = RidgeStarts(Known(settings, dict.fromkeys(range(3), 1.0) | {0: 0.5})).along()
    assert {len(minima) for minima in found.values()} == {len(starts)}


def test_a_start_that_collapses_from_a_warm_up_at_another_ridge_is_trained_cold() -> None:
    bench = Known(SMALL, {0: 1.0, 1: 1.2})
    bench.collapsing = {"start-0.01-0"}
    found = RidgeStarts(bench).along()
    assert bench.asked[-1] == "cold-0.01-0"
    assert not any(minimum.collapsed for minima in found.values() for minimum in minima)


@pytest.mark.parametrize("one", [{"encoder_side": "linear"}, {"network": "leaky"}, {"ridges": (MIDDLE,)}])
def test_only_networks_with_curved_halves_and_several_ridges_hand_their_warm_up_on(one: dict[str, object]) -> None:
    bench = Known(Settings(width=9, linear_width=3, **one), {0: 1.0, 1: 1.2})  # pyright: ignore[reportArgumentType]
    RidgeStarts(bench).along()
    assert not any(key.startswith("warm-up") for key in bench.asked)


def test_workers_change_no_start() -> None:
    asked = [Known(SMALL, {0: 1.0, 1: 1.2}, workers=workers) for workers in (1, 2, 16)]
    starts = [RidgeStarts(bench).along() for bench in asked]
    assert len({str({r: [m.start for m in minima] for r, minima in found.items()}) for found in starts}) == 1
    assert "start-0.001-1" not in asked[2].asked


def test_a_start_goes_on_from_its_warm_up_bit_by_bit() -> None:
    bench = Workbench(Known(SMALL, {}).problem, SMALL, UnitRunner(None, Tracker(silent, 1)), prefix="", label="")
    family = bench.family
    warm = family.warmed_up(Session(), ridge=MIDDLE, number=0)
    here, beside = (family.gone_on(Session(), base=warm, ridge=ridge) for ridge in (MIDDLE, 1e-2))
    assert (here.kind, here.start, here.ridge) == ("linear", 0, MIDDLE)
    assert warm.gradient_evaluations == SMALL.linear_steps
    assert here.objective < warm.objective
    # a shorter warm-up of its own comes first at another ridge
    assert beside.gradient_evaluations > SMALL.linear_steps // 4 > 0
    again = family.gone_on(Session(), base=warm, ridge=1e-2)
    assert again.objective == beside.objective
