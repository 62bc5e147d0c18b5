import pytest
import torch
from torch import Tensor

from isthmus.theory import KernelRidge, jacobian_rank_lower_bound, kernel_ridge
from theorem_checks import assert_close, normal

pytestmark = pytest.mark.theorem("FC-26")


def assert_derivative(jacobian: Tensor, fitted: KernelRidge, points: Tensor) -> None:
    points = points.clone().requires_grad_()
    sums = fitted(points).sum(0)
    rows = [torch.autograd.grad(total, points, retain_graph=True)[0] for total in sums]
    assert_close(jacobian, torch.stack(rows, 1), relative=1e-11)


def test_the_jacobian_is_the_derivative_with_the_minus_sign() -> None:
    x, y, points = normal(0, 30, 3), normal(1, 30, 2), normal(2, 8, 3)
    fitted = kernel_ridge(x, y, ridge=0.1, bandwidth=1.3)
    jacobian = fitted.jacobian(points)
    assert_derivative(jacobian, fitted, points)
    with pytest.raises(AssertionError):  # the printed sign
        assert_derivative(-jacobian, fitted, points)


def test_the_coefficients_solve_the_system() -> None:
    x, y = normal(0, 20, 2), normal(1, 20, 2)
    fitted = kernel_ridge(x, y, ridge=0.5, bandwidth=0.7)
    assert_close(fitted(x) + 0.5 * fitted.coefficients, y)


def test_noise_gives_full_rank_to_a_task_of_rank_one() -> None:
    x = normal(0, 60, 3)
    y = x @ normal(3, 3, 1) @ normal(4, 1, 3) + 0.1 * normal(5, 60, 3)
    jacobians = kernel_ridge(x, y, ridge=0.1, bandwidth=1.0).jacobian(normal(6, 20, 3))
    assert jacobian_rank_lower_bound(jacobians, tolerance=1e-3).rank == 3


def test_points_on_a_line_leave_two_directions_not_three() -> None:
    line = torch.linspace(-1, 1, 10, dtype=torch.float64)[:, None] * normal(0, 1, 3) + normal(1, 1, 3)
    jacobians = kernel_ridge(line, normal(2, 10, 3), ridge=0.1, bandwidth=1.0).jacobian(normal(3, 20, 3))
    rank = jacobian_rank_lower_bound(jacobians, tolerance=1e-9).rank
    assert rank == 2  # affine dimension + 1
    with pytest.raises(AssertionError):  # rank X + 1, as printed
        assert rank == int(torch.linalg.matrix_rank(line, rtol=1e-9)) + 1
