from fractions import Fraction

import mpmath
import pytest
import torch
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.theory import energy_split, features, least_norm_weights, relaxed_norm
from shape_checks import own_shape_checks
from theorem_checks import assert_close, normal, with_spectrum

pytestmark = [pytest.mark.theorem("LEAKY-04"), pytest.mark.theorem("LEAKY-24")]


def exact(m: Tensor, s: Tensor, gamma: float) -> float:
    """Tr[m^T (s s^T + gamma)^{-1} m] in 60 digits, from the n x n kernel itself."""
    with mpmath.workdps(60):
        M, S = mpmath.matrix(m.tolist()), mpmath.matrix(s.tolist())
        kernel = S * S.T + mpmath.mpf(gamma) * mpmath.eye(len(m))
        total = mpmath.mpf(0)
        for column in range(m.shape[1]):
            solved = mpmath.lu_solve(kernel, M[:, column])
            total += (M[:, column].T * solved)[0]
        return float(total)


@pytest.mark.parametrize("relative", [1e3, 1.0, 1e-3, 1e-6, 1e-9, 1e-12, 1e-15, 1e-20])
@pytest.mark.parametrize("in_span", [True, False])
def test_against_sixty_digits(relative: float, in_span: bool) -> None:
    s = with_spectrum(0, [10.0 ** (-i) for i in range(6)], 15, 8)
    m = s @ normal(2, 8, 2) if in_span else normal(3, 15, 2)
    gamma = relative * float(torch.linalg.svdvals(s)[0]) ** 2
    expected = exact(m, s, gamma)
    assert_close(relaxed_norm(m, s, gamma=gamma), expected, relative=1e-11)
    with pytest.raises(AssertionError):  # features and relaxation one per cent too large
        assert_close(relaxed_norm(m, 1.01 * s, gamma=1.01 * gamma), expected, relative=1e-11)


@pytest.mark.parametrize("size", [2.0**-460, 1.0, 2.0**460])
@pytest.mark.parametrize("relative", [1e-10, 1e-14, 1e-20])
def test_a_target_all_but_in_the_span_has_as_many_digits(relative: float, size: float) -> None:
    """The control: the residual as float64 has it, 2.8e-10 off at the first case and 3e-7 at 1e-20."""
    off = []
    for seed in range(12):
        s, apart = normal(seed, 5, 3) * torch.tensor([1.0, 1e-3, 1e-6]).double(), normal(seed + 50, 5, 1)
        m = s @ normal(seed + 100, 3, 1) + relative**0.5 * apart
        gamma = relative * float(s.square().sum())
        expected = exact(m, s, gamma)
        assert_close(relaxed_norm(m * size, s * size, gamma=gamma * size**2), expected, relative=1e-11)
        weights = torch.linalg.lstsq(torch.cat([s, gamma**0.5 * torch.eye(3)]), torch.cat([m, torch.zeros(3, 1)]))[0]
        plain = (m - s @ weights).square().sum() / gamma + weights.square().sum()
        off.append(abs(float(plain) / expected - 1))
    assert relative > 1e-14 or max(off) > 1e-11


def test_the_smallest_case_by_hand() -> None:
    """|m|^2 - (s m)^2 / (gamma + 10), by gamma, of numbers as float64 holds them."""
    m, gamma = [0.1, 0.300000102], 1e-13
    a, b, g = Fraction(m[0]), Fraction(m[1]), Fraction(gamma)
    expected = float((a * a + b * b - (a + 3 * b) ** 2 / (g + 10)) / g)
    rows = torch.tensor([m, [1.0, 3.0]], dtype=torch.float64)[:, :, None]
    assert_close(relaxed_norm(rows[0], rows[1], gamma=gamma), expected, relative=1e-14)


def test_gradients_are_those_of_the_value() -> None:
    m, s = normal(0, 4, 2).requires_grad_(), normal(1, 4, 3).requires_grad_()
    gamma = 1e-11 * float(s.detach().square().sum())
    gradient = torch.autograd.grad(relaxed_norm(m, s, gamma=gamma), [m])[0]
    kernel = s.detach() @ s.detach().mT + gamma * torch.eye(4)
    assert_close(gradient, 2 * torch.linalg.solve(kernel, m.detach()), relative=1e-4)


def test_a_relaxation_beyond_the_features_and_one_below_all_digits() -> None:
    m = normal(0, 4, 2)
    assert_close(relaxed_norm(m, 1e-200 * m, gamma=4.0), m.square().sum() / 4)
    with pytest.raises(ValueError, match="relaxed_norm: needs gamma of at least 1e-290 times the largest square of s"):
        relaxed_norm(m, 1e150 * m, gamma=1.0)


def test_more_features_than_samples_and_none() -> None:
    m, s = normal(0, 4, 3), normal(1, 4, 30)
    kernel = s @ s.mT + 0.1 * torch.eye(4, dtype=torch.float64)
    assert_close(relaxed_norm(m, s, gamma=0.1), torch.trace(m.mT @ torch.linalg.solve(kernel, m)))
    assert_close(relaxed_norm(m, s[:, :0], gamma=0.1), m.square().sum() / 0.1)
    assert_close(relaxed_norm(m[:0], s[:0], gamma=0.1), 0.0)


@pytest.mark.parametrize("bias", [True, False])
def test_least_norm_weights_make_the_same_layer_and_cost_the_lagrangian(bias: bool) -> None:
    """Fewer samples than neurons, so that other weights do the same; step 0.1 of a layer with Lt = 3."""
    A, W, rho, Lt = normal(0, 4, 7), normal(1, 7, 7 + bias), 0.1, 3.0
    S = features(A, bias=bias)
    after = (1 - rho * Lt) * A + rho * S @ W.mT
    moving = (after - A) / rho
    least = least_norm_weights(A, moving, effective_depth=Lt, bias=bias)
    assert least.shape == W.shape
    assert_close((1 - rho * Lt) * A + rho * S @ least.mT, after)
    assert_close(least, W @ torch.linalg.pinv(S) @ S, relative=1e-10)
    assert float(least.square().sum()) < float(W.square().sum())
    if float(energy_split(A, moving, effective_depth=Lt, bias=bias).lagrangian) < torch.inf:
        lagrangian = energy_split(A, moving, effective_depth=Lt, bias=bias).lagrangian
        assert_close(least.square().sum() / (2 * Lt), lagrangian, relative=1e-9)
    with pytest.raises(AssertionError):  # the leak of another depth
        assert_close(least_norm_weights(A, moving, effective_depth=2.0, bias=bias), least)


def test_least_norm_weights_of_a_speed_that_no_layer_has_are_refused() -> None:
    with pytest.raises(ValueError, match="least_norm_weights: needs Lt A \\+ dA in the span"):
        least_norm_weights(normal(0, 9, 3), normal(1, 9, 3), effective_depth=2.0)
    with own_shape_checks(), pytest.raises(ShapeError, match="A and dA of one shape"):
        least_norm_weights(normal(0, 9, 3), normal(1, 8, 3), effective_depth=2.0)


def test_batches_and_gradients() -> None:
    m, s = normal(0, 3, 6, 2), normal(1, 3, 6, 4)
    assert_close(
        relaxed_norm(m, s, gamma=0.3), torch.stack([relaxed_norm(a, b, gamma=0.3) for a, b in zip(m, s, strict=True)])
    )
    assert torch.autograd.gradcheck(
        lambda a, b: relaxed_norm(a, b, gamma=0.3), (m[0].requires_grad_(), s[0].requires_grad_())
    )
