import pytest
import torch

from isthmus.theory import features
from isthmus.theory.representation_costs import lifted_slope
from theorem_checks import assert_close


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
def test_the_slope_is_the_derivative_of_the_positive_part(smoothing: float) -> None:
    A = torch.tensor([[-2.0, -0.3, 0.2, 0.7, 3.0]], dtype=torch.float64)
    h = 1e-6
    ends = [features(A + shift, bias=False, smoothing=smoothing) for shift in (h, -h)]
    assert_close(lifted_slope(A, smoothing=smoothing), (ends[0] - ends[1]) / (2 * h), relative=1e-8)


def test_the_slope_of_the_relu_at_zero_is_one_and_a_smoothed_one_half() -> None:
    zero = torch.zeros(1, 1, dtype=torch.float64)
    assert float(lifted_slope(zero, smoothing=0.0)) == 1
    assert float(lifted_slope(zero, smoothing=0.5)) == 0.5
    assert features(zero, smoothing=0.5).tolist() == [[0.25, 1.0]]
    assert features(zero - 1, bias=False).tolist() == [[0.0]]
