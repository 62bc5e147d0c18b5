"""Layers that the objective fills are widened, so that no network says its own width where the task needs more."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

import isthmus
from isthmus.discovery import objective_curves, search
from isthmus.discovery.choices import is_full, leaves_room
from isthmus.discovery.data.checking import checked_data
from isthmus.discovery.data.sample import Sample
from isthmus.discovery.findings import Decision, Readings, SizeFindings
from isthmus.discovery.halves import INDEX, MODE
from isthmus.discovery.objective_curves import Curve, Ladder, reading_of
from isthmus.discovery.one_size import OneSize
from isthmus.discovery.request import Request
from isthmus.discovery.settings import Settings
from isthmus.discovery.work.unit import Progress, ProgressListener, silent
from isthmus.errors import NotConverged
from isthmus.theory import Verdict
from minima import minimum

NARROW = Settings(
    width=9, linear_width=3, widest=24, ridges=(3e-4,), starts=("linear",), adam_steps=60, lbfgs_evaluations=100,
    polish_evaluations=60, refine_evaluations=40,
)  # fmt: skip


def cube(columns: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(-1, 1, size=(200, columns))


def discovered(
    settings: Settings,
    x: np.ndarray,
    seconds: float | None = None,
    folder: Path | None = None,
    progress: ProgressListener = silent,
) -> isthmus.Discovery:
    data = checked_data(x, None, None, None)
    request = Request(
        sample=Sample.of(data, settings), settings=settings, folder=folder, seconds=seconds, progress=progress,
        control=False,
        depth_path=False, workers=1,
    )  # fmt: skip
    return request.answered()


@pytest.fixture(scope="module")
def widened() -> isthmus.Discovery:
    return discovered(NARROW, cube(7))


@pytest.mark.slow
def test_a_task_that_fills_the_middle_gets_a_wider_one(widened: isthmus.Discovery) -> None:
    assert widened.rank == 7
    assert (widened.settings["linear_width"], widened.settings["width"]) == (7, 17)
    assert widened.scree["rank"].values.tolist() == list(range(1, 8))
    assert not any("largest that was tried" in reason for reason in widened.reasons)
    assert widened.warnings == ()


@pytest.mark.slow
def test_the_halves_of_a_widened_network_reconstruct(widened: isthmus.Discovery) -> None:
    x = torch.from_numpy(cube(7))
    with torch.no_grad():
        off = widened.decoder(widened.encoder(x)) - x
    assert float(off.square().sum() / x.square().sum()) < 0.05


@pytest.mark.slow
def test_a_middle_that_may_not_grow_says_that_it_was_full() -> None:
    found = discovered(dataclasses.replace(NARROW, widest=3), cube(7))
    assert found.rank == 3
    assert found.settings["linear_width"] == 3
    assert any("The rank is the largest that was tried (3): it may be larger." in reason for reason in found.reasons)


@pytest.mark.slow
def test_a_short_time_limit_is_not_spent_on_wider_networks() -> None:
    found = discovered(NARROW, cube(7), seconds=0.5)
    assert found.settings["linear_width"] == 3
    assert any("largest that was tried (3)" in reason for reason in found.reasons)


@pytest.mark.slow
def test_a_middle_with_room_stays_as_it_is() -> None:
    x = cube(7)
    x[:, 1:] = x[:, :1] * np.arange(1, 7)
    assert discovered(NARROW, x).settings["linear_width"] == 3


@pytest.mark.slow
def test_what_was_left_out_of_narrow_networks_says_nothing_of_wide_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    told = "Every start diverged at ridge 0.1; it is left out."
    run = OneSize.trained

    def complaining(self: OneSize) -> SizeFindings:
        if self.settings.linear_width == 3:
            self.warnings.append(told)
        return run(self)

    monkeypatch.setattr(OneSize, "trained", complaining)
    widened, narrow = (discovered(dataclasses.replace(NARROW, widest=most), cube(7)) for most in (24, 3))
    assert (widened.settings["linear_width"], narrow.settings["linear_width"]) == (7, 3)
    assert told not in (*widened.warnings, *widened.reasons)
    assert told in narrow.warnings


@pytest.mark.slow
def test_wide_networks_that_diverge_leave_the_answer_of_the_narrow_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    run = OneSize.trained

    def diverging(self: OneSize) -> SizeFindings:
        if self.settings.linear_width > 3:
            raise NotConverged("every start diverged")
        return run(self)

    monkeypatch.setattr(OneSize, "trained", diverging)
    found = discovered(NARROW, cube(7))
    assert (found.rank, found.settings["linear_width"]) == (3, 3)
    assert any("7 neurons in the middle diverged" in warning for warning in found.warnings)
    assert any("largest that was tried (3)" in reason for reason in found.reasons)


@pytest.mark.slow
def test_a_search_that_is_stopped_while_it_is_wide_goes_on_with_the_same_bits(
    widened: isthmus.Discovery, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patched:

        def interrupted(self: OneSize, curve: object) -> object:
            raise KeyboardInterrupt

        patched.setattr(OneSize, "scree_curve", interrupted)
        with pytest.raises(KeyboardInterrupt):
            discovered(NARROW, cube(7), folder=tmp_path)
    done = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "work").glob("*-*.pt")}
    assert {name.startswith("wide-7-") for name in done} == {True, False}
    kept: dict[str, int] = {}
    scree_curve = OneSize.scree_curve

    def noting(self: OneSize, curve: Curve) -> Curve:
        kept.update({name: (tmp_path / "work" / name).stat().st_mtime_ns for name in done})
        return scree_curve(self, curve)

    monkeypatch.setattr(OneSize, "scree_curve", noting)
    resumed = discovered(NARROW, cube(7), folder=tmp_path)
    assert kept == done  # nothing was trained again
    assert resumed.rank == widened.rank
    for here, there in zip(resumed.network.parameters(), widened.network.parameters(), strict=True):
        assert torch.equal(here, there)


@pytest.mark.slow
def test_the_length_of_a_widened_search_is_foreseen_anew() -> None:
    told: list[Progress] = []
    settings = dataclasses.replace(NARROW, linear_width=6, width=18)
    assert discovered(settings, cube(9), progress=told.append).settings["linear_width"] == 9
    assert (told[-1].stage, told.pop().fraction) == ("finished", 1.0)
    assert list(dict.fromkeys(event.part for event in told)) == ["", "9 neurons wide"]
    for part in ("", "9 neurons wide"):
        shares = [event.fraction for event in told if event.part == part]
        assert shares == sorted(shares)
    before_scree = [event.fraction for event in told if event.stage != "scree curve"]
    assert 0.4 < max(before_scree) < 1
    assert [event.fraction for event in told][-1] > 0.7


FALLS = [0.8, 0.5, 0.2, 0.1, 0.05]  # of the objective, rank by rank
NOISE = [0.8, 0.5, 0.2, 0.1999, 0.1998]  # the fourth and fifth direction of the start hold noise


@pytest.mark.parametrize(
    ("objectives", "most", "widest", "full"),
    [(FALLS, 9, 24, True), (NOISE, 9, 24, False), (FALLS, 5, 24, False), (FALLS, 9, 5, False)],
    ids=["asks for all", "noise fills it", "the task has no more", "may not grow"],
)
def test_the_middle_is_full_where_the_objective_reads_its_width(
    objectives: list[float], most: int, widest: int, full: bool
) -> None:
    curve = {rank: minimum(value, rank=rank) for rank, value in enumerate(objectives, 1)}
    assert is_full(reading_of(curve, 1.0).rank, 5, most=most, widest=widest) == full


@pytest.mark.parametrize(
    ("read", "beside", "full"),
    [
        (23, (0, 24), True),
        (22, (24,), True),
        (21, (24,), False),
        (23, (23, 8), False),
        (8, (24,), False),
        (24, (), True),
    ],
)
def test_a_neighbouring_ridge_that_fills_networks_counts_where_the_chosen_one_nearly_does(
    read: int, beside: tuple[int, ...], full: bool
) -> None:
    """71 columns of one size read 23 at the chosen ridge, 24 at the next, and lost .71 where PCA loses nothing."""
    assert is_full(read, 24, beside=beside, most=71, widest=96) == full
    assert not is_full(read, 24, beside=beside, most=24, widest=96)


def ended(ridge: float, *objectives: float) -> SizeFindings:
    curve = {rank: minimum(value) for rank, value in enumerate(objectives, 1)}
    return SizeFindings(ridge, {ridge: [minimum(1.0)]}, Ladder(minimum(), len(curve), len(curve)), {ridge: curve})


def test_wide_networks_that_end_higher_than_narrow_ones_are_not_at_their_least_minimum() -> None:
    assert ended(0.1, 0.5, 0.2, 0.1).fell_short_of(ended(0.1, 0.5, 0.2)) is None
    assert ended(0.1, 0.5, 0.3, 0.2019).fell_short_of(ended(0.1, 0.5, 0.2)) is None, "within the slack of a reading"
    assert ended(0.1, 0.5, 0.3, 0.25).fell_short_of(ended(0.3, 0.5, 0.2)) is None, "nothing is known at that ridge"
    text = ended(0.1, 0.5, 0.3, 0.25).fell_short_of(ended(0.1, 0.5, 0.2))
    assert text is not None
    assert "(0.2 through at most 2 dimensions) than wider ones (0.25): the rank may be smaller" in text
    for kind, counted in ((INDEX, "2 combinations of the inputs"), (MODE, "2 modes of the outputs")):
        text = ended(0.1, 0.5, 0.3, 0.25).fell_short_of(ended(0.1, 0.5, 0.2), kind)
        assert f"(0.2 through at most {counted}) than wider ones" in str(text)


def test_time_left_is_compared_with_what_wider_networks_take() -> None:
    growth = NARROW.wider(7).width / NARROW.width
    assert growth == 17 / 9  # for seven columns: 3 -> 7 in the middle, 9 -> 17 around it
    assert leaves_room(None, 100.0, growth=growth)
    assert leaves_room(2.1 * growth**2, 1.0, growth=growth)
    assert not leaves_room(1.9 * growth**2, 1.0, growth=growth)


def test_time_spent_is_that_of_the_units_in_whichever_sitting() -> None:
    shared, starts = minimum(seconds=2.0), {0.1: [minimum(seconds=1.0)], 0.3: [minimum(seconds=0.5)]}
    trained = SizeFindings(0.1, starts, Ladder(minimum(), 3, 3), {0.1: {2: shared, 3: shared}})
    assert trained.seconds == 3.5


@pytest.mark.slow
@pytest.mark.parametrize("decided", [9, pytest.param(12, marks=pytest.mark.slow)])
def test_a_rank_decided_in_a_gap_of_a_long_curve_is_trained(monkeypatch: pytest.MonkeyPatch, decided: int) -> None:
    def believing_the_jacobian(readings: Readings) -> Decision:
        assert readings.objective.rank == 12
        return Decision(decided, Verdict.DOUBTFUL, ("as if the Jacobian read so",))

    monkeypatch.setattr(search, "decide", believing_the_jacobian)
    monkeypatch.setattr(objective_curves, "WHOLE", 4)
    found = discovered(dataclasses.replace(NARROW, width=32, linear_width=12), cube(12))
    gap = {9} if decided == 9 else set[int]()  # 10, 11 and 12 lie around the reading
    assert set(found.scree["rank"].values.tolist()) == {*range(1, 9), 10, 11, 12} | gap
    assert found.rank == decided
    assert found.encoder(torch.zeros(1, 12, dtype=torch.float64)).shape == (1, decided)


@pytest.mark.parametrize(("most", "widths"), [(25, (25, 66)), (72, (72, 160)), (80, (48, 112)), (1000, (48, 112))])
def test_layers_grow_to_what_the_task_allows_or_to_twice(most: int, widths: tuple[int, int]) -> None:
    wider = Settings().wider(most)
    assert (wider.linear_width, wider.width) == widths


def test_layers_grow_up_to_the_widest_only() -> None:
    once = Settings().wider(1000).wider(1000)
    assert (once.linear_width, once.wider(1000).linear_width) == (96, 96)
    assert once.wider(1000).width == once.width
