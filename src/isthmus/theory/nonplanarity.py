"""What many Jacobians cost together when one last matrix must serve them all: a convex program with a certified answer.

Bounds from one point at a time: `jacobian_bounds`.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.theory.enclosures import SVD_ROUNDING, Errors, enclosed_singular_values
from isthmus.theory.inputs import Real, check_positive, check_rank, check_tensor


@dataclass(frozen=True, slots=True)
class NonplanarityBound:
    """The value of the last-matrix program, enclosed from both sides.

    Attributes:
        value: *lower bound* on R(f; L) - k L at every depth L, and so on R1(f): the value of a feasible dual point.
        upper: the value of a feasible primal point; the program's minimum lies in [value, upper].
        last_matrix: M = W_L W_L^T of the primal point, shape (d_out, d_out).
        weights: how much each sample counts in the dual point, >= 0, summing to 1.
    """

    value: float
    upper: float
    last_matrix: Tensor
    weights: Tensor


def nonplanarity_bound(
    jacobians: Float[Tensor, "n d_out d_in"], *, rank: int, gap: Real = 1e-9, sweeps: int = 2000, error: Errors = None
) -> NonplanarityBound:
    """Norm that a map costs beyond k L because its images lie in different planes (*lower bound*).

        R(f; L) - k L  >=  min_{M > 0} Tr M - k + max_x log det_+ (Jf(x)^T M^{-1} Jf(x))
          dual:         =  max_{p, Y} sum_x p_x (2 log |Jf(x)|_+ + 2 log |det Y_x^T U_x|),  sum_x p_x Y_x Y_x^T <= 1

    with U_x the first k left singular vectors of Jf(x). For a domain pass its tangent bases as Jacobians: the bound is
    then on R1 of the identity, 0 exactly for one plane and log(1 + sin t) for two lines at angle t. One sample gives
    2 log |Jf(x)|_+. Transposed Jacobians give the version for the first matrix.

    Args:
        jacobians: one Jacobian per sample; samples of rank below k say nothing and get weight 0.
        rank: k, 1 to min(d_out, d_in); asked for, never guessed.
        gap: the iteration ends when `upper - value` falls below this.
        sweeps: bound on the number of iterations; `value` is a bound whenever they end.
        error: of each Jacobian, as in `schatten_lower_bound`; None: that of one matrix.

    Returns:
        The bound with the primal value above it; negative where the Jacobians shrink.

    Raises:
        ValueError: `rank` outside its range, `gap` <= 0, no sample of rank k, NaN or infinity.
        TypeError: complex or integer tensor. ShapeError: not three dimensions.

    Accuracy: `gap` where it is reached; both ends are moved outward, by 4 k error / s_k to first order and by the
    rounding of the determinants. Cost per sweep O(n d_out k^2).
    Source: Jacot 2023b, Proposition 5; the dual is ours, see docs/notes/certificates.md. Test: FC-34.

    >>> round(theory.nonplanarity_bound([[[1, 0], [0, 0]], [[0, 0], [0, 1]]], rank=1).value, 4)
    0.6931
    """
    call = "nonplanarity_bound"
    check_tensor(call, "jacobians", jacobians, ndim=3)
    check_rank(call, rank, largest=min(jacobians.shape[1:]), least=1)
    check_positive(call, "gap", gap)
    left, values, _ = torch.linalg.svd(jacobians.detach(), full_matrices=False)
    spectra = enclosed_singular_values(jacobians.detach(), error=error, num_factors=1)
    full = spectra.lower[:, rank - 1] > 0
    if not bool(full.any()):
        raise ValueError(
            f"{call}(rank={rank}): needs a sample with rank >= {rank}; none of {len(jacobians)} has it. Lower the rank."
        )
    frames, volumes = left[full][:, :, :rank], 2 * values[full][:, :rank].log().sum(1)
    # outside the span of all frames M costs and serves nothing
    basis, strengths, _ = torch.linalg.svd(frames.permute(1, 0, 2).flatten(1), full_matrices=False)
    basis = basis[:, strengths > 1e-13 * strengths[0]]
    found = _solve(basis.mT @ frames, volumes, float(gap), sweeps)
    # an error e turns the k left vectors by e / s_k and moves each log s_i by as much
    turned = 4 * rank * float((spectra.error[full][:, 0] / spectra.lower[full][:, rank - 1]).max())
    digits = len(volumes) * SVD_ROUNDING * torch.finfo(values.dtype).eps * float(volumes.abs().max())
    value, upper = found.value - turned - digits, found.upper + turned + digits
    p, inner = found.weights, found.matrix
    weights = torch.zeros(len(jacobians), dtype=values.dtype, device=values.device)
    weights[full] = p
    return NonplanarityBound(value, upper, basis @ inner @ basis.mT, weights)


class _Solved(NamedTuple):
    """Best dual value, rounded down, best primal value, rounded up, and the points that give them."""

    value: float
    upper: float
    matrix: Tensor
    weights: Tensor


def _solve(frames: Tensor, volumes: Tensor, gap: float, sweeps: int) -> _Solved:
    """Alternating two steps.

    M <- H^{1/2} minimises a majorant (log det (U^T N U) is concave in N = M^{-1}); the weights go up their gradient,
    multiplicatively. Both values are certified at every sweep, so the iteration needs no proof of convergence.
    """
    num, d, rank = frames.shape
    p = torch.full((num,), 1 / num, dtype=frames.dtype, device=frames.device)
    roots, vectors = torch.full_like(frames[0, :, 0], rank / d), torch.eye(d, dtype=frames.dtype, device=frames.device)
    best = _Solved(-math.inf, math.inf, torch.diag(roots), p)
    rate, previous = 1.0, -math.inf
    unit = SVD_ROUNDING * d * rank * torch.finfo(frames.dtype).eps
    for _ in range(sweeps):
        # M^{-1} = half half^T; with half^T U = Q R the dual point is Y = half Q. Whatever M has rounded to, Y is
        # feasible after division by the root of the load, and the value is that of the Y at hand
        half = vectors / roots.sqrt()
        Q, R = torch.linalg.qr(half.mT @ frames)
        Y = half @ Q
        inner = Y.mT @ frames
        scores = volumes + 2 * torch.linalg.slogdet(inner).logabsdet
        S = torch.einsum("n,nak,nbk->ab", p, Y, Y)
        unsure = 2 * unit * float(torch.linalg.cond(inner).max())
        value = float(p @ scores - rank * torch.linalg.eigvalsh(S)[-1].log()) - unsure
        upper = float(scores.max()) + unit * float(roots.max() / roots.min()) + unsure
        if value > best.value:
            best = best._replace(value=value, weights=p)
        if upper < best.upper:
            best = best._replace(upper=upper, matrix=(vectors * roots) @ vectors.mT)
        if best.upper - best.value <= gap:
            break
        rate = min(rate * 1.1, 4.0) if value > previous else max(rate * 0.7, 1e-3)
        previous = value
        Z = torch.linalg.solve_triangular(R, frames, upper=True, left=False)
        roots, vectors = _scaled_root(torch.einsum("n,nak,nbk->ab", p, Z, Z), rank)
        p = torch.softmax(p.clamp_min(1e-300).log() + rate * (scores - scores.max()), 0)
    return best


def _scaled_root(pull: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """Eigenvalues and -vectors of H^{1/2} scaled to trace k, the best multiple of it.

    Eigenvalues are kept off 0, where the inverse would fail.
    """
    values, vectors = torch.linalg.eigh(pull)
    roots = values.clamp_min(1e-24 * float(values[-1])).sqrt()
    return roots * (rank / roots.sum()), vectors
