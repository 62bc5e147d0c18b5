"""The least value of a ridge regression, right where the target all but lies in the span of the features.

The residual is then a difference of nearly equal numbers, whose rounding a small gamma magnifies: it is worked out in
twice the digits, by sums and products without error. What is made of it: `representation_costs`.
"""

import torch
from torch import Tensor

_SPLIT = 2.0**27 + 1  # of the 53 digits of float64: Veltkamp's halves, whose products are exact


def accurate_value(m: Tensor, s: Tensor, weights: Tensor, triangle: Tensor, gamma: float) -> Tensor:
    """min_W |m - s W|^2 / gamma + |W|^2 in float64, from W up to its rounding and R of the QR of [s; sqrt(gamma)].

    One step of refinement, R^T R dW = s^T r - gamma W with r = m - s W in twice the digits; dW is added to neither,
    for it is below the last digit of W.
    """
    m, s, weights, triangle = (part.detach().double() for part in (m, s, weights, triangle))
    residual = _residual(m, s, weights)
    pull = torch.linalg.solve_triangular(triangle.mT, s.mT @ residual - gamma * weights, upper=False)
    change = torch.linalg.solve_triangular(triangle, pull, upper=True)
    residual = residual - s @ change
    return residual.square().sum((-2, -1)) / gamma + (weights + change).square().sum((-2, -1))


def _residual(m: Tensor, s: Tensor, weights: Tensor) -> Tensor:
    """The residual m - s W as if worked out in twice the digits and rounded once."""
    high, low = m, torch.zeros_like(m)
    for k in range(s.shape[-1]):
        product, lost = _product(-s[..., :, k : k + 1], weights[..., k : k + 1, :])
        total = high + product
        # Knuth: what the sum has lost
        back = total - high
        low = low + ((high - (total - back)) + (product - back)) + lost
        high = total
    return high + low


def _product(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """A product and what its rounding has lost (Dekker)."""
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    product = a * b
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _halves(a: Tensor) -> tuple[Tensor, Tensor]:
    high = a * _SPLIT
    high = high - (high - a)
    return high, a - high
