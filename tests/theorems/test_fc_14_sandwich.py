import pytest
import torch

from isthmus.theory import optimal_linear_factors, schatten_lower_bound
from theorem_checks import assert_at_most, assert_close, with_spectrum

pytestmark = pytest.mark.theorem("FC-14")


def test_cost_per_layer_closes_in_on_the_rank_from_both_sides() -> None:
    matrix = with_spectrum(0, [20.0, 3.0, 0.1], 5, 4)
    for depth in (10, 100, 1000):
        lower = schatten_lower_bound(matrix[None], depth=depth) / depth
        upper = sum(w.square().sum() for w in optimal_linear_factors(matrix, depth=depth)) / depth
        assert_at_most(lower, upper)
        assert_close(torch.as_tensor(upper), torch.tensor(3.0), absolute=12 / depth)
        with pytest.raises(AssertionError):  # the limit is the rank, not one less
            assert_close(torch.as_tensor(upper), torch.tensor(2.0), absolute=0.5)
