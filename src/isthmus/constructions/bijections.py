"""Networks of a chosen rank: a matrix between two piecewise-linear bijections (FC-04). The best ground truth for tests.

Examples whose ranks differ: `constructions.examples`. Data with a known rank: `tasks`.
"""

from dataclasses import dataclass
from math import inf, log

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.networks import FullyConnected
from isthmus.networks.layers import check_numbers


@dataclass(frozen=True, slots=True)
class RankedNetwork:
    """outer o A o inner with piecewise-linear bijections around the matrix A.

    Attributes:
        network: the leaky network, of depth depth_before + depth_after + 1.
        rank: the rank of A: Jacobian rank, R_infinity and bottleneck rank of the network on any open set (*exact*).
        matrix: A.
        distortion: every Jacobian has singular values between s_i(A) / distortion and s_i(A) * distortion.

    >>> made = constructions.between_bijections(torch.diag(torch.tensor([1.0, 0.5, 0.0])))
    >>> made.rank
    2
    """

    network: FullyConnected
    rank: int
    matrix: Tensor
    distortion: float


def between_bijections(
    matrix: Float[Tensor, "d_out d_in"],
    *,
    depth_before: int = 2,
    depth_after: int = 2,
    negative_slope: float = 0.3,
    stretch: float = 1.5,
    seed: int = 0,
) -> RankedNetwork:
    """A random network that is a bijection, then `matrix`, then a bijection: all its ranks are that of the matrix.

        f = psi o A o phi,   phi = sigma_a(V_p .. sigma_a(V_1 x + c_1) .. + c_p),   psi affine layers alike

    The V are square with singular values in [1/stretch, stretch].

    Args:
        matrix: A, any shape.
        depth_before: number of bijective layers before it, at least 0.
        depth_after: number of bijective layers after it, at least 0.
        negative_slope: a in (0, 1): sigma_a must be invertible.
        stretch: largest singular value of a layer, at least 1.
        seed: seed of the layers.

    Raises:
        ShapeError: not a matrix. TypeError: complex or integer matrix.
        ValueError: a slope outside (0, 1), a negative number of layers, stretch < 1, NaN or infinity.

    Source: Jacot 2023a, after Theorem 1. Test: FC-04.

    >>> made = constructions.between_bijections(torch.diag(torch.tensor([1.0, 0.5, 0.0])))
    >>> made.network(torch.ones(4, 3, dtype=torch.float64)).shape
    torch.Size([4, 3])
    """
    if not 0 < negative_slope < 1:
        raise ValueError(
            f"between_bijections(negative_slope={negative_slope}): needs 0 < slope < 1, so that sigma_a is invertible."
        )
    if min(depth_before, depth_after) < 0 or not 1 <= stretch < inf:
        raise ValueError(
            f"between_bijections(depth_before={depth_before}, depth_after={depth_after}, stretch={stretch}): "
            "needs depths >= 0 and stretch >= 1."
        )
    if matrix.ndim != 2:
        raise ShapeError(f"between_bijections: needs a matrix (d_out, d_in); got shape {tuple(matrix.shape)}.")
    check_numbers("between_bijections", matrix=matrix)
    a, generator = matrix.double(), torch.Generator().manual_seed(seed)
    d_out, d_in = a.shape
    weights = [_stretching(d_in, stretch, generator) for _ in range(depth_before)]
    weights += [a] + [_stretching(d_out, stretch, generator) for _ in range(depth_after)]
    biases = [torch.randn(len(w), generator=generator, dtype=torch.float64) / 2 for w in weights]
    network = FullyConnected.from_layers(weights, biases, negative_slope=negative_slope)
    distortion = (stretch / negative_slope) ** (depth_before + depth_after)
    # ten times what an SVD leaves: a matrix that is a product of factors carries their roundings too
    rounding = 10 * max(a.shape, default=1) * torch.finfo(a.dtype).eps
    return RankedNetwork(network, int(torch.linalg.matrix_rank(a, rtol=rounding)), a, distortion)


def _stretching(size: int, stretch: float, generator: torch.Generator) -> Tensor:
    """A square matrix with random singular vectors and singular values in [1/stretch, stretch]."""
    left, right = (torch.linalg.qr(torch.randn(size, size, generator=generator, dtype=torch.float64))[0] for _ in "lr")
    exponents = (2 * torch.rand(size, generator=generator, dtype=torch.float64) - 1) * log(stretch)
    return left @ torch.diag(exponents.exp()) @ right
