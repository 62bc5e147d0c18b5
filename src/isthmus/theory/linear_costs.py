"""Least parameter norms of linear networks without skips: closed form, minimising weights, large-depth expansion.

Linear residual networks: `residual_costs`. Bounds that carry these costs over to nonlinear maps: `jacobian_bounds`.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.theory.enclosures import rounded_up
from isthmus.theory.inputs import check_depth, check_rank, check_singular_values, check_tensor
from isthmus.theory.scales import exponent, shifted
from isthmus.theory.spectra import kept_singular_values, power_sum

SUMMED, ONE_BY_ONE = (
    2**20,
    1000,
)  # layers up to which a sum goes over all of them; of more so many terms at the steep end


def linear_cost(
    matrix: Float[Tensor, "*batch d_out d_in"], *, depth: int, rank: int | None = None
) -> Float[Tensor, "*batch"]:
    """Least parameter norm with which a linear network of `depth` layers computes `matrix` (*exact*).

        R(A; L) = min { sum_l |W_l|_F^2 : W_L ... W_1 = A } = L * sum_i s_i(A)^(2/L)

    Args:
        matrix: the map A, any shape, or a batch; float64 advised, see Accuracy.
        depth: number of weight matrices L, at least 1.
        rank: how many singular values count. By default those above the rounding of the SVD, max(d_out, d_in) eps s_1:
            s^(2/L) of a spurious 1e-16 is .48 at L = 100.

    Returns:
        Scalar >= 0 per matrix, in squared-weight units: no ridge, no factor 1/2, no division by L.

    Raises:
        ValueError: `depth` < 1, `rank` outside 0..min(d_out, d_in), NaN or infinity in `matrix`.
        TypeError: complex or integer tensor. ShapeError: fewer than 2 dimensions.

    Accuracy: that of the SVD. At rank-deficient A the derivative of the dropped part is taken as 0; the true cost is
    not differentiable there once L > 2. Cost O(d_out d_in min(d_out, d_in)).
    Source: Dai, Karzand and Srebro 2021. Attained by `optimal_linear_factors`. Test: FC-09.

    >>> [round(float(theory.linear_cost([[4, 0], [0, 1]], depth=L)), 6) for L in (1, 2)]
    [17.0, 10.0]
    """
    check_depth("linear_cost", depth)
    values, kept = kept_singular_values("linear_cost", matrix, rank)
    return depth * power_sum(values, kept, 2 / depth)


def optimal_linear_factors(
    matrix: Float[Tensor, "d_out d_in"], *, depth: int, width: int | None = None, rank: int | None = None
) -> list[Tensor]:
    """Weights W_1, ..., W_L with product `matrix` and norm `linear_cost` (*exact*).

        W_l = U_l S^(1/L) U_{l-1}^T,   U_0 and U_L the singular bases of A, the inner ones unit vectors

    Args:
        matrix: the map A.
        depth: number of weight matrices L, at least 1.
        width: inner width, at least the number of singular values kept; by default just that (and at least 1).
        rank: singular values to keep; by default those above the rounding of the SVD.

    Returns:
        L matrices, first layer first: W_1 has shape (width, d_in), W_L (d_out, width). Depth 1 gives back A itself.

    Raises:
        ValueError: `depth` < 1, `rank` outside its range, `width` too small, NaN or infinity.
        TypeError: complex or integer tensor. ShapeError: not a matrix.

    Accuracy: product and norm to the rounding of the SVD. The minimisers are these up to orthogonal inner bases.
    Source: Dai, Karzand and Srebro 2021. Test: FC-09.

    >>> [w.tolist() for w in theory.optimal_linear_factors([[4.0]], depth=2)]
    [[[2.0]], [[2.0]]]
    """
    call = "optimal_linear_factors"
    check_depth(call, depth)
    check_tensor(call, "matrix", matrix, ndim=2)
    if rank is not None:
        check_rank(call, rank, largest=min(matrix.shape))
    if depth == 1 and rank is None:
        return [matrix.clone()]
    left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    num = int(kept_singular_values(call, matrix, rank)[1].sum())
    inner = max(num, 1) if width is None else width
    if inner < num:
        raise ValueError(f"{call}(width={width}): needs width >= {num}, the rank; got {width}. Widen, or pass rank.")
    roots = torch.cat([values[:num] ** (1 / depth), values.new_zeros(inner - num)])
    if depth == 1:
        return [(left[:, :num] * values[:num]) @ right[:num]]
    first = torch.cat([roots[:num, None] * right[:num], values.new_zeros(inner - num, matrix.shape[1])])
    last = torch.cat([left[:, :num] * roots[:num], values.new_zeros(matrix.shape[0], inner - num)], 1)
    return [first, *(torch.diag(roots) for _ in range(depth - 2)), last]


def least_kept_variance(ridge: float, depth: int, *, columns: int | None = None) -> float:
    """Least square s^2 of a singular value that a minimum keeps of a linear map (*exact*).

        min_a |s - a|^2 + ridge L a^(2/L)  is at a > 0  from
        s = a (L - 1) / (L - 2),  a = (ridge (L - 2))^(L / (2 (L - 1)))  on;   s = ridge for L = 2, 0 for L = 1

    The loss and the norm of `linear_cost` come apart by singular values. Of targets of total variance 1, and of a
    direction of the inputs of variance 1, it is the share of the variance from which a dimension pays for itself.

    Where d columns of variance 1 are mapped to themselves over sqrt(d), what is weak in the targets is in the inputs:

        min_a s^2 (1 - a sqrt(d))^2 + ridge L a^(2/L)  is at a > 0  from
        s^2 = ridge d^(-1/L) (L - 1) ((L - 1) / (L - 2))^(1 - 2/L)  on;   s^2 = ridge / sqrt(d) for L = 2

    Args:
        ridge: >= 0.
        depth: number of weight matrices L, at least 1.
        columns: d, of data that are autoencoded; None: of targets.

    Source: FC-09 and FC-12. Test: theorems/test_fc_09_linear_cost.
    """
    if depth == 1:
        return 0.0
    larger = (depth - 1) / (depth - 2) if depth > 2 else 1.0
    if columns is not None:
        return ridge * columns ** (-1 / depth) * (depth - 1) * larger ** (1 - 2 / depth)
    return ridge**2 if depth == 2 else (ridge * (depth - 2)) ** (depth / (depth - 1)) * larger**2


def diagonal_linear_cost(vector: Float[Tensor, "*batch d"], *, depth: int) -> Float[Tensor, "*batch"]:
    """Least parameter norm of a diagonal linear network x -> (u_1 * ... * u_L) . x (*exact*).

        min { sum_l |u_l|^2 : u_1 * ... * u_L = w } = L * sum_i |w_i|^(2/L)

    Args:
        vector: w, or a batch; entries that are exactly 0 count nothing, all others count.
        depth: number of weight vectors L, at least 1.

    Returns:
        Scalar >= 0 per vector, in squared-weight units; divided by L it tends to the number of non-zeros.

    Raises:
        ValueError: `depth` < 1, NaN or infinity. TypeError: complex or integer tensor.

    Accuracy: rounding. Derivative taken as 0 at zero entries.
    Source: Jacot 2023a, introduction. Attained by u_l = |w|^(1/L) with the sign of w in one of them. Test: FC-10.

    >>> float(theory.diagonal_linear_cost([4, -9, 0], depth=[1, 2])[1])
    26.0
    """
    check_depth("diagonal_linear_cost", depth)
    check_tensor("diagonal_linear_cost", "vector", vector, least_ndim=1)
    return depth * power_sum(vector.abs(), torch.ones_like(vector, dtype=torch.bool), 2 / depth)


def shallow_path_norm(
    incoming: Float[Tensor, "width d_in"],
    outgoing: Float[Tensor, "d_out width"],
    *,
    bias: Float[Tensor, " width"] | None = None,
    output_bias: Float[Tensor, " d_out"] | None = None,
) -> Float[Tensor, ""]:
    """Least parameter norm of a two-layer homogeneous network over rescalings of its neurons (*exact*).

        sum_i 2 |c_i| |(w_i, b_i)| + |b_out|^2   for   f(x) = sum_i c_i sigma(w_i . x + b_i) + b_out

    An *upper bound* on the representation cost of f at depth 2: other neurons may do better.

    Args:
        incoming: rows w_i.
        outgoing: columns c_i.
        bias: b_i, or None.
        output_bias: b_out, or None.

    Returns:
        Scalar >= 0, in squared-weight units.

    Raises:
        ShapeError: widths that differ. ValueError: NaN or infinity. TypeError: complex or integer tensor.

    Accuracy: rounding. Source: Jacot 2023a, introduction. Test: FC-11.

    >>> float(theory.shallow_path_norm([[3, 4]], [[2]], bias=[0]))
    20.0
    """
    call = "shallow_path_norm"
    check_tensor(call, "incoming", incoming, ndim=2)
    check_tensor(call, "outgoing", outgoing, ndim=2)
    if incoming.shape[0] != outgoing.shape[1]:
        raise ShapeError(
            f"{call}: needs one column of outgoing per row of incoming; got shapes {tuple(incoming.shape)} and "
            f"{tuple(outgoing.shape)}. Pass W_1 and W_2 as they stand in the network."
        )
    rows = incoming if bias is None else torch.cat([incoming, check_tensor(call, "bias", bias, ndim=1)[:, None]], 1)
    into, onward = exponent(rows), exponent(outgoing)
    lengths = torch.linalg.vector_norm(shifted(rows, -into), dim=1)
    paths = shifted(2 * (torch.linalg.vector_norm(shifted(outgoing, -onward), dim=0) * lengths).sum(), into + onward)
    return paths if output_bias is None else paths + check_tensor(call, "output_bias", output_bias).square().sum()


class LinearCostExpansion(NamedTuple):
    """R(A; L) = L R0 + R1 + R2 / L + O(L^-2)."""

    R0: Tensor
    R1: Tensor
    R2: Tensor


def linear_cost_expansion(
    matrix: Float[Tensor, "*batch d_out d_in"], *, rank: int | None = None
) -> LinearCostExpansion:
    """First three terms of `linear_cost` at large depth (*exact* coefficients; the truncated series is an *estimate*).

        R(A; L) = L R0 + R1 + R2 / L + (4/3) L^-2 sum_i (log s_i)^3 + ...
        R0 = rank A,   R1 = 2 log |A|_+,   R2 = 1/2 |log_+(A^T A)|_F^2 = 2 sum_i (log s_i)^2

    Good for |log s_i| << L only. Do not minimise the truncated series over A: R1 tends to -infinity with s.

    Args:
        matrix: the map A, or a batch.
        rank: singular values that count; by default those above the rounding of the SVD.

    Returns:
        (R0, R1, R2), in squared-weight units, one of each per matrix. A zero matrix gives three zeros.

    Raises:
        ValueError: `rank` outside 0..min(d_out, d_in), NaN or infinity. TypeError: complex or integer tensor.

    Accuracy: absolute error about eps * s_1 / s_rank in R1, that of the SVD; R1 = -inf where `rank` counts a zero.
    Source: Jacot 2023b, section 3. Test: FC-27, FC-29, FC-32.

    >>> [round(float(term), 4) for term in theory.linear_cost_expansion([[2, 0], [0, 1]])]
    [2.0, 1.3863, 0.9609]
    """
    values, kept = kept_singular_values("linear_cost_expansion", matrix, rank)
    logs = torch.where(kept, torch.where(kept, values, 1.0).log(), 0.0)
    return LinearCostExpansion(kept.sum(-1).to(values.dtype), 2 * logs.sum(-1), 2 * logs.square().sum(-1))


def linear_path_cost(singular_values: Float[Tensor, "*batch r"], *, depth: int) -> Float[Tensor, "*batch"]:
    """Norm of the network that walks from the identity kernel to A^T A in a straight line (*upper bound* on R(A; L)).

        sum_i sum_l kappa_i(l/L) / kappa_i((l-1)/L),   kappa_i(q) = 1 + q (s_i^2 - 1);   tends to L r + 2 sum_i log s_i

    These networks keep their activations non-negative wherever both ends of the path can be made so, which the
    minimiser of `linear_cost` need not: their limit shows that linear maps cost 2 log |A|_+ on such domains.

    Args:
        singular_values: the non-zero singular values of A; several spectra as rows of a torch tensor, each falling.
        depth: number of weight matrices L, at least 1.

    Raises:
        ValueError: `depth` < 1, a value <= 0, rows that do not fall (a matrix), NaN or infinity. TypeError: complex or
            integer tensor.

    Returns:
        Scalar per spectrum, in squared-weight units.

    Accuracy: rounding, upward; beyond a million layers also 1e-7 in all, upward. Source: Jacot 2023b, Theorem 3(3).
    Test: FC-30.

    >>> round(float(theory.linear_path_cost([1, 1], depth=5)), 6)
    10.0
    """
    call = "linear_path_cost"
    check_depth(call, depth)
    check_singular_values(call, singular_values)
    if singular_values.numel() and float(singular_values.detach().min()) <= 0:
        raise ValueError(
            f"{call}: needs singular_values > 0; got {float(singular_values.min()):.3g}. Pass the non-zero ones only."
        )
    squares = singular_values.square()
    if depth > SUMMED:
        beyond = rounded_up(_of_many_steps(squares, float(depth)), 2 * ONE_BY_ONE)
        return rounded_up(beyond.sum(-1) + float(depth) * squares.shape[-1], squares.shape[-1])
    q = torch.arange(depth + 1, dtype=singular_values.dtype, device=singular_values.device) / depth
    kappa = (1 - q) + q * squares[..., None]
    return rounded_up((kappa[..., 1:] / kappa[..., :-1]).sum((-2, -1)), singular_values.shape[-1])


def _of_many_steps(squares: Float[Tensor, "*batch r"], depth: float) -> Float[Tensor, "*batch r"]:
    """An upper bound on sum_{j < L} (s^2 - 1) / (L - j + j s^2), what the steps of `linear_path_cost` exceed 1 by.

    The terms change most where the denominator is small: those are summed one by one, the others by an integral. As
    1/t is convex, t = L + c j, the one over [j - 1/2, j + 1/2] is at least the term, and a sum at least the integral
    with half of both ends.
    """
    few = torch.arange(ONE_BY_ONE, dtype=squares.dtype, device=squares.device)
    c = squares[..., None] - 1
    first = (c / (depth - few + few * squares[..., None])).sum(-1)
    rest = torch.log1p((squares - 1) * (depth - ONE_BY_ONE) / (depth + (squares - 1) * (ONE_BY_ONE - 0.5)))
    last = (c / (few + 1 + squares[..., None] * (depth - few - 1))).sum(-1)
    end = depth - ONE_BY_ONE - 1
    at_end = ONE_BY_ONE + 1 + squares * end
    shrinking = (squares - 1) / depth / 2 + (squares - 1) / at_end / 2 - torch.log1p((1 - squares) * end / at_end)
    return torch.where(squares >= 1, first + rest, last + shrinking)
