"""What a deeper middle is expected to settle: more where rows, or their coordinates, fill fewer dimensions."""

import math
from types import SimpleNamespace
from typing import Any

import pytest

from isthmus.discovery.remedies.deeper import DeeperMiddle


@pytest.mark.parametrize(
    ("rows", "coordinates", "more"),
    [(2.6, 1.1, True), (1.7, 2.9, True), (2.6, 2.9, False), (math.nan, 1.1, True), (math.nan, math.nan, False)],
    ids=["noise fills the columns", "rows", "all", "rows not known", "nothing known"],
)
def test_more_is_expected_where_rows_or_coordinates_fill_fewer_dimensions(
    rows: float, coordinates: float, *, more: bool
) -> None:
    search = SimpleNamespace(
        decision=SimpleNamespace(rank=3), filled=lambda _rank: rows, filled_by_coordinates=lambda _rank: coordinates
    )
    case: Any = SimpleNamespace(search=search)
    assert (DeeperMiddle().chance(case) > DeeperMiddle.settles) is more
