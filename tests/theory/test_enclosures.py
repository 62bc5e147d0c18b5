from fractions import Fraction

import mpmath
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.networks import enclosed_jacobians, jacobians
from isthmus.theory import enclosed_singular_values
from isthmus.theory.enclosures import power_sum_bound, rounded, rounded_down, rounded_up
from theorem_checks import SEEDS, normal, random_network


def exact_singular_values(matrix: Tensor) -> Tensor:
    with mpmath.workdps(60):
        values = mpmath.svd_r(mpmath.matrix(matrix.tolist()), compute_uv=False)
        return torch.tensor([float(value) for value in values], dtype=torch.float64)


@settings(deadline=None, max_examples=40)
@given(seed=SEEDS, rows=st.integers(1, 4), columns=st.integers(1, 4), exponent=st.sampled_from([-140, 0, 140]))
def test_the_intervals_hold_the_true_values(seed: int, rows: int, columns: int, exponent: int) -> None:
    """Of a matrix whose second value is its own rounding, so that the computed one may be wrong altogether."""
    matrix = 10.0**exponent * normal(seed, rows, 1) @ normal(seed + 1, 1, columns)
    found = enclosed_singular_values(matrix, error=0)
    exact = exact_singular_values(matrix)
    assert bool((found.lower <= exact * (1 + 1e-15)).all())
    assert bool((found.upper >= exact * (1 - 1e-15)).all())
    assert int((found.lower > 0).sum()) == 1  # nothing but the first is certainly there
    widest = 16 * max(rows, columns) * torch.finfo(torch.float64).eps * float(exact[0])
    width = float(found.upper[0] - found.lower[0])
    assert 0.9 * widest <= width <= 1.1 * widest or width <= 4e-16 * float(exact[0])  # and the intervals are narrow


def test_an_error_that_is_known_widens_the_interval_by_as_much() -> None:
    matrix = torch.diag(torch.tensor([1.0, 1e-3, 1e-12], dtype=torch.float64))
    known = enclosed_singular_values(matrix, error=1e-4)
    assert known.lower.tolist() == pytest.approx([1 - 1e-4, 9e-4, 0.0], rel=1e-11)
    assert known.upper.tolist() == pytest.approx([1 + 1e-4, 1.1e-3, 1e-4], rel=1e-7)
    exact = enclosed_singular_values(matrix, error=0)
    assert exact.lower.tolist() == pytest.approx([1, 1e-3, 1e-12], rel=1e-2)  # rounding of 5e-15 is counted
    assumed = enclosed_singular_values(matrix, num_factors=100)  # 1e-12 may be what a product left
    assert assumed.lower.tolist() == pytest.approx([1, 1e-3, 0], rel=1e-8)
    assert float(assumed.error) > 10 * float(enclosed_singular_values(matrix, num_factors=1).error)


def test_a_batch_has_an_error_for_each_matrix() -> None:
    matrices = torch.eye(2, dtype=torch.float64).expand(3, 2, 2)
    found = enclosed_singular_values(matrices, error=torch.tensor([0.0, 0.5, 2.0], dtype=torch.float64))
    assert found.lower[:, 0].tolist() == pytest.approx([1, 0.5, 0], rel=1e-12)
    assert enclosed_singular_values(torch.zeros(0, 3), error=0).lower.shape == (0,)
    assert enclosed_singular_values(torch.zeros(2, 2)).lower.tolist() == [0, 0]


@pytest.mark.parametrize("error", [-1.0, float("inf"), float("nan")])
def test_an_error_is_finite_and_not_negative(error: float) -> None:
    with pytest.raises(ValueError, match="finite error >= 0"):
        enclosed_singular_values(torch.eye(2), error=error)


def test_errors_of_another_number_are_refused() -> None:
    with pytest.raises(ShapeError, match="one error per matrix"):
        enclosed_singular_values(torch.zeros(2, 2, 2), error=torch.zeros(3))


def test_outward_rounding_goes_outward_by_a_few_units() -> None:
    one = torch.ones((), dtype=torch.float64)
    assert 1 - 1e-14 < float(rounded_down(one, 0)) < 1 < float(rounded_up(one, 0)) < 1 + 1e-14
    assert float(rounded_up(-one, 10)) > -1 > float(rounded_down(-one, 10))
    assert rounded(-2.0, 0, up=False) < -2 < rounded(-2.0, 0, up=True)
    with mpmath.workdps(50):
        for values, power in (([3.0, 1e-150], 2e-4), ([7.0, 0.3, 0.0], 2 / 3), ([1e150], 2.0)):
            exact = sum(mpmath.mpf(value) ** mpmath.mpf(power) for value in values if value)
            found = float(power_sum_bound(torch.tensor(values, dtype=torch.float64), power))
            assert found <= exact
            assert found >= exact * (1 - mpmath.mpf("1e-12"))


def exact_jacobian(weights: list[Tensor], patterns: list[Tensor]) -> list[list[Fraction]]:
    """W_L D_{L-1} .. D_1 W_1 in rational numbers."""
    product = [[Fraction(value) for value in row] for row in weights[0].tolist()]
    for weight, pattern in zip(weights[1:], patterns, strict=True):
        masked = [[Fraction(p) * value for value in row] for p, row in zip(pattern.tolist(), product, strict=True)]
        columns = list(zip(*masked, strict=True))
        rows = [[Fraction(value) for value in row] for row in weight.tolist()]
        product = [[sum(map(Fraction.__mul__, row, column), Fraction(0)) for column in columns] for row in rows]
    return product


@pytest.mark.parametrize("slope", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_jacobians_lie_within_their_error_of_the_exact_product(seed: int, slope: float) -> None:
    network, x = random_network(seed, [4, 6, 6, 6, 3], slope=slope), normal(seed + 50, 5, 4)
    found = enclosed_jacobians(network, x)
    assert torch.equal(found.values, jacobians(network, x))
    states, one = network.layer_states(x), torch.ones((), dtype=torch.float64)
    for i in range(len(x)):
        patterns = [torch.where(s.preactivation[i] >= 0, one, slope * one) for s in states[:-1]]
        exact = exact_jacobian([w.detach() for w in network.weights], patterns)
        gaps = [
            [float(Fraction(value) - true) for value, true in zip(row, known, strict=True)]
            for row, known in zip(found.values[i].tolist(), exact, strict=True)
        ]
        gap = float(torch.linalg.matrix_norm(torch.tensor(gaps, dtype=torch.float64)))
        assert gap <= float(found.error[i])
    # and no more than a few digits are given away
    assert bool((found.error <= 1e-12 * (1 + found.values.norm(dim=(1, 2)))).all())
