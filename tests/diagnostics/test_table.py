"""When a number of directions stands out in a spectrum, and when it only falls ever faster."""

import math

import pytest
import torch

from isthmus.diagnostics import diagnose
from isthmus.diagnostics.gaps import gap_integer
from measured.planted_cases import planted_case, read


@pytest.mark.parametrize(
    ("spectrum", "expected"),
    [
        ([1.0, 0.8, 0.5, 0.02, 0.01], 3),
        ([1.0, 0.9, 0.8, 0.05], 3),
        ([1.0, 0.1], 1),
        ([1.0, 0.9, 0.8], 3),  # all of them: the floor stands behind the last
        ([1.0, 0.3, 0.1, 0.04], math.nan),  # nor is the floor a gap where all only fall towards it
        ([1.0, 0.6, 0.3, 0.11], 4),
        ([1.0, 0.6, 0.3, 0.09], math.nan),
        ([1.0, 0.7, 0.45, 0.25, 0.12, 0.05, 0.02], math.nan),
        ([1.0, 0.7, 0.5, 0.35], 4),
    ],
)
def test_a_gap_stands_out_from_the_fall_before_it(spectrum: list[float], expected: float) -> None:
    found = gap_integer(torch.tensor(spectrum, dtype=torch.float64), rows=1000, width=len(spectrum))
    assert found == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("seed", [5, 31, 204])
def test_behind_a_depthwise_convolution_nothing_stands_out_unless_it_was_planted(seed: int) -> None:
    for is_planted in (True, False):
        case = planted_case("depthwise", 2, seed=seed, is_planted=is_planted)
        found = read(diagnose(case.module, case.x, jacobians=False).layers, "dimension_activation 4")
        assert found == 2 if is_planted else not found < 16
