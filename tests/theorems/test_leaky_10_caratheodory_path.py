import pytest
import torch
from torch import Tensor

from isthmus.theory import cost_of_identity, covariance_coefficients
from theorem_checks import assert_at_most, assert_close, normal

pytestmark = pytest.mark.theorem("LEAKY-10")


def covariances(A: Tensor) -> Tensor:
    return torch.stack([A @ A.mT, A.relu() @ A.relu().mT])


def on_path(A: Tensor, a: Tensor, t: float) -> Tensor:
    return (1 - t + t * a).sqrt() * A


@pytest.mark.parametrize(("n", "width"), [(4, 25), (3, 40), (1, 5)])
@pytest.mark.parametrize("bias", [True, False])
def test_the_cost_is_constant_on_a_path_to_few_neurons(n: int, width: int, bias: bool) -> None:
    A = normal(0, n, width)
    a = covariance_coefficients(A)
    assert_at_most(torch.zeros_like(a), a)
    assert int((a > 0).sum()) <= n * (n + 1) < width
    expected = cost_of_identity(A, bias=bias)
    for t in (0.0, 0.3, 0.7, 1.0):
        assert_close(covariances(on_path(A, a, t)), covariances(A), relative=1e-11)
        assert_close(cost_of_identity(on_path(A, a, t), bias=bias), expected, relative=1e-9)
    other = torch.linspace(0.0, 2.0, width, dtype=torch.float64)
    with pytest.raises(AssertionError):  # other coefficients change it
        assert_close(covariances(on_path(A, other, 1.0)), covariances(A), relative=1e-11)


def test_neurons_of_very_different_size_are_weighed_alike() -> None:
    A = normal(1, 3, 30) * 10.0 ** torch.linspace(-6, 6, 30, dtype=torch.float64)
    a = covariance_coefficients(A)
    assert_close(covariances(on_path(A, a, 1.0)), covariances(A), relative=1e-11)
    assert int((a > 0).sum()) <= 12
