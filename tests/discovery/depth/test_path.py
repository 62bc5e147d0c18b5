"""The rank as a function of depth: an open arc falls to one coordinate, a closed circle does not."""

import math
from collections.abc import Collection
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import isthmus
from isthmus import Limits, discover, tasks
from isthmus.discovery.data.problem import Problem, pose
from isthmus.discovery.data.scaling import Standardiser
from isthmus.discovery.depth import path as depth_path
from isthmus.discovery.depth.between_rows import LinesBetweenRows, two_do_not_hold, with_holds
from isthmus.discovery.depth.path import (
    DepthPath,
    DepthSearch,
    planned_depth_evaluations,
)
from isthmus.discovery.depth.units import DepthSettings
from isthmus.discovery.kinds.connected import Connected
from isthmus.discovery.minimum import Minimum
from isthmus.discovery.settings import Settings
from isthmus.discovery.work.runner import Tracker, UnitRunner
from isthmus.discovery.work.unit import Session, silent
from isthmus.reports.depth_words import depth_sentence
from isthmus.theory import Verdict
from isthmus.theory.depth_lines import STRAIGHT_FROM
from isthmus.training.losses import SQUARED
from minima import connected, minimum

pytestmark = pytest.mark.filterwarnings("ignore:Neighbouring rows resemble")  # along an arc they do

SLOPE = 0.15  # relative error allowed to a fitted slope


def arc(turn: float) -> np.ndarray:
    """120 points, evenly spread over this share of the unit circle."""
    angle = 2 * np.pi * turn * np.arange(120) / 120
    return np.stack([np.cos(angle), np.sin(angle)], 1)


def small_path(turn: float) -> isthmus.Discovery:
    return discover(arc(turn), ridge=3e-4, starts=1, limits=Limits(evaluations=224), depth_path=True, effort="quick")


@pytest.fixture(scope="module")
def discovered() -> isthmus.Discovery:
    return small_path(0.85)


@pytest.fixture(scope="module")
def opened(discovered: isthmus.Discovery) -> DepthPath:
    path = discovered.depth_path
    assert path is not None
    return path


@pytest.mark.slow
def test_the_verdict_knows_what_deeper_networks_do(discovered: isthmus.Discovery) -> None:
    assert discovered.rank == 2
    assert any("deeper networks do with 1" in reason for reason in discovered.reasons)


def table(
    between: dict[int, list[float]], *, close: bool = True, heldout: float = 0.0, filled: float = math.nan
) -> xr.Dataset:
    """Ranks with these errors between rows at each depth; held-out error 0 through the largest, this through others."""
    ranks, depths = range(1, max(between) + 1), range(len(next(iter(between.values()))))
    values = np.array([between.get(rank, [math.nan] * len(depths)) for rank in ranks])
    trained = np.array([[rank in between] * len(depths) for rank in ranks])
    found = xr.Dataset(
        {
            "objective": (("rank", "middle_layers"), np.where(trained, 1.0, np.nan)),
            "between": (("rank", "middle_layers"), values),
            "heldout_error": (("rank", "middle_layers"), np.where(trained, heldout, np.nan)),
        },
        coords={"rank": list(ranks), "middle_layers": list(depths)},
    )
    found["heldout_error"].loc[{"rank": max(between)}] = 0.0
    found.attrs["filled"] = filled
    return with_holds(found, close=close)


@pytest.mark.parametrize(
    ("between", "stops"),
    [
        ({5: [0.01, 0.01], 4: [2.0, 2.0], 3: [1.5, 3.0]}, True),
        ({5: [0.01, 0.01], 4: [2.0, 2.0], 3: [1.5, 0.1]}, False),  # it holds when deep
        ({5: [0.01, 0.01], 4: [0.02, 0.02], 3: [2.0, 2.0]}, False),  # one alone may be a failed training
        ({5: [0.5, 0.5], 4: [1.9, 1.9], 3: [1.9, 1.9]}, False),  # all are as far from the rows between
        ({5: [0.01], 4: [0.01], 3: [0.01], 2: [3.0], 1: [3.0]}, True),
        ({2: [3.0], 1: [3.0]}, False),
        ({3: [math.nan], 2: [math.nan], 1: [math.nan]}, False),  # classes have no rows between
    ],
)
def test_lower_ranks_are_given_up_when_two_do_not_hold(between: dict[int, list[float]], stops: bool) -> None:
    assert two_do_not_hold(table(between)) is stops


GLUED = {5: [0.01], 4: [2.0], 3: [1.5]}


def test_where_rows_lie_far_apart_held_out_rows_have_to_be_lost_too() -> None:
    lost, kept = (table(GLUED, close=False, heldout=error) for error in (0.06, 0.04))
    assert two_do_not_hold(lost)
    assert not lost["unsure"].any()
    assert not two_do_not_hold(kept)
    assert kept["unsure"].values[:, 0].tolist() == [False, False, True, True, False]  # 1 and 2 were not trained
    near = table(GLUED, close=True, heldout=0.04)
    assert two_do_not_hold(near)
    assert not near["unsure"].any()


def test_the_largest_rank_lends_its_own_error_where_rows_are_close_and_its_held_out_error_where_not() -> None:
    errors = {5: [0.5], 4: [1.9]}
    assert table(errors)["holds"].values[3:, 0].tolist() == [True, True]
    far = table(errors, close=False, heldout=0.3)
    assert far["holds"].values[3:, 0].tolist() == [False, True]
    far["heldout_error"].loc[{"rank": 5}] = 0.16
    again = with_holds(far, close=False)
    assert again["holds"].values[3:, 0].tolist() == [True, True]
    assert again["unsure"].values[3:, 0].tolist() == [True, False]


@pytest.mark.parametrize(
    ("between", "fewer", "holds"),
    [(0.091, 0.034, False), (0.02, 0.034, True), (0.2, 0.3, True), (0.3, 0.9, False), (0.091, math.nan, True)],
    ids=["a twisted band", "whole", "curved", "a circle", "fewer not trained"],
)
def test_what_is_glued_is_held_against_what_one_dimension_fewer_loses(
    between: float, fewer: float, *, holds: bool
) -> None:
    """A band that is twisted once and has to lie in the plane is pinched where it is narrow: by .09 of the variance."""
    found = table({3: [0.001], 2: [between], 1: [5.0]}, heldout=0.001)
    found["heldout_error"].loc[{"rank": 1}] = fewer
    assert bool(with_holds(found, close=True)["holds"].sel(rank=2).item()) is holds
    assert with_holds(found, close=False)["holds"].sel(rank=2).item()


def test_a_rank_that_coordinates_fill_wins_though_rows_lie_too_far_apart_to_tell() -> None:
    """Teachers of rank 4 with 5 targets, 10,000 rows of 45 columns: 4 was 4 % lower, and 5 was read."""
    ones = table({5: [0.5], 4: [0.7]}, close=False, heldout=0.02).assign_attrs(ridge=1e-3)
    ones["true_rank"] = xr.broadcast(ones["rank"], ones["objective"])[0]
    ones["objective"].loc[{"rank": 5}] = 1.04
    read = {filled: DepthPath.of(ones.assign_attrs(filled=filled)) for filled in (4.1, 4.9)}
    assert {filled: path.deep_rank for filled, path in read.items()} == {4.1: 4, 4.9: 5}
    assert DepthPath.of(ones).deep_rank == 5
    assert not read[4.1].is_sure, "it may still cut the data open"


def test_each_rank_starts_from_the_one_above_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The highest is trained on; what is better is kept, and handed down either way."""
    steps: list[tuple[int, int]] = []

    def fake(_family: object, _session: Session, *, rank: int, base: Minimum) -> Minimum:
        steps.append((base.dimensions, rank))
        return replace(base, rank=rank, objective=9.0 if rank == 2 else 0.5, kind="descended")

    monkeypatch.setattr(depth_path, "descended", fake)
    monkeypatch.setattr(DepthSearch, "_looked_at", lambda _, minima: minima)
    x = arc(0.85)
    inputs, targets = Standardiser.of(x), Standardiser.of(x, total=True)
    problem = pose(x, x, np.arange(120) % 5 == 2, loss=SQUARED, inputs=inputs, targets=targets)
    search = DepthSearch(connected(Settings(), problem), DepthSettings(), UnitRunner(None, Tracker(silent, 1)))
    anchors = {r: minimum(1.0, rank=r, kind="random") for r in (3, 2, 1)}
    last = search.descend(anchors, None)
    assert steps == [(3, 3), (3, 2), (2, 1)]
    assert [anchors[r].kind for r in (3, 2, 1)] == ["descended", "random", "descended"]
    assert last is anchors[1]
    steps.clear()
    again = DepthSearch(search.family, search.depth, UnitRunner(None, Tracker(silent, 1)))
    anchors = {3: minimum(1.0, rank=3, kind="truncated"), 2: minimum(1.0, rank=2, kind="geodesic")}
    again.descend(anchors, None, led={3, 2})
    assert steps == [(3, 2), (2, 2)], "what was led down before stays, unless a better start was found"
    steps.clear()


@pytest.mark.parametrize(
    ("kind", "autoencoding", "trained_on"),
    [("neighbours", True, True), ("geodesic", True, True), ("random", True, False), ("geodesic", False, False)],
)
def test_a_map_of_the_rows_is_trained_on_besides_what_is_led_down(
    monkeypatch: pytest.MonkeyPatch, kind: str, *, autoencoding: bool, trained_on: bool
) -> None:
    steps: list[tuple[int, int]] = []

    def fake(_family: object, _session: Session, *, rank: int, base: Minimum) -> Minimum:
        steps.append((base.dimensions, rank))
        objective = 0.25 if rank == base.dimensions == 2 else 0.5
        return replace(base, rank=rank, objective=objective, kind="descended")

    monkeypatch.setattr(depth_path, "descended", fake)
    monkeypatch.setattr(DepthSearch, "_looked_at", lambda _, minima: minima)
    problem, tracker = replace(rows_in_six_columns(), autoencoding=autoencoding), Tracker(silent, 1)
    search = DepthSearch(connected(Settings(), problem), DepthSettings(), UnitRunner(None, tracker))
    anchors = {r: minimum(1.0, rank=r, kind=kind) for r in (3, 2)}
    last = search.descend(anchors, None)
    assert steps == [(3, 3), (3, 2), *([(2, 2)] if trained_on else [])]
    assert last is anchors[2]
    assert anchors[2].objective == (0.25 if trained_on else 0.5)


@pytest.mark.parametrize(
    ("share", "between", "kept"),
    [(0.85, 2.4, "geodesic"), (0.85, 0.01, "descended"), (0.85, math.nan, "descended"), (None, 2.4, "descended")],
    ids=["cut open", "whole", "not known", "far apart"],
)
def test_what_holds_the_data_together_goes_before_what_lies_lower(
    monkeypatch: pytest.MonkeyPatch, share: float | None, between: float, kept: str
) -> None:
    """Where rows lie far apart nothing is known of what lies between them, so that the objective tells alone."""

    def fake(_family: object, _session: Session, *, rank: int, base: Minimum) -> Minimum:
        return replace(base, rank=rank, objective=0.5, kind="descended")

    monkeypatch.setattr(depth_path, "descended", fake)
    monkeypatch.setattr(LinesBetweenRows, "error", lambda *_: between)
    monkeypatch.setattr(Connected, "network_of", lambda *_: None)
    x = np.random.default_rng(0).normal(size=(120, 9)) if share is None else arc(share)
    inputs, targets = Standardiser.of(x), Standardiser.of(x, total=True)
    problem = pose(x, x, np.arange(120) % 5 == 2, loss=SQUARED, inputs=inputs, targets=targets)
    search = DepthSearch(connected(Settings(), problem), DepthSettings(), UnitRunner(None, Tracker(silent, 1)))
    assert search.lines is not None
    assert search.lines.close is (share is not None)
    anchors = {1: replace(minimum(1.0, rank=1, kind="geodesic"), between=0.01)}
    search.descend(anchors, None)
    assert anchors[1].kind == kept


@pytest.mark.parametrize(
    ("filled", "heldout", "holds"),
    [(3.7, 0.021, [4, 5]), (3.7, 0.019, [2, 3, 4, 5]), (3.5, 0.021, [3, 4, 5]), (math.nan, 0.021, [2, 3, 4, 5])],
    ids=["fewer that lose more", "noise fills them", "an estimate", "not known"],
)
@pytest.mark.parametrize("close", [True, False])
def test_fewer_coordinates_than_rows_fill_dimensions_do_not_hold_them_where_more_is_lost(
    filled: float, heldout: float, holds: list[int], *, close: bool
) -> None:
    found = table({rank: [0.01] for rank in (5, 4, 3, 2)}, heldout=heldout)
    found["heldout_error"].loc[{"rank": 5}] = 0.01
    found.attrs["filled"] = filled
    again = with_holds(found, close=close)
    assert again["rank"].values[again["holds"].values[:, 0]].tolist() == holds
    assert not again["unsure"].any()


@pytest.mark.parametrize(
    ("filled", "heldout", "holds"),
    [(4.6, 0.016, [5]), (4.4, 0.016, [4, 5]), (4.6, 0.014, [2, 3, 4, 5]), (math.nan, 0.016, [2, 3, 4, 5])],
    ids=["more save", "an estimate", "more save little", "not known"],
)
def test_of_data_that_are_autoencoded_less_is_asked_of_those_who_save(
    filled: float, heldout: float, holds: list[int]
) -> None:
    """Of seven sets of pictures that fill so much more, and save so much, all had one more than was read."""
    found = table({rank: [0.01] for rank in (5, 4, 3, 2)}, heldout=heldout)
    found["heldout_error"].loc[{"rank": 5}] = 0.01
    found.attrs["filled"] = filled
    again = with_holds(found, close=False, autoencoding=True)
    assert again["rank"].values[again["holds"].values[:, 0]].tolist() == holds
    assert with_holds(found, close=False)["holds"].sel(rank=4).item()


def fake_units(monkeypatch: pytest.MonkeyPatch, between: float, heldout: float) -> None:
    """Units of a depth path that train nothing; below rank 6 they lose so much between rows and on held-out ones."""

    def start(_family: object, _session: Session, *, rank: int, base: Minimum, **_: object) -> Minimum:
        return replace(base, rank=rank, objective=1.0)

    def at_depth(_family: object, _session: Session, *, base: Minimum, middle: int, **_: object) -> Minimum:
        rank = base.dimensions
        of_rows, of_held = (0.0, 0.0) if rank >= 6 else (between, heldout)
        return replace(
            base, between=of_rows, heldout_error=of_held, train_error=0.0, penalty=1.0, middle=middle,
            objective=rank * middle * 1e-3, true_rank=rank, stationarity=0.0,
        )  # fmt: skip

    monkeypatch.setattr(depth_path, "ranked_start", start)
    monkeypatch.setattr(depth_path, "descended", start)
    monkeypatch.setattr(depth_path, "at_depth", at_depth)
    monkeypatch.setattr(depth_path, "objective_at_depth", lambda *_: math.inf)
    monkeypatch.setattr(DepthSearch, "_filled", lambda *_: math.nan)


@pytest.mark.parametrize(("share", "between"), [(0.85, 0.01), (None, 2.4)], ids=["close", "far apart"])
def test_what_holds_the_data_together_is_handed_to_depths_where_what_lies_lower_does_not(
    monkeypatch: pytest.MonkeyPatch, share: float | None, between: float
) -> None:
    fake_units(monkeypatch, 0.0, 0.0)

    def at_depth(_family: object, _session: Session, *, base: Minimum, middle: int, **_: object) -> Minimum:
        whole = middle == 1 or base.kind == "whole"  # what starts at the anchor is cut open but in one layer
        return replace(
            base, middle=middle, kind="whole" if whole else "cut", between=0.01 if whole else 2.4,
            objective=2.0 if whole else 1.0, true_rank=base.dimensions,
        )  # fmt: skip

    monkeypatch.setattr(depth_path, "at_depth", at_depth)
    monkeypatch.setattr(DepthSearch, "_looked_at", lambda _, minima: minima)
    x = np.random.default_rng(0).normal(size=(120, 9)) if share is None else arc(share)
    inputs, targets = Standardiser.of(x), Standardiser.of(x, total=True)
    problem = pose(x, x, np.arange(120) % 5 == 2, loss=SQUARED, inputs=inputs, targets=targets)
    search = DepthSearch(connected(Settings(), problem), DepthSettings(), UnitRunner(None, Tracker(silent, 1)))
    path = search.run({1: minimum(1.0, rank=1)}, 1)
    assert path is not None
    assert path.table["between"].sel(rank=1).values.tolist() == [0.01] + [between] * 5


def rows_in_six_columns() -> Problem:
    x = np.random.default_rng(0).normal(size=(300, 6))
    inputs, targets = Standardiser.of(x), Standardiser.of(x, total=True)
    return pose(x, x, np.arange(300) % 5 == 2, loss=SQUARED, inputs=inputs, targets=targets)


@pytest.mark.parametrize("autoencoding", [True, False])
def test_less_is_asked_of_those_who_save_of_data_that_are_autoencoded_alone(
    monkeypatch: pytest.MonkeyPatch, *, autoencoding: bool
) -> None:
    """Six columns that fill six dimensions, of which five lose 1.7 times what six lose."""
    fake_units(monkeypatch, 0.0, 0.0)

    def at_depth(_family: object, _session: Session, *, base: Minimum, middle: int, **_: object) -> Minimum:
        rank, lost = base.dimensions, 0.01 if base.dimensions == 6 else 0.017
        return replace(base, between=0.0, heldout_error=lost, middle=middle, true_rank=rank)

    monkeypatch.setattr(depth_path, "at_depth", at_depth)
    monkeypatch.setattr(DepthSearch, "_filled", lambda *_: 6.0)
    problem = replace(rows_in_six_columns(), autoencoding=autoencoding)
    search = DepthSearch(connected(Settings(), problem), DepthSettings(), UnitRunner(None, Tracker(silent, 1)))
    path = search.run({rank: minimum(1.0, rank=rank) for rank in range(1, 7)}, 6)
    assert path is not None
    assert path.table["holds"].sel(rank=6).all()
    assert path.table["holds"].sel(rank=5).all() == (not autoencoding)


@pytest.mark.parametrize(
    ("between", "heldout", "lowest", "trained"),
    [
        (0.0, 0.0, 1, 6),
        (9.0, 9.0, 1, 3),
        (9.0, 0.0, 1, 6),  # rows too far apart to say what lies between them
        (9.0, 9.0, 5, 2),
        (0.0, 0.0, 5, 6),  # the least has the lowest objective, so that one below it may have a lower one
    ],
)
def test_all_ranks_of_a_depth_path_are_foreseen_until_the_lower_ones_are_left_out(
    monkeypatch: pytest.MonkeyPatch, between: float, heldout: float, lowest: int, trained: int
) -> None:
    fake_units(monkeypatch, between, heldout)
    settings, depth, tracker = Settings(), DepthSettings(lowest=lowest), Tracker(silent, 1)
    problem = rows_in_six_columns()
    search = DepthSearch(connected(settings, problem), depth, UnitRunner(None, tracker), afterwards=70)
    path = search.run({r: minimum(1.0, rank=r) for r in range(1, 7)}, 6)
    assert path is not None
    assert int(path.table["objective"].notnull().all("middle_layers").sum()) == trained
    assert bool(path.table["unsure"].any()) is (heldout < between)
    ranks = range(7 - trained, 7)
    assert tracker.done == planned_depth_evaluations(settings, problem, depth, ranks=ranks)
    assert tracker.left() == 70


@pytest.mark.parametrize(("share", "deeper"), [(0.85, False), (None, True)], ids=["torn", "far apart"])
def test_ranks_that_are_torn_are_not_asked_again_by_deeper_networks(
    monkeypatch: pytest.MonkeyPatch, share: float | None, *, deeper: bool
) -> None:
    """Rows of one dimension that go through two coordinates, as a circle does, where one is known to tear them."""
    fake_units(monkeypatch, 0.0, 0.0)
    monkeypatch.setattr(DepthSearch, "_filled", lambda *_: 1.0)

    def at_depth(_family: object, _session: Session, *, base: Minimum, middle: int, **_: object) -> Minimum:
        rank = base.dimensions
        return replace(
            base,
            middle=middle,
            objective=1.0 + (rank == 1),
            true_rank=rank,
            between=2.0 if rank == 1 else 0.0,
            heldout_error=0.01,
        )

    monkeypatch.setattr(depth_path, "at_depth", at_depth)
    monkeypatch.setattr(DepthSearch, "_looked_at", lambda _, minima: minima)
    x = np.random.default_rng(0).normal(size=(120, 9)) if share is None else arc(share)
    inputs, targets = Standardiser.of(x), Standardiser.of(x, total=True)
    problem = pose(x, x, np.arange(120) % 5 == 2, loss=SQUARED, inputs=inputs, targets=targets)
    problem = replace(problem, autoencoding=True)
    depth = DepthSettings(middle_layers=(4, 16, 32), random_starts=0, beyond=0)
    search = DepthSearch(connected(Settings(), problem), depth, UnitRunner(None, Tracker(silent, 1)))
    path = search.run({1: minimum(1.0, rank=1), 2: minimum(1.0, rank=2)}, 2)
    assert path is not None
    assert path.deep_rank == 2
    assert path.table["middle_layers"].values.tolist() == [4, 16, 32, *([64, 128] if deeper else [])]


@pytest.mark.parametrize(
    ("switches", "filled", "autoencoding", "depths", "winners"),
    [
        ([100], math.nan, True, [4, 16, 32], [2, 2, 2]),
        ([100], 1.6, True, [4, 16, 32], [2, 2, 2]),
        ([100], 1.4, True, [4, 16, 32, 64, 128], [2, 2, 2, 2, 1]),
        ([40], 1.4, True, [4, 16, 32, 64, 128], [2, 2, 2, 1, 1]),
        ([40], 1.4, False, [4, 16, 32], [2, 2, 2]),
        ([10], math.nan, True, [4, 16, 32], [2, 1, 1]),
        ([20], math.nan, True, [4, 16, 32, 64], [2, 2, 1, 1]),
        ([20], math.nan, False, [4, 16, 32], [2, 2, 1]),
        ([20, 50], math.nan, True, [4, 16, 32, 64, 128], [3, 3, 2, 1, 1]),
        ([20, 50, 100], math.nan, True, [4, 16, 32, 64, 128], [4, 4, 3, 2, 1]),
        ([20, 900, 900, 900, 900], math.nan, True, [4, 16, 32], [6, 6, 5]),
    ],
)
def test_a_path_goes_deeper_while_deeper_networks_may_need_fewer(
    monkeypatch: pytest.MonkeyPatch, switches: list[int], filled: float, *, autoencoding: bool, depths: list[int],
    winners: list[int],
) -> None:  # fmt: skip
    """Each rank a line of its slope; the next lower one wins from these depths on. Four times as deep at most."""
    fake_units(monkeypatch, 0.0, 0.0)
    monkeypatch.setattr(DepthSearch, "_filled", lambda *_: filled)
    ridge = 1e-3
    least = [ridge * sum(switches[: len(switches) + 1 - rank]) for rank in range(1, len(switches) + 2)]

    def at_depth(_family: object, _session: Session, *, base: Minimum, middle: int, **_: object) -> Minimum:
        objective = 1.0 + least[base.dimensions - 1] + ridge * base.dimensions * middle
        return replace(base, middle=middle, objective=objective, true_rank=base.dimensions, between=0.0)

    monkeypatch.setattr(depth_path, "at_depth", at_depth)
    problem, tracker = replace(rows_in_six_columns(), autoencoding=autoencoding), Tracker(silent, 1)
    depth = DepthSettings(middle_layers=(4, 16, 32), random_starts=0, beyond=0)
    search = DepthSearch(connected(Settings(), problem), depth, UnitRunner(None, tracker), afterwards=70)
    path = search.run({r: minimum(1.0, rank=r) for r in range(1, len(least) + 1)}, len(least))
    assert path is not None
    assert path.table["middle_layers"].values.tolist() == depths
    assert list(path.reading.winners) == winners
    assert path.moves is (winners[-1] != winners[-2])
    assert {m.middle for m in search.deepest.values()} == {depths[-1]}
    assert tracker.left() == 70


def test_the_first_rank_of_a_depth_path_is_a_small_part_of_its_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_units(monkeypatch, 0.0, 0.0)
    settings, depth, tracker = Settings(), DepthSettings(), Tracker(silent, 1)
    problem, shares = rows_in_six_columns(), []
    search = DepthSearch(connected(settings, problem), depth, UnitRunner(None, tracker))
    descend = search.descend

    def recorded(anchors: dict[int, Minimum], above: Minimum | None, led: Collection[int]) -> Minimum | None:
        shares.append(tracker.done / tracker.planned)
        return descend(anchors, above, led)

    monkeypatch.setattr(search, "descend", recorded)
    search.run({r: minimum(1.0, rank=r) for r in range(1, 7)}, 6)
    assert len(shares) == 2
    assert shares[0] < 0.4
    assert 0.5 <= shares[1] < 0.9


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_ranks_below_two_that_do_not_hold_are_left_out(seed: int) -> None:
    """Six independent columns need six whatever the minima: a sphere in four was held in three by some."""
    columns = np.random.default_rng(seed).normal(size=(150, 6))
    path = discover(
        columns, ridge=3e-4, starts=1, limits=Limits(evaluations=224), depth_path=True, effort="quick", seed=seed
    ).depth_path
    assert path is not None
    tried = path.table["objective"].notnull().all("middle_layers")
    assert tried.values.tolist() == [False, False, False, True, True, True]
    assert path.table["holds"].any("middle_layers").values.tolist() == [False, False, False, False, False, True]
    assert path.deep_rank == 6
    assert "Fewer than 4 were not tried: 4 and 5 cut" in depth_sentence(path)


@pytest.mark.slow
def test_a_curve_in_four_columns_is_followed_down_to_one() -> None:
    t = np.linspace(0, 1, 150)[:, None]
    path = discover(
        np.hstack([t, np.sin(4 * t), np.cos(4 * t), t**2]), ridge=3e-4, starts=1, limits=Limits(evaluations=224),
        depth_path=True, effort="quick"
    ).depth_path  # fmt: skip
    assert path is not None
    assert bool(path.table["objective"].notnull().all())
    assert "not tried" not in depth_sentence(path)


def assert_lines_have_the_slope_of_theory(path: DepthPath) -> None:
    for line in path.reading.lines:
        assert line.slope == pytest.approx(path.table.attrs["ridge"] * line.rank, rel=SLOPE)


@pytest.mark.slow
def test_an_arc_is_a_plane_when_shallow_and_a_line_when_deep(opened: DepthPath) -> None:
    assert (opened.flat_rank, opened.deep_rank) == (2, 1)
    assert_lines_have_the_slope_of_theory(opened)
    last = opened.table["middle_layers"].values[-1]
    assert opened.table["middle_layers"].values[0] <= opened.reading.switch <= last
    assert float(opened.table["between"].sel(rank=1).isel(middle_layers=-1)) < 0.1


@pytest.mark.slow
def test_the_slope_test_fails_for_the_wrong_rank(opened: DepthPath) -> None:
    shifted = opened.table.assign(objective=opened.table["objective"] + 1e-3 * opened.table["middle_layers"])
    with pytest.raises(AssertionError):
        assert_lines_have_the_slope_of_theory(DepthPath.of(shifted))


@pytest.mark.slow
def test_a_closed_circle_keeps_two_dimensions_although_a_cut_one_costs_less() -> None:
    found = small_path(1.0)
    path = found.depth_path
    assert path is not None
    assert not any("columns are kept" in reason for reason in found.reasons)
    assert (path.flat_rank, path.deep_rank) == (2, 2)
    deepest = path.table.isel(middle_layers=-1)
    assert float(deepest["between"].sel(rank=1)) > 1.0
    assert not bool(deepest["holds"].sel(rank=1))


@pytest.mark.slow
def test_the_penalty_is_rank_times_depth_plus_regularity(opened: DepthPath) -> None:
    table = opened.table
    ridge, loss = table.attrs["ridge"], table["train_error"]
    np.testing.assert_allclose(table["objective"], loss + ridge * table["penalty"], rtol=1e-4)
    np.testing.assert_allclose(table["penalty"], table["rank"] * table["depth"] + table["regularity"])
    # R1 hardly depends on depth: that is what makes the lines straight
    deep = table["regularity"].where(table["middle_layers"] >= STRAIGHT_FROM, drop=True)
    assert float((deep.max("middle_layers") - deep.min("middle_layers")).max()) < 0.2 * float(deep.max())


@pytest.mark.slow
def test_a_depth_path_that_was_cut_short_says_so() -> None:
    found = discover(arc(0.85), ridge=3e-4, starts=1, limits=Limits(seconds=0.3), depth_path=True, effort="quick")
    assert any("cut the depth path short" in text for text in found.warnings)
    assert found.depth_path is not None
    assert found.depth_path.table.sizes == {"rank": 2, "middle_layers": 6}


@pytest.mark.slow
def test_four_curved_dimensions_in_eight_columns_are_found_though_not_for_sure() -> None:
    """Random starts of rank 4 end far above: each rank has to begin at the one above it, and be trained long."""
    found = discover(tasks.benchmark_manifold("M4_Nonlinear").x, depth_path=True, effort="quick")
    path = found.depth_path
    assert path is not None
    assert (path.flat_rank, path.deep_rank) == (8, 4)
    assert not path.is_sure
    assert found.verdict is Verdict.DOUBTFUL
    assert any("may do with 4" in reason for reason in found.reasons)
    assert "too far apart to tell whether 4 dimensions cut" in depth_sentence(path)


MANIFOLDS = {"helix": (3, 1), "swiss_roll": (3, 2), "circle": (2, 2), "torus": (3, 3)}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "ranks"), MANIFOLDS.items(), ids=MANIFOLDS)
def test_manifolds_have_their_flat_and_deep_rank_by_default(name: str, ranks: tuple[int, int]) -> None:
    path = discover(getattr(tasks, name)().x, depth_path=True, effort="quick").depth_path
    assert path is not None
    assert (path.flat_rank, path.deep_rank) == ranks
    # a rank whose least network is one of a smaller rank has no line of its own
    own = path.table["true_rank"] == path.table["rank"]
    held = (path.table["holds"] & own).isel(middle_layers=-1).values
    sound = [line for line, holds in zip(path.reading.lines, held, strict=True) if holds]
    assert {path.flat_rank, path.deep_rank} <= {line.rank for line in sound}
    for line in sound:
        assert line.slope == pytest.approx(path.table.attrs["ridge"] * line.rank, rel=SLOPE)


@pytest.mark.slow
@pytest.mark.parametrize(("twists", "rank"), [(0.5, 3), (1.0, 2)], ids=["twisted half around", "twisted once"])
def test_a_band_that_fits_in_no_plane_is_not_read_two(twists: float, rank: int) -> None:
    """Turned over where it closes (Möbius) it was pinched there by less than a quarter of the variance, and 2, sure."""
    angle, width = np.random.default_rng(1).uniform([[0], [-0.3]], [[2 * np.pi], [0.3]], (2, 1500))
    out, up = width * np.cos(twists * angle), width * np.sin(twists * angle)
    band = np.stack([(1 + out) * np.cos(angle), (1 + out) * np.sin(angle), up], 1)
    found = discover(band, scaling="global")
    assert found.rank == rank
    assert found.verdict is (Verdict.CONFIDENT if rank == 2 else Verdict.DOUBTFUL)
