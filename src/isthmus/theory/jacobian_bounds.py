"""Lower bounds on parameter norms from Jacobians, and what a norm says about the singular values of a Jacobian.

Each holds for every network of the depth named, trained or not. Bounds of many points at once: `nonplanarity`.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.theory.inputs import (
    Real,
    check_depth,
    check_positive,
    check_rank,
    check_singular_values,
    check_tensor,
)
from isthmus.theory.linear_costs import linear_cost
from isthmus.theory.residual_costs import resnet_cost
from isthmus.theory.spectra import log_pseudo_determinant

OUTSIDE = 1e-6  # share of a Jacobian's norm outside the span of the last matrix that counts as rounding


def _largest(bounds: Tensor) -> Tensor:
    """Greatest of the samples' bounds; 0, which always holds, for an empty batch."""
    return bounds.max() if bounds.numel() else bounds.new_zeros(())


def schatten_lower_bound(jacobians: Float[Tensor, "n d_out d_in"], *, depth: int) -> Float[Tensor, ""]:
    """Parameter norm that no network of this depth with these Jacobians can undercut: *lower bound* on R(f; L).

        max_x L * sum_i s_i(Jf(x))^(2/L)  <=  R(f; L)  <=  |W|^2

    A bound on R itself, not on R/L, and never on the rank. Holds for sigma_a with |a| < 1 and for smooth f too.

    Args:
        jacobians: one Jacobian per sample.
        depth: number of weight matrices L, at least 1.

    Returns:
        Scalar >= 0, in squared-weight units (biases included in |W|^2); 0 for an empty batch.

    Raises:
        ValueError: `depth` < 1, NaN or infinity. TypeError: complex or integer tensor.
        ShapeError: not three dimensions.

    Accuracy: that of the SVD; values at its rounding are dropped, which only lowers the bound.
    Source: 001, Proposition 3. Test: FC-13, FC-14, FC-44.
    """
    check_tensor("schatten_lower_bound", "jacobians", jacobians, ndim=3)
    check_depth("schatten_lower_bound", depth)
    return _largest(linear_cost(jacobians, depth=depth))


def last_matrix_lower_bound(
    jacobians: Float[Tensor, "n d_out d_in"], last_matrix: Float[Tensor, "d_last width"], *, depth: int
) -> Float[Tensor, ""]:
    """Parameter norm of every network of this depth with these Jacobians and this last matrix: *lower bound*.

        |W_L|_F^2 + (L - 1) max_x sum_i s_i(W_L^+ Jf(x))^(2/(L-1))  <=  |W|^2

    Never weaker than `schatten_lower_bound`; its least value over all W_L bounds R(f; L), but that program is not
    convex. In the limit of large depth it is: `nonplanarity_bound`.

    Args:
        jacobians: one Jacobian per sample.
        last_matrix: W_L, d_last = d_out; its columns must span those of every Jacobian, as they do in a network.
        depth: number of weight matrices L, at least 2.

    Returns:
        Scalar in squared-weight units; |W_L|_F^2 for an empty batch.

    Raises:
        ValueError: `depth` < 2, NaN or infinity, a Jacobian outside the span of W_L.
        TypeError: complex or integer tensor.
        ShapeError: not three and two dimensions, or of different d_out.

    Accuracy: that of the pseudo-inverse, eps times the condition number of W_L.
    Source: 003, proof of Proposition 5. Test: FC-34.
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
    below = torch.linalg.pinv(last_matrix) @ jacobians
    missed = jacobians - last_matrix @ below
    if jacobians.numel() and bool((missed.norm(dim=(1, 2)) > OUTSIDE * jacobians.norm(dim=(1, 2))).any()):
        raise ValueError(
            f"{call}: needs Jacobians in the span of last_matrix, which those of a network are; one is outside by more "
            f"than {OUTSIDE:g} of its norm. Give both from the same network."
        )
    return last_matrix.square().sum() + _largest(linear_cost(below, depth=depth - 1))


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

    Accuracy: rounding. Source: corollary of 001, Proposition 3. Test: FC-13.
    """
    call = "large_singular_value_bound"
    check_positive(call, "penalty", penalty)
    check_positive(call, "threshold", threshold)
    check_depth(call, depth)
    return penalty / depth * math.exp(-2 / depth * math.log(threshold))


def trailing_singular_value_bound(
    singular_values: Float[Tensor, "*batch k"], *, penalty: Real, depth: int
) -> Float[Tensor, "*batch"]:
    """How large the next singular value of a Jacobian can be, given the first k and the norm: *upper bound*.

        s_{k+1}(Jf(x))  <=  ( |W|^2 / L - sum_{i <= k} s_i^(2/L) )_+^(L/2)

    Args:
        singular_values: the k largest singular values of Jf(x); k = 0 bounds s_1.
        penalty: |W|^2, sum of squares of all weights and biases.
        depth: number of weight matrices L, at least 1.

    Raises:
        ValueError: `penalty` <= 0, `depth` < 1, a negative value, NaN or infinity.
        TypeError: complex or integer tensor.

    Accuracy: cancellation: absolute error about eps |W|^2 / L before the power L/2.
    Source: sharpens 001, section 3. Test: FC-20.
    """
    call = "trailing_singular_value_bound"
    check_singular_values(call, singular_values)
    check_positive(call, "penalty", penalty)
    check_depth(call, depth)
    return (penalty / depth - (singular_values ** (2 / depth)).sum(-1)).clamp_min(0) ** (depth / 2)


def regularity_lower_bound(jacobians: Float[Tensor, "n d_out d_in"], *, rank: int, depth: int) -> Float[Tensor, ""]:
    """Norm that the regularity of a map costs beyond its rank: *lower bound* on R(f; L) at every depth.

        max_x  k L + 2 log |Jf(x)|_+  <=  L sum_i s_i(Jf(x))^(2/L)  <=  R(f; L)

    Weaker than `schatten_lower_bound` and affine in the depth: 2 log |Jf|_+ bounds R1(f) where Rank Jf(x) = R0(f).

    Args:
        jacobians: one Jacobian per sample; a sample of rank below k gives -inf, which the maximum passes over.
        rank: k, at most min(d_out, d_in); asked for, never guessed.
        depth: number of weight matrices L, at least 1.

    Returns:
        Scalar >= 0 in squared-weight units (a negative bound says no more than 0); 0 for an empty batch.

    Raises:
        ValueError: `rank` outside its range, `depth` < 1, NaN or infinity. TypeError: complex or integer tensor.

    Accuracy: absolute error about k eps s_1 / s_k. Source: 003, Theorem 3, finite-depth form. Test: FC-28.
    """
    check_tensor("regularity_lower_bound", "jacobians", jacobians, ndim=3)
    check_depth("regularity_lower_bound", depth)
    check_rank("regularity_lower_bound", rank, largest=min(jacobians.shape[1:]))
    return _largest(depth * rank + 2 * log_pseudo_determinant(jacobians, rank=rank)).clamp_min(0)


def two_point_bound(
    jacobian_x: Float[Tensor, "d_out d_in"],
    jacobian_y: Float[Tensor, "d_out d_in"],
    *,
    depth: int,
    prefix_norm: Real,
    suffix_norm: Real,
    negative_slope: Real = 0.0,
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

    Returns:
        Scalar >= 0, in squared-weight units.

    Raises:
        ValueError: a leaky network, a norm below 1, `depth` < 1, NaN or infinity. TypeError: complex or integer tensor.
        ShapeError: Jacobians of different shapes.

    Accuracy: that of the SVD. Source: 003, Proposition 13, finite-depth form. Test: FC-35.
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
    ends = linear_cost(torch.stack([jacobian_x, jacobian_y]), depth=depth).sum() / 2
    return ends + torch.linalg.svdvals(jacobian_x - jacobian_y).sum() / (prefix_norm * suffix_norm)


def resnet_jacobian_lower_bound(
    jacobians: Float[Tensor, "n d_out d_in"], *, residual_weight: Real, depth: int | None = None, block_depth: int
) -> Float[Tensor, ""]:
    """Norm that no ReLU residual network with these Jacobians can undercut: *lower bound* on its cost.

        max_x  c_{lam, L}(s(Jf(x)))  <=  1/2 |W_u|^2 + 1/2 |W_e|^2 + block term

    Args:
        jacobians: one Jacobian of the whole network per sample.
        residual_weight: lam > 0, as in `resnet_cost`.
        depth: number of residual blocks; None gives the weaker bound that holds at every depth.
        block_depth: weight matrices per block, 1 or 2.

    Returns:
        Scalar >= 0, in the units of `resnet_cost`; biases are free. 0 for an empty batch.

    Raises:
        ValueError: as `resnet_cost`. TypeError: complex or integer tensor. ShapeError: not three dimensions.

    Accuracy: that of the SVD. Attention and normalisation layers break the hypothesis: there it is a heuristic.
    Source: 000, Theorem 3.3. Test: RES-12.
    """
    check_tensor("resnet_jacobian_lower_bound", "jacobians", jacobians, ndim=3)
    values = torch.linalg.svdvals(jacobians)
    return _largest(resnet_cost(values, residual_weight=residual_weight, depth=depth, block_depth=block_depth))
