"""How one representation differs from another or from a projection: measures of a layer on a batch.

What representations cost stands in `representation_costs`; profiles over the layers of a network in `diagnostics`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.theory.inputs import Real, check_depth, check_finite, check_positive, check_tensor
from isthmus.theory.scales import exponent, lengths, shifted, unit


def nonlinearity_impact(
    preactivation: Float[Tensor, "n width"], activation: Float[Tensor, "n width"]
) -> Float[Tensor, ""]:
    """How much an activation changes what passes through it (*exact*): 0 where the layer is linear on the data.

        |Z - sigma(Z)|_F / |Z|_F;   0 for Z = 0

    Args:
        preactivation: Z.
        activation: sigma(Z).

    Raises:
        ValueError: NaN or infinity. TypeError: complex or integer tensor. ShapeError: shapes that differ.

    Accuracy: rounding. Source: Jacot 2023a, figure 1. Test: FC-47.

    >>> round(float(theory.nonlinearity_impact([[3, -4]], [[3, 0]])), 6)
    0.8
    """
    call = "nonlinearity_impact"
    check_tensor(call, "preactivation", preactivation, ndim=2)
    check_tensor(call, "activation", activation, ndim=2)
    _check_same_shape(call, preactivation, activation)
    size = exponent(torch.stack([preactivation.detach(), activation.detach()]))
    before, behind = shifted(preactivation, -size), shifted(activation, -size)
    whole = torch.linalg.matrix_norm(before)
    return torch.linalg.matrix_norm(before - behind) / torch.where(whole > 0, whole, 1.0)


def kernel_alignment(left: Float[Tensor, "n p"], right: Float[Tensor, "n q"]) -> Float[Tensor, ""]:
    """Alignment of the centred kernels of two representations of the same samples (*exact*), in [0, 1].

        |A_c^T B_c|_F^2 / (|A_c^T A_c|_F |B_c^T B_c|_F)

    1 where they agree up to rotation and scale, 0 where one is constant.

    Args:
        left: one representation, samples as rows.
        right: another, same samples.

    Raises:
        ValueError: NaN or infinity. TypeError: complex or integer tensor. ShapeError: numbers of rows that differ.

    Accuracy: rounding. Source: Jacot 2023b, section 3.3 (representations matter up to rotation). Test: FC-33.

    >>> round(float(theory.kernel_alignment([[1], [2], [4]], [[-2], [-4], [-8]])), 6)
    1.0
    """
    call = "kernel_alignment"
    check_tensor(call, "left", left, ndim=2)
    check_tensor(call, "right", right, ndim=2)
    if len(left) != len(right):
        raise ShapeError(
            f"{call}: needs the same samples on both sides; got {len(left)} and {len(right)} rows. Pair them."
        )
    a, b = (unit(side - side.mean(0)) for side in (unit(left), unit(right)))
    sizes = torch.linalg.matrix_norm(a.mT @ a) * torch.linalg.matrix_norm(b.mT @ b)
    return (a.mT @ b).square().sum() / torch.where(sizes > 0, sizes, 1.0)


def idempotency_defect(jacobians: Float[Tensor, "n d d"]) -> Float[Tensor, " n"]:
    """Distance of a Jacobian from a projection (*exact*): 0 where an autoencoder projects onto its surface.

        |J^2 - J|_F;   the projection may be oblique, |J|_+ > 1 then

    Args:
        jacobians: one square Jacobian per sample.

    Raises:
        ShapeError: not square. ValueError: NaN or infinity. TypeError: complex or integer tensor.

    Accuracy: rounding, up to Jacobians whose squares overflow: infinite there.
    Source: Jacot 2023a, section 5. Test: FC-46.

    >>> theory.idempotency_defect([[[1, 0], [0, 0.5]]]).tolist()
    [0.25]
    """
    check_tensor("idempotency_defect", "jacobians", jacobians, ndim=3)
    if jacobians.shape[1] != jacobians.shape[2]:
        raise ShapeError(
            f"idempotency_defect: needs square Jacobians; got shape {tuple(jacobians.shape)}. "
            "An autoencoder has d_out = d_in."
        )
    # J J - J in one pass
    return lengths(torch.baddbmm(jacobians, jacobians, jacobians, beta=-1).flatten(1))


def spectral_gap_ratios(representation: Float[Tensor, "n width"], *, rank: int) -> tuple[float, float]:
    """Size of the (k+1)-th singular value of a representation, beside the first and the k-th (*exact*).

        s_{k+1}(Z) / s_1(Z)  and  s_{k+1}(Z) / s_k(Z);   0 where the denominator vanishes

    Uncentred, as in the statement that some layer of an optimal rank-1 fit has s_2 / s_1 = O(L^(-1/4)), whose constants
    are unknown. What is proved of every network is said of centred ones, Z - Z.mean(0): `spectral_gap_bound`.

    Args:
        representation: Z, samples as rows.
        rank: k, 1 to min(n, width) - 1.

    Raises:
        ValueError: `rank` out of range, NaN or infinity. TypeError: complex or integer tensor.
        ShapeError: not a matrix.

    Accuracy: that of the SVD. Source: Jacot 2023a, Propositions 4 and 9, with the ratio turned round. Test: FC-21.

    >>> theory.spectral_gap_ratios([[4, 0], [0, 1]], rank=1)
    (0.25, 0.25)
    """
    check_tensor("spectral_gap_ratios", "representation", representation, ndim=2)
    values = torch.linalg.svdvals(representation)
    if not 1 <= rank < len(values):
        raise ValueError(
            f"spectral_gap_ratios: needs 1 <= rank < {len(values)}, the smaller side; got rank={rank}. Lower the rank."
        )
    next_value, first, last = (float(values.detach()[i]) for i in (rank, 0, rank - 1))
    return (next_value / first if first > 0 else 0.0), (next_value / last if last > 0 else 0.0)


class SpectralGapProfile(NamedTuple):
    """The ratios of `spectral_gap_ratios` layer by layer, and the layer where the first of them is least (from 1)."""

    over_first: Float[Tensor, " layers"]
    over_last: Float[Tensor, " layers"]
    narrowest: int


def spectral_gap_profile(representations: Sequence[Float[Tensor, "n _"]], *, rank: int) -> SpectralGapProfile:
    """Size of the (k+1)-th singular value of every representation of a network (*exact*).

        s_{k+1}(Z_l) / s_1(Z_l)  and  s_{k+1}(Z_l) / s_k(Z_l)   for l = 1, 2, ..

    Args:
        representations: Z_1, Z_2, .., samples as rows.
        rank: k, 1 to the smaller side of every representation less 1.

    Raises:
        ValueError: no representation, `rank` out of range, NaN or infinity. TypeError: complex or integer tensor.
        ShapeError: not matrices.

    Accuracy: that of the SVD. Source: Jacot 2023a, Proposition 4, over all layers. Test: FC-21.

    >>> theory.spectral_gap_profile([[[4, 0], [0, 2]], [[4, 0], [0, 1]], [[4, 0], [0, 3]]], rank=1).narrowest
    2
    """
    if not len(representations):
        raise ValueError("spectral_gap_profile: needs at least one representation, got none. Pass those of all layers.")
    first, last = zip(*(spectral_gap_ratios(Z, rank=rank) for Z in representations), strict=True)
    ratios = torch.tensor([first, last], dtype=torch.float64)
    return SpectralGapProfile(ratios[0], ratios[1], int(ratios[0].argmin()) + 1)


def _check_same_shape(call: str, left: Tensor, right: Tensor) -> None:
    if left.shape != right.shape:
        raise ShapeError(
            f"{call}: needs equal shapes; got {tuple(left.shape)} and {tuple(right.shape)}. Pair the layers."
        )


def rank_one_descent(aligned: Real, orthogonal: Real, *, step: Real, num_steps: int) -> Float[Tensor, "t 2"]:
    """Statistics of gradient descent on |v v^T - w w^T|_F^2 with |w| = 1, which alone determine its losses (*exact*).

        a^2 <- a^2 (1 - 4 eta (r - 1))^2,   b^2 <- b^2 (1 - 4 eta r)^2,   r = a^2 + b^2;   loss r^2 - 2 a^2 + 1
        a = w . v,  b = |v - a w|:  the map from v to its losses has bottleneck rank 2

    Args:
        aligned: a^2 >= 0 at the start.
        orthogonal: b^2 >= 0 at the start.
        step: eta > 0.
        num_steps: number of updates, at least 1.

    Returns:
        (a^2, b^2) after each update, float64.

    Raises:
        ValueError: a negative statistic, `step` <= 0, `num_steps` < 1, NaN or infinity.

    Accuracy: rounding per step. Source: Jacot 2023b, figure 2. Test: FC-51.

    >>> theory.rank_one_descent(0.5, 0.5, step=0.1, num_steps=4).shape
    torch.Size([4, 2])
    """
    check_finite("rank_one_descent", "aligned", aligned, least=0.0)
    check_finite("rank_one_descent", "orthogonal", orthogonal, least=0.0)
    check_positive("rank_one_descent", "step", step)
    check_depth("rank_one_descent", num_steps)
    rows: list[tuple[float, float]] = []
    a2, b2 = float(aligned), float(orthogonal)
    for _ in range(num_steps):
        r = a2 + b2
        towards, away = 1 - 4 * step * (r - 1), 1 - 4 * step * r
        a2, b2 = a2 * (towards * towards), b2 * (away * away)  # a step that diverges ends at infinity
        rows.append((a2, b2))
    return torch.tensor(rows, dtype=torch.float64)
