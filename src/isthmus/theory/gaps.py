"""Integers read off a spectrum: the gap rank with its floor, and the participation ratio."""

import torch
from jaxtyping import Float
from torch import Tensor


def gap_rank(singular_values: Float[Tensor, " k"], *, floor: float = 0.01) -> int:
    """Number of singular values before the largest ratio of neighbours (*estimate*).

        argmax_i  s_i / max(s_{i+1}, floor s_1),   with a zero appended so that full rank can be the answer

    Args:
        singular_values: non-negative, in decreasing order.
        floor: what counts as nothing, relative to the largest: without it the ratio of two roundings would win.

    Returns:
        0 for an empty or all-zero spectrum, else between 1 and k.

    Raises:
        ValueError: floor not in (0, 1).
    """
    if not 0 < floor < 1:
        raise ValueError(f"gap_rank(floor={floor}): needs 0 < floor < 1; 0.01 is usual.")
    if singular_values.numel() == 0 or not float(singular_values[0]) > 0:
        return 0
    s = singular_values / singular_values[0]
    ratios = s / torch.cat([s[1:], s.new_zeros(1)]).clamp_min(floor)
    return int(ratios.argmax()) + 1


def participation_ratio(singular_values: Float[Tensor, " k"]) -> Float[Tensor, ""]:
    """(sum s^2)^2 / sum s^4: k for k equal singular values, 0 for none (*estimate* of a dimension)."""
    square = singular_values.square()
    top = square.sum()
    # scale first: the fourth power of a small spectrum underflows
    share = square / torch.where(top > 0, top, torch.ones_like(top))
    return torch.where(
        top > 0, 1 / share.square().sum().clamp_min(torch.finfo(share.dtype).tiny), torch.zeros_like(top)
    )
