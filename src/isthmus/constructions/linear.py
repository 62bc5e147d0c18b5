"""Linear maps as deep networks: balanced factors, and ReLU networks on completely positive domains (FC-09, FC-30).

The costs themselves: `theory`. Factors of a residual network: `constructions.residual`.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.networks import FullyConnected, balanced_factors
from isthmus.networks.layers import check_numbers


@dataclass(frozen=True, slots=True)
class PositivePath:
    """A linear map as a ReLU network on a domain where all its layers are non-negative.

    Attributes:
        network: the ReLU network, without biases.
        rank: k, the rank of the map.
        squared_norm: sum_l Tr[K_{l/L} K_{(l-1)/L}^+], the penalty (*exact*).
        limit: k L + 2 log |A|_+, from which the squared norm differs by O(1/L).

    >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> constructions.completely_positive_path(torch.tensor([[1.0, 1.0], [0.0, 2.0]]), depth=4, x=x).rank
    2
    """

    network: FullyConnected
    rank: int
    squared_norm: float
    limit: float


def balanced_linear_network(
    matrix: Float[Tensor, "d_out d_in"], *, depth: int, rank: int | None = None
) -> FullyConnected:
    """The linear network of `depth` balanced factors of `matrix`, of penalty depth * sum s^(2/depth) (*exact*).

    Args:
        matrix: the map A.
        depth: number of weight matrices, at least 1.
        rank: singular values kept, those above rounding unless given.

    Raises:
        ValueError: depth < 1, or a rank outside 1..min(d_out, d_in).

    Source: Dai, Karzand and Srebro 2021. Test: networks/test_pruning, constructions/test_linear.

    >>> network = constructions.balanced_linear_network(torch.diag(torch.tensor([8.0, 1.0])), depth=3)
    >>> round(network.penalty().item(), 6)  # 3 (8^(2/3) + 1)
    15.0
    """
    if depth < 1 or (rank is not None and not 1 <= rank <= min(matrix.shape)):
        raise ValueError(
            f"balanced_linear_network(depth={depth}, rank={rank}): needs depth >= 1 and a rank in "
            f"1..{min(matrix.shape)} (or None)."
        )
    check_numbers("balanced_linear_network", matrix=matrix)
    factors = balanced_factors(matrix.double(), depth, rank=rank)
    return FullyConnected.from_layers(factors, linear=range(1, depth))


def completely_positive_path(
    matrix: Float[Tensor, "d_out d_in"],
    *,
    depth: int,
    x: Float[Tensor, "n d_in"],
    isometry_in: Float[Tensor, "m d_in"] | None = None,
    isometry_out: Float[Tensor, "p d_out"] | None = None,
) -> PositivePath:
    """The map x -> A x as a ReLU network (*exact* on non-negative combinations of `x`).

        penalty = sum_l Tr[K_{l/L} K_{(l-1)/L}^+] = k L + 2 log |A|_+ + O(1/L)
        K_q = (1 - q) P + q A^T A,   B_q = [sqrt(1-q) O_in P; sqrt(q) O_out A],   W_l = B_{l/L} B_{(l-1)/L}^+

    with P the projection on the row space of A. All hidden activations are B_q x, which must be non-negative: it is
    checked on `x`; deciding it in general is NP-hard, so the isometries are the caller's.

    Args:
        matrix: the map A, not zero.
        depth: number of weight matrices, at least 2.
        x: samples as rows that span the domain by non-negative combinations.
        isometry_in: O_in, isometric on the row space of A, with O_in P x >= 0; the identity unless given.
        isometry_out: O_out, isometric on the image of A, with O_out A x >= 0; the identity unless given.

    Raises:
        ShapeError: shapes that do not fit.
        ValueError: depth < 2, a zero matrix, a map that is not isometric, or a domain that is not non-negative.

    Source: Jacot 2023b, Theorem 3 (3). Test: FC-30.

    >>> matrix = torch.tensor([[1.0, 1.0], [0.0, 2.0]], dtype=torch.float64)
    >>> made = constructions.completely_positive_path(matrix, depth=4, x=torch.eye(2))
    >>> made.network(torch.eye(2, dtype=torch.float64)).round(decimals=6).tolist()
    [[1.0, 0.0], [1.0, 2.0]]
    """
    _check_path(matrix, x, depth)
    check_numbers("completely_positive_path", matrix=matrix, x=x, isometry_in=isometry_in, isometry_out=isometry_out)
    a = matrix.double()
    o_in = torch.eye(a.shape[1], dtype=a.dtype) if isometry_in is None else isometry_in.double()
    o_out = torch.eye(a.shape[0], dtype=a.dtype) if isometry_out is None else isometry_out.double()
    u, s, vh = torch.linalg.svd(a, full_matrices=False)
    rank = int((s > torch.finfo(s.dtype).eps * max(a.shape) * s[0]).sum())
    u, s, vh = u[:, :rank], s[:rank], vh[:rank]
    ends = [o_in @ vh.T, o_out @ u * s]  # in the basis of the right singular vectors
    _check_isometries([("isometry_in", o_in @ vh.T), ("isometry_out", o_out @ u)])
    _check_positive(x.double() @ vh.T, ends)
    q = [l / depth for l in range(1, depth)]
    kernels = [torch.ones_like(s), *((1 - t) + t * s**2 for t in q), s**2]
    embeddings = [torch.cat([(1 - t) ** 0.5 * ends[0], t**0.5 * ends[1]]) for t in q]
    inverses = [(b / kernel).T for b, kernel in zip(embeddings, kernels[1:-1], strict=True)]
    weights = [embeddings[0] @ vh]
    weights += [b @ inverse for b, inverse in zip(embeddings[1:], inverses[:-1], strict=True)]
    weights.append((u * s) @ inverses[-1])
    steps = zip(kernels[1:], kernels[:-1], strict=True)
    squared_norm = float(sum((new / old).sum() for new, old in steps))
    return PositivePath(
        FullyConnected.from_layers(weights), rank, squared_norm, rank * depth + 2 * float(s.log().sum())
    )


def _check_path(matrix: Tensor, x: Tensor, depth: int) -> None:
    if matrix.ndim != 2 or x.ndim != 2 or x.shape[1] != matrix.shape[1] or not len(x):
        raise ShapeError(
            "completely_positive_path: needs a matrix (d_out, d_in) and samples (n, d_in), n >= 1; got "
            f"{tuple(matrix.shape)} and {tuple(x.shape)}."
        )
    if depth < 2 or not bool(matrix.any()):
        raise ValueError(f"completely_positive_path(depth={depth}): needs depth >= 2 and a matrix that is not zero.")


def _check_isometries(restricted: list[tuple[str, Tensor]]) -> None:
    for name, basis in restricted:
        defect = float((basis.T @ basis - torch.eye(basis.shape[1], dtype=basis.dtype)).abs().max())
        if defect > 1e-10:
            raise ValueError(
                f"completely_positive_path({name}=): needs an isometry on the space of the map; lengths are off by "
                f"{defect:.1e}. Orthonormalise its columns."
            )


def _check_positive(coordinates: Tensor, ends: list[Tensor]) -> None:
    for name, end in zip(("O_in P x", "O_out A x"), ends, strict=True):
        least, size = float((coordinates @ end.T).min()), float((coordinates @ end.T).abs().max())
        if least < -1e-12 * size:
            raise ValueError(
                f"completely_positive_path(x): needs {name} >= 0 on all samples; its least entry is {least:.3g}. "
                "Pass an isometry into the positive orthant, or use compose_with_identity with a shift."
            )
