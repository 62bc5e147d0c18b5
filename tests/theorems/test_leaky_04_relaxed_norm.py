import mpmath
import pytest
import torch
from torch import Tensor

from isthmus.theory import relaxed_norm
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


def test_more_features_than_samples_and_none() -> None:
    m, s = normal(0, 4, 3), normal(1, 4, 30)
    kernel = s @ s.mT + 0.1 * torch.eye(4, dtype=torch.float64)
    assert_close(relaxed_norm(m, s, gamma=0.1), torch.trace(m.mT @ torch.linalg.solve(kernel, m)))
    assert_close(relaxed_norm(m, s[:, :0], gamma=0.1), m.square().sum() / 0.1)
    assert_close(relaxed_norm(m[:0], s[:0], gamma=0.1), 0.0)


def test_batches_and_gradients() -> None:
    m, s = normal(0, 3, 6, 2), normal(1, 3, 6, 4)
    assert_close(
        relaxed_norm(m, s, gamma=0.3), torch.stack([relaxed_norm(a, b, gamma=0.3) for a, b in zip(m, s, strict=True)])
    )
    assert torch.autograd.gradcheck(
        lambda a, b: relaxed_norm(a, b, gamma=0.3), (m[0].requires_grad_(), s[0].requires_grad_())
    )
