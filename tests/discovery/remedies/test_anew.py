"""Whose columns may be scaled together: names that differ in numbers alone, variances that differ, many of them.

When smaller ridges are searched, and believed; when more rows are, and at what price.
"""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from isthmus.discovery.choices import FORETOLD, MORE_ROWS, MORE_TAKEN
from isthmus.discovery.data.problem import Problem, pose
from isthmus.discovery.data.scaling import Scaling, Standardiser
from isthmus.discovery.evidence.foretold import Foretold
from isthmus.discovery.remedies.anew import (
    MoreRows,
    OneScale,
    SmallerRidges,
    are_numbered,
    are_unequal,
    lifts_noise,
    num_hidden,
)
from isthmus.discovery.settings import Settings
from isthmus.theory import Verdict
from isthmus.training.losses import SQUARED


def autoencoded(deviations: list[float], scaling: Scaling = Scaling.COLUMN) -> Problem:
    x = np.random.default_rng(0).normal(size=(50, len(deviations)))
    x = x / x.std(axis=0) * deviations
    inputs = Standardiser.of(x, scaling=scaling)
    held = np.arange(50) % 5 == 0
    return pose(x, x, held, loss=SQUARED, inputs=inputs, targets=Standardiser.of(x, scaling=scaling, total=True))


@pytest.mark.parametrize("names", [["x1", "x2", "x10"], ["pixel 0,0", "pixel 0,1"], ["0", "1"]])
def test_names_of_one_kind_differ_in_their_numbers(names: list[str]) -> None:
    assert are_numbered(names)


@pytest.mark.parametrize("names", [["x1", "y1"], ["length", "mass"], ["p1", "p2", "temperature"]])
def test_other_names_are_of_several_kinds(names: list[str]) -> None:
    assert not are_numbered(names)


def test_pixels_of_which_many_vary_and_some_hardly_do_are_unequal() -> None:
    assert are_unequal(autoencoded([1.0] * 6 + [0.05] * 10))


@pytest.mark.parametrize(
    "deviations",
    [
        [1.0] * 16,
        [1.0, 0.01],
        [1000.0] + [1.0] * 15,
        [100.0] + [1.0] * 7,
        [100.0] * 4 + [1.0] * 4,
        [100.0] * 4 + [1.0] * 36,
    ],
    ids=["equal", "few", "one in other units", "one of eight", "half of eight", "a tenth of forty"],
)
def test_equal_few_or_ruled_by_one_column_they_stay_as_they_are(deviations: list[float]) -> None:
    assert not are_unequal(autoencoded(deviations))


def test_the_rule_is_of_the_columns_and_not_of_their_unit() -> None:
    problem = autoencoded([1e-200] * 6 + [1e-202] * 10)
    assert are_unequal(problem)
    assert torch.isfinite(problem.x).all()


def searched(  # noqa: PLR0913
    rank: int,
    *errors: float,
    left: Foretold | None = None,
    settings: Settings | None = None,
    verdict: Verdict = Verdict.DOUBTFUL,
    lost: np.ndarray | None = None,
    scaling: Scaling = Scaling.COLUMN,
) -> Any:
    found = SimpleNamespace(
        name="", decision=SimpleNamespace(rank=rank, verdict=verdict),
        readings=SimpleNamespace(heldout_error=(1.0, *errors)),
        size=SimpleNamespace(settings=settings or Settings()), trained=SimpleNamespace(ridge=3e-3), left_over=left,
        below=False, settled=0, problem=autoencoded([1.0] * 6 + [0.05] * 10, scaling),
        coordinates=SimpleNamespace(lost_by_column=lambda _rank: lost),
    )  # fmt: skip
    found.settle = lambda: setattr(found, "settled", found.settled + 1)
    return found


@pytest.mark.other_types
@pytest.mark.parametrize(
    ("left", "ridges", "answers"),
    [
        (Foretold(0.9, 0.0), None, True),
        (Foretold(FORETOLD - 0.01, 0.0), None, False),
        (None, None, False),
        (Foretold(0.9, 0.0), (1e-3, 3e-4), False),
    ],
    ids=["further dimension", "little", "not asked", "ridges given"],
)
def test_smaller_ridges_answer_a_further_dimension_where_ridges_were_left_to_us(
    left: Foretold | None, ridges: tuple[float, ...] | None, *, answers: bool
) -> None:
    settings = Settings() if ridges is None else Settings(ridges=ridges)
    case: Any = SimpleNamespace(search=searched(2, 0.5, 0.02, left=left, settings=settings))
    assert SmallerRidges().answers(case) is answers


@pytest.mark.other_types
@pytest.mark.parametrize(
    ("after", "is_believed"),
    [
        (searched(3, 0.5, 0.02, 0.009), True),
        (searched(3, 0.5, 0.02, 0.011), False),
        (searched(3, 0.5, 0.02, 0.009, verdict=Verdict.NO_SHARP_RANK), False),
        (searched(2, 0.5, 0.009), False),
        (searched(1, 0.009), False),
    ],
    ids=["more", "more of which little is saved", "none that stands out", "as many", "fewer"],
)
def test_more_dimensions_at_smaller_ridges_are_believed_where_they_lose_less_than_half(
    after: Any, *, is_believed: bool
) -> None:
    before, asked = searched(2, 0.5, 0.02), list[Any]()
    case: Any = SimpleNamespace(search=before, sample=None, path="a path")

    def anew(_sample: object, settings: Settings, *, name: str) -> Any:
        asked.extend((settings.ridges, name))
        return after

    case.anew = anew
    words = SmallerRidges().apply(case)
    assert asked == [pytest.approx((3e-3, 1e-3, 3e-4, 1e-4)), "below"]
    assert case.search is (after if is_believed else before)
    assert case.path is (None if is_believed else "a path")
    assert ("no further dimension" in words) is not is_believed
    assert (before.below, before.settled) == ((False, 0) if is_believed else (True, 1)), "so that it says so no more"


LIFTED_NOISE = np.array([0.01] * 6 + [0.9] * 10)  # of what hardly varies most is lost, and nothing of the others


@pytest.mark.other_types
@pytest.mark.parametrize(
    ("lost", "lifts"),
    [(LIFTED_NOISE, True), (np.full(16, 0.9), False), (LIFTED_NOISE / 20, False), (LIFTED_NOISE[::-1], False),
     (None, False)],
    ids=["noise of what hardly varies", "of all alike", "hardly any", "of what varies", "not known"],
)  # fmt: skip
def test_noise_is_lifted_where_what_hardly_varies_is_lost_and_the_rest_is_not(
    lost: np.ndarray | None, *, lifts: bool
) -> None:
    search = searched(2, lost=lost)
    assert lifts_noise(search) is lifts
    case: Any = SimpleNamespace(search=search)
    assert (OneScale().chance(case) > OneScale().settles) is lifts


# of columns of deviations 1 and .05, the latter lost as a whole, in units of which the mean variance is 1
KEPT, IN_OTHER_UNITS = np.full(16, 1e-4), np.array([1e-3] * 6 + [0.99 * 0.05**2 * 16 / (6 + 10 * 0.05**2)] * 10)


@pytest.mark.other_types
@pytest.mark.parametrize(
    ("before", "after", "is_believed"),
    [
        (searched(3), searched(3), False),
        (searched(3), searched(2), True),
        (searched(3), searched(5, verdict=Verdict.CONFIDENT), True),
        (searched(3, lost=LIFTED_NOISE), searched(5, verdict=Verdict.NO_SHARP_RANK), True),
        (
            searched(9, lost=KEPT),
            searched(6, lost=IN_OTHER_UNITS, verdict=Verdict.CONFIDENT, scaling=Scaling.GLOBAL),
            False,
        ),
        (searched(9, lost=KEPT), searched(6, lost=KEPT, verdict=Verdict.CONFIDENT), True),
        (searched(9, lost=LIFTED_NOISE), searched(6, lost=IN_OTHER_UNITS, verdict=Verdict.CONFIDENT), True),
    ],
    ids=["as many", "fewer", "surer", "noise was lifted", "columns were lost", "none was lost", "but noise"],
)
def test_one_scale_is_believed_where_it_is_surer_or_noise_was_lifted(
    before: Any, after: Any, *, is_believed: bool
) -> None:
    case: Any = SimpleNamespace(search=before, sample=None, path="a path")
    case.anew = lambda _sample, settings, name: after if (settings.scaling, name) == ("global", "one-scale") else None
    words = OneScale().apply(case)
    assert case.search is (after if is_believed else before)
    assert case.path == (None if is_believed else "a path"), "which is of columns in another scale"
    assert ("each was given variance 1 again" in words) is not is_believed
    assert ("which lost 10 columns that had been kept" in words) is (before.decision.rank == 9 and not is_believed)


@pytest.mark.other_types
def test_a_column_that_varies_in_held_out_rows_alone_is_kept_or_lost_without_a_warning() -> None:
    before, after = searched(9, lost=np.zeros(16)), searched(6, lost=np.zeros(16))
    for search in (before, after):
        search.problem = replace(search.problem, y=torch.zeros_like(search.problem.y))
    assert num_hidden(before, after) == 0


@pytest.mark.other_types
@pytest.mark.parametrize(
    ("unseen", "decided", "answers"),
    [(900, False, True), (900, True, False), (0, False, False)],
    ids=["more", "depth decided", "no more"],
)
def test_more_rows_are_not_searched_where_deeper_networks_decided_of_targets(
    unseen: int, *, decided: bool, answers: bool
) -> None:
    """6 of 8 targets, read by deeper networks alone, was given up for the 8 of a shallow search of more rows."""
    search = SimpleNamespace(decided_by_depth=decided)
    case: Any = SimpleNamespace(search=search, sample=SimpleNamespace(num_unseen=unseen))
    assert MoreRows().answers(case) is answers


@pytest.mark.other_types
@pytest.mark.parametrize(("rows", "times"), [(1_000_000, MORE_ROWS), (12_500, 1.25)])
def test_more_rows_cost_and_promise_as_many_times_as_there_are(rows: int, times: float) -> None:
    search = SimpleNamespace(size=SimpleNamespace(foresight=SimpleNamespace(all=1000)))
    case: Any = SimpleNamespace(search=search, sample=SimpleNamespace(taken=range(rows), held=range(10_000)))
    assert MoreRows().cost(case) == 1000 * times * MORE_TAKEN
    assert MoreRows().chance(case) == pytest.approx(MoreRows.settles * (times - 1) / (MORE_ROWS - 1))
