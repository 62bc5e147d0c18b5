"""Rows of any number as one triangular factor: means, covariances and least squares without keeping the rows.

Accumulated in float64 by QR, so that small singular values keep their digits (squaring into a covariance halves them).
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Float64
from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class RowFactor:
    """What least squares needs to know about rows a_1 .. a_n of d features.

    Attributes:
        count: n, number of rows.
        mean: shape (d,).
        centred: R with R^T R = sum (a_i - mean)(a_i - mean)^T, at most d rows.
        raw: the same of the rows themselves.
    """

    count: int
    mean: Float64[Tensor, " d"]
    centred: Float64[Tensor, "r d"]
    raw: Float64[Tensor, "s d"]


def row_factor(batches: Iterable[Float64[Tensor, "_ d"]]) -> RowFactor:
    """The factor of rows that come in batches (*exact* up to the rounding of QR).

        qr([1 a_1; ..; 1 a_n]) = [[sqrt n, sqrt n mean], [0, R]]

    Args:
        batches: at least one, of equal width and at least one row in all.

    Returns:
        The factor; memory is that of one batch and d^2 numbers.
    """
    factor: Tensor | None = None
    count = 0
    for rows in batches:
        count += len(rows)
        block = torch.cat([torch.ones_like(rows[:, :1]), rows], 1)
        factor = torch.linalg.qr(block if factor is None else torch.cat([factor, block]), mode="r").R
    assert factor is not None
    root = factor[0, 0]
    return RowFactor(count, factor[0, 1:] / root, factor[1:, 1:], factor[:, 1:])
