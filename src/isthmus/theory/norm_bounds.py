"""What a parameter norm says about the singular values of any Jacobian of a network: upper bounds, rounded up.

What Jacobians say about the norm: `jacobian_bounds`.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.theory.enclosures import power_sum_bound, rounded, rounded_up
from isthmus.theory.inputs import Real, check_depth, check_positive, check_singular_values
from isthmus.theory.scales import scaled_power


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
