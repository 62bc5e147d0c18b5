"""At which depths which rank wins: windows, switching depths, slopes of the norm against depth.

From numbers only; sweeps over depth that produce them: `sweeps`.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.theory.enclosures import rounded
from isthmus.theory.inputs import Real, check_depth, check_finite, check_positive, check_rank, check_tensor


def bottleneck_cost_upper_bound(
    encoder_penalty: Real, decoder_penalty: Real, *, rank: int, depth: int, encoder_depth: int, decoder_depth: int
) -> float:
    """Norm of encoder, identity layers on k dimensions and decoder: *upper bound* on R(h o g; L).

        k (L - L_g - L_h) + |W_g|^2 + |W_h|^2;   the constant beside k L is |W_g|^2 - k L_g + |W_h|^2 - k L_h

    Args:
        encoder_penalty: |W_g|^2, with the shift that makes g >= 0 in its last bias.
        decoder_penalty: |W_h|^2, with the shift undone in its first bias.
        rank: k, the inner dimension.
        depth: L, at least `encoder_depth + decoder_depth`.
        encoder_depth: number of weight matrices of g.
        decoder_depth: number of weight matrices of h.

    Raises:
        ValueError: depths or rank out of range, a negative penalty, NaN or infinity.

    Accuracy: rounding, upward. Attained by `constructions`. Source: Jacot 2023a, Theorem 1 and section 4. Test: FC-25.

    >>> round(theory.bottleneck_cost_upper_bound(5, 4, rank=2, depth=10, encoder_depth=2, decoder_depth=2), 6)
    21.0
    """
    call = "bottleneck_cost_upper_bound"
    check_depth(call, encoder_depth)
    check_depth(call, decoder_depth)
    check_depth(call, depth, least=encoder_depth + decoder_depth)
    check_rank(call, rank, largest=2**62)
    check_finite(call, "encoder_penalty", encoder_penalty, least=0.0)
    check_finite(call, "decoder_penalty", decoder_penalty, least=0.0)
    bound = rank * (depth - encoder_depth - decoder_depth) + encoder_penalty + decoder_penalty
    return rounded(float(bound), 0, up=True)


class DepthWindow(NamedTuple):
    """Largest depth at which rank 1 cannot win, and the depth beyond which the known rank-1 network is cheaper."""

    certified: float
    undercut: float


def depth_window(*, rank: int, constant: Real, rank1_constant: Real, rank1_stretch: Real) -> DepthWindow:
    """Depths at which a map of rank k beats every interpolator of rank 1, and where it starts to lose.

        certified (*lower bound*): the depths L with  L rho^(2/L) > k L + C,  rho = path(y) / diam(x):  no rank-1 map is
                                   optimal; these are all depths up to the one returned
        undercut  (*upper bound*): L > (C_1 - C) / (k - 1), where the rank-1 network of norm L + C_1 is cheaper

    The window grows with the number of points, as rho does.

    Args:
        rank: k, at least 2.
        constant: C with |W|^2 <= k L + C for a network of rank k, C >= 0.
        rank1_constant: C_1 with |W|^2 = L + C_1 for an interpolator of rank 1.
        rank1_stretch: rho, as `rank1_stretch` returns it.

    Returns:
        (certified, undercut), real numbers; certified is below 1 where no depth is.

    Raises:
        ValueError: `rank` < 2, `constant` < 0, `rank1_stretch` <= 0, NaN or infinity.

    Accuracy: bisection to rounding; certified is rounded down, undercut up.
    Source: Jacot 2023a, Proposition 5. Test: FC-24.

    >>> round(theory.depth_window(rank=2, constant=1, rank1_constant=9, rank1_stretch=1).undercut, 6)
    8.0
    """
    check_rank("depth_window", rank, largest=2**62, least=2)
    check_positive("depth_window", "rank1_stretch", rank1_stretch)
    check_finite("depth_window", "rank1_constant", rank1_constant)
    if not 0 <= constant < math.inf:
        raise ValueError(f"depth_window: needs constant >= 0; got {constant}. Pass |W|^2 - k L of a real network.")
    low, high = 0.0, 1.0
    target = 2 * math.log(rank1_stretch)

    def excess(depth: float) -> float:
        # L log(k + C/L) rises with L, so the window is an interval
        return target - depth * math.log(rank + constant / depth)

    while excess(high) > 0:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    undercut = (rank1_constant - constant) / (rank - 1)
    outward = math.ulp(4 * max(abs(rank1_constant), constant))
    return DepthWindow(rounded(low, abs(target), up=False), undercut + outward)


def switch_depth(*, loss: tuple[Real, Real], constant: tuple[Real, Real], rank: tuple[int, int], ridge: Real) -> float:
    """Depth at which two families of minima exchange places (*estimate*: norms are affine in L for large L only).

        E_k(L) = C_k + mu (k L + c_k);   L* = ((C_1 + mu c_1) - (C_2 + mu c_2)) / (mu (k_2 - k_1))

    Below L* the family of higher rank has the lower objective.

    Args:
        loss: data losses C_1, C_2.
        constant: c_1, c_2 with |W|^2 = k L + c_k.
        rank: k_1 < k_2.
        ridge: mu > 0, the total coefficient of |W|^2.

    Raises:
        ValueError: k_1 >= k_2, `ridge` <= 0, NaN or infinity.

    Accuracy: rounding. Source: Jacot 2023b, section 3.1. Test: FC-31.

    >>> theory.switch_depth(loss=(1, 0), constant=(0, 0), rank=(1, 2), ridge=0.1)
    10.0
    """
    check_positive("switch_depth", "ridge", ridge)
    if not rank[0] < rank[1]:
        raise ValueError(f"switch_depth: needs two ranks k_1 < k_2; got {rank}. Give the family of lower rank first.")
    for name, pair in (("loss", loss), ("constant", constant)):
        for value in pair:
            check_finite("switch_depth", name, value)
    energies = [cost + ridge * offset for cost, offset in zip(loss, constant, strict=True)]
    return (energies[0] - energies[1]) / (ridge * (rank[1] - rank[0]))


class PlateauSlope(NamedTuple):
    """Slopes of the norm between neighbouring depths, and the integers next to them."""

    slope: Tensor
    rank: Tensor


def plateau_slope(depths: Float[Tensor, " m"] | Int[Tensor, " m"], penalties: Float[Tensor, " m"]) -> PlateauSlope:
    """Slope of the parameter norm against depth, which along one family of minima is its rank (*estimate*).

        (|W|^2(L_{i+1}) - |W|^2(L_i)) / (L_{i+1} - L_i)  ->  k,   since |W|^2 = k L + c + O(1/L)

    Args:
        depths: rising depths, at least two.
        penalties: |W|^2 of the minima found at these depths.

    Returns:
        (slope, rank): one slope and its nearest integer per pair of neighbours.

    Raises:
        ShapeError: fewer than two depths, or lengths that differ. ValueError: depths that do not rise, NaN or infinity.
        TypeError: complex or integer penalties.

    Accuracy: rounding. Source: Jacot 2023b, section 3.1. Test: FC-31.

    >>> theory.plateau_slope([4, 6, 8], [9, 13, 17])
    PlateauSlope(slope=tensor([2., 2.], dtype=torch.float64), rank=tensor([2, 2]))
    """
    check_tensor("plateau_slope", "penalties", penalties, ndim=1)
    penalties = penalties.detach()
    if depths.ndim != 1:
        raise ShapeError(
            f"plateau_slope: needs a list of depths; got shape {tuple(depths.shape)}. Pass one per penalty."
        )
    if depths.shape != penalties.shape or len(depths) < 2:
        raise ShapeError(
            f"plateau_slope: needs two or more depths, one penalty each; got {len(depths)} and {len(penalties)}. "
            "Pass the pairs of one sweep."
        )
    steps = depths.diff().to(penalties.dtype)
    if not bool((steps > 0).all()):
        raise ValueError(f"plateau_slope: needs rising depths; got {depths.tolist()}. Sort the sweep by depth.")
    slope = penalties.diff() / steps
    return PlateauSlope(slope, slope.round().to(torch.int64))
