"""Shortest paths through points, and the norm that a rank-1 map pays for visiting them in a line.

Path lengths are open (no return). Certificates of rank >= 2 that use them: `topology`.
"""

import math
import sys

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.theory.enclosures import UNCERTAIN, rounded, rounded_down
from isthmus.theory.inputs import check_depth, check_tensor
from isthmus.theory.scales import exponent, resized, scaled_power, shifted

_LARGEST_EXACT = 13
_UNDERFLOWN = 1e-150  # of the largest coordinate: squares of shorter edges have lost digits
_Distances = NDArray[np.floating]


def travelling_salesman_bounds(points: Float[Tensor, "n d"]) -> tuple[float, float]:
    """Length of the shortest open path through all points: (*lower bound*, *upper bound*), equal up to 13 points.

    Up to 13 points the length is *exact* (Held and Karp's recursion, O(n^2 2^n)). Beyond, the lower bound is the
    minimum spanning tree, which any path contains as a spanning tree, and the upper bound a path improved by 2-opt.

    Args:
        points: one point per row; duplicates are fine; 0 or 1 points have length 0.

    Raises:
        ValueError: NaN or infinity. TypeError: complex or integer tensor. ShapeError: not a matrix.

    Accuracy: n eps, not rounded outward: the two are one number up to 13 points. Cost O(n^2) memory, O(n^2) for the
    tree and per 2-opt sweep.
    Source: Jacot 2023a, Theorem 2. Test: FC-22.

    >>> theory.travelling_salesman_bounds([[0], [5], [1]])
    (5.0, 5.0)
    """
    check_tensor("travelling_salesman_bounds", "points", points, ndim=2)
    rows, size = _unit_rows(points)
    if len(rows) < 2:
        return 0.0, 0.0
    distances = _distances(rows)
    if len(rows) <= _LARGEST_EXACT:
        length = resized(_held_karp(distances), size)
        return length, length
    lower, preorder, _ = _spanning_tree(distances)
    return resized(lower, size), resized(max(lower, _two_opt(distances, preorder)), size)


def spanning_tree_length(points: Float[Tensor, "n d"]) -> float:
    """Length of the minimum spanning tree of points (*exact*), a lower bound on every path through them.

    Args:
        points: one point per row; duplicates are fine; 0 or 1 points have length 0.

    Raises:
        ValueError: NaN or infinity. TypeError: complex or integer tensor. ShapeError: not a matrix.

    Accuracy: rounding. Cost O(n^2) (Prim). Source: Jacot 2023a, Theorem 2. Test: FC-22.

    >>> theory.spanning_tree_length([[0, 0], [0, 2], [0, 3], [4, 0]])
    7.0
    """
    check_tensor("spanning_tree_length", "points", points, ndim=2)
    rows, size = _unit_rows(points)
    return resized(_spanning_tree(_distances(rows))[0], size) if len(rows) > 1 else 0.0


def partial_path_bounds(points: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
    """Lengths that no path through any j of the points undercuts, j = 1 .. n: *lower bounds*, 0 for one point.

        F_j = sum of the j - 1 shortest edges of the minimum spanning tree;   F_n is its length

    A path through j points is a forest of j - 1 edges, and of all forests of so many edges the j - 1 that Kruskal takes
    first are shortest. Of n random points of k dimensions F_{n/2} grows like n^(1 - 1/k).

    Args:
        points: one point per row; duplicates are fine.

    Raises:
        ValueError: NaN or infinity. TypeError: complex or integer tensor. ShapeError: not a matrix.

    Accuracy: rounding, downward. Cost O(n^2). Source: Jacot 2023b, Theorem 10, by greedy forests. Test: FC-43.

    >>> theory.partial_path_bounds([[0, 0], [0, 2], [0, 3], [4, 0]]).round(decimals=6).tolist()
    [0.0, 1.0, 3.0, 7.0]
    """
    check_tensor("partial_path_bounds", "points", points, ndim=2)
    if not len(points):
        return torch.zeros(0, dtype=torch.float64)
    rows, size = _unit_rows(points)
    edges = np.sort(np.array(_spanning_tree(_distances(rows))[2]))
    edges[edges < _UNDERFLOWN] = 0.0  # whose squares may have been rounded up
    lengths = shifted(torch.from_numpy(np.concatenate([[0.0], np.cumsum(edges)])), size)
    return rounded_down(lengths.clamp_max(sys.float_info.max), len(points) + points.shape[1])


def diameter(points: Float[Tensor, "n d"]) -> float:
    """Largest distance between two points (*exact*); 0 for fewer than two.

    Args:
        points: one point per row.

    Raises:
        ValueError: NaN or infinity. TypeError: complex or integer tensor. ShapeError: not a matrix.

    Accuracy: rounding. Source: Jacot 2023a, Theorem 2. Test: FC-22.

    >>> theory.diameter([[0, 0], [3, 4], [1, 1]])
    5.0
    """
    check_tensor("diameter", "points", points, ndim=2)
    from scipy.spatial.distance import pdist  # see `_distances`

    rows, size = _unit_rows(points)
    return resized(float(pdist(rows).max()), size) if len(rows) > 1 else 0.0


def rank1_stretch(x: Float[Tensor, "n d_in"], y: Float[Tensor, "n d_out"]) -> float:
    """Jacobian norm that a map of bottleneck rank 1 with f(x_i) = y_i must reach somewhere: *lower bound*.

        max_x |Jf(x)|_op  >=  (shortest path through y) / diam(x),   on a domain that contains the hull of the x_i

    Args:
        x: inputs, rows.
        y: outputs, rows; the lower bound of `travelling_salesman_bounds` stands for the path.

    Raises:
        ValueError: equal inputs whose outputs differ by more than 1e-9 of the largest (4e-6 in float32), NaN or
            infinity. ShapeError: numbers of rows that differ. TypeError: complex or integer tensor.

    Accuracy: rounding, downward. Source: Jacot 2023a, Theorem 2, with the hull hypothesis that it omits. Test: FC-22.

    >>> round(theory.rank1_stretch([[0], [1], [2]], [[0], [5], [1]]), 6)
    2.5
    """
    check_tensor("rank1_stretch", "x", x, ndim=2)
    check_tensor("rank1_stretch", "y", y, ndim=2)
    if len(x) != len(y):
        raise ShapeError(f"rank1_stretch: needs one y per x; got {len(y)} and {len(x)} rows. Pair them.")
    _refuse_contradictions(x, y)
    path, width = min(travelling_salesman_bounds(y)[0], sys.float_info.max), diameter(x)
    if path == 0 or width == 0:  # of equal inputs the outputs differ by rounding at most
        return 0.0
    return rounded(min(path / width, sys.float_info.max), len(y) + x.shape[1] + y.shape[1], up=False)


def rank1_cost_lower_bound(x: Float[Tensor, "n d_in"], y: Float[Tensor, "n d_out"], *, depth: int) -> float:
    """Parameter norm of any network of bottleneck rank 1 with f(x_i) = y_i: *lower bound* on R(f; L).

        R(f; L)  >=  L (path(y) / diam(x))^(2/L)

    Args:
        x: inputs, rows; the domain contains their hull.
        y: outputs, rows.
        depth: number of weight matrices L, at least 1.

    Returns:
        Number >= 0, in squared-weight units.

    Raises:
        ValueError: `depth` < 1, equal inputs with different outputs, NaN or infinity.
        ShapeError: numbers of rows that differ. TypeError: complex or integer tensor.

    Accuracy: rounding, downward. Source: Jacot 2023a, Theorem 2 and Proposition 10. Test: FC-22.

    >>> round(theory.rank1_cost_lower_bound([[0], [1], [2]], [[0], [5], [1]], depth=2), 6)
    5.0
    """
    check_depth("rank1_cost_lower_bound", depth)
    stretch = rank1_stretch(x, y)
    if stretch == 0:
        return 0.0
    bound = min(scaled_power(float(depth), stretch, 2 / depth), sys.float_info.max)
    return rounded(bound, 2 / depth * abs(math.log(stretch)), up=False)


def _refuse_contradictions(x: Tensor, y: Tensor) -> None:
    """Raise where equal inputs have outputs that differ by more than their rounding."""
    if not x.numel() or not y.numel():
        return
    values, places = y.detach(), torch.unique(x.detach() + 0.0, dim=0, return_inverse=True)[1]  # -0.0 is 0.0
    first = torch.full_like(places, len(x)).scatter_reduce(0, places, torch.arange(len(x), device=x.device), "amin")
    values = shifted(values, -exponent(values))
    apart = (values - values[first[places]]).abs().amax(1)
    if bool((apart > max(UNCERTAIN, 32 * torch.finfo(y.dtype).eps) * values.abs().max()).any()):
        i = int(apart.argmax())
        raise ValueError(
            f"rank1_stretch: needs inputs that differ where outputs do; rows {int(first[places[i]])} and {i} have "
            "equal inputs and different outputs. No function has these values."
        )


def _held_karp(distances: _Distances) -> float:
    """Shortest open path, by dynamic programming over (set of visited points, last point)."""
    num = len(distances)
    best = np.full((1 << num, num), np.inf)
    best[1 << np.arange(num), np.arange(num)] = 0.0
    for visited in range(1, 1 << num):
        row = best[visited]
        reached = (row[:, None] + distances).min(0)
        outside = np.flatnonzero(~(visited >> np.arange(num)) & 1)
        extended = visited | (1 << outside)
        best[extended, outside] = np.minimum(best[extended, outside], reached[outside])
    return float(best[-1].min())


def _unit_rows(points: Tensor) -> tuple[_Distances, int]:
    """The points divided by a power of two, 2^e, so that squares of distances neither vanish nor overflow; and e."""
    rows = points.detach().cpu().double()
    size = exponent(rows)
    return shifted(rows, -size).numpy(), size


def _distances(rows: _Distances) -> _Distances:
    from scipy.spatial.distance import cdist  # as long to import as all of our own modules, and rarely used

    return cdist(rows, rows)


def _spanning_tree(distances: _Distances) -> tuple[float, list[int], list[float]]:
    """Length of the minimum spanning tree (Prim; zero distances are edges), a walk of it in preorder, its edges."""
    num = len(distances)
    nearest, parent = distances[0].copy(), np.zeros(num, dtype=np.int64)
    outside = np.ones(num, dtype=np.bool_)
    outside[0] = False
    children: list[list[int]] = [[] for _ in range(num)]
    length, edges = 0.0, list[float]()
    for _ in range(num - 1):
        new = int(np.where(outside, nearest, np.inf).argmin())
        edges.append(float(nearest[new]))
        length += edges[-1]
        outside[new] = False
        children[int(parent[new])].append(new)
        closer = distances[new] < nearest
        nearest, parent = np.where(closer, distances[new], nearest), np.where(closer, new, parent)
    preorder, stack = list[int](), [0]
    while stack:
        preorder.append(stack.pop())
        stack.extend(reversed(children[preorder[-1]]))
    return length, preorder, edges


def _two_opt(distances: _Distances, path: list[int], sweeps: int = 50) -> float:
    """Length of an open path after reversing segments while that shortens it."""
    order = np.array(path)
    num = len(order)
    for _ in range(sweeps):
        improved = False
        for i in range(num - 1):
            # reversing order[i+1 .. j] replaces edges (i, i+1) and (j, j+1); j = num - 1 has no second edge
            j = np.arange(i + 1, num)
            following = np.where(j + 1 < num, order[np.minimum(j + 1, num - 1)], -1)
            has_edge = following >= 0
            old = distances[order[i], order[i + 1]] + np.where(has_edge, distances[order[j], following], 0.0)
            new = distances[order[i], order[j]] + np.where(has_edge, distances[order[i + 1], following], 0.0)
            gains = old - new
            k = int(gains.argmax())
            if gains[k] > 1e-12 * distances.max():
                order[i + 1 : j[k] + 1] = order[i + 1 : j[k] + 1][::-1].copy()
                improved = True
        if not improved:
            break
    return float(distances[order[:-1], order[1:]].sum())
