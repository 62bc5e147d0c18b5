"""Numbers without their size: what is free of scale, or of one degree in it, is worked out on these.

Squares of 1e-200 vanish and those of 1e200 overflow; in float32 those of 1e-23 and 1e19 do, and a collapsed layer has
such activations. All factors are powers of two, so that nothing else changes by a bit.
"""

import math

import torch
from torch import Tensor


def exponent(values: Tensor) -> int:
    """The e for which the largest |value| lies in [2^(e-1), 2^e); 0 where all vanish."""
    return math.frexp(float(values.detach().abs().max()))[1] if values.numel() else 0


def shifted(values: Tensor, by: int) -> Tensor:
    """The values times 2^by; in two steps, which leave the numbers of the type only where the result does."""
    half = by // 2
    return values * 2.0**half * 2.0 ** (by - half)


def resized(number: float, by: int) -> float:
    """The number times 2^by; infinite where that overflows."""
    try:
        return math.ldexp(number, by)
    except OverflowError:
        return math.copysign(math.inf, number)


def scaled_power(factor: float, base: float, power: float) -> float:
    """A factor times base^power, base > 0, -2 <= power <= 2, which overflows or vanishes only where it itself does."""
    third, by = math.frexp(math.exp(power * math.log(base) / 3))
    mantissa, size = math.frexp(factor)
    return resized(mantissa * third**3, size + 3 * by)


def unit(values: Tensor) -> Tensor:
    """The tensor with its largest |value| in [1/2, 1), or 0."""
    return shifted(values, -exponent(values))


def lengths(rows: Tensor) -> Tensor:
    """Euclidean norms along the last axis, of rows of very different sizes too, which underflow as `norm` does."""
    if not rows.shape[-1]:
        return rows.sum(-1)
    largest = rows.detach().abs().amax(-1, keepdim=True)
    size = torch.where(largest > 0, largest / (2 * torch.frexp(largest).mantissa), 1.0)  # a power of two
    return torch.linalg.vector_norm(rows / size, dim=-1) * size[..., 0]


def norm(values: Tensor) -> Tensor:
    """Euclidean norm of all entries, which underflows or overflows only where it itself does."""
    size = exponent(values)
    return shifted(torch.linalg.vector_norm(shifted(values, -size)), size)
