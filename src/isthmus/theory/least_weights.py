"""Least weights between the features of a leaky layer and a target, right at every size of the representation.

Costs of identity and energies made of them: `representation_costs`, `leaky_stability`.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from isthmus.theory.scales import exponent, norm, shifted


class LeastWeights(NamedTuple):
    """argmin |sigma(A) W - T|, the W of least norm: (width, m) on the positive parts, (1, m) on the constant."""

    positive: Tensor
    constant: Tensor
    meets: bool


def least_weights(activation: Tensor, target: Tensor, *, bias: bool) -> LeastWeights:
    """The pseudo-inverse of sigma(A) = [relu(A), 1] applied to T (*exact*).

        relu(A) = U S V^T,  c = U^T 1,  r = 1 - U c:
        r = 0:  T = 1 m^T + T',  a = S^-1 U^T T',  g = S^-1 c,  h = 1 + |g|^2
                b = m |g|^2 / h + g^T a / h,  W = V (a + g (m - g^T a) / h)
        else:   b = r^T T / |r|^2,  W = V S^-1 (U^T T - c b)

    The singular values of relu(A) are never compared with that of the constant 1: a small representation has the least
    weights of a large one, where a pseudo-inverse of [relu(A), 1] takes it for rounding. So the column means m of the
    target go their own way: rounding of a constant target is as large as weights on a small representation allow.

    Args:
        activation: A, samples as rows.
        target: T, samples as rows.
        bias: whether there is the constant.

    Returns:
        The weights, and whether they meet the target: up to 1e3 max(n, p) eps of its norm.

    Accuracy: that of the singular value decomposition of relu(A), at every size of A; c and r to rounding.
    """
    positive = activation.relu()
    n, width = positive.shape
    rounding = max(n, width + bias) * torch.finfo(positive.dtype).eps
    size = exponent(positive)
    left, values, right = torch.linalg.svd(shifted(positive, -size), full_matrices=False)
    kept = values > rounding * values[:1]
    U, s, V = left[:, kept], values[kept][:, None], right[kept].mT
    one, constant = positive.new_ones(n, int(bias)), target.new_zeros(int(bias), target.shape[1])
    c = U.mT @ one
    r = one - U @ c
    r = r - U @ (U.mT @ r)  # once is not enough where little of the constant lies outside
    # the projection of what lies in the span misses it by some roundings of U: up to 1.3 of these were seen
    if apart := bias and float(r.detach().norm()) > 10 * rounding * n**0.5:
        outside = r.mT @ target / r.norm()
        # the rounding of a large target beside the positive part is no constant: it would cost as much as it is large;
        # U is known up to rounding, so that the direction of r is the less the shorter it is
        there = outside.abs() > 10 * rounding * target.abs().amax(0) * n / r.detach().norm()
        constant = torch.where(there, outside, 0.0) / r.norm()
    spanned = bias and not apart and len(s) > 0
    mean = target.mean(0, keepdim=True) if spanned else target.new_zeros(1, target.shape[1])
    a = (U.mT @ (target - mean) - c @ constant) / s
    level = a.new_zeros(len(s), target.shape[1])
    if spanned:
        g = c / s
        direction, t = g / g.norm(), shifted(1 / g.norm(), size)  # t = 1 / |g| at the true size
        along = direction.mT @ a / (1 + t * t)
        a, constant = a - direction @ along, along / g.norm() + mean / (1 + t * t)
        level = direction @ (mean / (t + 1 / t))
    W = shifted(V @ a, -size) + V @ level
    missed = norm((target - positive @ W - one @ constant).detach())
    return LeastWeights(W, constant, float(missed) <= 1e3 * rounding * float(norm(target.detach())))
