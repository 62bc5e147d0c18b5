"""Least parameter norms of linear residual networks: closed forms in the singular values, at any depth.

Weights that attain them: `residual_factors`. As penalties of a matrix: `spectral_penalties`. No skips: `linear_costs`.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from isthmus.theory.annotated import shown
from isthmus.theory.inputs import Real, check_block_depth, check_depth, check_positive, check_singular_values


class GrowthCost(NamedTuple):
    """Per singular value: its cost, the total growth exponent alpha of its direction, and d cost / d sigma."""

    cost: Tensor
    growth: Tensor
    gradient: Tensor


def growth_cost(values: Tensor, lam: float, depth: int | None, block_depth: int) -> GrowthCost:
    """Elementwise cost of singular values; in float64 whatever comes, since lam may lie outside float32."""
    sigma = values.detach().double()
    found = _one_matrix_blocks(sigma, lam, depth) if block_depth == 1 else _two_matrix_blocks(sigma, lam, depth)
    return GrowthCost(*(part.to(values.dtype) for part in found))


def _log_ratio(sigma: Tensor, lam: float) -> Tensor:
    """log(sigma / lam) without overflow, and without cancellation near sigma = lam; sigma > 0."""
    near = (sigma > 0.5 * lam) & (sigma < 2 * lam)
    close = torch.where(near, sigma, lam)
    return torch.where(near, torch.log1p((close - lam) / lam), sigma.log() - math.log(lam))


def _two_matrix_blocks(sigma: Tensor, lam: float, depth: int | None) -> GrowthCost:
    grows = sigma > lam
    r = torch.where(grows, _log_ratio(torch.where(grows, sigma, lam), lam), 0.0)
    if depth is None:
        alpha, cost, gradient = r, lam * (1 + r), torch.exp(-r)
    else:
        excess = torch.expm1(r / (depth + 1))
        alpha, cost = depth * excess, lam * (1 + (depth + 1) * excess)
        gradient = torch.exp(-r * (depth / (depth + 1)))
    return GrowthCost(torch.where(grows, cost, sigma), alpha, gradient)


def _one_matrix_blocks(sigma: Tensor, lam: float, depth: int | None) -> GrowthCost:
    positive = sigma > 0
    alpha = torch.where(positive, _growth_root(_log_ratio(torch.where(positive, sigma, lam), lam), depth), 0.0)
    inverse = 0.0 if depth is None else 1 / depth
    gradient = torch.exp(-alpha) if depth is None else torch.exp(-depth * torch.log1p(alpha / depth))
    # two forms of the same value: alpha underflows at sigma / lam = 1e-400, alpha^2 overflows at 1e600
    little = sigma * gradient * (1 + alpha / (2 * (1 + alpha * inverse)))
    much = lam * alpha * (2 + alpha * (1 + 2 * inverse))
    cost = torch.where(alpha < 1, little, much)
    return GrowthCost(cost, alpha, gradient)


def _growth_root(log_ratio: Tensor, depth: int | None) -> Tensor:
    """The root alpha of (1 + alpha/L)^(L+1) alpha = sigma / (2 lam), or of e^alpha alpha = the same.

    Newton in t = log alpha on a convex rising function, from a point right of the root: falls to it monotonically.
    """
    c = log_ratio - math.log(2)
    if depth is None:
        t = torch.where(c > 1, c.clamp_min(1).log(), c)
    else:
        t = torch.minimum(c, (c + (depth + 1) * math.log(depth)) / (depth + 2))
    for _ in range(200):
        alpha = t.exp()
        if depth is None:
            step = (alpha + t - c) / (alpha + 1)
        else:
            u = alpha / depth
            step = ((depth + 1) * torch.log1p(u) + t - c) / (1 + (depth + 1) * u / (1 + u))
        t = t - step
        if not t.numel() or float((step.abs() / (1 + t.abs())).max()) < 1e-15:
            break
    return t.exp()


class _CostOfValues(torch.autograd.Function):
    """Elementwise cost whose derivative is the closed form: no graph through the root search."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, values: Tensor, *setting: object) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        lam, depth, block_depth = setting
        found = growth_cost(values, lam, depth, block_depth)  # pyright: ignore[reportArgumentType]
        ctx.save_for_backward(found.gradient)
        return found.cost

    @staticmethod
    @once_differentiable
    def backward(ctx: torch.autograd.function.FunctionCtx, grad_output: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (gradient,) = ctx.saved_tensors  # pyright: ignore[reportAttributeAccessIssue]
        return grad_output * gradient, None, None, None


def _check(call: str, residual_weight: object, depth: object, block_depth: object) -> None:
    check_positive(call, "residual_weight", residual_weight)
    check_block_depth(call, block_depth)
    if depth is not None:
        check_depth(call, depth)


def resnet_cost(
    singular_values: Float[Tensor, "*batch r"], *, residual_weight: Real, depth: int | None = None, block_depth: int
) -> Float[Tensor, "*batch"]:
    """Least parameter norm with which a linear residual network computes a map of these singular values (*exact*).

        blocks of one matrix:  1/2 |W_u|^2 + 1/2 |W_e|^2 + lam L sum_i |W_i|^2
            c = sum_i min_{alpha >= 0} sigma_i (1 + alpha/L)^(-L) + lam alpha^2
        blocks of two:         1/2 |W_u|^2 + 1/2 |W_e|^2 + (lam/2) sum_i |W_i1|^2 + |W_i2|^2
            c = sum_i sigma_i  if sigma_i <= lam,  else  lam ((L+1) (sigma_i/lam)^(1/(L+1)) - L)
        infinite depth:        lam (alpha^2 + 2 alpha), alpha = W_0(sigma / (2 lam));   lam (1 + log(sigma/lam))

    Falls with depth, so the infinite-depth cost is a *lower bound* at every depth. Concave and rising in each sigma.

    Args:
        singular_values: of the map, any order, zeros allowed; several spectra as rows of a torch tensor, each falling,
            as those of a matrix seldom do. Summed over the last axis.
        residual_weight: lam > 0, cost of the residual blocks relative to embedding and unembedding. Not a ridge:
            uniform weight decay is lam = 1 for blocks of two matrices, lam = 1/(2L) for blocks of one.
        depth: number of residual blocks L, at least 1; None for the limit of infinite depth.
        block_depth: weight matrices per block, 1 or 2.

    Returns:
        Scalar >= 0 per spectrum; with the factors 1/2 shown above and no ridge. Differentiable once, also at 0 and at
        repeated values; the derivative is (1 + alpha/L)^(-L), at sigma = 0 that from the right (1).

    Raises:
        ValueError: `residual_weight` <= 0, `depth` < 1, block depth not 1 or 2, a negative or non-finite value.
        TypeError: complex or integer tensor.

    Accuracy: 1e-12 relative for lam from 1e-300 to 1e300; worked in float64. Cost: a Newton search for blocks of one.
    Source: Boix-Adsera 2025, Theorem 2.1 and Corollary 2.2. Attained by `optimal_resnet_factors`.
    Test: RES-03, RES-05, RES-06.

    >>> [round(float(theory.resnet_cost([9.0], residual_weight=1, depth=L, block_depth=2)), 4) for L in (1, None)]
    [5.0, 3.1972]
    """
    check_singular_values("resnet_cost", singular_values)
    _check("resnet_cost", residual_weight, depth, block_depth)
    cost = _CostOfValues.apply(singular_values, float(residual_weight), depth, block_depth)
    assert isinstance(cost, Tensor)
    return cost.sum(-1)


def resnet_growth(
    singular_values: Float[Tensor, "*batch r"], *, residual_weight: Real, depth: int | None = None, block_depth: int
) -> Float[Tensor, "*batch r"]:
    """Total growth exponents alpha at the minimum that `resnet_cost` describes (*exact*).

        each direction is multiplied by (1 + alpha/L) per block, e^alpha in the limit;   0 below lam for blocks of two

    Args:
        singular_values: of the map, or several spectra, as in `resnet_cost`.
        residual_weight: lam > 0, as in `resnet_cost`.
        depth: number of residual blocks L, or None for infinite depth.
        block_depth: weight matrices per block, 1 or 2.

    Returns:
        alpha >= 0, one per singular value. Not differentiable.

    Raises:
        ValueError: as `resnet_cost`. TypeError: complex or integer tensor.

    Accuracy: 1e-12 relative. Source: Boix-Adsera 2025, Lemma 2.6. Test: RES-04.

    >>> theory.resnet_growth([4.0, 0.5], residual_weight=1, depth=1, block_depth=2).tolist()
    [1.0, 0.0]
    """
    check_singular_values("resnet_growth", singular_values)
    _check("resnet_growth", residual_weight, depth, block_depth)
    return growth_cost(singular_values, float(residual_weight), depth, block_depth).growth


def resnet_cost_gradient(
    singular_values: Float[Tensor, "*batch r"], *, residual_weight: Real, depth: int | None = None, block_depth: int
) -> Float[Tensor, "*batch r"]:
    """Derivative of `resnet_cost` by each singular value (*exact*), by the envelope theorem.

        dc/dsigma_i = (1 + alpha_i/L)^(-L),   e^(-alpha_i) at infinite depth;   between 0 and 1, falling in sigma_i

    Args:
        singular_values: of the map, or several spectra, as in `resnet_cost`.
        residual_weight: lam > 0, as in `resnet_cost`.
        depth: number of residual blocks L, or None for infinite depth.
        block_depth: weight matrices per block, 1 or 2.

    Returns:
        One derivative per singular value; at 0 that from the right, 1.

    Raises:
        ValueError: as `resnet_cost`. TypeError: complex or integer tensor.

    Accuracy: 1e-12 relative. Source: Boix-Adsera 2025, Theorem 2.1. Test: RES-03.

    >>> theory.resnet_cost_gradient([4.0, 0.5], residual_weight=1, depth=1, block_depth=2).tolist()
    [0.5, 1.0]
    """
    check_singular_values("resnet_cost_gradient", singular_values)
    _check("resnet_cost_gradient", residual_weight, depth, block_depth)
    return growth_cost(singular_values, float(residual_weight), depth, block_depth).gradient


def block_cost(
    singular_values: Float[Tensor, "*batch r"], block: Callable[[Tensor], Tensor], *, depth: int
) -> Float[Tensor, "*batch"]:
    """Least cost of a linear residual network whose blocks cost a convex function of their singular values (*exact*).

        cost  1/2 |W_u|^2 + 1/2 |W_e|^2 + sum_i sum_j f(s_j(W_i))
        least sum_i min_{alpha >= 0} sigma_i (1 + alpha)^(-L) + L f(alpha)

    f(t) = lam L t^2 and f(t) = lam t give `resnet_cost` for blocks of one and two matrices. Blocks of three or more
    matrices would need f(t) = t^(2/D), which is not convex: they are not covered.

    Args:
        singular_values: of the map, or several spectra, as in `resnet_cost`; summed over the last axis.
        block: f, elementwise, differentiable by torch, convex and rising with f(0) = 0 (checked at a few points).
        depth: number of residual blocks L, at least 1.

    Returns:
        Scalar >= 0 per spectrum; not differentiable.

    Raises:
        ValueError: `depth` < 1, f(0) != 0 or f seen not to be convex and rising, a negative or non-finite value.
        TypeError: complex or integer tensor.

    Accuracy: 1e-12 relative: the minimum is flat, and its place is found to rounding by bisection of log alpha.
    Source: Boix-Adsera 2025, Lemma 2.6. Test: RES-09.

    >>> round(float(theory.block_cost([4.0], lambda t: 0.5 * t, depth=3)), 3)
    1.864
    """
    check_singular_values("block_cost", singular_values)
    check_depth("block_cost", depth)
    _check_convex(block)
    sigma = singular_values.detach().double()

    def rises(alpha: Tensor) -> Tensor:  # in logarithms: (1 + alpha)^(-L) underflows where sigma / f' is large
        return block_slope(alpha).log() + (depth + 1) * torch.log1p(alpha) >= sigma.log()

    def block_slope(alpha: Tensor) -> Tensor:
        with torch.enable_grad():
            point = alpha.clone().requires_grad_()
            cost = block(point).sum()
            if not cost.requires_grad:
                raise TypeError("block_cost: needs block as a function that torch can differentiate; it detaches.")
            return torch.autograd.grad(cost, point)[0]

    low, high = torch.full_like(sigma, -700.0), torch.full_like(sigma, 700.0)
    for _ in range(70):
        middle = (low + high) / 2
        rising = rises(middle.exp())
        low, high = torch.where(rising, low, middle), torch.where(rising, middle, high)
    alpha = torch.where(rises(torch.zeros_like(sigma)), 0.0, high.exp())
    with torch.no_grad():
        cost = torch.exp(sigma.log() - depth * torch.log1p(alpha)) + depth * block(alpha)
    return cost.sum(-1).to(singular_values.dtype)


def _check_convex(block: Callable[[Tensor], Tensor]) -> None:
    with torch.no_grad():
        values: Any = block(torch.tensor([0.0, 1e-3, 2e-3, 0.5, 1.0, 50.0, 100.0], dtype=torch.float64))
    if not isinstance(values, Tensor) or values.shape != (7,):
        raise TypeError(
            f"block_cost: needs block as a function that gives one number for each of a tensor; got {shown(values)} "
            "for 7 of them. Use torch in it."
        )
    chords = values[2::2] + values[0] - 2 * values[1::2]  # f(2t) + f(0) >= 2 f(t) for t = .001, .5, 50
    is_convex = bool((chords >= -1e-9 * values[2::2].abs()).all()) and bool((values.diff() > 0).all())
    if not (float(values[0]) == 0 and is_convex):
        raise ValueError(
            f"block_cost: needs f convex and rising with f(0) = 0; got {values[:5].tolist()} at 0, .001, .002, .5, 1. "
            "Blocks of three or more matrices are not covered by the theorem."
        )
