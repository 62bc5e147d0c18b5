"""A pass whose truncated networks end nowhere, at one ridge or at all."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import isthmus
from isthmus.discovery import one_size, ridge_starts, search
from isthmus.discovery.data.checking import checked_data
from isthmus.discovery.data.sample import Sample
from isthmus.discovery.decision import decide
from isthmus.discovery.evidence import confidence
from isthmus.discovery.findings import Decision, Readings
from isthmus.discovery.minimum import Minimum
from isthmus.discovery.objective_curves import Curves, Ladder, Train, objective_curves
from isthmus.discovery.request import Request
from isthmus.discovery.ridge_starts import RidgeStarts
from isthmus.discovery.settings import Settings
from isthmus.discovery.work.unit import silent
from isthmus.errors import NotConverged
from isthmus.theory.curve_readings import Gain, RowLosses
from tolerances import rounding

SMALL = Settings(
    width=9, linear_width=3, ridges=(1e-2, 1e-3), starts=("linear",), adam_steps=30, lbfgs_evaluations=40,
    polish_evaluations=20, raise_evaluations=5, refine_evaluations=20,
)  # fmt: skip
X = np.random.default_rng(0).uniform(-1, 1, size=(100, 3))


def discovered(settings: Settings = SMALL, *, workers: int = 1) -> isthmus.Discovery:
    request = Request(
        sample=Sample.of(checked_data(X, None, None, None), settings), settings=settings, folder=None, seconds=None,
        progress=silent, control=False, depth_path=False, workers=workers,
    )  # fmt: skip
    return request.answered()


def lose(monkeypatch: pytest.MonkeyPatch, *, chosen_too: bool) -> None:
    """Let truncated networks diverge, at the neighbouring ridge or at both."""

    def losing(ladders: Sequence[Ladder], train: Train, *, constant: float) -> Curves:
        def some(wanted: Sequence[tuple[Ladder, int]]) -> list[Minimum]:
            return [r for r in train(wanted) if r.ridge == ladders[0].ridge and not chosen_too]

        return objective_curves(ladders, some, constant=constant)

    monkeypatch.setattr(one_size, "objective_curves", losing)


@pytest.mark.slow
def test_a_ridge_at_which_nothing_ends_is_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert discovered().objective_curve.sizes["ridge"] == 2
    lose(monkeypatch, chosen_too=False)
    found = discovered()
    assert found.objective_curve.sizes["ridge"] == 1
    assert any("no network of any rank ended; its objective curve is left out" in text for text in found.warnings)
    assert found.verdict.name != "CONFIDENT"


@pytest.mark.slow
def test_where_nothing_ends_at_the_chosen_ridge_there_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    lose(monkeypatch, chosen_too=True)
    with pytest.raises(NotConverged, match="no network of any rank ended; give other ridges"):
        discovered()


@pytest.mark.slow
def test_the_neighbours_of_the_chosen_ridge_are_trained_whatever_the_walk_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    four = dataclasses.replace(SMALL, ridges=(3e-2, 1e-2, 3e-3, 1e-3))
    heard: list[tuple[dict[int, float], float]] = []

    def once(errors: dict[int, float], count: int, *, patience: int, useless: float) -> int | None:
        heard.append((dict(errors), useless))
        return None if errors else 2

    monkeypatch.setattr(ridge_starts, "next_ridge", once)
    found = discovered(four)
    assert sorted(set(found.runs["ridge"].values.tolist())) == [1e-3, 3e-3, 1e-2]
    assert found.readings["ridge"] == 3e-3
    # what no better than the constant means is told to the walk, in the units of the errors
    assert [useless for _, useless in heard] == pytest.approx([heard[0][1]] * 2)
    assert 0.5 < heard[0][1] < 2.0


@pytest.mark.slow
def test_what_idle_workers_train_ahead_changes_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    # the best is the smallest ridge: what was trained above the middle meanwhile is dropped
    path = dataclasses.replace(SMALL, ridges=(0.8, 0.4, 1e-1, 1e-2, 1e-3, 1e-4))
    one = discovered(path)
    trained, keep = list[list[float]](), RidgeStarts._train_ahead  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    def noted(self: RidgeStarts, wanted: Sequence[tuple[float, int]]) -> None:
        trained.append([ridge for ridge, _ in wanted])
        keep(self, wanted)

    monkeypatch.setattr(RidgeStarts, "_train_ahead", noted)
    for workers, ahead in ((2, [1e-2, 1e-3]), (6, [1e-2, 1e-3, 1e-1])):
        trained.clear()
        several = discovered(path, workers=workers)
        assert trained[0] == ahead
        timeless = [name for name in one.runs.data_vars if name != "seconds"]
        assert several.runs[timeless].identical(one.runs[timeless])
        assert several.objective_curve.identical(one.objective_curve)
        assert several.scree.identical(one.scree)
        assert (several.rank, several.warnings) == (one.rank, one.warnings)
    assert 1e-1 not in one.runs["ridge"]


@pytest.mark.slow
def test_the_choice_of_the_ridge_hears_of_the_constant(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[dict[str, float]] = []

    def smallest(errors: dict[float, float], objectives: dict[float, float], **constant: float) -> float:
        heard.append(constant)
        assert set(errors) == set(objectives)
        return min(errors)

    monkeypatch.setattr(one_size, "choose_ridge", smallest)
    assert discovered().readings["ridge"] == 1e-3
    assert heard[0]["constant_objective"] == pytest.approx(1.0, rel=0.2)
    assert heard[0]["constant_error"] == pytest.approx(1.0, rel=0.5)


@pytest.mark.slow
def test_what_more_combinations_save_is_read_at_the_neighbouring_ridge_too(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, settings = list[Readings](), dataclasses.replace(SMALL, starts=("random",), linear_width=4)
    kept = confidence.gain_beyond
    ridges = set[float]()

    def watched(rank: int, networks: Sequence[RowLosses], **how: Any) -> Gain | None:
        ridges.update(one.ridge for one in networks)
        return kept(rank, networks, **how)

    def decided(readings: Readings) -> Decision:
        seen.append(readings)
        return decide(readings)

    monkeypatch.setattr(search, "decide", decided)
    monkeypatch.setattr(confidence, "gain_beyond", watched)
    discovered(dataclasses.replace(settings, encoder_side="linear"))
    gains, errors = seen[-1].gains, seen[-1].heldout_error
    assert set(gains) == set(range(len(errors) - 1))
    assert all(gain.rank > rank for rank, gain in gains.items())
    rounds = 1 + rounding(size=len(X))  # the same losses of rows, summed in another order
    assert all(gain.error <= min(errors[rank + 1 :]) * rounds for rank, gain in gains.items())
    assert all(gain.error + gain.saved <= errors[rank] * rounds for rank, gain in gains.items())
    assert len(ridges) > 1, "those of the chosen ridge and of the other"
    discovered(settings)
    assert seen[-1].gains == {}, "a curved half has no end: more of them always save something"


@pytest.mark.slow
def test_how_exactly_minima_are_found_is_kept_among_the_readings() -> None:
    found = discovered()
    here = found.runs["objective"].values[found.runs["ridge"].values == found.readings["ridge"]].min()
    least = min(here, float(found.objective_curve["objective"].sel(ridge=found.readings["ridge"]).min()))
    assert found.readings["spread"] == pytest.approx(np.log(here / least))


@pytest.mark.slow
@pytest.mark.parametrize("targets", [1, 3])
def test_targets_that_nothing_predicts_have_rank_zero_and_doubt(targets: int) -> None:
    """Where every network collapsed to a constant, rounding in its Jacobian and a decayed bias are no dimension."""
    rng = np.random.default_rng(3)
    inputs, noise = rng.normal(size=(90, 3)), rng.normal(size=(90, targets))
    settings = dataclasses.replace(SMALL, ridges=(3.0, 1.0))
    request = Request(
        sample=Sample.of(checked_data(inputs, noise, None, None), settings), settings=settings, folder=None,
        seconds=None, progress=silent, control=False, depth_path=False, workers=1,
    )  # fmt: skip
    found = request.answered()
    assert set(found.runs["outcome"].values.tolist()) == {"COLLAPSED"}
    assert (found.rank, found.verdict.name) == (0, "DOUBTFUL")
    assert [found.readings[name] for name in ("objective_rank", "scree_rank", "jacobian_rank")] == [0, 0, 0]
    assert found.readings["resample_share"] == found.readings["start_share"] == 1.0
    assert any("Nothing predicts held-out rows better than their mean" in reason for reason in found.reasons)
