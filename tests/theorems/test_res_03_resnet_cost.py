import itertools
from typing import Any

import mpmath
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from isthmus.theory import (
    optimal_resnet_factors,
    resnet_cost,
    resnet_cost_gradient,
    spectral_penalty,
    spectral_penalty_prox,
)
from theorem_checks import SEEDS, assert_at_most, assert_close, normal, with_spectrum

pytestmark = pytest.mark.theorem("RES-03")
BLOCKS = st.sampled_from([1, 2])
LIMITS = st.sampled_from([1, 2, 7, 1000, None])


def exact_cost(sigma: float, lam: float, depth: int | None, block_depth: int) -> float:
    """The same minimum in 60 digits: stationary point by bisection in log alpha, value from the definition."""
    with mpmath.workdps(60):
        s, l = mpmath.mpf(sigma), mpmath.mpf(lam)
        if s == 0:
            return 0.0

        def decay(alpha: Any) -> Any:
            return mpmath.exp(-alpha) if depth is None else (1 + alpha / depth) ** (-depth)

        def rises(alpha: Any) -> bool:
            slope = -s * decay(alpha) / (1 if depth is None else 1 + alpha / depth)
            return slope + (2 * l * alpha if block_depth == 1 else l) >= 0

        if rises(mpmath.mpf(0)):
            return float(s)
        low, high = mpmath.mpf(-1500), mpmath.mpf(1500)
        for _ in range(220):
            middle = (low + high) / 2
            low, high = (low, middle) if rises(mpmath.exp(middle)) else (middle, high)
        alpha = mpmath.exp(high)
        return float(s * decay(alpha) + l * (alpha**2 if block_depth == 1 else alpha))


def cost(sigma: float, lam: float, depth: int | None, block_depth: int) -> float:
    values = torch.tensor([sigma], dtype=torch.float64)
    return float(resnet_cost(values, residual_weight=lam, depth=depth, block_depth=block_depth))


@pytest.mark.parametrize("block_depth", [1, 2])
@pytest.mark.parametrize("depth", [1, 3, 50, 10**6, None])
def test_the_closed_form_is_the_minimum_over_growth(depth: int | None, block_depth: int) -> None:
    cases = [
        (1.0, 0.1),
        (0.3, 0.3),
        (0.45, 0.3),  # just above the threshold, where blocks of two begin to grow
        (0.5, 0.5 * (1 - 1e-15)),
        (3.0, 3.0 * (1 - 1e-9)),
        (2.0, 5.0),
        (0.0, 0.7),
        (1e-9, 1.0),
    ]
    for sigma, lam in cases:
        assert_close(cost(sigma, lam, depth, block_depth), exact_cost(sigma, lam, depth, block_depth))


@pytest.mark.parametrize(("depth", "block_depth"), list(itertools.product([1, 20, None], [1, 2])))
@pytest.mark.parametrize("lam", [1e-300, 1e-100, 1e100, 1e300])
def test_extreme_weights_of_the_residual_blocks(lam: float, depth: int | None, block_depth: int) -> None:
    for sigma in (1e-290, 1.0, 1e290):
        assert_close(cost(sigma, lam, depth, block_depth), exact_cost(sigma, lam, depth, block_depth))


def test_the_printed_coefficient_of_the_limit_is_wrong() -> None:
    # the proof of Corollary 2.2 prints (lam / 2) alpha^2: that is the cost at half the weight
    assert_close(cost(1.0, 0.1, None, 1), exact_cost(1.0, 0.1, None, 1))
    with pytest.raises(AssertionError):
        assert_close(cost(1.0, 0.05, None, 1), exact_cost(1.0, 0.1, None, 1))


@settings(deadline=None, max_examples=40)
@given(seed=SEEDS, depth=st.integers(1, 5), block_depth=BLOCKS, lam=st.floats(0.01, 10))
def test_no_weights_cost_less(seed: int, depth: int, block_depth: int, lam: float) -> None:
    factors = optimal_resnet_factors(
        normal(seed, 3, 4), residual_weight=lam, depth=depth, block_depth=block_depth, width=4
    )
    disturbed = type(factors)(
        factors.embedding + 0.3 * normal(seed + 1, 4, 4),
        tuple(tuple(w + 0.3 * normal(seed + 2 + j, 4, 4) for j, w in enumerate(b)) for b in factors.blocks),
        factors.unembedding + 0.3 * normal(seed + 5, 3, 4),
    )
    bound = spectral_penalty(disturbed.product(), residual_weight=lam, depth=depth, block_depth=block_depth)
    assert_at_most(bound, disturbed.cost(residual_weight=lam))


@settings(deadline=None, max_examples=60)
@given(s=st.floats(1e-6, 1e3), t=st.floats(1e-6, 1e3), lam=st.floats(1e-3, 1e2), depth=LIMITS, block_depth=BLOCKS)
def test_the_cost_is_concave_and_rising(s: float, t: float, lam: float, depth: int | None, block_depth: int) -> None:
    middle = cost((s + t) / 2, lam, depth, block_depth)
    assert_at_most((cost(s, lam, depth, block_depth) + cost(t, lam, depth, block_depth)) / 2, middle)
    assert_at_most(cost(min(s, t), lam, depth, block_depth), cost(max(s, t), lam, depth, block_depth))


@pytest.mark.parametrize(("depth", "block_depth"), list(itertools.product([1, 4, None], [1, 2])))
def test_the_gradient_is_the_derivative(depth: int | None, block_depth: int) -> None:
    values = torch.tensor([3.0, 1.0, 1.0, 0.2, 0.01], dtype=torch.float64, requires_grad=True)

    def total(v: Tensor) -> Tensor:
        return resnet_cost(v, residual_weight=0.3, depth=depth, block_depth=block_depth)

    assert torch.autograd.gradcheck(total, (values,))
    (gradient,) = torch.autograd.grad(total(values), values)
    closed = resnet_cost_gradient(values.detach(), residual_weight=0.3, depth=depth, block_depth=block_depth)
    assert_close(gradient, closed)
    matrix = with_spectrum(0, [2.0, 0.5, 0.1], 3, 4).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda m: spectral_penalty(m, residual_weight=0.3, depth=depth, block_depth=block_depth), (matrix,)
    )


def test_repeated_and_zero_singular_values_have_finite_gradients() -> None:
    for matrix in (torch.eye(3, dtype=torch.float64), torch.zeros(3, 2, dtype=torch.float64)):
        matrix.requires_grad_()
        spectral_penalty(matrix, residual_weight=0.2, block_depth=1).backward()
        assert matrix.grad is not None
        assert bool(torch.isfinite(matrix.grad).all())


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(v=st.floats(0, 20), step=st.floats(0.01, 5), lam=st.floats(0.01, 5), depth=LIMITS, block_depth=BLOCKS)
def test_no_point_of_a_fine_grid_beats_the_proximal_operator(
    v: float, step: float, lam: float, depth: int | None, block_depth: int
) -> None:
    def energy(s: Tensor) -> Tensor:
        each = resnet_cost(s[:, None], residual_weight=lam, depth=depth, block_depth=block_depth)
        return (s - v).square() / 2 + step * each

    matrix = torch.tensor([[v]], dtype=torch.float64)
    found = spectral_penalty_prox(matrix, step=step, residual_weight=lam, depth=depth, block_depth=block_depth)
    grid = torch.linspace(0, v, 4001, dtype=torch.float64)
    assert_at_most(energy(found[0])[0], energy(grid).min())
    wrong = (matrix - 2 * step).clamp_min(0)[0]  # soft threshold at twice the step
    if float(energy(wrong)[0]) > float(energy(grid).min()) + 1e-9:
        with pytest.raises(AssertionError):
            assert_at_most(energy(wrong)[0], energy(grid).min())


def test_the_proximal_operator_keeps_singular_vectors_and_shapes() -> None:
    batch = torch.stack([with_spectrum(i, [5.0, 1.0, 0.1], 4, 3) for i in range(2)])
    small = spectral_penalty_prox(batch, step=0.5, residual_weight=100.0, depth=3, block_depth=2)
    left, values, right = torch.linalg.svd(batch, full_matrices=False)
    assert_close(small, left @ torch.diag_embed((values - 0.5).clamp_min(0)) @ right)  # nuclear norm below lam


def test_the_linear_part_wins_where_the_smooth_part_has_nearly_a_root() -> None:
    # s - v + step / s just misses 0 at s = 1.2247 for v = 2.4495: the search may end there, on no root
    v = 6**0.5 - torch.logspace(-16, -1, 400, dtype=torch.float64)
    found = spectral_penalty_prox(v[:, None, None], step=1.5, residual_weight=1, block_depth=2)
    assert_close(found[:, 0, 0], v - 1.5)
