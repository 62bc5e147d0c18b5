"""What norms of parameters say about the singular values of Jacobians and of representations: upper bounds, rounded up.

What Jacobians say about the norm: `jacobian_bounds`.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.theory.enclosures import power_sum_bound, rounded, rounded_up
from isthmus.theory.inputs import (
    Real,
    check_depth,
    check_finite,
    check_positive,
    check_singular_values,
    check_tensor,
)
from isthmus.theory.scales import exponent, scaled_power, shifted, unit


def large_singular_value_bound(*, penalty: Real, threshold: Real, depth: int) -> float:
    """How many singular values of any Jacobian can reach a threshold, given the parameter norm: *upper bound*.

        #{ i : s_i(Jf(x)) >= tau }  <=  |W|^2 / (L tau^(2/L))

    Args:
        penalty: |W|^2, sum of squares of all weights and biases; no ridge, no division by L.
        threshold: tau > 0, in units of the Jacobian.
        depth: number of weight matrices L, at least 1.

    Returns:
        The bound, not rounded: take its floor.

    Raises:
        ValueError: `threshold` <= 0, `penalty` <= 0, `depth` < 1.

    Accuracy: rounding, upward: a bound of 3 never comes out as 2.99; infinite beyond the range of float64.
    Source: corollary of Jacot 2023a, Proposition 3. Test: FC-13.

    >>> round(theory.large_singular_value_bound(penalty=12, threshold=0.5, depth=4), 3)
    4.243
    """
    call = "large_singular_value_bound"
    check_positive(call, "penalty", penalty)
    check_positive(call, "threshold", threshold)
    check_depth(call, depth)
    bound = scaled_power(penalty / depth, float(threshold), -2 / depth)
    # one number up, for what has no digits left
    return math.nextafter(rounded(bound, 2 / depth * abs(math.log(threshold)), up=True), math.inf)


def trailing_singular_value_bound(
    singular_values: Float[Tensor, "*batch k"], *, penalty: Real, depth: int
) -> Float[Tensor, "*batch"]:
    """How large the next singular value of a Jacobian can be, given the first k and the norm: *upper bound*.

        s_{k+1}(Jf(x))  <=  ( |W|^2 / L - sum_{i <= k} s_i^(2/L) )_+^(L/2)

    Args:
        singular_values: the k largest singular values of Jf(x), or what is certainly there of them
            (`enclosed_singular_values(...).lower`); k = 0 bounds s_1. Several spectra: rows that fall.
        penalty: |W|^2, sum of squares of all weights and biases.
        depth: number of weight matrices L, at least 1.

    Raises:
        ValueError: `penalty` <= 0, `depth` < 1, a negative value, NaN or infinity.
        TypeError: complex or integer tensor.

    Accuracy: rounding, upward, for the values given: what cancels, about eps |W|^2 / L, is added before the power L/2.
    Source: sharpens Jacot 2023a, section 4. Test: FC-20.

    >>> round(float(theory.trailing_singular_value_bound([1.0], penalty=8, depth=4)), 6)
    1.0
    """
    call = "trailing_singular_value_bound"
    check_singular_values(call, singular_values)
    check_positive(call, "penalty", penalty)
    check_depth(call, depth)
    taken, share = power_sum_bound(singular_values, 2 / depth), penalty / depth
    room = (share - taken + 8 * torch.finfo(taken.dtype).eps * share).clamp_min(0)
    return rounded_up(room ** (depth / 2), depth)


class SpectralGapBound(NamedTuple):
    """What `spectral_gap_bound` says of the hidden layers of a network, both *upper bounds*.

    Attributes:
        log_stable_ranks: on the sum over them of log(|A_l|_F^2 / s_1(A_l)^2), A_l the centred representation.
        ratio: on the least s_2(A_l) / s_1(A_l) of them; from 1 on it says nothing.
    """

    log_stable_ranks: float
    ratio: float


def spectral_gap_bound(
    x: Float[Tensor, "n d_in"],
    y: Float[Tensor, "n d_out"],
    *,
    weight_norms: Float[Tensor, " depth"],
    error: Real = 0.0,
) -> SpectralGapBound:
    """How far from rank 1 the hidden layers of any network can be, given its norms and what it computes: *upper bound*.

        sum_{0<l<L} log(|A_l|_F^2 / s_1(A_l)^2)  <=  E = sum_l log |W_l|_F^2 + 2 log(s_1(X_c) / |Y_c|_F)
        min_{0<l<L} s_2(A_l) / s_1(A_l)  <=  (e^(E / (L - 1)) - 1)^(1/2)

    for A_l = a_l(X) less its mean, X_c and Y_c inputs and outputs less theirs. As sum_l log |W_l|_F^2 <= |W|^2 - L, the
    ratio is O(L^(-1/2)) where |W|^2 = L + O(1), as at a minimum of rank 1; no constant is hidden, no minimum asked for.
    Of the representations as they stand, uncentred, that norm says nothing of the kind: docs/errata.md.

    Proof: a 1-Lipschitz activation brings no two samples further apart, so it does not raise the sum of their squared
    distances, 2 n |A_l|_F^2; hence |A_l|_F <= |W_l A_{l-1}|_F <= |W_l|_F s_1(A_{l-1}). Multiply over all l; the biases
    drop out. And |A|_F^2 >= s_1^2 + s_2^2.

    Args:
        x: inputs, samples as rows, any of the domain.
        y: f(x), which must not be constant.
        weight_norms: |W_l|_F of each layer, at least two. Where |W|^2 alone is known, (|W|^2 / L)^(1/2) for each.
        error: how far the true f(x) may be from each row of y, in Euclidean norm.

    Returns:
        E and the ratio; activations sigma_a with |a| <= 1, or any other that is 1-Lipschitz.

    Raises:
        ValueError: fewer than two layers, a norm <= 0, outputs that do not differ by more than `error`, inputs that do
            not differ, norms too small for outputs that differ as much, NaN or infinity.
        ShapeError: numbers of rows that differ. TypeError: complex or integer tensor.

    Accuracy: rounding, upward. Met by identities on samples of equal spread in two directions.
    Source: Jacot 2023a, Proposition 4, centred, sharpened and for every network. Test: FC-21.

    >>> bound = theory.spectral_gap_bound([[0, 0], [1, 1]], [[0], [1]], weight_norms=[1, 1, 1.01])
    >>> round(bound.log_stable_ranks, 4), round(bound.ratio, 4)
    (0.713, 0.6545)
    """
    call = "spectral_gap_bound"
    check_tensor(call, "x", x, ndim=2)
    check_tensor(call, "y", y, ndim=2)
    check_tensor(call, "weight_norms", weight_norms, ndim=1)
    check_finite(call, "error", error, least=0.0)
    if len(x) != len(y):
        raise ShapeError(f"{call}: needs one y per x; got {len(y)} and {len(x)} rows. Pair them.")
    norms = weight_norms.detach().double()
    if len(norms) < 2 or not bool((norms > 0).all()):
        raise ValueError(
            f"{call}: needs weight_norms > 0 of two layers or more; got {norms.tolist()}. A network of one layer has "
            "no hidden representation, one with a vanishing layer is constant."
        )
    logs = 2 * torch.cat([norms.log(), norms.new_tensor([_log_spreads(call, x, y, float(error))])])
    samples = len(x) ** 1.5 + max(x.shape[1], y.shape[1])
    total = float(logs.sum()) + math.ulp(1.0) * (64 + 8 * samples + 2 * (len(logs) + 8) * float(logs.abs().sum()))
    if total < 0:
        raise ValueError(
            f"{call}: needs norms of weights with which outputs can differ so much: the product of {norms.tolist()} is "
            f"too small by a factor of e^{-total / 2:.6g}. Give x, y and weights of one network."
        )
    share = total / (len(norms) - 1)
    return SpectralGapBound(total, rounded(math.sqrt(math.expm1(share)) if share < 700 else math.inf, share, up=True))


def _log_spreads(call: str, x: Tensor, y: Tensor, error: float) -> float:
    """Of s_1(X_c) / |Y_c|_F the logarithm, from above but for what sums round."""
    (inputs, of_x), (outputs, of_y) = (_centred(side) for side in (x, y))
    largest = float(torch.linalg.matrix_norm(inputs, 2)) if inputs.numel() else 0.0
    spread = float(torch.linalg.matrix_norm(outputs))
    # the rounding of the spread counts before they are subtracted: what is left may be little
    moved = math.sqrt(len(y)) * float(shifted(torch.tensor(error, dtype=torch.float64), -of_y))
    moved += spread * math.ulp(1.0) * (64 + 8 * len(y) ** 1.5 + y.shape[1])
    if not (largest > 0 and spread > moved):
        raise ValueError(
            f"{call}: needs inputs that differ and outputs that differ by more than their error; got a spread of "
            f"{largest:.3g} and of {spread:.3g}, {moved:.3g} of it error. A constant network has no such bound."
        )
    return math.log(largest / (spread - moved)) + (of_x - of_y) * math.log(2.0)


def _centred(samples: Tensor) -> tuple[Tensor, int]:
    """Samples less their mean, as a tensor of size 1 times 2^e, and e.

    By way of their differences from the first one: what all samples share leaves no rounding behind.
    """
    rows = samples.detach().double()
    if not rows.numel():
        return rows, 0
    size = exponent(rows) + 1
    apart = shifted(rows, -size)
    apart = apart - apart[0]
    inner = exponent(apart)
    apart = unit(apart)
    return apart - apart.mean(0), size + inner
