"""Intrinsic dimensions from the distances to nearest neighbours: what a discovery's rank is compared with.

They look at the manifold locally, and estimate its own dimension, not that of the space that holds it: 1 on a circle.
Singular values and ranks read from them: `spectra`.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.theory.inputs import check_tensor
from isthmus.theory.spread_rows import median_over_rows

CHUNK = 256  # rows whose distances to all others are held at once
TAIL = 0.1  # share of the largest ratios that the fit of two neighbours leaves out


def neighbour_distances(points: Float[Tensor, "n d"], *, neighbours: int) -> Float[Tensor, "n k"]:
    """Euclidean distances of each row to its nearest other rows, rising (*exact*).

    Args:
        points: rows, no two of them equal; float64 advised.
        neighbours: how many, 1 to n - 1.

    Returns:
        (n, neighbours), in the units of the points.

    Raises:
        ValueError: too few rows, two equal rows, or NaN.
        TypeError: not a floating-point tensor.
        ShapeError: not (n, d).

    Accuracy: differences are taken before squaring. Cost O(n^2 d), memory O(n).
    """
    points = check_tensor("neighbour_distances", "points", points, ndim=2)
    if not 1 <= neighbours < len(points):
        raise ValueError(
            f"neighbour_distances(neighbours={neighbours}): needs 1 to {len(points) - 1} for points of shape "
            f"{tuple(points.shape)}. Pass fewer neighbours or more points."
        )
    found: list[Tensor] = []
    for start in range(0, len(points), CHUNK):
        rows = points[start : start + CHUNK]
        d = torch.cdist(rows, points, compute_mode="donot_use_mm_for_euclid_dist")
        d[torch.arange(len(rows)), start + torch.arange(len(rows))] = math.inf  # no row is its own neighbour
        found.append(d.topk(neighbours, largest=False).values)
    distances = torch.cat(found)
    if not bool((distances[:, 0] > 0).all()):
        row = int((distances[:, 0] == 0).nonzero()[0])
        raise ValueError(
            f"neighbour_distances(points): needs distinct rows; row {row} is there twice. Drop duplicates."
        )
    return distances


def two_neighbour_dimension(points: Float[Tensor, "n d"]) -> float:
    """Dimension from the ratio of the distances to the second and the first neighbour (*estimate*).

        mu = r_2 / r_1 has P(mu <= m) = 1 - m^(-d):   d is the slope of -log(1 - F(mu)) on log mu through the origin

    Args:
        points: at least 3 distinct rows.

    Returns:
        The dimension, no integer; the largest tenth of the ratios is left out of the fit.

    Raises:
        ValueError: too few or equal rows, NaN.
        TypeError: not a floating-point tensor.
        ShapeError: not (n, d).

    Accuracy: too low where the density varies within a neighbourhood, and in many dimensions at any affordable n.
    Source: Facco, d'Errico, Rodriguez and Laio 2017.
    """
    r = neighbour_distances(points, neighbours=2)
    ratios = (r[:, 1] / r[:, 0]).log().sort().values
    kept = int((1 - TAIL) * len(ratios))
    height = -torch.log1p(-torch.arange(1, kept + 1, dtype=r.dtype) / len(ratios))
    along = ratios[:kept]
    return float(along @ height / (along @ along))


def likeliest_dimension(points: Float[Tensor, "n d"], *, neighbours: int = 20) -> float:
    """Dimension of greatest likelihood if neighbours are a Poisson process around each row (*estimate*).

        1 / d = mean over rows and j < k of log(r_k / r_j)

    Args:
        points: more than `neighbours` distinct rows.
        neighbours: k, at least 2.

    Returns:
        The dimension, no integer.

    Raises:
        ValueError: k below 2, too few or equal rows, NaN.
        TypeError: not a floating-point tensor.
        ShapeError: not (n, d).

    Accuracy: too low in many dimensions, where neighbourhoods reach the border.
    Source: Levina and Bickel 2004, averaged as in MacKay and Ghahramani 2005.
    """
    if neighbours < 2:
        raise ValueError(f"likeliest_dimension(neighbours={neighbours}): needs at least 2. 20 is usual.")
    r = neighbour_distances(points, neighbours=neighbours)
    return float(1 / (r[:, -1:] / r[:, :-1]).log().mean())


def mean_distance_dimension(points: Float[Tensor, "n d"], *, neighbours: int = 100) -> float:
    """Dimension from the mean over the largest of the neighbours' distances (*estimate*).

        E r / r_k = d / (d + 1) for a uniform ball:   d = mean over rows of m / (r_k - m),  m = mean of r_1 .. r_k

    Args:
        points: more than `neighbours` distinct rows.
        neighbours: k, at least 2.

    Returns:
        The dimension, no integer.

    Raises:
        ValueError: k below 2, too few or equal rows, NaN.
        TypeError: not a floating-point tensor.
        ShapeError: not (n, d).

    Accuracy: too low in many dimensions, where neighbourhoods reach the border.
    Source: the method of moments of Amsaleg et al. 2018.
    """
    if neighbours < 2:
        raise ValueError(f"mean_distance_dimension(neighbours={neighbours}): needs at least 2. 100 is usual.")
    r = neighbour_distances(points, neighbours=neighbours)
    mean = r.mean(1)
    return float((mean / (r[:, -1] - mean)).mean())


def correlation_dimension(points: Float[Tensor, "n d"], *, near: int = 10, far: int = 20) -> float:
    """Slope of the logarithmic number of pairs closer than r, between two medians of neighbour distances (*estimate*).

        d = log(C(r_far) / C(r_near)) / log(r_far / r_near),   C(r) = number of pairs within r

    Args:
        points: more than `far` distinct rows.
        near: r_near is the median distance to this neighbour.
        far: r_far is that to this one, more than `near`.

    Returns:
        The dimension, no integer.

    Raises:
        ValueError: not 1 <= near < far, too few or equal rows, NaN.
        TypeError: not a floating-point tensor.
        ShapeError: not (n, d).

    Accuracy: low where the density varies. Cost O(n^2 d), memory O(n^2).
    Source: Grassberger and Procaccia 1983; the two radii are a choice.
    """
    if not 1 <= near < far:
        raise ValueError(f"correlation_dimension(near={near}, far={far}): needs 1 <= near < far. 10 and 20 are usual.")
    r = neighbour_distances(points, neighbours=len(points) - 1)
    small, large = (float(median_over_rows(r[:, place - 1])) for place in (near, far))
    pairs = [int((r < radius).sum()) for radius in (small, large)]
    return math.log(pairs[1] / pairs[0]) / math.log(large / small)


def principal_dimension(points: Float[Tensor, "n d"], *, share: float = 0.05) -> int:
    """Number of principal variances above a share of the largest (*estimate* of the flat dimension).

    Args:
        points: at least 2 rows, not all equal.
        share: of the largest variance, in (0, 1).

    Raises:
        ValueError: `share` outside (0, 1), NaN.
        TypeError: not a floating-point tensor.
        ShapeError: not (n, d).

    Source: Fukunaga and Olsen 1971.
    """
    points = check_tensor("principal_dimension", "points", points, ndim=2)
    if not 0 < share < 1:
        raise ValueError(f"principal_dimension(share={share}): needs a share between 0 and 1. 0.05 is usual.")
    variances = torch.linalg.svdvals(points - points.mean(0)).square()
    return int((variances > share * variances[0]).sum())
