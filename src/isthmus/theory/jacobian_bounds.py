"""Lower bounds on parameter norms from Jacobians.

Each holds for every network of the depth named, trained or not, also in floating point: of each singular value only
what is certainly there counts (`enclosures`), and sums are rounded down. Bounds of many points at once: `nonplanarity`.
What a norm says about the singular values: `norm_bounds`.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.theory.enclosures import (
    SVD_ROUNDING,
    Errors,
    enclosed_singular_values,
    largest_logarithm,
    power_sum_bound,
    rounded_down,
)
from isthmus.theory.inputs import (
    Real,
    check_depth,
    check_positive,
    check_rank,
    check_tensor,
)
from isthmus.theory.residual_costs import resnet_cost

OUTSIDE = 1e-6  # share of a Jacobian's norm outside the span of the last matrix that counts as rounding


def _largest(bounds: Tensor) -> Tensor:
    """Greatest of the samples' bounds; 0, which always holds, for an empty batch."""
    return bounds.max() if bounds.numel() else bounds.new_zeros(())


def schatten_lower_bound(
    jacobians: Float[Tensor, "n d_out d_in"], *, depth: int, error: Errors = None
) -> Float[Tensor, ""]:
    """Parameter norm that no network of this depth with these Jacobians can undercut: *lower bound* on R(f; L).

        max_x L * sum_i s_i(Jf(x))^(2/L)  <=  R(f; L)  <=  |W|^2

    A bound on R itself, not on R/L, and never on the rank. Holds for sigma_a with |a| < 1 and for smooth f too.

    Args:
        jacobians: one Jacobian per sample.
        depth: number of weight matrices L, at least 1.
        error: how far each Jacobian may be from the true one, in operator norm: `networks.enclosed_jacobians` proves
            it. None: what `enclosed_singular_values` assumes of a product of L matrices.

    Returns:
        Scalar >= 0, in squared-weight units (biases included in |W|^2); 0 for an empty batch.

    Raises:
        ValueError: `depth` < 1, a negative `error`, NaN or infinity. TypeError: complex or integer tensor.
        ShapeError: not three dimensions.

    Accuracy: rounding only lowers it: each s_i counts with the lower end of its interval, the sum is rounded down.
    Source: Jacot 2023a, Proposition 3. Test: FC-13, FC-14, FC-44.

    >>> round(float(theory.schatten_lower_bound([[[4, 0], [0, 1]]], depth=2)), 6)
    10.0
    """
    check_tensor("schatten_lower_bound", "jacobians", jacobians, ndim=3)
    check_depth("schatten_lower_bound", depth)
    return _largest(_certain_cost(jacobians, depth, error))


def _certain_cost(jacobians: Tensor, depth: int, error: Errors, *, num_factors: int | None = None) -> Tensor:
    """L sum_i s_i^(2/L) of what is certainly there of each Jacobian, rounded down."""
    values = enclosed_singular_values(jacobians, error=error, num_factors=num_factors or depth)
    return depth * power_sum_bound(values.lower, 2 / depth)


def last_matrix_lower_bound(
    jacobians: Float[Tensor, "n d_out d_in"],
    last_matrix: Float[Tensor, "d_last width"],
    *,
    depth: int,
    error: Errors = None,
) -> Float[Tensor, ""]:
    """Parameter norm of every network of this depth with these Jacobians and this last matrix: *lower bound*.

        |W_L|_F^2 + (L - 1) max_x sum_i s_i(W_L^+ Jf(x))^(2/(L-1))  <=  |W|^2

    Never weaker than `schatten_lower_bound`; its least value over all W_L bounds R(f; L), but that program is not
    convex. In the limit of large depth it is: `nonplanarity_bound`.

    Args:
        jacobians: one Jacobian per sample.
        last_matrix: W_L, d_last = d_out; its columns must span those of every Jacobian, as they do in a network.
        depth: number of weight matrices L, at least 2.
        error: of each Jacobian, as in `schatten_lower_bound`; |W_L^+| times it is that of W_L^+ Jf(x).

    Returns:
        Scalar in squared-weight units; |W_L|_F^2 for an empty batch.

    Raises:
        ValueError: `depth` < 2, NaN or infinity, a Jacobian outside the span of W_L.
        TypeError: complex or integer tensor.
        ShapeError: not three and two dimensions, or of different d_out.

    Accuracy: rounding only lowers it; that of the pseudo-inverse, eps times the condition number of W_L, is counted.
    Source: Jacot 2023b, proof of Proposition 5. Test: FC-34.

    >>> round(float(theory.last_matrix_lower_bound([[[2.0]]], [[1.0]], depth=2)), 6)
    5.0
    """
    call = "last_matrix_lower_bound"
    check_tensor(call, "jacobians", jacobians, ndim=3)
    check_tensor(call, "last_matrix", last_matrix, ndim=2)
    check_depth(call, depth, least=2)
    if jacobians.shape[1] != last_matrix.shape[0]:
        raise ShapeError(
            f"{call}: needs as many rows in last_matrix as outputs in the Jacobians, got {last_matrix.shape[0]} and "
            f"{jacobians.shape[1]}. The last matrix is the one next to the outputs."
        )
    inverse = torch.linalg.pinv(last_matrix)
    below = inverse @ jacobians
    missed = jacobians - last_matrix @ below
    if jacobians.numel() and bool((missed.norm(dim=(1, 2)) > OUTSIDE * jacobians.norm(dim=(1, 2))).any()):
        raise ValueError(
            f"{call}: needs Jacobians in the span of last_matrix, which those of a network are; one is outside by more "
            f"than {OUTSIDE:g} of its norm. Give both from the same network."
        )
    reach = _norm(inverse)
    condition = max(1.0, reach * _norm(last_matrix))
    if error is not None:
        # that of J, and what the pseudo-inverse and the product add, both |W^+| times
        unit = SVD_ROUNDING * max(*inverse.shape, *jacobians.shape[1:]) * torch.finfo(jacobians.dtype).eps
        sizes = torch.linalg.matrix_norm(jacobians.detach())
        if isinstance(error, Tensor) and error.shape not in {sizes.shape, torch.Size()}:
            raise ShapeError(
                f"{call}: needs one error per matrix, shape {tuple(sizes.shape)}; got {tuple(error.shape)}. Pass one "
                "number for all."
            )
        error = 1.01 * reach * (torch.as_tensor(error).to(sizes) + unit * (1 + condition) * sizes)
    own = rounded_down(last_matrix.square().sum(), last_matrix.numel())
    return own + _largest(_certain_cost(below, depth - 1, error, num_factors=math.ceil(depth * condition)))


def _norm(matrix: Tensor) -> float:
    return float(torch.linalg.matrix_norm(matrix.detach(), 2)) if matrix.numel() else 0.0


def regularity_lower_bound(
    jacobians: Float[Tensor, "n d_out d_in"], *, rank: int, depth: int, error: Errors = None
) -> Float[Tensor, ""]:
    """Norm that the regularity of a map costs beyond its rank: *lower bound* on R(f; L) at every depth.

        max_x  k L + 2 log |Jf(x)|_+  <=  L sum_i s_i(Jf(x))^(2/L)  <=  R(f; L)

    Weaker than `schatten_lower_bound` and affine in the depth: 2 log |Jf|_+ bounds R1(f) where Rank Jf(x) = R0(f).

    Args:
        jacobians: one Jacobian per sample; a sample of rank below k gives -inf, which the maximum passes over.
        rank: k, at most min(d_out, d_in); asked for, never guessed.
        depth: number of weight matrices L, at least 1.
        error: of each Jacobian, as in `schatten_lower_bound`.

    Returns:
        Scalar >= 0 in squared-weight units (a negative bound says no more than 0); 0 for an empty batch.

    Raises:
        ValueError: `rank` outside its range, `depth` < 1, NaN or infinity. TypeError: complex or integer tensor.

    Accuracy: rounding only lowers it, by about 2 k error / s_k: each s_i counts with the lower end of its interval.
    Source: Jacot 2023b, Theorem 3, finite-depth form. Test: FC-28.

    >>> round(float(theory.regularity_lower_bound([[[2, 0], [0, 3]]], rank=2, depth=5)), 4)
    13.5835
    """
    check_tensor("regularity_lower_bound", "jacobians", jacobians, ndim=3)
    check_depth("regularity_lower_bound", depth)
    check_rank("regularity_lower_bound", rank, largest=min(jacobians.shape[1:]))
    values = enclosed_singular_values(jacobians, error=error, num_factors=depth).lower[:, :rank]
    there = values > 0
    logs = torch.where(there, torch.where(there, values, 1.0).log(), -torch.inf)
    outward = torch.finfo(values.dtype).eps * (16 + rank) * (depth * rank + 2 * rank * largest_logarithm(values))
    return _largest(depth * rank + 2 * logs.sum(-1) - outward).clamp_min(0)


def two_point_bound(
    jacobian_x: Float[Tensor, "d_out d_in"],
    jacobian_y: Float[Tensor, "d_out d_in"],
    *,
    depth: int,
    prefix_norm: Real,
    suffix_norm: Real,
    negative_slope: Real = 0.0,
    error: Real | None = None,
) -> Float[Tensor, ""]:
    """Norm of a ReLU network whose Jacobian changes between two points: *lower bound* on |W|^2 of that network.

        |W|^2 >= (L/2) (S_{2/L}(Jf(x)) + S_{2/L}(Jf(y))) + |Jf(x) - Jf(y)|_* / (C1 C2),   S_p = sum_i s_i^p

    Args:
        jacobian_x: Jf(x).
        jacobian_y: Jf(y).
        depth: number of weight matrices L, at least 1.
        prefix_norm: C1 = max_{0 <= l < L} |J a_l(y)|_op, at least 1 (l = 0 is the identity).
        suffix_norm: C2 = max_{1 <= l <= L} |J(z_l -> f)(x)|_op, at least 1. `layer_jacobian_bound` gives both.
        negative_slope: of the network that is asked about; only 0, a ReLU network, is covered by the proof.
        error: of both Jacobians, as in `schatten_lower_bound`; their difference has twice as much.

    Returns:
        Scalar >= 0, in squared-weight units.

    Raises:
        ValueError: a leaky network, a norm below 1, `depth` < 1, NaN or infinity. TypeError: complex or integer tensor.
        ShapeError: Jacobians of different shapes.

    Accuracy: rounding only lowers it, given the two norms.
    Source: Jacot 2023b, Proposition 13, finite-depth form. Test: FC-35.

    >>> round(float(theory.two_point_bound([[1.0]], [[0.0]], depth=2, prefix_norm=1, suffix_norm=1)), 6)
    2.0
    """
    call = "two_point_bound"
    check_tensor(call, "jacobian_x", jacobian_x, ndim=2)
    check_tensor(call, "jacobian_y", jacobian_y, ndim=2)
    check_depth(call, depth)
    if negative_slope != 0:
        raise ValueError(
            f"{call}: needs a ReLU network, the only one it is proved for; got negative_slope={negative_slope!r}. "
            "Use schatten_lower_bound, which holds for every slope."
        )
    if jacobian_x.shape != jacobian_y.shape:
        raise ShapeError(
            f"{call}: needs Jacobians of one map; got shapes {tuple(jacobian_x.shape)} and {tuple(jacobian_y.shape)}. "
            "Evaluate the same network at both points."
        )
    for name, norm in (("prefix_norm", prefix_norm), ("suffix_norm", suffix_norm)):
        check_positive(call, name, norm)
        if norm < 1:
            raise ValueError(
                f"{call}: needs {name} >= 1, since it covers the identity; got {norm}. Take the maximum over layers."
            )
    pair = torch.stack([jacobian_x, jacobian_y])
    each = enclosed_singular_values(pair, error=error, num_factors=depth).error.sum()  # of both, so of the difference
    apart = enclosed_singular_values(jacobian_x - jacobian_y, error=each).lower
    bound = _certain_cost(pair, depth, error).sum() / 2 + apart.sum() / (prefix_norm * suffix_norm)
    return rounded_down(bound, apart.shape[-1])


def resnet_jacobian_lower_bound(
    jacobians: Float[Tensor, "n d_out d_in"],
    *,
    residual_weight: Real,
    depth: int | None = None,
    block_depth: int,
    error: Errors = None,
) -> Float[Tensor, ""]:
    """Norm that no ReLU residual network with these Jacobians can undercut: *lower bound* on its cost.

        max_x  c_{lam, L}(s(Jf(x)))  <=  1/2 |W_u|^2 + 1/2 |W_e|^2 + block term

    Args:
        jacobians: one Jacobian of the whole network per sample.
        residual_weight: lam > 0, as in `resnet_cost`.
        depth: number of residual blocks; None gives the weaker bound that holds at every depth.
        block_depth: weight matrices per block, 1 or 2.
        error: of each Jacobian, as in `schatten_lower_bound`; None assumes that of a product of L + 2 matrices.

    Returns:
        Scalar >= 0, in the units of `resnet_cost`; biases are free. 0 for an empty batch.

    Raises:
        ValueError: as `resnet_cost`. TypeError: complex or integer tensor. ShapeError: not three dimensions.

    Accuracy: rounding only lowers it: each s_i counts with the lower end of its interval, and the sum is rounded down.
    A value of 1e-17 that is rounding would cost lam log(1e-17 / lam). Attention and normalisation layers break the
    hypothesis: there it is a heuristic.
    Source: Boix-Adsera 2025, Theorem 3.3. Test: RES-12.

    >>> round(float(theory.resnet_jacobian_lower_bound([[[9.0]]], residual_weight=1, depth=1, block_depth=2)), 4)
    5.0
    """
    check_tensor("resnet_jacobian_lower_bound", "jacobians", jacobians, ndim=3)
    factors = 1 if depth is None else depth + 2
    values = enclosed_singular_values(jacobians, error=error, num_factors=factors).lower
    costs = resnet_cost(values, residual_weight=residual_weight, depth=depth, block_depth=block_depth)
    roundings = values.shape[-1] + largest_logarithm(values) + abs(math.log(residual_weight))
    return _largest(rounded_down(costs, 2 * roundings))
