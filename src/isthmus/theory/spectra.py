"""Singular values and the numbers read from them: ranks, pseudo-determinants, dimensions.

One matrix or a batch of them; the costs built on the spectra stand in `linear_costs` and `residual_costs`.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.theory.enclosures import SVD_ROUNDING
from isthmus.theory.inputs import Real, check_fraction, check_rank, check_singular_values, check_tensor


def kept_singular_values(call: str, matrix: Tensor, rank: int | None = None) -> tuple[Tensor, Tensor]:
    """Singular values, falling, and which of them count: the first `rank`, or those above the rounding of the SVD.

    Dropped values are those not above max(d_out, d_in) * eps * s_1 (strict: a zero matrix keeps none).
    """
    matrix = check_tensor(call, "matrix", matrix, least_ndim=2)
    smaller, larger = sorted(matrix.shape[-2:])
    if rank is not None:
        check_rank(call, rank, largest=smaller)
    values = torch.linalg.svdvals(matrix)
    if rank is None:
        return values, values > larger * torch.finfo(values.dtype).eps * values[..., :1]
    return values, (torch.arange(smaller, device=values.device) < rank).expand_as(values)


def power_sum(values: Tensor, kept: Tensor, power: float) -> Tensor:
    """Sum of s^power over the kept s > 0, last axis; gradients stay finite where a value is dropped."""
    kept = kept & (values > 0)
    return torch.where(kept, torch.where(kept, values, 1.0) ** power, 0.0).sum(-1)


def numerical_rank(matrix: Float[Tensor, "*batch d_out d_in"]) -> Int[Tensor, "*batch"]:
    """Number of singular values above the rounding of the SVD, max(d_out, d_in) eps s_1 (*estimate* of the rank).

    Args:
        matrix: one matrix or a batch.

    Raises:
        TypeError: not a real floating-point tensor. ShapeError: fewer than 2 dimensions. ValueError: NaN or infinity.

    >>> int(theory.numerical_rank([[1, 2], [2, 4]]))
    1
    """
    return kept_singular_values("numerical_rank", matrix)[1].sum(-1)


def log_pseudo_determinant(matrix: Float[Tensor, "*batch d_out d_in"], *, rank: int) -> Float[Tensor, "*batch"]:
    """Logarithm of the product of the `rank` largest singular values (*exact*).

        log |A|_+ = sum_{i <= rank} log s_i(A)

    The rank is asked for, never guessed: one spurious singular value of 1e-12 would change the sum by -27.

    Args:
        matrix: A, one matrix or a batch.
        rank: number of factors, 0 to min(d_out, d_in); rank 0 gives 0.

    Returns:
        One number per matrix, natural logarithm; -inf where fewer than `rank` singular values are non-zero.

    Raises:
        ValueError: `rank` outside its range, NaN or infinity in the matrix. TypeError: complex or integer tensor.

    Accuracy: absolute error about rank * eps * s_1 / s_rank, that of the SVD. Differentiable for s_rank > 0.
    Source: Jacot 2023b, Theorem 3. Test: FC-28.

    >>> round(float(theory.log_pseudo_determinant([[2, 0], [0, 3]], rank=2)), 4)
    1.7918
    """
    values, kept = kept_singular_values("log_pseudo_determinant", matrix, rank)
    return torch.where(kept, torch.where(kept, values, 1.0).log(), 0.0).sum(-1)


def stable_rank_nuclear(matrix: Float[Tensor, "*batch d_out d_in"]) -> Float[Tensor, "*batch"]:
    """Nuclear stable rank, a scale-free count of directions (*exact*).

        |A|_*^2 / |A|_F^2,   between |A|_F^2 / |A|_op^2 and rank A;   0 for A = 0

    Args:
        matrix: A, one matrix or a batch.

    Returns:
        One number per matrix, without unit.

    Raises:
        ValueError: NaN or infinity. TypeError: complex or integer tensor. ShapeError: fewer than 2 dimensions.

    Accuracy: that of the SVD; values are divided by s_1 first, so nothing overflows.
    Source: Jacot and Kaiser 2024, section 1.4. Test: LEAKY-07.

    >>> round(float(theory.stable_rank_nuclear([[1, 0], [0, 1]])), 6)
    2.0
    """
    values, _ = kept_singular_values("stable_rank_nuclear", matrix)
    largest = values[..., :1]
    relative = values / torch.where(largest > 0, largest, 1.0)
    squares = relative.square().sum(-1)
    return relative.sum(-1).square() / torch.where(squares > 0, squares, 1.0)


def spectral_gap_rank(singular_values: Float[Tensor, "*batch r"], *, floor: Real = 0.01) -> Int[Tensor, "*batch"]:
    """Number of singular values before the largest ratio of neighbours (*estimate*).

        argmax_k s_k / s_{k+1}   with every value raised to floor * s_1, and floor * s_1 appended as value r + 1

    The appended floor lets full rank be answered; a zero spectrum gives 0. How large the ratio is: `spectral_gap`.

    Args:
        singular_values: falling, >= 0; several spectra as rows of a torch tensor.
        floor: relative size below which a value is noise, in (0, 1).

    Raises:
        ValueError: `floor` outside (0, 1), a negative value, NaN or infinity. TypeError: complex or integer tensor.

    Source: heuristic; with a floor of .01 to .02 right on all of 93 teachers of known rank.

    >>> int(theory.spectral_gap_rank([5, 4, 0.2, 0.1]))
    2
    """
    ratios = _neighbour_ratios("spectral_gap_rank", singular_values, floor)
    if ratios.shape[-1] == 0:
        return torch.zeros(ratios.shape[:-1], dtype=torch.int64, device=ratios.device)
    return torch.where(ratios[..., 0] > 0, ratios.argmax(-1) + 1, 0)


def spectral_gap(singular_values: Float[Tensor, "*batch r"], *, floor: Real = 0.01) -> Float[Tensor, "*batch"]:
    """The largest ratio of neighbours, at which `spectral_gap_rank` stands; infinite for a zero spectrum (*exact*).

    Raises:
        ValueError: `floor` outside (0, 1), a negative value, NaN or infinity. TypeError: complex or integer tensor.
    """
    ratios = _neighbour_ratios("spectral_gap", singular_values, floor)
    if ratios.shape[-1] == 0:
        return ratios.new_full(ratios.shape[:-1], torch.inf)
    return torch.where(ratios[..., 0] > 0, ratios.amax(-1), torch.inf)


def _neighbour_ratios(call: str, singular_values: Tensor, floor: Real) -> Tensor:
    """s_k / s_{k+1} with the floor; zeros for a zero spectrum."""
    values = check_singular_values(call, singular_values)
    check_fraction(call, "floor", floor)
    if values.shape[-1] == 0:
        return values
    largest = values[..., :1]
    raised = torch.maximum(torch.cat([values, torch.zeros_like(largest)], -1), floor * largest)
    return raised[..., :-1] / torch.where(largest > 0, raised[..., 1:], 1.0)


def energy_rank(singular_values: Float[Tensor, "*batch r"], *, share: Real) -> Int[Tensor, "*batch"]:
    """Least number of directions that hold a share of the energy sum s^2; 0 for a zero spectrum (*exact*).

    Args:
        singular_values: falling, >= 0; several spectra as rows of a torch tensor.
        share: in (0, 1).

    Raises:
        ValueError: `share` outside (0, 1), a negative value, NaN or infinity. TypeError: complex or integer tensor.
    """
    values = check_singular_values("energy_rank", singular_values)
    check_fraction("energy_rank", "share", share)
    held, total = _energies(values).cumsum(-1), _energies(values).sum(-1, keepdim=True)
    return torch.where(total[..., 0] > 0, (held < share * total).sum(-1) + 1, 0)


def entropy_rank(singular_values: Float[Tensor, "*batch r"]) -> Float[Tensor, "*batch"]:
    """Exponential of the entropy of the energies s^2 / sum s^2: k for k equal values, 0 for none (*estimate*).

    Never below the participation ratio: small values count for more.

    Raises:
        ValueError: a negative value, NaN or infinity. TypeError: complex or integer tensor.

    Source: Roy and Vetterli 2007, of s^2.
    """
    energies = _energies(check_singular_values("entropy_rank", singular_values))
    total = energies.sum(-1, keepdim=True)
    shares = energies / torch.where(total > 0, total, 1.0)
    return torch.where(total[..., 0] > 0, torch.special.entr(shares).sum(-1).exp(), 0.0)


def participation_ratio(singular_values: Float[Tensor, "*batch r"]) -> Float[Tensor, "*batch"]:
    """Participation ratio (sum s^2)^2 / sum s^4: k for k equal values, 0 for none (*estimate* of a dimension).

    Args:
        singular_values: >= 0; several spectra as rows of a torch tensor, each falling.

    Raises:
        ValueError: a negative value, NaN or infinity. TypeError: complex or integer tensor.

    >>> float(theory.participation_ratio([2, 2, 0]))
    2.0
    """
    square = _energies(check_singular_values("participation_ratio", singular_values))
    total = square.sum(-1)
    return torch.where(total > 0, total.square() / square.square().sum(-1).clamp_min(1e-300), 0.0)


def _energies(values: Tensor) -> Tensor:
    """s^2 relative to the largest: the fourth power of a small spectrum underflows."""
    largest = values.amax(-1, keepdim=True) if values.shape[-1] else values.new_zeros(*values.shape[:-1], 1)
    return (values / torch.where(largest > 0, largest, 1.0)).square()


class JacobianRank(NamedTuple):
    """The rank of a map as its Jacobians show it, and the sample that shows it (None for an empty batch)."""

    rank: int
    witness: int | None


def jacobian_rank_lower_bound(jacobians: Float[Tensor, "n d_out d_in"], *, tolerance: Real) -> JacobianRank:
    """Largest number of singular values above a tolerance over all samples: *lower bound* on the Jacobian rank.

        max_i #{ j : s_j(Jf(x_i)) > tolerance * max_{i'} s_1(Jf(x_{i'})) } <= Rank_J(f) <= Rank_BN(f)

    Among samples of equal rank the witness is the one whose last counted singular value is largest. For a domain
    without interior pass the Jacobians restricted to its tangent spaces (`tangent_restriction`).

    Args:
        jacobians: one Jacobian per sample.
        tolerance: relative to the largest singular value of all samples; in (0, 1). Raised to the rounding of the SVD,
            8 max(d_out, d_in) eps, below which nothing could be certified.

    Returns:
        (rank, witness): rank 0 with witness None for an empty batch.

    Raises:
        ValueError: `tolerance` outside (0, 1), NaN or infinity. TypeError: complex or integer tensor.
        ShapeError: not three dimensions.

    Accuracy: certain where the Jacobians are right to `tolerance` times the largest value, which is for the caller to
    see to: `networks.enclosed_jacobians` proves it, and float32 knows nothing below 1e-7.
    Source: Jacot 2023a, Definition 1 and Theorem 1. Test: FC-01, FC-03.

    >>> theory.jacobian_rank_lower_bound([[[1, 0], [0, 1e-12]], [[1, 0], [0, 0.5]]], tolerance=1e-9)
    JacobianRank(rank=2, witness=1)
    """
    call = "jacobian_rank_lower_bound"
    check_tensor(call, "jacobians", jacobians, ndim=3)
    check_fraction(call, "tolerance", tolerance)
    if jacobians.numel() == 0:
        return JacobianRank(0, 0 if len(jacobians) else None)
    values = torch.linalg.svdvals(jacobians.detach())
    least = max(tolerance, SVD_ROUNDING * max(jacobians.shape[1:]) * torch.finfo(values.dtype).eps)
    ranks = (values > least * values.max()).sum(-1)
    rank = int(ranks.max())
    last_counted = torch.where(ranks == rank, values[:, max(rank - 1, 0)], -1.0)
    return JacobianRank(rank, int(last_counted.argmax()))


def tangent_restriction(
    jacobians: Float[Tensor, "n d_out d_in"], tangents: Float[Tensor, "n d_in k"]
) -> Float[Tensor, "n d_out k"]:
    """Jacobians of a map restricted to a domain of k dimensions, in orthonormal tangent bases (*exact*).

        Jf(x) T_x,   T_x the orthonormal basis of the span of the columns given

    Args:
        jacobians: one Jacobian per sample.
        tangents: k independent tangent directions per sample, any length.

    Raises:
        ValueError: dependent directions (a rank read off them would be no lower bound), NaN or infinity.
        TypeError: complex or integer tensor. ShapeError: not three dimensions, or shapes that do not fit.

    Source: Jacot 2023a, Definition 1 for domains without interior. Test: FC-08.

    >>> theory.tangent_restriction([[[1, 0], [0, 1]]], [[[0], [2]]]).abs().tolist()
    [[[0.0], [1.0]]]
    """
    call = "tangent_restriction"
    check_tensor(call, "jacobians", jacobians, ndim=3)
    check_tensor(call, "tangents", tangents, ndim=3)
    num, _, d_in = jacobians.shape
    if tangents.shape[:2] != (num, d_in) or tangents.shape[2] > d_in:
        raise ShapeError(
            f"{call}: needs tangents ({num}, {d_in}, k), k <= {d_in}, for Jacobians {tuple(jacobians.shape)}; got "
            f"{tuple(tangents.shape)}. Directions are columns."
        )
    lengths = torch.linalg.vector_norm(tangents, dim=1, keepdim=True)
    basis, triangle = torch.linalg.qr(tangents / torch.where(lengths > 0, lengths, 1.0))
    # an orthonormal basis of dependent columns would hold directions that nobody gave
    spread = triangle.detach().diagonal(dim1=1, dim2=2).abs()
    if spread.numel() and float(spread.min()) <= 10 * d_in * torch.finfo(spread.dtype).eps:
        raise ValueError(
            f"{call}: needs independent tangents; those of sample {int(spread.amin(1).argmin())} are dependent. "
            "Drop the repeated or vanishing directions."
        )
    return jacobians @ basis
