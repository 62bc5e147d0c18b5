"""What many Jacobians cost together when one last matrix must serve them all: a convex program with a certified answer.

Bounds from one point at a time: `jacobian_bounds`.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

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
    jacobians: Float[Tensor, "n d_out d_in"], *, rank: int, gap: Real = 1e-9, sweeps: int = 2000
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

    Returns:
        The bound with the primal value above it; negative where the Jacobians shrink.

    Raises:
        ValueError: `rank` outside its range, `gap` <= 0, no sample of rank k, NaN or infinity.
        TypeError: complex or integer tensor. ShapeError: not three dimensions.

    Accuracy: `gap` where it is reached, rounding of the k x k determinants otherwise. Cost per sweep O(n d_out k^2).
    Source: 003, Proposition 5; the dual is ours, see docs/notes/certificates.md. Test: FC-34.
    """
    call = "nonplanarity_bound"
    check_tensor(call, "jacobians", jacobians, ndim=3)
    check_rank(call, rank, largest=min(jacobians.shape[1:]), least=1)
    check_positive(call, "gap", gap)
    left, values, _ = torch.linalg.svd(jacobians.detach(), full_matrices=False)
    full = values[:, rank - 1] > max(jacobians.shape[1:]) * torch.finfo(values.dtype).eps * values[:, 0]
    if not bool(full.any()):
        raise ValueError(
            f"{call}(rank={rank}): needs a sample with rank >= {rank}; none of {len(jacobians)} has it. Lower the rank."
        )
    frames, volumes = left[full][:, :, :rank], 2 * values[full][:, :rank].log().sum(1)
    # outside the span of all frames M costs and serves nothing
    basis, strengths, _ = torch.linalg.svd(frames.permute(1, 0, 2).flatten(1), full_matrices=False)
    basis = basis[:, strengths > 1e-13 * strengths[0]]
    value, upper, inner, p = _solve(basis.mT @ frames, volumes, float(gap), sweeps)
    weights = torch.zeros(len(jacobians), dtype=values.dtype, device=values.device)
    weights[full] = p
    return NonplanarityBound(value, upper, basis @ inner @ basis.mT, weights)


def _solve(frames: Tensor, volumes: Tensor, gap: float, sweeps: int) -> tuple[float, float, Tensor, Tensor]:
    """Best dual value, best primal value, and the points that give them, by alternating two steps.

    M <- H^{1/2} minimises a majorant (log det (U^T N U) is concave in N = M^{-1}); the weights go up their gradient,
    multiplicatively. Both values are certified at every sweep, so the iteration needs no proof of convergence.
    """
    num, d, rank = frames.shape
    p = torch.full((num,), 1 / num, dtype=frames.dtype, device=frames.device)
    matrix = torch.eye(d, dtype=frames.dtype, device=frames.device) * (rank / d)
    best_value, best_upper, best_p, best_matrix = -torch.inf, torch.inf, p, matrix
    rate, previous = 1.0, -torch.inf
    for _ in range(sweeps):
        inverse = torch.linalg.inv(matrix)
        grams = frames.mT @ inverse @ frames
        scores = volumes + torch.linalg.slogdet(grams).logabsdet
        pull = torch.einsum("n,nak,nbk->ab", p, frames, torch.linalg.solve(grams, frames.mT).mT)
        load = torch.linalg.eigvalsh(inverse @ pull @ inverse)[-1]
        value, upper = float(p @ scores - rank * load.log()), float(scores.max())
        if value > best_value:
            best_value, best_p = value, p
        if upper < best_upper:
            best_upper, best_matrix = upper, matrix
        if best_upper - best_value <= gap:
            break
        rate = min(rate * 1.1, 4.0) if value > previous else max(rate * 0.7, 1e-3)
        previous = value
        p = torch.softmax(p.clamp_min(1e-300).log() + rate * (scores - scores.max()), 0)
        matrix = _scaled_root(pull, rank)
    return best_value, best_upper, best_matrix, best_p


def _scaled_root(pull: Tensor, rank: int) -> Tensor:
    """H^{1/2} scaled to trace k, the best multiple of it; eigenvalues kept off 0, where the inverse would fail."""
    values, vectors = torch.linalg.eigh(pull)
    roots = values.clamp_min(1e-24 * float(values[-1])).sqrt()
    return (vectors * (roots * (rank / roots.sum()))) @ vectors.mT
