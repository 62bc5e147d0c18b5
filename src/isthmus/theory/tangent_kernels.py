"""The tangent kernel of a fully connected network, layer by layer, from activations and suffix Jacobians.

No gradient is ever formed, and nothing is trained here. `linearisation` makes the Jacobians from weights and patterns.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.theory.enclosures import Errors, enclosed_singular_values, largest_logarithm, rounded_down
from isthmus.theory.inputs import Real, check_depth, check_same_length, check_tensor
from isthmus.theory.linearisation import Layers, checked_batch


def tangent_kernel_by_layer(
    left: Layers, right: Layers | None = None, *, bias: bool = True
) -> Float[Tensor, "depth n m d_out d_out"]:
    """Contribution of each layer to the tangent kernel of two batches (*exact*).

        Theta_l(x, y) = (<a_{l-1}(x), a_{l-1}(y)> + 1) J_l(x) J_l(y)^T,   the +1 from the bias b_l

    Args:
        left: activations a_0..a_{L-1} and suffix Jacobians J_1..J_L of the first batch.
        right: the same of the second batch; the first again if None.
        bias: whether layers have trained biases.

    Returns:
        One (d_out, d_out) matrix per layer and pair of samples; their sum over layers is the tangent kernel.

    Raises:
        ShapeError: lists or batches that do not fit. ValueError: NaN or infinity. TypeError: complex or integer tensor.

    Accuracy: rounding of the products. Source: Jacot 2023b, section 4. Test: FC-38.

    >>> theory.tangent_kernel_by_layer(([[[1, 2]]], [[[[3]]]])).flatten().tolist()
    [54.0]
    """
    call = "tangent_kernel_by_layer"
    left, right = (checked_batch(call, side) for side in (left, right or left))
    one, other = ([(*tensor.shape[1:],) for part in side for tensor in part] for side in (left, right))
    if one != other:
        raise ShapeError(f"{call}: needs both batches from one network; got neurons and Jacobians of {one}, {other}.")
    layers = zip(*left, *right, strict=True)
    return torch.stack(
        [
            (a_x @ a_y.mT + float(bias))[:, :, None, None] * torch.einsum("nik,mjk->nmij", j_x, j_y)
            for a_x, j_x, a_y, j_y in layers
        ]
    )


def tangent_kernel(left: Layers, right: Layers | None = None, *, bias: bool = True) -> Float[Tensor, "n m d_out d_out"]:
    """Tangent kernel of two batches, sum of `tangent_kernel_by_layer` over the layers (*exact*).

        Theta(x, y) = (df(x)/dW) (df(y)/dW)^T

    Args:
        left: activations a_0..a_{L-1} and suffix Jacobians J_1..J_L of the first batch.
        right: the same of the second batch; the first again if None.
        bias: whether layers have trained biases.

    Raises:
        ShapeError: lists or batches that do not fit. ValueError: NaN or infinity. TypeError: complex or integer tensor.

    Accuracy: rounding of the products. Source: Jacot 2023b, section 4. Test: FC-38.

    >>> theory.tangent_kernel(([[[1, 2]]], [[[[3]]]])).flatten().tolist()
    [54.0]
    """
    return tangent_kernel_by_layer(left, right, bias=bias).sum(0)


def tangent_kernel_trace_by_layer(layers: Layers, *, bias: bool = True) -> Float[Tensor, "depth n"]:
    """Contribution of each layer to the trace of the tangent kernel at each sample (*exact*).

        Tr Theta_l(x, x) = (|a_{l-1}(x)|^2 + 1) |J_l(x)|_F^2

    Args:
        layers: activations a_0..a_{L-1} and suffix Jacobians J_1..J_L of the batch.
        bias: whether layers have trained biases.

    Returns:
        One number per layer and sample, >= 0; the sum over layers is Tr Theta(x, x).

    Raises:
        ShapeError: lists or batches that do not fit. ValueError: NaN or infinity. TypeError: complex or integer tensor.

    Accuracy: rounding, all terms >= 0. Cost O(n d_out width) per layer. Source: Jacot 2023b, section 4. Test: FC-38.

    >>> theory.tangent_kernel_trace_by_layer(([[[1, 2]]], [[[[3]]]])).tolist()
    [[54.0]]
    """
    layers = checked_batch("tangent_kernel_trace_by_layer", layers)
    return torch.stack(
        [
            (torch.linalg.vecdot(a, a) + float(bias)) * torch.linalg.vecdot(j.flatten(1), j.flatten(1))
            for a, j in zip(*layers, strict=True)
        ]
    )


def tangent_kernel_trace(layers: Layers, *, bias: bool = True) -> Float[Tensor, " n"]:
    """Trace of the tangent kernel at each sample, without forming a gradient (*exact*).

        Tr Theta(x, x) = sum_l (|a_{l-1}(x)|^2 + 1) |J_l(x)|_F^2

    Args:
        layers: activations a_0..a_{L-1} and suffix Jacobians J_1..J_L of the batch.
        bias: whether layers have trained biases.

    Raises:
        ShapeError: lists or batches that do not fit. ValueError: NaN or infinity. TypeError: complex or integer tensor.

    Accuracy: rounding, all terms >= 0. Source: Jacot 2023b, section 4. Test: FC-38.

    >>> theory.tangent_kernel_trace(([[[1, 2]]], [[[[3]]]])).tolist()
    [54.0]
    """
    return tangent_kernel_trace_by_layer(layers, bias=bias).sum(0)


def tangent_kernel_curvature(
    prefix: Sequence[Float[Tensor, "n _ d_in"]], suffix: Sequence[Float[Tensor, "n d_out _"]]
) -> Float[Tensor, "n p p"]:
    """Mixed derivative d_x d_y Theta at (x, x) as a matrix on d_in d_out coordinates (*exact*), positive semidefinite.

        sum_l (J a_{l-1}^T J a_{l-1}) (x) (J_l J_l^T),   (x) the Kronecker product, input coordinate first

    Args:
        prefix: J a_0, ..., J a_{L-1} of the batch.
        suffix: J_1, ..., J_L of the batch.

    Raises:
        ShapeError: lists that do not fit. ValueError: NaN or infinity. TypeError: complex or integer tensor.

    Accuracy: rounding. Source: Jacot 2023b, Proposition 9. Test: FC-42.

    >>> theory.tangent_kernel_curvature([[[[1.0]]]], [[[[3.0]]]]).flatten().tolist()
    [9.0]
    """
    call = "tangent_kernel_curvature"
    check_same_length(call, prefix=prefix, suffix=suffix)
    total: Tensor | None = None
    for l, (a, j) in enumerate(zip(prefix, suffix, strict=True)):
        check_tensor(call, f"prefix[{l}]", a, ndim=3)
        check_tensor(call, f"suffix[{l}]", j, ndim=3)
        product = torch.einsum("nab,ncd->nacbd", a.mT @ a, j @ j.mT)
        total = product if total is None else total + product
    assert total is not None or not prefix
    if total is None:
        raise ShapeError(f"{call}: needs at least one layer; got empty lists. Pass one Jacobian per layer.")
    num, d_in, d_out = total.shape[:3]
    return total.reshape(num, d_in * d_out, d_in * d_out)


def curvature_lower_bound(
    jacobians: Float[Tensor, "n d_out d_in"], *, depth: int, negative_slope: Real = 0.0, error: Errors = None
) -> Float[Tensor, " n"]:
    """Operator norm that `tangent_kernel_curvature` cannot undercut: *lower bound*, sharp for scalar linear networks.

        L |Jf(x)|_op^(2 - 2/L),   times |a|^(2 - 2/L) where the slope a is not 0

    Args:
        jacobians: one Jacobian per sample.
        depth: number of weight matrices L, at least 1.
        negative_slope: a, |a| < 1; 0 is ReLU.
        error: of each Jacobian, as in `schatten_lower_bound`.

    Raises:
        ValueError: `depth` < 1, |a| >= 1, NaN or infinity. TypeError: complex or integer tensor.

    Accuracy: rounding only lowers it.
    Source: Jacot 2023b, Proposition 9, part 1, with its constant corrected. Test: FC-42.

    >>> round(float(theory.curvature_lower_bound([[[2.0]]], depth=2)), 6)
    4.0
    """
    check_tensor("curvature_lower_bound", "jacobians", jacobians, ndim=3)
    factor, amplified = _slope_factor("curvature_lower_bound", depth, negative_slope)
    if not jacobians.numel():
        return jacobians.new_zeros(len(jacobians))
    norms = enclosed_singular_values(jacobians, error=error, num_factors=depth).lower[:, 0]
    return rounded_down(depth * factor * norms ** (2 - 2 / depth), amplified + 2 * largest_logarithm(norms))


def segment_kernel_bound(
    jacobians: Float[Tensor, "n d_out d_in"],
    displacements: Float[Tensor, "n d_in"],
    *,
    depth: int,
    negative_slope: Real = 0.0,
    error: Errors = None,
) -> Float[Tensor, " n"]:
    """Tangent kernel that one end of a segment must reach where the network is linear along it: *lower bound*.

        max(|Theta(x,x)|_op, |Theta(y,y)|_op) >= (L/4) |y - x|^2 |Jf(x) e|^(2 - 2/L),   e = (y - x) / |y - x|

    times |a|^(2 - 2/L) where the slope a is not 0. The activation pattern must be the same on all of [x, y].

    Args:
        jacobians: Jf(x), one per segment.
        displacements: y - x, one per segment; 0 gives the bound 0.
        depth: number of weight matrices L, at least 1.
        negative_slope: a, |a| < 1; 0 is ReLU.
        error: of each Jacobian, as in `schatten_lower_bound`.

    Raises:
        ValueError: `depth` < 1, |a| >= 1, NaN or infinity. TypeError: complex or integer tensor.

    Accuracy: rounding only lowers it. Source: Jacot 2023b, Proposition 9, part 2. Test: FC-42.

    >>> [round(b, 6) for b in theory.segment_kernel_bound([[[2.0]]], [[3.0]], depth=2).tolist()]
    [9.0]
    """
    call = "segment_kernel_bound"
    check_tensor(call, "jacobians", jacobians, ndim=3)
    check_tensor(call, "displacements", displacements, ndim=2)
    factor, amplified = _slope_factor(call, depth, negative_slope)
    lengths = torch.linalg.vector_norm(displacements, dim=1)
    directions = displacements / torch.where(lengths > 0, lengths, 1.0)[:, None]
    # |J e| as the one singular value of a column, which has the error of J and that of one more product
    unsure = enclosed_singular_values(jacobians, error=error, num_factors=depth + 1).error[:, 0]
    slopes = enclosed_singular_values(jacobians @ directions[:, :, None], error=unsure).lower[:, 0]
    bound = depth / 4 * factor * lengths.square() * slopes ** (2 - 2 / depth)
    return rounded_down(bound, displacements.shape[1] + amplified + 2 * largest_logarithm(slopes))


def _slope_factor(call: str, depth: int, negative_slope: Real) -> tuple[float, float]:
    """|a|^(2 - 2/L), and how many roundings the power makes of one."""
    check_depth(call, depth)
    if not abs(negative_slope) < 1:
        raise ValueError(f"{call}: needs |negative_slope| < 1; got {negative_slope}. Pass 0 for ReLU.")
    if not negative_slope:
        return 1.0, 0.0
    return abs(negative_slope) ** (2 - 2 / depth), 2 * abs(math.log(abs(negative_slope)))


def sharpness(kernel: Float[Tensor, "n n d_out d_out"]) -> Float[Tensor, ""]:
    """Largest curvature of the squared-error loss of an interpolating network (*exact* where the residuals vanish).

        |H|_op = (2/N) |Theta(X, X)|_op   for the loss (1/N) sum_i |f(x_i) - y_i|^2   (no 1/2, hence the 2)

    Args:
        kernel: Theta(x_i, x_j) as `tangent_kernel` returns it; 0 samples give 0.

    Raises:
        ShapeError: not n x n blocks. ValueError: NaN or infinity. TypeError: complex or integer tensor.

    Accuracy: that of the symmetric eigenvalue problem of size n d_out. Source: Jacot 2023b, section 4.1. Test: FC-41.

    >>> float(theory.sharpness([[[[4.0]]]]))
    8.0
    """
    check_tensor("sharpness", "kernel", kernel, ndim=4)
    num, columns, d_out, _ = kernel.shape
    if num != columns:
        raise ShapeError(
            f"sharpness: needs the kernel of one batch with itself; got shape {tuple(kernel.shape)}. "
            "Call tangent_kernel with one batch."
        )
    if kernel.numel() == 0:
        return kernel.new_zeros(())
    gram = kernel.permute(0, 2, 1, 3).reshape(num * d_out, num * d_out)
    return 2 / num * torch.linalg.eigvalsh(gram)[-1]


def largest_stable_step(kernel: Float[Tensor, "n n d_out d_out"]) -> float:
    """Step beyond which gradient descent leaves an interpolating minimum of the squared error (*exact* there).

        2 / |H|_op   for the loss of `sharpness`

    Args:
        kernel: Theta(x_i, x_j) as `tangent_kernel` returns it.

    Returns:
        The step; infinity where the kernel vanishes.

    Raises:
        ShapeError: not n x n blocks. ValueError: NaN or infinity. TypeError: complex or integer tensor.

    Accuracy: as `sharpness`. Source: Jacot 2023b, section 4.1. Test: FC-41.

    >>> theory.largest_stable_step([[[[4.0]]]])
    0.25
    """
    curvature = float(sharpness(kernel).detach())
    return 2 / curvature if curvature > 0 else math.inf
