"""How much bounds give away for rounding, in units of eps, worked out from docs/notes/certificates.md by hand.

More would be wasted, less would not be certain; that what is given away is enough: `tests/laws/test_bounds.py`.
"""

import math

import pytest
import torch

from isthmus.theory import (
    curvature_lower_bound,
    depth_window,
    enclosed_singular_values,
    jacobian_rank_lower_bound,
    regularity_lower_bound,
    spanning_tree_certificate,
)
from theorem_checks import assert_close

EPS = 2.0**-52


def test_a_curvature_loses_what_the_power_makes_of_its_logarithm() -> None:
    """s = 10^100 at depth 2, where the power is 1: 8 eps of the SVD, and 16 + 4 log s = 16 + 921 roundings."""
    found = float(curvature_lower_bound(torch.full((1, 1, 1), 1e100, dtype=torch.float64), depth=2, error=0.0))
    assert (1 - found / 2e100) / EPS == pytest.approx(16 + 4 * 100 * math.log(10) + 8, rel=0.01)


def test_a_sum_of_logarithms_loses_as_much_as_its_terms_are_large() -> None:
    """4 I of rank 2 at depth 50: 18 (100 + 4 log 4) eps, and 2 * 2 * 16 of the SVD; the sum itself is 105.5."""
    found = float(regularity_lower_bound(4 * torch.eye(2, dtype=torch.float64)[None], rank=2, depth=50, error=0.0))
    away = (100 + 4 * math.log(4) - found) / EPS
    assert away == pytest.approx(18 * (100 + 4 * math.log(4)) + 64, abs=130)  # the last digit of 105.5 is 64 eps


def test_a_tree_of_three_points_in_a_line_loses_fifty_eps() -> None:
    """10 eps for each of the points, and for each coordinate of inputs and outputs: a distance sums as many squares."""
    line = torch.tensor([[0.0], [1.0], [3.0]], dtype=torch.float64)
    assert (1 - spanning_tree_certificate(line, line, lipschitz=1.0).measured / 3) / EPS == pytest.approx(50, abs=1.5)


@pytest.mark.parametrize(("second", "rank"), [(14 * EPS, 1), (18 * EPS, 2)])
def test_sixteen_eps_of_a_jacobian_of_two_rows_are_rounding(second: float, rank: int) -> None:
    found = torch.diag(torch.tensor([1.0, second], dtype=torch.float64))[None]
    assert jacobian_rank_lower_bound(found, tolerance=1e-30).rank == rank


def test_the_depth_at_which_rank_one_undercuts_is_rounded_up_by_its_larger_constant() -> None:
    window = depth_window(rank=2, constant=1.0, rank1_constant=1000.0, rank1_stretch=10.0)
    assert 4e-13 < window.undercut - 999 < 9e-13  # the last digit of 4000 is 4.5e-13
    assert_close(window.undercut, 999.0)


def test_a_product_loses_as_much_for_each_of_its_factors() -> None:
    """Of a 3 x 3 matrix of norm 1: 8 eps times 3 of the SVD, and as much for each factor."""
    matrix = torch.eye(3, dtype=torch.float64)
    given = [enclosed_singular_values(matrix, num_factors=n).error.item() / (3 * EPS) for n in (1, 2, 101)]
    assert given == pytest.approx([16, 24, 816], rel=1e-9)
