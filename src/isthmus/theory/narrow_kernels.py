"""What the tangent kernel of a network with layers of one neuron must reach, by the outputs it visits in a line.

Kernels as they are: `tangent_kernels`. Paths through points: `travelling_salesman`.
"""

import math
import sys

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.theory.enclosures import rounded
from isthmus.theory.inputs import Real, check_finite, check_positive, check_tensor
from isthmus.theory.scales import resized
from isthmus.theory.travelling_salesman import diameter, partial_path_bounds

_EPS = math.ulp(1.0)
_Numbers = NDArray[np.float64]


def narrow_kernel_bound(
    codes: Float[Tensor, " n"],
    y: Float[Tensor, "n d_out"],
    *,
    weights: Float[Tensor, " layers"],
    error: Real = 0.0,
    code_error: Real = 0.0,
) -> float:
    """Tangent kernel that a network with layers of one neuron must reach, by their codes and outputs: *lower bound*.

        max_x |Theta(x,x)|_op  >=  sum_l w_l^(-2) max_i ( t_i F_{n-i+1} / (t_n - t_i) )^2,   t_1 <= .. <= t_n

    over a domain that contains the hull of the samples; F of `partial_path_bounds` of the outputs. M layers have
    sum_l w_l^(-2) >= M^2 / sum_l w_l^2. Large where many outputs lie close in the code: M n^(2 - 2/k) of k dimensions.

    Proof: f = h(t), and a layer t_l = w_l t_{l-1} between adds t_{l-1}^2 |J_l|^2 = (t |h'(t)| / w_l)^2 to the kernel.
    In the order of codes h visits the n - i + 1 last outputs between t_i and t_n, along F_{n-i+1} at least, so that
    somewhere there |h'| >= F_{n-i+1} / (t_n - t_i), and every code between is met in the hull.

    Args:
        codes: t of each sample, >= 0 on all of the hull, as behind a relu.
        y: f(x), one row per sample.
        weights: w_l > 0 of the layers of one neuron that follow, one after the other, each without a bias.
        error: how far the true f(x) may be from each row of y, in Euclidean norm.
        code_error: how far the true codes may be from these.

    Returns:
        Number >= 0; activations as the identity on numbers >= 0.

    Raises:
        ValueError: a negative code, no weight or one <= 0, equal codes with different outputs, NaN or infinity.
        ShapeError: numbers of rows that differ. TypeError: complex or integer tensor.

    Accuracy: rounding, downward. Met by scalar linear networks as their samples lie closer.
    Source: Jacot 2023b, Theorem 10, with its constants. Test: FC-43.

    >>> round(theory.narrow_kernel_bound([1, 2, 3], [[0], [5], [1]], weights=[1, 0.5]), 6)
    31.25
    """
    call = "narrow_kernel_bound"
    check_tensor(call, "codes", codes, ndim=1)
    _check_pairs(call, "codes", codes, y)
    check_finite(call, "error", error, least=0.0)
    check_finite(call, "code_error", code_error, least=0.0)
    t = np.sort(codes.detach().cpu().double().numpy())
    if len(t) and t[0] < 0:
        raise ValueError(f"{call}: needs codes >= 0; got {t[0]:.3g}. Take those behind a relu.")
    paths = _certain_paths(y, float(error))[::-1][:-1]  # F_n .. F_2
    with np.errstate(over="ignore"):
        near, wide = t[:-1] * (1 - 4 * _EPS) - code_error, (t[-1:] - t[:-1]) + 2 * float(code_error)
    if bool((paths[wide == 0] > 0).any()):
        raise ValueError(
            f"{call}: needs codes that differ where outputs do; got equal ones. No function has these values."
        )
    there = (near > 0) & (paths > 0) & np.isfinite(wide)
    return _kernel(call, weights, over=(near[there], paths[there]), under=(wide[there],))


def rank1_kernel_bound(
    x: Float[Tensor, "n d_in"],
    y: Float[Tensor, "n d_out"],
    *,
    weights: Float[Tensor, " layers"],
    lipschitz: Real,
    error: Real = 0.0,
) -> float:
    """Tangent kernel that every network through layers of one neuron with f(x_i) = y_i must reach: *lower bound*.

        max_x |Theta(x,x)|_op  >=  sum_l w_l^(-2) max_{i+j=n+1} ( F_i F_j / (C diam(x)) )^2

    over a domain that contains the hull of the x_i; F of `partial_path_bounds` of the outputs. Whatever the code is. By
    |W|^2 = L + c_1 alone, C^2 = e^(c_1) and M layers have sum_l w_l^(-2) >= M^2 / (L + c_1): of n random outputs of k
    dimensions the bound grows like L e^(-c_1) n^(4 - 4/k).

    Proof: by `narrow_kernel_bound`. With S and P the Lipschitz constants of h and the code, the outputs of the i first
    codes ask for F_i <= S t_i, and t_n - t_i <= P diam(x); S P <= C.

    Args:
        x: inputs, rows.
        y: outputs, one row per sample.
        weights: w_l > 0 of the layers of one neuron, one after the other, behind a code >= 0, each without a bias.
        lipschitz: C, at least the product of the Lipschitz constants of what stands before and behind the code, as
            prod_l |W_l|_op is, and prod_l |W_l|_F <= (|W|^2 / L)^(L/2) <= e^(c_1 / 2).
        error: how far the true f(x) may be from each row of y, in Euclidean norm.

    Returns:
        Number >= 0; 0 for fewer than three samples.

    Raises:
        ValueError: no weight or one <= 0, `lipschitz` <= 0, equal inputs with different outputs, NaN or infinity.
        ShapeError: numbers of rows that differ. TypeError: complex or integer tensor.

    Accuracy: rounding, downward. Source: Jacot 2023b, Theorem 10, with its constants. Test: FC-43.

    >>> round(theory.rank1_kernel_bound([[1], [2], [3]], [[0], [5], [1]], weights=[1, 0.5], lipschitz=5), 6)
    0.05
    """
    call = "rank1_kernel_bound"
    check_tensor(call, "x", x, ndim=2)
    _check_pairs(call, "x", x, y)
    check_positive(call, "lipschitz", lipschitz)
    check_finite(call, "error", error, least=0.0)
    paths = _certain_paths(y, float(error))
    first, last = paths[1:-1], paths[::-1][1:-1]
    there = (first > 0) & (last > 0)
    width = rounded(diameter(x), x.shape[1], up=True)
    if width == 0 and bool(there.any()):
        raise ValueError(
            f"{call}: needs inputs that differ where outputs do; got equal ones. No function has these values."
        )
    there &= math.isfinite(width)
    under = (np.array(width or 1.0), np.array(float(lipschitz)))
    return _kernel(call, weights, over=(first[there], last[there]), under=under)


def _check_pairs(call: str, name: str, samples: Tensor, y: Tensor) -> None:
    check_tensor(call, "y", y, ndim=2)
    if len(samples) != len(y):
        raise ShapeError(f"{call}: needs one y per sample; got {len(y)} rows, and {len(samples)} of {name}. Pair them.")


def _certain_paths(y: Tensor, error: float) -> _Numbers:
    """F_1 .. F_n of the true outputs, from below: each edge may be shorter by twice the error."""
    paths = partial_path_bounds(y).numpy()
    shorter = min(2 * (1 + 4 * _EPS) * error, sys.float_info.max)
    with np.errstate(over="ignore"):
        return np.maximum(paths * (1 - 4 * _EPS) - shorter * np.arange(len(paths)), 0)


def _kernel(call: str, weights: Tensor, *, over: tuple[_Numbers, ...], under: tuple[_Numbers, ...]) -> float:
    """The largest square of a quotient of products times sum_l w_l^(-2), rounded down; 0 without any.

    Mantissas and exponents apart: no product of numbers of any size is one of them itself.
    """
    check_tensor(call, "weights", weights, ndim=1)
    w = weights.detach().cpu().double().numpy()
    if not len(w) or not bool((w > 0).all()):
        raise ValueError(f"{call}: needs weights > 0 of one layer or more; got {w.tolist()}. Others pass nothing on.")
    if not len(over[0]):
        return 0.0
    mantissa, exponent = np.ones(len(over[0])), np.zeros(len(over[0]), dtype=np.int64)
    for part in over:
        mantissa, exponent = mantissa * np.frexp(part)[0], exponent + np.frexp(part)[1]
    for part in under:
        mantissa, exponent = mantissa / np.frexp(part)[0], exponent - np.frexp(part)[1]
    best = int((np.log2(mantissa) + exponent).argmax())
    least, size = np.frexp(w.min())
    sums = float(np.square(w.min() / w).sum() / least**2)
    bound = rounded(float(mantissa[best]) ** 2 * sums, len(w), up=False)
    bound = min(resized(bound, 2 * int(exponent[best]) - 2 * int(size)), sys.float_info.max)
    return bound if bound >= sys.float_info.min else 0.0  # below that number a rounding may be upward
