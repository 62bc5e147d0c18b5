"""Ranks of the figure of penalty against depth: none where the count hangs on the threshold."""

import math

import numpy as np
import pytest
import xarray as xr

from figure_arrays import MADE
from isthmus.figures import FIGURES, Judgement
from isthmus.figures.depth_plateaus import count


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.2, 1.1, 0.02], 2.0),
        ([1.2, 1.1, 0.21], 3.0),
        ([1.2, 1.1, 0.0499], 2.0),
        ([0.0, 0.0], 0.0),
        ([1.6, 1.4, 0.24, 0.1003], math.nan),  # the quick curve at depth 4, and what other kernels make of it
        ([1.6, 1.4, 0.24, 0.0997], math.nan),
        ([1.2, 1.1, 0.19], math.nan),
        ([1.2, 1.1, 0.051], math.nan),
    ],
)
def test_a_count_is_read_only_where_no_value_is_near_the_threshold(values: list[float], expected: float) -> None:
    np.testing.assert_equal(count(np.array(values)), expected)


def test_a_depth_without_a_count_belongs_to_no_slope_and_is_no_rise() -> None:
    made = MADE["depth-plateaus"]()
    unread = made.isel(depth=[0]).assign_coords(depth=[2.0])
    unread = unread.assign(count=unread["count"] * math.nan, penalty=unread["penalty"] + 100)
    data = xr.concat([unread, made], "depth", data_vars="minimal")
    verdict = FIGURES["depth-plateaus"].verdict
    assert [claim.measured for claim in verdict(data)] == [claim.measured for claim in verdict(made)]
    assert [claim.judgement for claim in verdict(data)] == [Judgement.HOLDS] * 4


def test_a_rise_is_seen_across_a_depth_without_a_count() -> None:
    made = MADE["depth-plateaus"]()
    counts = np.resize([2.0, math.nan, 3.0, 3.0, 3.0, 2.0, 0.0], made["count"].shape)
    claims = FIGURES["depth-plateaus"].verdict(made.assign(count=(made["count"].dims, counts)))
    assert claims[2].judgement is Judgement.FAILS
