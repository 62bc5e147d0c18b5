"""The residual cost as a penalty of a matrix, with what an optimiser asks for: gradient and proximal operator.

The cost of a list of singular values: `residual_costs`. Training with it: `training`.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.theory.inputs import Real, check_block_depth, check_depth, check_positive, check_tensor
from isthmus.theory.residual_costs import growth_cost, resnet_cost
from isthmus.theory.spectra import kept_singular_values


def spectral_penalty(
    matrix: Float[Tensor, "*batch d_out d_in"],
    *,
    residual_weight: Real,
    depth: int | None = None,
    block_depth: int,
    rank: int | None = None,
) -> Float[Tensor, "*batch"]:
    """`resnet_cost` of a matrix, differentiable (*exact*): what weight decay on a linear ResNet asks of its product.

        c(A) = sum_i c(s_i(A));   gradient  U diag(c'(s)) V^T,  0 < c' <= 1

    Between the nuclear norm (large lam) and a sum of logarithms (small lam); not convex.

    Args:
        matrix: A, or a batch.
        residual_weight: lam > 0, as in `resnet_cost`.
        depth: number of residual blocks, or None for infinite depth.
        block_depth: weight matrices per block, 1 or 2.
        rank: how many singular values count. By default those above the rounding of the SVD, as in `linear_cost`: at
            lam = 1e-20 a spurious 1e-17 costs 7 lam.

    Returns:
        Scalar >= 0 per matrix, units of `resnet_cost`. Differentiable once, also at repeated singular values; what is
        dropped has the derivative 0, one of the subgradients there, as for a nuclear norm.

    Raises:
        ValueError: as `resnet_cost`. TypeError: complex or integer tensor. ShapeError: fewer than 2 dimensions.

    Accuracy: that of the SVD; no bound where the matrix is a product of unknown rounding, which
    `resnet_jacobian_lower_bound` is. Source: Boix-Adsera 2025, Theorem 2.1. Test: RES-03.

    >>> round(float(theory.spectral_penalty([[9, 0], [0, 0.5]], residual_weight=1, depth=1, block_depth=2)), 4)
    5.5
    """
    values, kept = kept_singular_values("spectral_penalty", matrix, rank)
    counted = torch.where(kept, values, 0.0)
    return resnet_cost(counted, residual_weight=residual_weight, depth=depth, block_depth=block_depth)


def spectral_penalty_prox(
    matrix: Float[Tensor, "*batch d_out d_in"],
    *,
    step: Real,
    residual_weight: Real,
    depth: int | None = None,
    block_depth: int,
) -> Float[Tensor, "*batch d_out d_in"]:
    """Proximal operator of `spectral_penalty`, global although the penalty is not convex (*exact*).

        argmin_X  1/2 |X - A|_F^2 + step * c(X)  =  U diag(p(s)) V^T,   p(v) = argmin_{s >= 0} 1/2 (s - v)^2 + step c(s)

    c' is convex where c is smooth, so at most three points compete for each singular value: 0, v - step on the linear
    part (blocks of two matrices), and the largest root of s - v + step c'(s). Where two tie, the smaller is returned.

    Args:
        matrix: A, or a batch.
        step: step length > 0.
        residual_weight: lam > 0, as in `resnet_cost`.
        depth: number of residual blocks, or None for infinite depth.
        block_depth: weight matrices per block, 1 or 2.

    Returns:
        The minimiser, shape of `matrix`. Not differentiable.

    Raises:
        ValueError: `step` <= 0, or as `resnet_cost`. TypeError: complex or integer tensor.

    Accuracy: that of the SVD. Source: Boix-Adsera 2025, Theorem 2.1 (concavity); the operator is ours. Test: RES-03.

    >>> theory.spectral_penalty_prox([[3, 0], [0, 0.5]], step=1, residual_weight=4, depth=1, block_depth=2).tolist()
    [[2.0, 0.0], [0.0, 0.0]]
    """
    call = "spectral_penalty_prox"
    check_tensor(call, "matrix", matrix, least_ndim=2)
    check_positive(call, "step", step)
    check_positive(call, "residual_weight", residual_weight)
    check_block_depth(call, block_depth)
    if depth is not None:
        check_depth(call, depth)
    left, values, right = torch.linalg.svd(matrix.detach().double(), full_matrices=False)
    lam = float(residual_weight)
    candidates = [torch.zeros_like(values)]
    if block_depth == 2:
        candidates.append((values - step).clamp(0, lam))
    candidates.append(_largest_root(values, float(step), lam, depth, block_depth))
    points = torch.stack(candidates)
    costs = growth_cost(points, lam, depth, block_depth).cost
    # written as a difference from s = 0, which loses nothing when v is large
    energies = points * (points / 2 - values) + step * costs
    best = points.gather(0, energies.argmin(0, keepdim=True))[0]
    return ((left * best[..., None, :]) @ right).to(matrix.dtype)


def _largest_root(v: Tensor, step: float, lam: float, depth: int | None, block_depth: int) -> Tensor:
    """Largest root of s - v + step c'(s), by Newton from s = v, where the function is positive and convex.

    Where there is no root the search ends anywhere in [0, v]: harmless, since candidates are compared by objective.
    """
    s = v.clone()
    for _ in range(100):
        found = growth_cost(s, lam, depth, block_depth)
        slope = 1 + step * _curvature(s, found.growth, found.gradient, lam, depth, block_depth)
        change = (s - v + step * found.gradient) / torch.where(slope > 0, slope, 1.0)
        moved = torch.where(slope > 0, (s - change).clamp_min(0), s)
        moved = torch.minimum(moved, v)
        if torch.equal(moved, s):
            break
        s = moved
    return s


def _curvature(s: Tensor, growth: Tensor, gradient: Tensor, lam: float, depth: int | None, block_depth: int) -> Tensor:
    """Second derivative of the cost of one singular value, <= 0; 0 on the linear part."""
    if block_depth == 2:
        power = 1.0 if depth is None else depth / (depth + 1)
        return torch.where(s > lam, -power * gradient / s.clamp_min(lam), 0.0)
    if depth is None:
        return -gradient.square() / (2 * lam * (1 + growth))
    return -gradient.square() / ((1 + growth / depth) * 2 * lam * (1 + growth * (1 + 2 / depth)))
