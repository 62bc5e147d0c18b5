"""When a number of directions stands out in a spectrum, and when it only falls ever faster."""

import math

import pytest
import torch

from isthmus.diagnostics import diagnose
from isthmus.diagnostics.gaps import gap_integer, standing_gap
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
        # weak directions that are used, down to a fiftieth, and noise 30 times below the last of them
        ([0.905**k for k in range(40)] + [6e-4 * 0.99**k for k in range(40)], 40),
        ([0.905**k for k in range(40)] + [6e-4] * 2, math.nan),  # two at the end are the tail of a square matrix
        ([0.905**k for k in range(40)] + [2.5e-3 * 0.99**k for k in range(40)], math.nan),  # 7 times below
        ([0.8**k for k in range(40)] + [1.6e-5 * 0.9**k for k in range(40)], math.nan),  # the root of a fall of 6,000
        (
            [0.905**k for k in range(40)] + [6e-4 * 0.9**k for k in range(5)],
            math.nan,
        ),  # 5 of 45 are less than an eighth
    ],
)
def test_a_gap_stands_out_from_the_fall_before_it(spectrum: list[float], expected: float) -> None:
    found = gap_integer(torch.tensor(spectrum, dtype=torch.float64), rows=1000, width=len(spectrum))
    assert found == pytest.approx(expected, nan_ok=True)


def test_products_of_random_square_matrices_have_no_drop_below_the_floor() -> None:
    """Their least values fall by any factor: with two values behind a drop 36 of 3,319 had a number there."""
    draws = torch.Generator().manual_seed(1)
    for trial in range(300):
        width = (8, 16, 32, 48, 64)[trial % 5]
        matrices = torch.randn(trial // 5 % 4 + 1, width, width, generator=draws, dtype=torch.float64)
        values = torch.linalg.svdvals(torch.linalg.multi_dot([*matrices]) if len(matrices) > 1 else matrices[0])
        gap = standing_gap(values)
        assert gap is None or values[gap - 1] >= 0.01 * values[0], (trial, gap)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [5, 31, 204])
def test_behind_a_depthwise_convolution_nothing_stands_out_unless_it_was_planted(seed: int) -> None:
    for is_planted in (True, False):
        case = planted_case("depthwise", 2, seed=seed, is_planted=is_planted)
        found = read(diagnose(case.module, case.x, jacobians=False).layers, "dimension_activation 4")
        assert found == 2 if is_planted else not found < 16
