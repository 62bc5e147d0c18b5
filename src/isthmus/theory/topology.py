"""Certificates that a map cannot pass through few dimensions, from its values: betweenness, Borsuk-Ulam, spanning tree.

They see what Jacobians miss (maps whose bottleneck rank exceeds the rank of every Jacobian). How to get exact values
of a network along a path: `networks`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.theory.enclosures import UNCERTAIN
from isthmus.theory.inputs import Real, check_positive, check_tensor
from isthmus.theory.scales import exponent, resized, shifted
from isthmus.theory.travelling_salesman import diameter, spanning_tree_length


@dataclass(frozen=True, slots=True)
class RankCertificate:
    """A *lower bound* on the bottleneck rank, and the inequality it rests on.

    Attributes:
        rank: the bound; 0 where nothing was certified.
        measured: the quantity that had to exceed the threshold (for betweenness the least of three distances).
        threshold: what it had to exceed.
        distances: the quantities that `measured` is the least of.
    """

    rank: int
    measured: float
    threshold: float
    distances: Tensor


def betweenness_certificate(
    values: Float[Tensor, "3 d_out"], paths: Sequence[Float[Tensor, "_ d_out"]], *, tolerance: Real = 1e-9
) -> RankCertificate:
    """Rank >= 2 by betweenness: no point's value is met on the way between the two others (*lower bound*).

        f = h o g with g into R: of three points one has the middle value of g, and every path that joins the other two
        crosses its level, where f takes its value. If f avoids f(x_i) on a path that joins the others, for all three i,
        no such g exists.

    Args:
        values: f(x_1), f(x_2), f(x_3).
        paths: for i = 1, 2, 3 the values of f at the successive breakpoints of a path that joins the other two points,
            f affine in between (exact for piecewise-linear networks on polygonal paths). Ends in either order.
        tolerance: distance that covers the rounding of the values, relative to the largest value; raised to 32 eps of
            their type, less than which no values are known to.

    Returns:
        Rank 2 if all three distances from f(x_i) to its path exceed the tolerance, else rank 0; with the distances.

    Raises:
        ValueError: not three paths, a path that does not join the other two values, `tolerance` <= 0, NaN or infinity.
        ShapeError: outputs of different sizes, a path without points. TypeError: complex or integer tensor.

    Accuracy: `tolerance` must cover the rounding of the values, which is for the caller to see to.
    Source: ours, after Jacot 2023a, Appendix A. Test: FC-06.

    >>> arms, centre = [[1, 0], [0, 1], [-1, 0]], [0, 0]
    >>> paths = [[[0, 1], centre, [-1, 0]], [[1, 0], centre, [-1, 0]], [[1, 0], centre, [0, 1]]]
    >>> theory.betweenness_certificate(arms, paths).rank
    2
    """
    call = "betweenness_certificate"
    check_tensor(call, "values", values, ndim=2)
    check_positive(call, "tolerance", tolerance)
    if len(values) != 3 or len(paths) != 3:
        raise ShapeError(
            f"{call}: needs 3 values and 3 paths; got {len(values)} and {len(paths)}. Path i avoids point i."
        )
    for i, path in enumerate(paths):
        check_tensor(call, f"paths[{i}]", path, ndim=2)
        if not len(path) or path.shape[1] != values.shape[1]:
            raise ShapeError(
                f"{call}: needs paths[{i}] as values of f, shape (m, {values.shape[1]}), m >= 1; got "
                f"{tuple(path.shape)}. Evaluate f at the corners of the path."
            )
    size, tolerance = max(exponent(part) for part in (values, *paths)), _own_rounding(values, tolerance)
    values, *paths = (shifted(part.detach().double(), -size) for part in (values, *paths))
    slack = tolerance * max(float(part.abs().max()) for part in (values, *paths))
    for i, path in enumerate(paths):
        others = values[[j for j in range(3) if j != i]]
        ends = path[[0, -1]]
        miss = min(float((ends - others).abs().max()), float((ends.flip(0) - others).abs().max()))
        if miss > slack:
            raise ValueError(
                f"{call}: needs paths[{i}] to join the other two values; its ends miss them by "
                f"{resized(miss, size):.3g}. "
                "Path i joins the two points that are not number i."
            )
    distances = torch.stack([_distance_to_polyline(value, path) for value, path in zip(values, paths, strict=True)])
    least = float(distances.min())
    return RankCertificate(
        2 if least > slack else 0, resized(least, size), resized(slack, size), shifted(distances, size)
    )


def _own_rounding(values: Tensor, tolerance: Real) -> float:
    """The tolerance, or what numbers of this type cannot be told apart by."""
    return max(float(tolerance), 32 * torch.finfo(values.dtype).eps)


def _distance_to_polyline(point: Tensor, corners: Tensor) -> Tensor:
    """Least distance from a point to the segments between successive corners."""
    if len(corners) == 1:
        return torch.linalg.vector_norm(corners[0] - point)
    start, along = corners[:-1] - point, corners.diff(dim=0)
    squares = along.square().sum(1)
    fraction = (-(start * along).sum(1) / torch.where(squares > 0, squares, 1.0)).clamp(0, 1)
    return torch.linalg.vector_norm(start + fraction[:, None] * along, dim=1).min()


def borsuk_ulam_certificate(
    values: Float[Tensor, "n d_out"],
    antipodes: Float[Tensor, "n d_out"],
    *,
    sphere_dimension: int,
    lipschitz: Real,
    spacing: Real,
) -> RankCertificate:
    """Rank >= k + 1 by Borsuk-Ulam: antipodes of an embedded k-sphere never share a value (*lower bound*).

        any continuous g into R^k has g(phi(u)) = g(phi(-u)) for some u on S^k, so f = h o g would agree there too;
        certified when  min_i |f(phi(u_i)) - f(phi(-u_i))| > 2 Lip(f o phi) * spacing

    Args:
        values: f(phi(u_i)) on a grid of the sphere; one of each antipodal pair is enough.
        antipodes: f(phi(-u_i)), same order.
        sphere_dimension: k, at least 1 (a closed loop); the sphere lives in R^(k+1).
        lipschitz: an upper bound on the Lipschitz constant of f o phi.
        spacing: every u of the sphere has a u_i or -u_i within this distance (same metric as `lipschitz`).

    Returns:
        Rank k + 1 if certified, else rank 0. Sufficient only: on spheres through a zero set of f it stays silent.

    Raises:
        ValueError: `lipschitz` or `spacing` <= 0, k < 1, NaN or infinity, no grid. ShapeError: shapes that differ.
        TypeError: complex or integer tensor.

    Accuracy: must hold by 1e-9 of the largest value (4e-6 in float32), which has to cover the rounding of the values.
    Source: ours. Test: FC-07.

    >>> circle = [[1, 0], [0, 1]], [[-1, 0], [0, -1]]
    >>> theory.borsuk_ulam_certificate(*circle, sphere_dimension=1, lipschitz=1, spacing=0.8).rank
    2
    """
    call = "borsuk_ulam_certificate"
    check_tensor(call, "values", values, ndim=2)
    check_tensor(call, "antipodes", antipodes, ndim=2)
    check_positive(call, "lipschitz", lipschitz)
    check_positive(call, "spacing", spacing)
    if values.shape != antipodes.shape:
        raise ShapeError(
            f"{call}: needs an antipode for each value; got shapes {tuple(values.shape)} and {tuple(antipodes.shape)}. "
            "Evaluate f at phi(u_i) and phi(-u_i)."
        )
    if sphere_dimension < 1 or not len(values):
        raise ValueError(
            f"{call}: needs sphere_dimension >= 1 and a grid; got {sphere_dimension} and {len(values)} points. "
            "A closed loop is the sphere of dimension 1."
        )
    size, unsure = max(exponent(values), exponent(antipodes)), _own_rounding(values, UNCERTAIN)
    values, antipodes = (shifted(part.detach().double(), -size) for part in (values, antipodes))
    distances = shifted(torch.linalg.vector_norm(values - antipodes, dim=1), size)
    rounding = resized(unsure * max(float(values.abs().max()), float(antipodes.abs().max())), size)
    least, threshold = float(distances.min()), 2 * lipschitz * spacing
    return RankCertificate(sphere_dimension + 1 if least - rounding > threshold else 0, least, threshold, distances)


def antipodal_loop_certificate(corners: Float[Tensor, "m d_out"], *, tolerance: Real = 1e-9) -> RankCertificate:
    """Rank >= 2 by Borsuk-Ulam on a closed polygon, exact for piecewise-linear maps (*lower bound*).

        certified when f(phi(t)) - f(phi(t + 1/2)), affine between the corners, never vanishes

    Args:
        corners: values of f at 2 q successive points of a closed loop, f affine in between; corner i + q is the
            antipode of corner i, and antipodes run over opposite sides together.
        tolerance: distance that covers the rounding of the values, relative to the largest value; raised to 32 eps of
            their type, less than which no values are known to.

    Returns:
        Rank 2 if certified, else rank 0.

    Raises:
        ValueError: an odd number of corners, `tolerance` <= 0, NaN or infinity. TypeError: complex or integer tensor.

    Accuracy: `tolerance` must cover the rounding of the values, which is for the caller to see to.
    Source: ours. Test: FC-07.

    >>> theory.antipodal_loop_certificate([[1, 0], [0, 1], [-1, 0], [0, -1]]).rank
    2
    """
    call = "antipodal_loop_certificate"
    check_tensor(call, "corners", corners, ndim=2)
    check_positive(call, "tolerance", tolerance)
    if not corners.shape[1]:
        raise ShapeError(f"{call}: needs corners of at least one output; got shape {tuple(corners.shape)}.")
    if len(corners) % 2 or len(corners) < 4:
        raise ValueError(
            f"{call}: needs an even number of corners, at least 4; got {len(corners)}. Add the antipode of each corner."
        )
    half, size, tolerance = len(corners) // 2, exponent(corners), _own_rounding(corners, tolerance)
    corners = shifted(corners.detach().double(), -size)
    differences = corners[:half] - corners[half:]
    closed = torch.cat([differences, -differences[:1]])
    distance = _distance_to_polyline(torch.zeros_like(corners[0]), closed)
    slack = tolerance * float(corners.abs().max())
    rank = 2 if float(distance) > slack else 0
    measured = shifted(distance, size)
    return RankCertificate(rank, float(measured), resized(slack, size), measured[None])


def spanning_tree_certificate(
    x: Float[Tensor, "n d_in"], values: Float[Tensor, "n d_out"], *, lipschitz: Real
) -> RankCertificate:
    """Rank >= 2 because the map is too flat to visit its values in a line (*lower bound*).

        rank 1 needs a point with |Jf| >= tree(f(x_i)) / diam(x);  so  Lip(f) diam(x) < tree(f(x_i))  excludes it

    Args:
        x: points, rows; the domain contains their hull.
        values: f(x_i), rows.
        lipschitz: an upper bound on the Lipschitz constant of f on the hull.

    Returns:
        Rank 2 if certified; 1 if the values differ at all; else 0. `measured` is the length of the spanning tree.

    Raises:
        ValueError: `lipschitz` <= 0, NaN or infinity. ShapeError: numbers of rows that differ. TypeError: complex or
            integer tensor.

    Accuracy: 10 (n + d_in + d_out) eps relative, subtracted from the tree.
    Source: corollary of Jacot 2023a, Theorem 2. Test: FC-22.

    >>> theory.spanning_tree_certificate([[0, 0], [0, 1], [1, 0]], [[0, 0], [0, 1], [1, 0]], lipschitz=1).rank
    2
    """
    call = "spanning_tree_certificate"
    check_tensor(call, "x", x, ndim=2)
    check_tensor(call, "values", values, ndim=2)
    check_positive(call, "lipschitz", lipschitz)
    if len(x) != len(values):
        raise ShapeError(f"{call}: needs one value per point; got {len(values)} and {len(x)} rows. Pair them.")
    rounding = 1 - 10 * (len(x) + x.shape[1] + values.shape[1]) * torch.finfo(torch.float64).eps
    tree, threshold = spanning_tree_length(values) * rounding, lipschitz * diameter(x)
    rank = 2 if tree > threshold else int(tree > 0)
    return RankCertificate(rank, tree, threshold, torch.tensor([tree], dtype=torch.float64))
