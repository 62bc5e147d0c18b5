"""Products of two thin matrices by their factors: spectrum, rank and what the factors weigh beyond their product.

One matrix: `spectra`. Products of many matrices at their least norm: `linear_costs`.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.theory.inputs import check_tensor


def product_singular_values(
    outer: Float[Tensor, "*batch m k"], inner: Float[Tensor, "*batch k n"]
) -> Float[Tensor, "*batch r"]:
    """Singular values of A B, falling, as many as min(m, n, k), without the (m, n) product (*exact*).

        A = Q R, B^T = P S   ->   s(A B) = s(R S^T)

    Args:
        outer: A, one matrix or a batch.
        inner: B, as many rows as A has columns.

    Raises:
        TypeError: no real floating-point tensors. ValueError: NaN or infinity. ShapeError: shapes do not meet.

    Accuracy: that of QR and of an SVD of at most k x k. Cost O((m + n) k^2). Test: theory/test_factor_products.
    """
    first, second = _factors("product_singular_values", outer, inner)
    return torch.linalg.svdvals(first @ second.mT)


def product_rank(
    outer: Float[Tensor, "*batch m k"], inner: Float[Tensor, "*batch k n"], *, eps: float | None = None
) -> Int[Tensor, "*batch"]:
    """Number of singular values of A B above rounding, max(m, n, k) eps s_1(A) s_1(B) (*estimate* of the rank).

    Args:
        outer: A, one matrix or a batch.
        inner: B, as many rows as A has columns.
        eps: of the type in which the factors were stored; None: of their own.

    Raises:
        TypeError, ValueError, ShapeError: as for `product_singular_values`.
    """
    first, second = _factors("product_rank", outer, inner)
    eps = torch.finfo(first.dtype).eps if eps is None else eps
    scale = torch.linalg.matrix_norm(first, 2) * torch.linalg.matrix_norm(second, 2)
    largest = max(*outer.shape[-2:], inner.shape[-1])
    return (torch.linalg.svdvals(first @ second.mT) > largest * eps * scale[..., None]).sum(-1)


def factor_gap(outer: Float[Tensor, "*batch m k"], inner: Float[Tensor, "*batch k n"]) -> Float[Tensor, "*batch"]:
    """What two factors weigh beyond the least that their product allows, at least 0 (*exact*).

        (|A|_F^2 + |B|_F^2) / 2 - |A B|_*

    It is 0 where A^T A = B B^T, as at minima of a loss of A B with weight decay on both (Kobayashi, Akram and von
    Oswald 2024, for the products of attention).

    Args:
        outer: A, one matrix or a batch.
        inner: B, as many rows as A has columns.

    Returns:
        In units of squared weights: no ridge.

    Raises:
        TypeError, ValueError, ShapeError: as for `product_singular_values`.
    """
    squares = (outer.square().sum((-2, -1)) + inner.square().sum((-2, -1))) / 2
    return (squares - product_singular_values(outer, inner).sum(-1)).clamp_min(0)


def _factors(call: str, outer: Tensor, inner: Tensor) -> tuple[Tensor, Tensor]:
    """R and S of the QR decompositions of A and B^T."""
    outer, inner = check_tensor(call, "outer", outer, least_ndim=2), check_tensor(call, "inner", inner, least_ndim=2)
    if outer.shape[-1] != inner.shape[-2]:
        raise ShapeError(f"{call}: needs as many columns of outer as rows of inner; got {tuple(outer.shape)} and "
                         f"{tuple(inner.shape)}.")  # fmt: skip
    return torch.linalg.qr(outer, mode="r").R, torch.linalg.qr(inner.mT, mode="r").R
