"""Which neighbouring ridge is looked at in doubt: on stand-ins of a search that has readings and errors."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from isthmus.discovery.choices import AS_READ, CLOSE, SHARP
from isthmus.discovery.findings import Decision
from isthmus.discovery.halves import INDEX
from isthmus.discovery.minimum import Minimum
from isthmus.discovery.remedies.remedy import Case
from isthmus.discovery.remedies.training import AnotherRidge, OneFewer, is_of_training
from isthmus.discovery.search import Search
from isthmus.theory import Verdict
from isthmus.theory.comparison import Comparison, by_ratio, in_nats
from isthmus.theory.curve_readings import CurveReading

BLUNT, CLEAR = SHARP / 2, 2 * SHARP


def is_answered(
    *,
    chosen: CurveReading,
    beside: CurveReading,
    error: float,
    scree: int = 0,
    far: CurveReading | None = None,
    least: float = 0.2,
    compared: Comparison = by_ratio,
) -> bool:
    """Whether the ridge beside the chosen one, with so many times its held-out error, is looked at.

    On its other side lies one, if any, that predicts nothing.
    """
    readings = SimpleNamespace(
        objective=chosen, scree=CurveReading(scree, 0.0), is_sharp=chosen.sharpness >= SHARP,
        counted_neighbours=((0.1, beside), *([(10.0, far)] if far else [])),
    )  # fmt: skip
    errors = {
        ridge: [Minimum(objective=1.0, theta=torch.zeros(0), ridge=ridge, heldout_error=value)]
        for ridge, value in ((1.0, least), (0.1, compared.raised(least, error)), (10.0, 0.9))
    }
    trained = SimpleNamespace(ridge=1.0, starts=errors)
    search: Any = SimpleNamespace(trained=trained, readings=readings, problem=SimpleNamespace(errors_compared=compared))
    case = Case.__new__(Case)
    case.search = search
    return AnotherRidge().answers(case)


@pytest.mark.parametrize(
    ("beside", "scree", "most"),
    [
        (CurveReading(4, BLUNT), 0, CLOSE),  # it reads otherwise
        (CurveReading(4, BLUNT), 4, AS_READ),  # as the held-out error does
        (CurveReading(5, CLEAR), 0, AS_READ),  # the same, and sharply
    ],
)
def test_a_ridge_that_may_settle_it_is_looked_at_up_to_an_error(beside: CurveReading, scree: int, most: float) -> None:
    for error, answered in ((most - 0.01, True), (most + 0.01, False)):
        assert is_answered(chosen=CurveReading(5, BLUNT), beside=beside, error=error, scree=scree) is answered


@pytest.mark.parametrize("least", [0.2, 0.0, -3.0])
def test_errors_in_nats_are_compared_by_their_difference(least: float) -> None:
    """A ratio of log losses means nothing, and below zero it turns round."""
    beside = CurveReading(4, BLUNT)
    for error, answered in ((CLOSE - 0.01, True), (CLOSE + 0.01, False)):
        how: dict[str, Any] = {"error": error, "least": least, "compared": in_nats}
        assert is_answered(chosen=CurveReading(5, BLUNT), beside=beside, **how) is answered


def test_one_that_reads_the_same_settles_nothing_where_it_is_blunt_or_the_chosen_one_sharp() -> None:
    assert not is_answered(chosen=CurveReading(5, BLUNT), beside=CurveReading(5, BLUNT), error=1.0)
    assert not is_answered(chosen=CurveReading(5, CLEAR), beside=CurveReading(5, CLEAR), error=1.0)
    same = CurveReading(5, CLEAR)
    assert not is_answered(chosen=same, beside=same, error=1.0, far=same)


def test_where_one_neighbour_reads_otherwise_the_other_may_be_steadier() -> None:
    same = CurveReading(5, CLEAR)
    assert is_answered(chosen=same, beside=same, error=1.2, far=CurveReading(4, BLUNT))
    assert not is_answered(chosen=same, beside=CurveReading(5, BLUNT), error=1.0, far=CurveReading(4, BLUNT))


@pytest.mark.parametrize(
    ("errors", "asked"),
    [
        ((0.885, 0.124, 0.155, 0.080), True),  # of two squares: through 2 in a poor minimum
        ((0.885, 0.124, 0.124 * CLOSE, 0.080), False),
        ((0.885, 0.155, 0.124, 0.080), False),
        ((0.885, 0.124), False),  # none through 2
    ],
)
def test_a_sure_answer_is_held_against_one_fewer_where_that_predicts_worse_than_two_fewer(
    errors: tuple[float, ...], asked: bool
) -> None:
    search: Any = Search.__new__(Search)
    search.problem, search.size = SimpleNamespace(autoencoding=False), SimpleNamespace(settings=SimpleNamespace())
    search.size.settings.rank_kind = INDEX
    search.readings = SimpleNamespace(heldout_error=errors, columns=5, errors_compared=by_ratio)
    case = Case.__new__(Case)
    case.search = search
    for verdict, answered in ((Verdict.CONFIDENT, asked), (Verdict.DOUBTFUL, False)):
        search.decision = Decision(3, verdict, ())
        assert OneFewer().answers(case) is answered


def test_a_sure_answer_and_one_dimension_fewer_are_trained_as_long() -> None:
    """Trained long alone, 7 beat 8 of waves of rank 8, which had been trained shortly."""
    search = Search.__new__(Search)
    search.decision = Decision(8, Verdict.CONFIDENT, ())
    assert OneFewer()._ends(search) == (8, 7)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(
    ("over_depth", "autoencoding", "helps"), [(None, False, True), ("6", False, False), ("6", True, True)]
)
def test_shallow_networks_are_trained_no_more_where_deeper_ones_decided_of_targets(
    over_depth: Any, *, autoencoding: bool, helps: bool
) -> None:
    """94 s of a table of rank 4, which changed neither rank nor verdict."""
    search: Any = Search.__new__(Search)
    search.problem, search.over_depth = SimpleNamespace(autoencoding=autoencoding), over_depth
    search.decision = Decision(4, Verdict.DOUBTFUL, ())
    search.readings = SimpleNamespace(
        objective=CurveReading(5, CLEAR), scree=CurveReading(4, CLEAR), jacobian_rank=5, counted_neighbours=(),
        heldout_error=(1.0, 0.5, 0.2, 0.1, 0.07, 0.06), columns=None, is_sharp=True, complaints=(),
    )  # fmt: skip
    assert is_of_training(search) is helps
