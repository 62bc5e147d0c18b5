"""Singular values with an interval: what is certainly there of a matrix that is known up to rounding.

Bounds and certificates count nothing else. Singular values as numbers, and ranks read off them: `spectra`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.theory.inputs import Real, check_tensor

SVD_ROUNDING = 8  # times max(d_out, d_in) eps s_1: LAPACK's backward error; 1.3, of a 2 x 2, is the most measured
PRODUCT_ROUNDING = 8  # times L max(d_out, d_in) eps s_1: what a product of L matrices without cancellation leaves
UNCERTAIN = 1e-9  # of s_1: below this a value of a product of unknown rounding counts nothing

Errors = Real | Tensor | None
"""How far matrices may be from the true ones, in operator norm: one number for all, one for each, or not known."""


@dataclass(frozen=True, slots=True)
class EnclosedValues:
    """Singular values of a matrix that is known up to an error of a known norm.

    By Weyl no singular value moves by more than the norm of the error, so |s_i - values_i| <= error for all i.

    Attributes:
        values: as computed, falling.
        error: the radius of their intervals, one per matrix.
        floor: values up to this count nothing, although their interval may not reach 0; one per matrix.
    """

    values: Float[Tensor, "*batch r"]
    error: Float[Tensor, "*batch 1"]
    floor: Float[Tensor, "*batch 1"]

    @property
    def lower(self) -> Float[Tensor, "*batch r"]:
        """What of each value is certainly there, 0 where none is."""
        return torch.where(self.values > self.floor, (self.values - self.error).clamp_min(0), 0.0)

    @property
    def upper(self) -> Float[Tensor, "*batch r"]:
        """What no value can exceed."""
        return self.values + self.error


def enclosed_singular_values(
    matrix: Float[Tensor, "*batch d_out d_in"],
    *,
    error: Errors = None,
    num_factors: int = 1,
) -> EnclosedValues:
    """Singular values with the intervals that hold the true ones.

        |s_i - computed_i|  <=  error + 8 max(d_out, d_in) eps s_1

    Args:
        matrix: one matrix or a batch, as computed.
        error: bound on the operator norm of (matrix - true matrix), one number or one per matrix;
            `networks.enclosed_jacobians` proves one, 0 says that the numbers are the matrix. None: that of a product
            of `num_factors` matrices without cancellation is *assumed*, 8 num_factors max(d_out, d_in) eps s_1, and
            what lies below 1e-9 s_1 counts nothing.
        num_factors: how many matrices were multiplied.

    Raises:
        ValueError: a negative or infinite `error`, NaN or infinity. ShapeError: another number of errors.
        TypeError: not a real floating-point tensor.

    Accuracy: certain where `error` is and LAPACK keeps its promise (its backward error is taken at six times the
    worst that was measured). Test: FC-13, RES-12.

    >>> theory.enclosed_singular_values([[2, 0], [0, 1]], error=0.5).lower.round(decimals=6).tolist()
    [1.5, 0.5]
    """
    call = "enclosed_singular_values"
    check_tensor(call, "matrix", matrix, least_ndim=2)
    values = torch.linalg.svdvals(matrix)
    number = torch.finfo(values.dtype)
    size = max(matrix.shape[-2:])
    largest = values.detach()[..., :1] if values.shape[-1] else values.new_zeros(*values.shape[:-1], 1)
    unit = size * (number.eps * largest + number.tiny)
    if error is None:
        return EnclosedValues(values, (SVD_ROUNDING + PRODUCT_ROUNDING * num_factors) * unit, UNCERTAIN * largest)
    radius = _checked_error(call, error, values)
    return EnclosedValues(values, radius + SVD_ROUNDING * (unit + size * number.eps * radius), torch.zeros_like(unit))


def enclosed_product(factors: Sequence[Tensor]) -> tuple[Tensor, float]:
    """W_L .. W_1 of a chain, first factor first, and a bound on the operator norm of what is wrong with it.

        e_l = |W_l|_op e_{l-1} + (n + 4) eps |W_l|_F |P_{l-1}|_F

    Each entry of a factor may have been rounded too, as those of I + W are. Infinite where numbers overflow.
    """
    product, *others = factors
    number, error = torch.finfo(product.dtype), 2 * torch.finfo(product.dtype).eps * float(product.norm())
    for factor in others:
        unit = (factor.shape[1] + 4) * number.eps
        reach = float(torch.linalg.matrix_norm(factor, 2)) * (1 + 8 * unit) if factor.numel() else 0.0
        error = reach * error + unit * float(factor.norm()) * float(product.norm()) + number.tiny * max(factor.shape)
        product = factor @ product
    return product, 1.01 * error


def _checked_error(call: str, error: Real | Tensor, values: Tensor) -> Tensor:
    radius = torch.as_tensor(error, dtype=values.dtype, device=values.device).detach()
    if radius.ndim and radius.shape != values.shape[:-1]:
        raise ShapeError(
            f"{call}: needs one error per matrix, shape {tuple(values.shape[:-1])}; got {tuple(radius.shape)}. "
            "Pass one number for all."
        )
    if not bool(((radius >= 0) & torch.isfinite(radius)).all()):
        raise ValueError(f"{call}: needs a finite error >= 0; got {error!r}. Bound the norm of the error.")
    return radius[..., None].expand(*values.shape[:-1], 1)


def power_sum_bound(values: Float[Tensor, "*batch r"], power: float) -> Float[Tensor, "*batch"]:
    """Sum of s^power over the s > 0, rounded down: *lower bound* on the sum in exact arithmetic."""
    there = values > 0
    powers = torch.where(there, torch.where(there, values, 1.0) ** power, 0.0)
    return rounded_down(powers.sum(-1), values.shape[-1] + power * largest_logarithm(values))


def largest_logarithm(values: Tensor) -> float:
    """The largest |log s| of the values s > 0: so many roundings s^p and log s amplify; 0 without values."""
    logs = values.detach()[values.detach() > 0].log().abs()
    return float(logs.max()) if logs.numel() else 0.0


def rounded_down(value: Tensor, roundings: Real) -> Tensor:
    """A number that so many roundings (and a few more) cannot have brought above the exact one."""
    return value - value.detach().abs() * (torch.finfo(value.dtype).eps * (16 + 2 * roundings))


def rounded_up(value: Tensor, roundings: Real) -> Tensor:
    """A number that so many roundings (and a few more) cannot have brought below the exact one."""
    return value + value.detach().abs() * (torch.finfo(value.dtype).eps * (16 + 2 * roundings))


def rounded(value: float, roundings: Real, *, up: bool) -> float:
    """`rounded_up` or `rounded_down` for a Python number."""
    outward = abs(value) * math.ulp(1.0) * (16 + 2 * roundings)
    return value + outward if up else value - outward
