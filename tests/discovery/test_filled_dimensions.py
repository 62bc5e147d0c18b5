"""What rows and their coordinates fill: when a rank falls into doubt by it, and what is lost of each column."""

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch

from isthmus.discovery.choices import CAPPED_FROM, CLOSELY
from isthmus.discovery.data.problem import pose
from isthmus.discovery.data.scaling import Standardiser
from isthmus.discovery.factorisation import cut_network
from isthmus.discovery.filled_dimensions import CurvedCoordinates, fill_fewer, held_against_rows
from isthmus.discovery.findings import Decision
from isthmus.networks import FullyConnected
from isthmus.theory import Verdict
from isthmus.training.losses import SQUARED
from minima import problem_of


@pytest.mark.parametrize(("around", "verdict"), [(3 / CLOSELY, Verdict.CONFIDENT), (2.4, Verdict.DOUBTFUL)])
def test_a_rank_that_became_sure_by_work_needs_rows_that_fill_as_many_dimensions(
    around: float, verdict: Verdict
) -> None:
    decision = held_against_rows(Decision(3, Verdict.CONFIDENT, ("It agrees.",)), around)
    assert (decision.rank, decision.verdict) == (3, verdict)
    assert ("It agrees." in decision.reasons) is (verdict is Verdict.CONFIDENT), "no doubt beside what speaks for it"


def test_it_is_said_who_fills_fewer() -> None:
    sure = Decision(4, Verdict.CONFIDENT, ())
    assert (
        held_against_rows(sure, 3.0, who="their coordinates")
        .reasons[0]
        .startswith("With their neighbours, their coordinates fill 3.0 dimensions: 4 flat ones may be fewer")
    )
    assert "--depth-path" in held_against_rows(sure, 3.0).reasons[0]
    assert "--depth-path" not in held_against_rows(sure, 3.0, asked=True).reasons[0]
    assert held_against_rows(sure, math.nan, who="their coordinates") is sure


@pytest.mark.parametrize(
    ("rank", "around", "alone", "capped"),
    [
        (7, 6.0, False, True), (7, 6.2, False, False), (7, 5.8, True, True), (CAPPED_FROM, 4.26, False, True),
        (CAPPED_FROM - 1, 3.4, False, False), (2, 1.6, True, True), (6, math.nan, False, False),
    ],
)  # fmt: skip
def test_as_many_dimensions_as_targets_are_doubted_sooner(
    rank: int, around: float, *, alone: bool, capped: bool
) -> None:
    """Of 7 targets of 6 hidden numbers all readings are 7, and only a blunt bend was in doubt."""
    sure = Decision(rank, Verdict.CONFIDENT, ())
    assert fill_fewer(rank, around) is alone
    assert fill_fewer(rank, around, capped=True) is capped
    held = held_against_rows(sure, around, capped=True)
    assert held.verdict is (Verdict.DOUBTFUL if capped else Verdict.CONFIDENT)


@pytest.mark.other_types
@pytest.mark.parametrize(
    ("rank", "targets", "autoencoding", "is_capped"),
    [(5, 5, False, True), (5, 6, False, False), (8, 8, False, False), (5, 5, True, False)],
    ids=["as many as targets", "fewer", "as many as inputs", "of columns"],
)
def test_targets_cap_a_rank_where_inputs_have_more_directions(
    rank: int, targets: int, monkeypatch: pytest.MonkeyPatch, *, autoencoding: bool, is_capped: bool
) -> None:
    problem = replace(problem_of(np.eye(8), np.eye(8)[:, :targets]), autoencoding=autoencoding)
    family: Any = SimpleNamespace(problem=replace(problem, directions=(None, None)))
    for name in ("around", "filled"):
        monkeypatch.setattr(CurvedCoordinates, name, lambda *_: 0.85 * rank)
    assert CurvedCoordinates(family, {}).fill_fewer(rank) is is_capped


@pytest.mark.other_types
def test_what_is_lost_of_each_column_is_counted_in_its_own_variance(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network that loses the last column and keeps the others; their mean is the held-out error."""
    x = np.random.default_rng(0).normal(size=(50, 8)) * ([1.0] * 6 + [0.05] * 2)
    targets = Standardiser.of(x, total=True)
    problem = pose(x, x, np.arange(50) % 5 == 0, loss=SQUARED, inputs=Standardiser.of(x), targets=targets)
    kept = torch.eye(8)
    kept[7, 7] = 0.0
    down = problem.y.std(0, correction=0) / problem.x.std(0, correction=0)
    network = FullyConnected.from_layers([kept, torch.diag(down)], linear=(1,))
    coordinates = CurvedCoordinates(cast("Any", SimpleNamespace(problem=problem)), {})
    monkeypatch.setattr(CurvedCoordinates, "cut", lambda *_: cut_network(network, problem.x, 7, layer=1))
    lost = coordinates.lost_by_column(7)
    assert lost is not None
    assert lost == pytest.approx([0.0] * 7 + [lost[7]], abs=1e-6)
    assert lost.mean() == pytest.approx(problem.heldout_error(network), rel=1e-6)
    assert 0.3 < lost[7] < 3.0
    monkeypatch.setattr(CurvedCoordinates, "cut", lambda *_: None)
    assert coordinates.lost_by_column(7) is None


@pytest.mark.other_types
def test_coordinates_of_a_linear_map_are_asked_what_they_fill() -> None:
    """Three straight coordinates of rows on a curve are one that is bent."""
    angle = np.random.default_rng(0).uniform(0, 3, size=120)
    on_a_curve = np.column_stack([np.cos(2 * angle), np.sin(2 * angle), angle, np.cos(angle)])
    for x, verdict in ((on_a_curve, Verdict.DOUBTFUL), (np.random.default_rng(1).normal(size=(120, 4)), None)):
        y = x[:, :3] @ np.random.default_rng(2).normal(size=(3, 4))
        problem = pose(
            x, y, np.arange(120) % 5 == 0, loss=SQUARED, inputs=Standardiser.of(x), targets=Standardiser.of(y)
        )
        coordinates = CurvedCoordinates(cast("Any", SimpleNamespace(problem=problem)), {})
        sure = Decision(3, Verdict.CONFIDENT, ())
        held = coordinates.holds(sure, asked=True, closely=False, linear=True)
        assert held.verdict is (verdict or Verdict.CONFIDENT)
