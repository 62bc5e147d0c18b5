"""The verdict of several depths: confident where nothing speaks against it, and each doubt reached alone."""

import math
import re
from dataclasses import fields, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr

from isthmus.discovery import discover
from isthmus.discovery import search as searching
from isthmus.discovery.choices import AROUND, CURVED_GAIN, FILLED, LOST, SAVES, SHARP
from isthmus.discovery.depth.path import DepthPath
from isthmus.discovery.evidence.confidence import HeldOutCurve
from isthmus.discovery.evidence.foretold import Foretold
from isthmus.discovery.filled_dimensions import CurvedCoordinates
from isthmus.discovery.findings import Decision, Readings
from isthmus.discovery.halves import RANK
from isthmus.discovery.over_depth import OverDepth, decide_over_depth, held_against
from isthmus.discovery.search import Search, SearchState
from isthmus.theory import Verdict
from isthmus.theory.curve_readings import CurveReading
from minima import minimum, problem_of

FLAT = Readings(
    ridge=1e-3, objective=CurveReading(5, 0.3), neighbours=(), scree=CurveReading(4, 0.5), jacobian_rank=5, widest=6,
    heldout_error=(1.0, 0.5, 0.01), linear_error=(1.0, 0.6, 0.4), columns=6,
)  # fmt: skip
CLEAR = OverDepth(rank=2, before=2, sure=True, rise=math.inf, error=0.01, linear=0.4, around=1.9, columns=6)
EDGE = replace(
    CLEAR,
    rise=SHARP,
    error=LOST,
    linear=LOST / CURVED_GAIN,
    around=(2 - FILLED) / AROUND,
    filled=2 + FILLED / 2,
    lost=LOST / SAVES,
)

DOUBTS = {
    "moves": ({"before": 3}, "3 before the largest depth, 2 there"),
    "apart": ({"sure": False}, "Rows lie too far apart to tell whether .* by 2 coordinates"),
    "lost": ({"error": 0.051, "linear": 0.2}, "5 % of the variance are lost"),
    "linear": ({"linear": 0.099}, "little is gained"),
    "cheap": ({"rise": math.nextafter(SHARP, 0)}, "One coordinate fewer raises the objective .* by 5.1 % only"),
    "unknown": ({"rise": math.nan}, "One coordinate fewer"),
    "filled": ({"around": 1.3}, "rows fill 1.3 dimensions"),
    "filled by coordinates": ({"around": 1.4, "flat": (3, 0.06)}, "the coordinates of the rows fill 1.4 dimensions"),
    "lost of targets": (
        {"around": 1.9, "flat": (3, 0.024)},
        "Through 2 curved coordinates 0.05 of .*, through 3 flat ones 0.024",
    ),
    "filled by more": (
        {"filled": 2.26, "lost": 0.033},
        "rows fill 2.3 dimensions and lose 0.033 .* not 0.05: 2 may be",
    ),
    "shallow": ({"rank": 5, "before": 5, "around": 5.0}, "A shallow network reads 4"),
}


@pytest.mark.parametrize("deep", [CLEAR, EDGE])
def test_the_rank_of_the_deepest_is_sure_where_nothing_speaks_against_it(deep: OverDepth) -> None:
    decision = decide_over_depth(FLAT, deep)
    assert (decision.rank, decision.verdict) == (2, Verdict.CONFIDENT)
    assert decision.reasons[-1] == "At the usual depth the readings are 4, 5."


@pytest.mark.parametrize(("changed", "says"), DOUBTS.values(), ids=DOUBTS.keys())
def test_each_doubt_is_raised_alone(changed: dict[str, float], says: str) -> None:
    decision = decide_over_depth(FLAT, replace(EDGE, **changed))
    assert decision.verdict is Verdict.DOUBTFUL
    *doubts, _ = decision.reasons
    assert len(doubts) == 1, doubts
    assert re.search(says, doubts[0]), doubts


def test_a_bend_where_networks_cut_the_data_open_speaks_for_no_fewer() -> None:
    """Rows on a circle lie on a line, as finitely many do: through one coordinate 489 pictures lost .04."""
    bent = replace(FLAT, objective=CurveReading(2, 0.3), scree=CurveReading(1, 0.5), jacobian_rank=2)
    assert decide_over_depth(bent, replace(CLEAR, torn={1})).verdict is Verdict.CONFIDENT
    [doubt, _] = decide_over_depth(bent, CLEAR).reasons
    assert doubt.startswith("A shallow network reads 1")
    lower = replace(bent, objective=CurveReading(1, 0.3))  # the least minimum is asked of the objective alone
    assert decide_over_depth(lower, replace(CLEAR, torn={1})).verdict is Verdict.DOUBTFUL


def test_noise_of_targets_is_no_doubt_where_as_much_is_lost_through_more() -> None:
    noisy = replace(CLEAR, error=0.3, linear=0.1, flat=(3, 0.2))
    decision = decide_over_depth(FLAT, noisy)
    assert decision.verdict is Verdict.CONFIDENT
    assert "Through them 0.3 of the variance of held-out rows is lost, through 3 flat ones 0.2." in decision.reasons
    assert decide_over_depth(FLAT, replace(noisy, flat=None)).verdict is Verdict.DOUBTFUL


def test_a_rank_through_which_few_rows_lose_most_is_in_doubt_at_any_depth() -> None:
    [doubt, _] = decide_over_depth(replace(FLAT, medians={2: 0.3}), CLEAR).reasons
    assert "half of the held-out rows lose less than 30 % of the mean" in doubt
    assert decide_over_depth(replace(FLAT, medians={2: 0.5}), CLEAR).verdict is Verdict.CONFIDENT


def test_more_dimensions_that_save_nothing_are_noise() -> None:
    assert decide_over_depth(FLAT, replace(EDGE, filled=2.9, lost=LOST / SAVES)).verdict is Verdict.CONFIDENT
    assert decide_over_depth(FLAT, replace(EDGE, filled=2.9, lost=0.99 * LOST / SAVES)).verdict is Verdict.DOUBTFUL


def test_all_columns_need_no_gain_over_principal_components() -> None:
    assert decide_over_depth(FLAT, replace(CLEAR, rank=2, columns=2, linear=0.0)).verdict is Verdict.CONFIDENT


def test_a_shallow_rank_found_later_counts_where_deeper_networks_need_no_fewer() -> None:
    sure = Decision(2, Verdict.CONFIDENT, ())
    assert held_against(sure, FLAT, CLEAR) is sure
    larger = held_against(replace(sure, rank=3), FLAT, replace(CLEAR, sure=False))
    assert (larger.rank, larger.verdict) == (2, Verdict.DOUBTFUL)
    assert held_against(replace(sure, verdict=Verdict.DOUBTFUL), FLAT, CLEAR).verdict is Verdict.CONFIDENT


def path_table(objectives: list[list[float]]) -> xr.Dataset:
    """Of ranks 1, 2, ... at three depths, all of which hold the data together."""
    ranks, depths = np.arange(1, len(objectives) + 1), [4, 16, 32]
    axes = ("rank", "middle_layers")
    columns = {
        "objective": np.array(objectives), "true_rank": np.repeat(ranks[:, None], 3, 1),
        "holds": np.ones((len(ranks), 3), bool), "unsure": np.zeros((len(ranks), 3), bool),
        "heldout_error": 0.1 / np.repeat(ranks[:, None], 3, 1),
    }  # fmt: skip
    return xr.Dataset(
        {k: (axes, v) for k, v in columns.items()}, {"rank": ranks, "middle_layers": depths}, {"ridge": 1e-3}
    )


HALVES = {2: minimum(heldout_error=0.01, rank=2)}
SHALLOW = Decision(5, Verdict.DOUBTFUL, ("They differ.",))


def sized(search: Search, **known: Any) -> Any:
    """Networks of one size that know the problem and nothing besides."""
    family = SimpleNamespace(problem=search.problem, settings=SimpleNamespace(rank_kind=RANK))
    return SimpleNamespace(family=family, **known)


def before_depth(monkeypatch: pytest.MonkeyPatch, *, autoencoding: bool, around: float) -> Search:
    """A search whose shallow answer is in doubt and whose deepest networks keep two coordinates."""
    search = Search.__new__(Search)
    runner: Any = SimpleNamespace(tracker=SimpleNamespace(rank=5))
    search.problem, search.runner = replace(problem_of(np.eye(6), np.eye(6)), autoencoding=autoencoding), runner
    search.size = sized(search, scree_curve=lambda _deepest, name: HALVES)  # noqa: ARG005
    search.scree, search.readings, search.decision = {}, FLAT, SHALLOW
    monkeypatch.setattr(Search, "_held_out", lambda *_: HeldOutCurve.__new__(HeldOutCurve))
    monkeypatch.setattr(HeldOutCurve, "errors", lambda *_: [1.0, 0.5, 0.01])
    monkeypatch.setattr(HeldOutCurve, "train_errors", lambda *_: {2: 0.008})
    monkeypatch.setattr(Search, "_medians", lambda *_: {2: 0.7})
    monkeypatch.setattr(CurvedCoordinates, "around", lambda *_: around)
    monkeypatch.setattr(CurvedCoordinates, "left_over", lambda *_, **__: None)
    return search


@pytest.mark.other_types
@pytest.mark.parametrize(
    ("autoencoding", "moves", "around", "is_believed"),
    [(True, False, 1.9, True), (True, True, 1.9, False), (False, True, 1.9, True), (False, True, 2.6, False),
     (False, True, math.nan, False)],
)  # fmt: skip
def test_a_rank_that_still_moves_with_depth_is_believed_only_where_coordinates_fill_as_many_dimensions(  # noqa: PLR0913
    autoencoding: bool, moves: bool, around: float, is_believed: bool, monkeypatch: pytest.MonkeyPatch  # noqa: FBT001
) -> None:  # fmt: skip
    search = before_depth(monkeypatch, autoencoding=autoencoding, around=around)
    path = DepthPath.of(path_table([[9.0, 9.0, 9.0], [2.0, 3.0 if moves else 1.0, 1.0], [1.0, 2.0, 3.0]]))
    assert (path.deep_rank, path.moves) == (2, moves)
    assert path.torn == frozenset()
    assert search.believe(path, {2: minimum(rank=2)}, name="deep") == is_believed
    assert (search.decision is SHALLOW, search.over_depth is None) == (not is_believed, not is_believed)
    assert not (moves and is_believed) or "still moves with depth" in search.decision.reasons[0]
    assert (search.readings.medians, search.readings.train_error) == ({2: 0.7}, {2: 0.008})
    assert search.scree == HALVES, "its halves may still be the better ones"


@pytest.mark.other_types
@pytest.mark.parametrize(
    ("autoencoding", "left", "verdict"),
    [(False, 0.9, Verdict.DOUBTFUL), (False, 0.0, Verdict.CONFIDENT), (True, 0.9, Verdict.DOUBTFUL)],
)
def test_targets_through_what_depth_decides_are_asked_for_a_further_dimension_too(
    autoencoding: bool,  # noqa: FBT001
    left: float,
    verdict: Verdict,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    search = before_depth(monkeypatch, autoencoding=autoencoding, around=1.9)
    monkeypatch.setattr(searching, "decide_over_depth", lambda *_: Decision(2, Verdict.CONFIDENT, ("Depth says 2.",)))
    monkeypatch.setattr(CurvedCoordinates, "left_over", lambda *_, **__: Foretold(left, 0.0))
    path = DepthPath.of(path_table([[9.0, 9.0, 9.0], [2.0, 1.0, 1.0], [1.0, 2.0, 3.0]]))
    assert search.believe(path, {2: minimum(rank=2)}, name="deep")
    assert (search.decision.rank, search.decision.verdict) == (2, verdict)


def test_the_ranks_that_do_not_hold_at_the_largest_depth_are_torn() -> None:
    table = path_table([[1.0, 1.0, 1.0], [2.0, 1.0, 1.0], [3.0, 2.0, 2.0], [4.0, 4.0, 4.0]])
    table["holds"].loc[{"rank": [1, 2]}] = False
    table["holds"].loc[{"rank": 2, "middle_layers": 4}] = True
    path = DepthPath.of(table)
    assert (path.deep_rank, path.torn) == (3, {1, 2})


def test_complaints_of_the_search_are_kept() -> None:
    decision = decide_over_depth(replace(FLAT, complaints=("It was cut short.",)), replace(CLEAR, sure=False))
    assert decision.reasons[-1] == "It was cut short."


SURE = Readings(
    ridge=1e-3, objective=CurveReading(3, 0.3), neighbours=((3e-3, CurveReading(3, 0.2)),),
    scree=CurveReading(3, 0.5), jacobian_rank=3, widest=5, heldout_error=(1.0, 0.5, 0.2, 0.01, 0.0099),
    linear_error=(1.0, 0.6, 0.4, 0.3, 0.2, 0.1, 0.05),
)  # fmt: skip


@pytest.mark.other_types
@pytest.mark.parametrize("autoencoding", [False, True])
@pytest.mark.parametrize(("around", "verdict"), [(1.9, Verdict.DOUBTFUL), (2.9, Verdict.CONFIDENT)])
def test_to_ask_for_a_depth_path_takes_back_no_doubt(
    autoencoding: bool, around: float, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever followed the advice of the doubt, without work on doubts, was told that all was sure."""
    search = Search.__new__(Search)
    runner: Any = SimpleNamespace(tracker=SimpleNamespace(rank=0))
    search.problem, search.runner = replace(problem_of(np.eye(6), np.eye(6)), autoencoding=autoencoding), runner
    search.trained, search.scree, search.in_doubt = None, {}, True  # type: ignore[assignment] # pyright: ignore
    search.size = sized(search)
    monkeypatch.setattr(Search, "_read", lambda *_: SURE)
    monkeypatch.setattr(CurvedCoordinates, "around", lambda *_: around)
    search._decide()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    assert search.decision.verdict is verdict
    path = DepthPath.of(path_table([[9.0, 9.0, 9.0], [2.0, 1.0, 1.0], [1.0, 2.0, 3.0]]))
    search.beside(path)
    assert (search.decision.verdict, search.readings.deep) == (verdict, path.deep_rank)
    assert not any("--depth-path" in reason for reason in search.decision.reasons), "it was asked for"


def a_first_answer(columns: int, *, in_doubt: bool) -> Search:
    """A search of data that are autoencoded, which is to decide; no halves are known."""
    search = Search.__new__(Search)
    runner: Any = SimpleNamespace(tracker=SimpleNamespace(rank=0))
    search.problem = replace(problem_of(np.eye(columns), np.eye(columns)), autoencoding=True)
    search.runner, search.trained, search.scree, search.in_doubt = runner, None, {}, in_doubt  # type: ignore[assignment] # pyright: ignore
    search.size = sized(search)
    return search


SURE_OF_MANY = replace(
    SURE, objective=CurveReading(8, 0.3), neighbours=((3e-3, CurveReading(8, 0.2)),), scree=CurveReading(8, 0.5),
    jacobian_rank=8, widest=10, heldout_error=(1.0, *[0.5] * 7, 0.01, 0.0099),
    linear_error=(1.0, *[0.6] * 8, 0.5, 0.4),
)  # fmt: skip


@pytest.mark.other_types
@pytest.mark.parametrize(
    ("columns", "rank", "around", "verdict"),
    [(6, 3, 2.4, Verdict.DOUBTFUL), (6, 3, 2.6, Verdict.CONFIDENT), (20, 3, 2.4, Verdict.DOUBTFUL),
     (20, 3, 2.6, Verdict.CONFIDENT), (20, 8, 4.3, Verdict.CONFIDENT), (20, 8, 3.9, Verdict.DOUBTFUL),
     (13, 8, 4.3, Verdict.DOUBTFUL), (20, 3, math.nan, Verdict.CONFIDENT)],
)  # fmt: skip
def test_a_first_answer_is_held_against_what_rows_fill(
    columns: int, rank: int, around: float, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of few columns or dimensions closely; of many, as waves of rank 8 fill 4.3, only where it is twice as much.

    A roll, a ring with a width and a bent disk, each in 20 columns that curve a little more, were 3, sure.
    """
    search = a_first_answer(columns, in_doubt=False)
    monkeypatch.setattr(Search, "_read", lambda *_: SURE if rank == 3 else SURE_OF_MANY)
    monkeypatch.setattr(CurvedCoordinates, "around", lambda *_: around)
    search._decide()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    assert search.decision.rank == rank
    assert search.decision.verdict is verdict


@pytest.mark.other_types
@pytest.mark.parametrize(
    ("rows", "coordinates", "verdict"),
    [(2.6, 1.1, Verdict.DOUBTFUL), (1.7, 2.9, Verdict.DOUBTFUL), (2.6, 2.9, Verdict.CONFIDENT),
     (2.6, math.nan, Verdict.CONFIDENT), (math.nan, 1.1, Verdict.DOUBTFUL)],
    ids=["noise fills the columns", "rows", "all", "coordinates not known", "rows not known"],
)  # fmt: skip
def test_noise_that_fills_columns_hides_no_closed_curve(
    rows: float, coordinates: float, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    """858 pictures of a bob on an ellipse were 3, sure, at once: networks through 2 knotted the curve."""
    search = a_first_answer(20, in_doubt=True)
    monkeypatch.setattr(Search, "_read", lambda *_: SURE)
    monkeypatch.setattr(CurvedCoordinates, "around", lambda *_: rows)
    monkeypatch.setattr(CurvedCoordinates, "filled", lambda *_: coordinates)
    search._decide()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    assert search.decision.verdict is verdict
    assert search.coordinates.fill_fewer(3) is (verdict is Verdict.DOUBTFUL)
    who = "the coordinates of the rows" if coordinates == 1.1 else "rows"
    assert verdict is Verdict.CONFIDENT or f"neighbours, {who} fill" in search.decision.reasons[0]


@pytest.mark.other_types
@pytest.mark.parametrize(
    ("told", "around", "verdict", "is_asked"),
    [
        (0.9, 2.9, Verdict.DOUBTFUL, True),
        (0.1, 2.9, Verdict.CONFIDENT, True),
        (0.9, 1.0, Verdict.DOUBTFUL, False),
    ],
    ids=["told", "little", "in doubt before"],
)
def test_an_answer_of_regressions_is_held_against_what_it_loses_where_it_is_sure(
    told: float, around: float, verdict: Verdict, is_asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = Search.__new__(Search)
    runner: Any = SimpleNamespace(tracker=SimpleNamespace(rank=0))
    search.problem, search.left_over = problem_of(np.eye(6), np.eye(6)), Foretold(1.0, 1.0)
    search.runner, search.trained, search.scree = runner, None, {}  # type: ignore[assignment] # pyright: ignore
    search.size = sized(search)
    monkeypatch.setattr(Search, "_read", lambda *_: SURE)
    monkeypatch.setattr(CurvedCoordinates, "around", lambda *_: around)
    monkeypatch.setattr(CurvedCoordinates, "left_over", lambda *_, **__: Foretold(told, 0.0))
    search._decide()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    assert search.decision.verdict is verdict
    assert search.left_over == (Foretold(told, 0.0) if is_asked else None)
    assert any("smaller ridges" in reason for reason in search.decision.reasons) is (is_asked and told > 0.5)
    search.below = True
    search._decide()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    assert not any("smaller ridges" in reason for reason in search.decision.reasons)


@pytest.mark.other_types
def test_to_go_back_takes_back_what_depth_said_and_complaints_of_what_is_not_believed() -> None:
    search: Any = Search.__new__(Search)
    others = [one.name for one in fields(SearchState) if one.name not in {"size", "warnings"}]
    size = SimpleNamespace(warnings=["once"])
    search.size = size
    for name in others:
        setattr(search, name, None)
    before = search.state
    for name in others:
        setattr(search, name, "something else")
    size.warnings.append("The time limit cut the search short.")
    search.size = SimpleNamespace(warnings=["of others"])
    search.state = before
    assert search.size is size
    assert search.warnings == ("once",)
    assert [getattr(search, name) for name in others] == [None] * len(others)
    assert {*Search.__annotations__, "deepest", "deep_scree"} <= {one.name for one in fields(SearchState)}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The series starts anew")  # its jumps, which a few rows of an orbit pass in one step
def test_an_orbit_is_not_read_as_a_solid_with_confidence() -> None:
    """Five functions of two columns on a closed orbit, 300 times of it: 3, sure, where rows fill one dimension."""
    from scipy.integrate import solve_ivp

    times = np.sort(np.random.default_rng(0).uniform(30, 130, 300))
    flow = solve_ivp(lambda _t, s: (s[1], 5 * (1 - s[0] ** 2) * s[1] - s[0]), (0, 130), (2.0, 0.0), t_eval=times,
                     rtol=1e-9, atol=1e-9)  # fmt: skip
    x, v = flow.y
    orbit = np.column_stack([x, v, x * v, x**2, np.tanh(v)])
    for seed in range(3):
        found = discover(orbit, ordered=True, effort="quick", seed=seed)
        assert found.rank <= 2 or found.verdict is not Verdict.CONFIDENT
