"""How often such a rank was right: what is asked, what is fitted, and that sets hold what they promise."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import discoveries
from isthmus.discovery.evidence import probability
from isthmus.discovery.evidence.probability import (
    FEATURES,
    Calibration,
    calibration,
    enough_steps,
    features,
    fitted,
    hull,
    steps_to,
)
from isthmus.discovery.findings import CUT_SHORT
from isthmus.reports import verdict_of
from isthmus.theory import Verdict

READ = {"objective_rank": 3, "scree_rank": 4, "jacobian_rank": 3, "sharpness": 0.2, "scree_margin": None, "rows": 240}


def test_all_features_lie_between_0_and_1_and_follow_the_readings() -> None:
    found = features(3, Verdict.DOUBTFUL, {**READ, "resample_share": 0.7})
    assert tuple(found) == FEATURES
    assert found == {
        "confident": 0.0, "doubtful": 1.0, "agreement": pytest.approx(2 / 3), "sharpness": 0.2, "margin": 1.0,
        "resamples": 0.7, "rows": 1.0, **{f"confident {name}": 0.0 for name in probability.READ},
    }  # fmt: skip
    sure = features(3, Verdict.CONFIDENT, READ)
    assert all(sure[f"confident {name}"] == sure[name] for name in probability.READ)
    assert sure["agreement"] == found["agreement"] > 0
    extreme = features(3, Verdict.CONFIDENT, {"sharpness": 99.0, "scree_margin": -1.0, "rows": 16})
    assert (extreme["sharpness"], extreme["margin"], extreme["agreement"], extreme["rows"]) == (1.0, 0.0, 0.0, 0.0)
    assert 0.4 < features(3, Verdict.CONFIDENT, READ | {"rows": 62})["rows"] < 0.6


def test_sets_grow_around_all_readings() -> None:
    assert [hull(3, READ, step) for step in range(4)] == [(3, 3), (3, 4), (2, 5), (1, 6)]
    assert [steps_to(truth, 3, READ) for truth in (3, 4, 2, 6, 0)] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("count", [19, 40, 200])
def test_enough_steps_hold_95_of_100_further_tasks(count: int) -> None:
    rng = np.random.default_rng(count)
    held, short = [], []
    for _ in range(400):
        drawn = rng.geometric(0.4, size=count + 1) - 1
        held.append(drawn[-1] <= enough_steps(drawn[:-1].tolist()))
        short.append(drawn[-1] <= enough_steps(drawn[:-1].tolist(), share=0.6))
    assert np.mean(held) > 0.93
    assert np.mean(short) < 0.9


def test_too_few_tasks_promise_less_than_any_of_them_did() -> None:
    assert enough_steps([0, 0, 1]) == 2
    assert enough_steps([]) == 2


def test_the_fit_finds_the_odds_that_drew_the_answers_and_no_weight_below_0() -> None:
    rng = np.random.default_rng(0)
    rows = rng.uniform(size=(20_000, 3))
    odds = -1.0 + rows @ np.array([2.0, 0.5, -1.0])
    intercept, weights = fitted(rows, (rng.uniform(size=20_000) < 1 / (1 + np.exp(-odds))).astype(float))
    assert weights[:2] == pytest.approx([2.0, 0.5], abs=0.15)
    assert weights[2] == 0.0
    assert intercept == pytest.approx(-1.5, abs=0.15)  # the mean of what it may not say


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if the tasks so far were enough."""
    monkeypatch.setattr(probability, "ENOUGH_TASKS", 1)
    probability.calibration_of_kind.cache_clear()
    yield
    probability.calibration_of_kind.cache_clear()


def test_nothing_is_said_before_enough_tasks_were_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    for enough, known in ((10**9, False), (1, True)):
        monkeypatch.setattr(probability, "ENOUGH_TASKS", enough)
        probability.calibration_of_kind.cache_clear()
        assert (calibration("rank", "regression", READ) is not None) is known
    probability.calibration_of_kind.cache_clear()


@pytest.mark.usefixtures("measured")
def test_what_ships_says_more_where_more_speaks_for_an_answer() -> None:
    known = calibration("rank", "regression", READ)
    assert known is not None
    assert set(known.weights) == set(FEATURES)
    assert min(known.weights.values()) >= 0
    low = known.probability(3, Verdict.NO_SHARP_RANK, {"objective_rank": 9, "rows": 16})
    high = known.probability(3, Verdict.CONFIDENT, dict.fromkeys(READ, 3.0) | {"resample_share": 1.0})
    assert 0 < low < high < 1
    assert set(known.steps) == {verdict.name for verdict in Verdict}
    assert calibration("of something else", "regression", READ) is None
    assert calibration("rank", "regression", {"objective_rank": 3}) is None
    for rows in (None, 15):  # of fewer than any task that was measured, or of nobody knows how many
        assert calibration("rank", "regression", READ | {"rows": rows}) is None


def test_sets_stay_within_what_ranks_there_are() -> None:
    known = Calibration(0.0, dict.fromkeys(FEATURES, 0.0), {"DOUBTFUL": 9}, 10)
    assert known.ranks(3, Verdict.DOUBTFUL, READ, most=5) == (0, 1, 2, 3, 4, 5)


@pytest.mark.usefixtures("measured")
def test_a_discovery_says_its_probability_and_its_set() -> None:
    found = discoveries.discovery(readings=READ)
    assert found.probability is not None
    assert 0 < found.probability < 1
    assert found.rank in found.rank_set
    line = next(line.text for line in verdict_of(found).lines if line.label == "Probability")
    assert f"{found.rank_set[0]}" in line
    bare = replace(found, readings={})
    assert (bare.probability, bare.rank_set) == (None, ())


@pytest.mark.usefixtures("measured")
def test_nothing_is_said_of_what_no_task_was_measured_like() -> None:
    """Under another loss, or where the time was over, the odds of the tasks that were measured do not hold."""
    found = discoveries.discovery(readings=READ)
    assert found.probability is not None
    for changes in (
        {"settings": {**found.settings, "loss": "gaussian"}},
        {"settings": {**found.settings, "loss": "poisson"}},
        {"warnings": (*found.warnings, CUT_SHORT)},
        {"settings": {**found.settings, "ordered": True}},
    ):
        odd = replace(found, **changes)
        assert (odd.calibration, odd.probability, odd.rank_set) == (None, None, ())
        assert all(line.label != "Probability" for line in verdict_of(odd).lines)


def test_a_set_holds_the_rank_of_whatever_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """An index rank is not bounded by the number of targets, as it was once cut."""
    every = Calibration(0.0, dict.fromkeys(FEATURES, 0.0), {verdict.name: 1 for verdict in Verdict}, 100)
    monkeypatch.setattr("isthmus.discovery.result.calibration", lambda *_: every)
    found = discoveries.discovery(readings=READ | {"scree_rank": 3})
    one = replace(found, target_names=("y",), settings={**found.settings, "encoder_side": "linear"})
    assert one.kind == "index"
    for answer in (found, one):
        assert answer.rank_set == (3,)
