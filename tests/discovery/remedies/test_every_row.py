"""Searches that hold out every row once: which rows they hold out, what is read off them, when there is none."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from isthmus.discovery.choices import CLEAR_MARGIN, SHARP
from isthmus.discovery.data.checking import checked_data
from isthmus.discovery.data.sample import Sample
from isthmus.discovery.data.splitting import FOLDS
from isthmus.discovery.decision import Readings
from isthmus.discovery.evidence.confidence import bends, row_losses
from isthmus.discovery.findings import OfAllRows
from isthmus.discovery.halves import INDEX, RANK, RankKind
from isthmus.discovery.remedies.every_row import (
    EveryRowHeldOut,
    Fold,
    errors_of,
    gains_of,
    held_out_once,
    planned_evaluations,
    scree_of,
)
from isthmus.discovery.remedies.remedy import Case
from isthmus.discovery.search import Search
from isthmus.discovery.settings import Settings
from isthmus.discovery.work.runner import Tracker, UnitRunner
from isthmus.discovery.work.unit import silent
from isthmus.theory.curve_readings import CurveReading, Gain, RowLosses, gain_beyond, plateau_reading

SETTINGS = Settings(
    width=9, linear_width=3, ridges=(1e-2, 1e-3), starts=("linear",), adam_steps=20, lbfgs_evaluations=30,
    polish_evaluations=15, raise_evaluations=5, refine_evaluations=10,
)  # fmt: skip
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.tanh(X[:, :2]) @ RNG.normal(size=(2, 4))
WEIGHT = RNG.uniform(0.5, 2.0, size=60)


def searched(settings: Settings) -> tuple[Sample, Search]:
    """A search over all rows, with weights, and its sample."""
    sample = Sample.of(checked_data(X, Y, None, WEIGHT), settings)
    problem = sample.posed(settings)
    assert problem is not None
    search = Search(problem, settings, UnitRunner(None, Tracker(silent, 0)))
    search.run()
    return sample, search


@pytest.fixture(scope="module")
def first() -> tuple[Sample, Search]:
    return searched(SETTINGS)


@pytest.fixture(scope="module")
def folds(first: tuple[Sample, Search]) -> list[Fold]:
    found = held_out_once(*first)
    assert found is not None
    return found


@pytest.mark.slow
def test_every_row_is_held_out_once_with_its_weight(folds: list[Fold]) -> None:
    assert len(folds) == FOLDS
    rows = [fold.search.problem.inputs.restore(fold.search.problem.x_held.double().numpy()) for fold in folds]
    held = np.concatenate([np.column_stack([r, fold.weight]) for r, fold in zip(rows, folds, strict=True)])
    expected = np.column_stack([X, WEIGHT])
    assert held[held[:, 0].argsort()] == pytest.approx(expected[expected[:, 0].argsort()], rel=1e-5, abs=1e-6)
    for fold in folds:
        assert len(fold.search.problem.x) + len(fold.search.problem.x_held) == 60


@pytest.mark.slow
def test_each_is_searched_at_the_ridge_that_was_chosen(first: tuple[Sample, Search], folds: list[Fold]) -> None:
    assert {fold.search.trained.ridge for fold in folds} == {first[1].trained.ridge}
    assert (
        planned_evaluations(first[1].size.foresight, first[1].size.settings)
        == FOLDS * first[1].size.foresight.all
        - FOLDS * (first[1].size.foresight.ridges - 1) * SETTINGS.start_evaluations
    )


@pytest.mark.slow
def test_the_reading_is_of_the_errors_of_all_rows(folds: list[Fold]) -> None:
    most = max(max(fold.search.scree) for fold in folds)
    columns: list[np.ndarray] = []
    for search in (fold.search for fold in folds):
        losses = [row_losses(search.problem, None)]
        for rank in range(1, most + 1):
            known = rank in search.scree
            losses.append(
                row_losses(search.problem, search.size.family.network_of(search.scree[rank])) if known else losses[-1]
            )
        columns.append(np.stack(losses))
    weight = np.concatenate([fold.weight for fold in folds])
    complete = most >= folds[0].search.size.family.most_rank
    expected = bends(np.concatenate(columns, 1), weight=weight, ranks=range(most + 1), complete=complete)
    assert scree_of(folds) == expected
    alone = bends(columns[0], weight=folds[0].weight, ranks=range(most + 1), complete=complete)
    assert scree_of(folds) != alone, "control: one part of the rows says something else"
    of_all = np.concatenate(columns, 1) @ (weight / weight.sum())
    assert errors_of(folds) == pytest.approx(of_all / of_all[0])


@pytest.mark.slow
def test_of_a_linear_half_the_plateau_and_the_gains_are_of_all_rows_and_of_every_ridge() -> None:
    settings = replace(SETTINGS, encoder_side="linear", starts=("random",))
    sample, search = searched(settings)
    parts = [held_out_once(sample, search, ridge) for ridge in settings.ridges]
    networks, readings = list[RowLosses](), list[CurveReading]()
    for ridge, folds in zip(settings.ridges, parts, strict=True):
        assert folds is not None
        assert {fold.search.trained.ridge for fold in folds} == {ridge}
        most = max(max(fold.search.scree) for fold in folds)
        losses = np.concatenate([_padded(fold.search, most) for fold in folds], 1)
        weight = np.concatenate([fold.weight for fold in folds])
        networks += [RowLosses(rank, ridge, of) for rank, of in enumerate(losses)]
        readings.append(plateau_reading(losses, ranks=range(most + 1), weight=weight))
        assert scree_of(folds) == readings[-1]
    known = [folds for folds in parts if folds is not None]
    weight = np.concatenate([fold.weight for fold in known[0]])
    expected = {rank: gain_beyond(rank, networks, weight=weight) for rank in range(4)}
    assert gains_of(known) == {rank: gain for rank, gain in expected.items() if gain is not None}
    assert gains_of(known)[0].rank > 0
    assert gains_of([]) == {}


def _padded(search: Search, most: int) -> np.ndarray:
    rows = [row_losses(search.problem, None)]
    for rank in range(1, most + 1):
        known = search.scree.get(rank)
        rows.append(rows[-1] if known is None else row_losses(search.problem, search.size.family.network_of(known)))
    return np.stack(rows)


def test_gains_of_all_rows_take_the_place_of_those_of_the_held_out_ones() -> None:
    sample, search = searched(replace(SETTINGS, encoder_side="linear", starts=("random",)))
    rank, reading = search.decision.rank, search.readings.scree
    search.read_all_rows(OfAllRows(reading, (1.0, 0.01), {rank: Gain(rank + 1, 1.0, 0.5, 0.1, 1e-3)}), sample)
    assert "larger than through" in "".join(search.decision.reasons)
    search.read_all_rows(OfAllRows(reading, (1.0, 0.01), {}), sample)
    assert "larger than through" not in "".join(search.decision.reasons)


@pytest.mark.slow
def test_there_is_none_where_time_is_over(first: tuple[Sample, Search], monkeypatch: pytest.MonkeyPatch) -> None:
    sample, search = first
    monkeypatch.setattr(search.runner, "out_of_time", lambda: True)
    assert held_out_once(sample, search) is None


def answered(  # noqa: PLR0913
    *,
    scree: CurveReading,
    jacobian: int = 4,
    sharpness: float = 2 * SHARP,
    unseen: int = 0,
    kind: RankKind = RANK,
    classes: bool = False,
    gain: Gain | None = None,
) -> bool:
    readings = Readings(
        ridge=1e-3, objective=CurveReading(4, sharpness), neighbours=(), scree=scree, jacobian_rank=jacobian, widest=6,
        heldout_error=(1.0,), linear_error=(1.0,), classes=classes, gains={4: gain} if gain else {},
    )  # fmt: skip
    search: Any = SimpleNamespace(
        readings=readings, decision=SimpleNamespace(rank=4), over_depth=None,
        size=SimpleNamespace(settings=SimpleNamespace(rank_kind=kind)),
    )  # fmt: skip
    sample: Any = SimpleNamespace(num_unseen=unseen)
    case = Case.__new__(Case)
    case.search, case.sample = search, sample
    return EveryRowHeldOut().answers(case)


BLUNT, CLEAR, ELSEWHERE = (CurveReading(4, 0.0), CurveReading(4, 2 * CLEAR_MARGIN), CurveReading(3, 1.0))


def test_it_answers_where_the_held_out_error_alone_is_in_doubt() -> None:
    assert answered(scree=BLUNT)
    assert answered(scree=ELSEWHERE)
    assert not answered(scree=CLEAR)
    assert not answered(scree=BLUNT, jacobian=3)
    assert not answered(scree=BLUNT, sharpness=SHARP / 2)
    assert not answered(scree=BLUNT, unseen=10)
    assert answered(scree=BLUNT, kind=INDEX)
    assert not answered(scree=CLEAR, kind=INDEX, gain=Gain(5, 1.0, 0.01, 0.0, 1e-3))
    assert answered(scree=CLEAR, kind=INDEX, gain=Gain(5, 1.0, 0.1, 0.1, 1e-3))
    assert not answered(scree=BLUNT, classes=True)


@pytest.mark.slow
def test_a_reading_of_all_rows_is_believed(first: tuple[Sample, Search]) -> None:
    sample, search = first
    before, sharper = search.state, CurveReading(search.readings.scree.rank, 9.0)
    try:
        search.read_all_rows(OfAllRows(sharper, (1.0, 0.01), {}), sample)
        assert search.readings.scree == sharper
        assert search.mapped is not None, "linear maps are asked of all rows too"
        assert torch.equal(search.trained.curve[1].theta, before.trained.curve[1].theta)
    finally:
        search.state = before
