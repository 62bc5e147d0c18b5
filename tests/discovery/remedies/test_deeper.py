"""Which ranks a deeper middle is trained through, all of autoencoded data, and what it is expected to settle."""

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import discoveries
from isthmus.discovery.depth.path import DepthPath
from isthmus.discovery.depth.units import DepthSettings
from isthmus.discovery.remedies.anew import BRIEF, DeeperMiddle, ranks_of
from isthmus.discovery.settings import Settings

ALL = DepthSettings()


def a_case(filled: float, *, autoencoding: bool = False, depth: DepthSettings = BRIEF) -> Any:
    """Eight targets that are read as 8 dimensions; their coordinates fill so many."""
    readings = SimpleNamespace(**{name: SimpleNamespace(rank=8) for name in ("objective", "scree")}, jacobian_rank=8)
    loss = SimpleNamespace(standardised=True)
    search = SimpleNamespace(
        problem=SimpleNamespace(autoencoding=autoencoding, loss=loss), readings=readings,
        coordinates=SimpleNamespace(around=lambda _rank: filled), decision=SimpleNamespace(rank=8),
        trained=SimpleNamespace(curve={}),
        size=SimpleNamespace(settings=Settings(), family=SimpleNamespace(most_rank=8)),
    )  # fmt: skip
    return SimpleNamespace(search=search, depth=depth, path=None)


@pytest.mark.other_types
@pytest.mark.parametrize(
    ("filled", "autoencoding", "asked", "lowest"),
    [
        (6.4, False, BRIEF, 5),
        (1.2, False, BRIEF, 1),
        (6.4, False, ALL, 1),  # a path of all ranks was asked for
        (6.4, True, BRIEF, 1),  # rows that fill fewer may lie on what many coordinates hold
        (math.nan, False, BRIEF, 1),
    ],
    ids=["regression", "from one", "path asked for", "columns", "not known"],
)
def test_ranks_far_below_what_coordinates_fill_are_not_trained(
    filled: float, *, autoencoding: bool, asked: DepthSettings, lowest: int
) -> None:
    case, whole = (a_case(one, autoencoding=autoencoding, depth=asked) for one in (filled, math.nan))
    assert DeeperMiddle.depth_of(case) == replace(asked, lowest=lowest)
    assert 8 * DeeperMiddle().cost(case) == (9 - lowest) * DeeperMiddle().cost(whole)


@pytest.mark.parametrize(("left_out", "said"), [([], "ranks 1 to 3"), ([1], "ranks 2 to 3"), ([1, 2], "rank 3")])
def test_what_was_trained_is_said_and_no_rank_that_was_not(left_out: list[int], said: str) -> None:
    """Five targets have no more than 5 dimensions, and ranks up to 6 were said to be trained."""
    table = discoveries.depth_path().table.copy(deep=True)
    table["objective"].loc[{"rank": left_out}] = np.nan
    assert ranks_of(DepthPath.of(table)) == said


@pytest.mark.other_types
@pytest.mark.parametrize("fewer", [True, False])
def test_more_is_expected_where_rows_fill_fewer_dimensions(*, fewer: bool) -> None:
    coordinates = SimpleNamespace(fill_fewer=lambda _rank: fewer)
    search = SimpleNamespace(decision=SimpleNamespace(rank=3), coordinates=coordinates)
    case: Any = SimpleNamespace(search=search)
    assert (DeeperMiddle().chance(case) > DeeperMiddle.settles) is fewer
