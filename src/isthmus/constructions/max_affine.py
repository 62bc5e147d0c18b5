"""Maxima of affine pieces, lattice forms max-min and signed sums of maxima as ReLU networks, by trees (FC-17).

One-dimensional piecewise-linear functions, which are shallower: `constructions.piecewise_linear`.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations
from math import inf

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.networks import FullyConnected
from isthmus.networks.layers import check_numbers

Groups = list[list[int]]
NEAR = 1e-9  # of the largest value: a piece so near to the function at a point is its piece there
NO_WEIGHT = 1e-13  # of a unit vector: to drop a weight, or to keep it, is wrong by as much of the pieces' values


def max_affine_network(slopes: Float[Tensor, "m d_in"], offsets: Float[Tensor, " m"]) -> FullyConnected:
    """The ReLU network of x -> max_i <slopes_i, x> + offsets_i (*exact* everywhere), depth ceil(log2 m) + 1.

        max(u, v) = relu(u - v) + relu(v) - relu(-v)

    Args:
        slopes: gradients of the m pieces, one per row.
        offsets: their constants.

    Raises:
        ShapeError: no piece, or slopes and offsets that do not fit.

    Source: Arora, Basu, Mianjy and Mukherjee 2018, in Jacot 2023a, Corollary 1. Test: FC-17.

    >>> network = constructions.max_affine_network(torch.tensor([[1.0], [-1.0]]), torch.tensor([0.0, 1.0]))
    >>> network(torch.tensor([[0.0], [3.0]], dtype=torch.float64)).flatten().tolist()
    [1.0, 3.0]
    """
    _check_pieces("max_affine_network", slopes, offsets)
    return _tree(slopes, offsets, [(1.0, [list(range(len(slopes)))])])


def lattice_network(
    slopes: Float[Tensor, "m d_in"], offsets: Float[Tensor, " m"], sets: Sequence[Sequence[int]]
) -> FullyConnected:
    """The ReLU network of x -> max_j min_{i in sets_j} <slopes_i, x> + offsets_i (*exact* everywhere).

    Its depth is ceil(log2 max |sets_j|) + ceil(log2 #sets) + 1. Every piecewise-affine function on a convex domain has
    this form, see `lattice_sets`.

    Args:
        slopes: gradients of the m pieces, one per row.
        offsets: their constants.
        sets: the pieces (0..m-1) in each minimum.

    Raises:
        ShapeError: no piece, or slopes and offsets that do not fit.
        ValueError: no set, an empty set, or a piece outside 0..m-1.

    Source: Jacot 2023a, Corollary 1. Test: FC-17.

    >>> network = constructions.lattice_network(torch.tensor([[1.0], [-1.0]]), torch.zeros(2), [[0], [1]])
    >>> network(torch.tensor([[-3.0], [2.0]], dtype=torch.float64)).flatten().tolist()  # max(x, -x)
    [3.0, 2.0]
    """
    _check_pieces("lattice_network", slopes, offsets)
    groups = _groups("lattice_network", sets, len(slopes))
    return _tree(slopes, offsets, [(-1.0, groups), (1.0, [list(range(len(groups)))])])


def shallow_lattice_network(
    slopes: Float[Tensor, "m d_in"], offsets: Float[Tensor, " m"], sets: Sequence[Sequence[int]]
) -> FullyConnected:
    """The function of `lattice_network` with at most ceil(log2(d_in + 1)) + 1 weight matrices (*exact* everywhere).

        max_j min_{i in S_j} l_i = sum over sets K of j of (-1)^(|K| + 1) min over the union of their S_j
        max over S, |S| > d_in + 1 = a signed sum of maxima over proper subsets of S, by Radon's theorem

    Args:
        slopes: gradients of the m pieces, one per row.
        offsets: their constants.
        sets: the pieces (0..m-1) in each minimum; see `lattice_sets`.

    Raises:
        ShapeError: no piece, or slopes and offsets that do not fit.
        ValueError: no set, an empty set, or a piece outside 0..m-1.

    Accuracy: rounding of the largest piece at a point, at every size of slopes and offsets; it grows with the number of
    maxima, to 1e-13 where gradients all but lie in fewer dimensions. Cost: up to 2^m of them, so for few pieces;
    `lattice_network` is deeper and narrower.
    Source: Wang and Sun 2005, Arora, Basu, Mianjy and Mukherjee 2018, in Jacot 2023a, Corollary 1. Test: FC-17.

    >>> network = constructions.shallow_lattice_network(torch.tensor([[1.0], [-1.0]]), torch.zeros(2), [[0], [1]])
    >>> network.depth, network(torch.tensor([[-3.0]], dtype=torch.float64)).tolist()
    (2, [[3.0]])
    """
    _check_pieces("shallow_lattice_network", slopes, offsets)
    signed: Counter[frozenset[int]] = Counter({frozenset(): 1})
    for pieces in _groups("shallow_lattice_network", sets, len(slopes)):
        for union, factor in list(signed.items()):
            signed[union | frozenset(pieces)] -= factor
    del signed[frozenset()]
    found = _few_pieces(signed, -torch.cat([slopes, offsets[:, None]], 1).double())  # min l = -max -l
    factors = torch.tensor([list(found.values())], dtype=torch.float64)
    return _tree(-slopes, -offsets, [(1.0, [sorted(pieces) for pieces in found])], factors)


def lattice_sets(
    function: Callable[[Tensor], Tensor],
    slopes: Float[Tensor, "m d_in"],
    offsets: Float[Tensor, " m"],
    points: Float[Tensor, "n d_in"],
    *,
    tolerance: float = 1e-12,
) -> list[list[int]]:
    """The minima of the lattice form of a scalar piecewise-affine function on a convex domain.

        f(q) = max_p min_{i in M_p} l_i(q),    M_p = {i: l_i(p) >= f(p)}

    Exact when `points` has one interior point of every cell of the arrangement of the pieces; with fewer points the
    form is a *lower bound* of f. Only inclusion-minimal sets are kept.

    Args:
        function: f, rows of points to (n,) or (n, 1) values.
        slopes: gradients of the m pieces.
        offsets: their constants.
        points: points as rows.
        tolerance: rounding by which l_i(p) may fall short of f(p), relative to the largest term of a piece there; at
            least 8 eps of their type.

    Raises:
        ShapeError: no piece, or slopes and offsets that do not fit.
        ValueError: tolerance < 0, NaN or infinity in the points, a point at which no piece has the value of f.

    Source: Jacot 2023a, Corollary 1. Test: FC-17.

    >>> slopes, offsets = torch.tensor([[1.0], [-1.0]]), torch.zeros(2)
    >>> constructions.lattice_sets(torch.abs, slopes, offsets, torch.tensor([[-1.0], [1.0]]))
    [[0], [1]]
    """
    _check_pieces("lattice_sets", slopes, offsets)
    check_numbers("lattice_sets", points=points)
    if not 0 <= tolerance < inf:
        raise ValueError(f"lattice_sets(tolerance={tolerance}): needs a finite tolerance >= 0; 1e-12 covers rounding.")
    with torch.no_grad():
        pieces, values = points @ slopes.T + offsets, function(points).reshape(-1, 1)
    terms = (points.abs() @ slopes.abs().T + offsets.abs()).amax(1, keepdim=True)
    rounding = max(tolerance, 8 * torch.finfo(pieces.dtype).eps) * terms
    missed = (
        (pieces - values).abs().amin(1, keepdim=True) > rounding + NEAR * values.abs().max()
        if len(points)
        else rounding > 0
    )
    if bool(missed.any()):
        where = points[int(torch.nonzero(missed)[0, 0])].tolist()
        raise ValueError(
            f"lattice_sets: needs every piece of the function; none of {len(slopes)} has its value at {where}. Add the "
            "piece that is there: without it no lattice form is the function."
        )
    above = pieces >= values - rounding
    distinct = sorted({tuple(torch.nonzero(row).flatten().tolist()) for row in above}, key=len)
    minimal: list[list[int]] = []
    for candidate in distinct:
        if candidate and not any(set(kept) <= set(candidate) for kept in minimal):
            minimal.append(list(candidate))
    return minimal


def _few_pieces(signed: Counter[frozenset[int]], pieces: Tensor) -> dict[frozenset[int], int]:
    """The same signed sum of maxima of pieces (gradient, constant: rows), none over more than d_in + 1 of them."""
    most = pieces.shape[1]
    waiting = Counter(signed)
    while len(largest := max(waiting, key=len)) > most:
        factor = waiting.pop(largest)
        _, dropped = _radon(sorted(largest)[: most + 1], pieces)
        kept = largest - dropped
        for size in range(len(dropped)):
            for chosen in combinations(sorted(dropped), size):
                waiting[kept | frozenset(chosen)] += factor * (-1) ** (len(dropped) + 1 + size)
    found = {chosen: factor for chosen, factor in waiting.items() if factor}
    return found or {frozenset([0]): 0}


def _radon(numbers: list[int], pieces: Tensor) -> tuple[frozenset[int], frozenset[int]]:
    """Two disjoint sets of d_in + 2 pieces: everywhere some piece of the first is at least some piece of the second.

    Their gradients have a point in common in their convex hulls; the same weights of the constants say which is above.
    """
    chosen = pieces[numbers]
    lifted = torch.cat([chosen[:, :-1], torch.ones(len(chosen), 1, dtype=chosen.dtype)], 1)
    sizes = lifted.abs().amax(0)  # of the coordinates, whose units say nothing: beside 1 small gradients look like 0
    weights = torch.linalg.svd((lifted / torch.where(sizes > 0, sizes, 1.0)).mT).Vh[-1]
    weights = torch.where(weights.abs() > NO_WEIGHT, weights, torch.zeros_like(weights))
    if float(weights @ chosen[:, -1]) < 0:
        weights = -weights
    above, below = (frozenset(i for i, w in zip(numbers, weights, strict=True) if s * w > 0) for s in (1, -1))
    return above, below


def _tree(
    slopes: Tensor, offsets: Tensor, stages: list[tuple[float, Groups]], factors: Tensor | None = None
) -> FullyConnected:
    """Reduce groups of signals stage by stage, sign 1 for maxima and -1 for minima, halving each group per layer.

    `factors` (d_out, groups) are of the last groups; None: the last groups are the outputs.
    """
    weights, biases = [slopes.double()], [offsets.double()]
    for sign, stage in stages:
        groups = stage
        while max(len(group) for group in groups) > 1:
            split, join, groups = _halved(groups, int(weights[-1].shape[0]), sign)
            weights[-1], biases[-1] = split @ weights[-1], split @ biases[-1]
            weights.append(join)
            biases.append(torch.zeros(len(join), dtype=torch.float64))
        chosen = [group[0] for group in groups]
        weights[-1], biases[-1] = weights[-1][chosen], biases[-1][chosen]
    if factors is not None:
        weights[-1], biases[-1] = factors @ weights[-1], factors @ biases[-1]
    return FullyConnected.from_layers(weights, biases)


def _halved(groups: Groups, num_signals: int, sign: float) -> tuple[Tensor, Tensor, Groups]:
    """Signals -> neurons, neurons -> new signals, new groups: max(u, v) (or min) of neighbours, an odd one passes."""
    split: list[Tensor] = []
    join: list[dict[int, float]] = []
    new_groups: Groups = []
    unit = torch.eye(num_signals, dtype=torch.float64)
    for group in groups:
        new_groups.append([])
        for u, v in zip(group[::2], [*group[1::2], None], strict=False):
            new_groups[-1].append(len(join))
            passed = u if v is None else v
            join.append({len(split): 1.0, len(split) + 1: -1.0})
            split += [unit[passed], -unit[passed]]
            if v is not None:
                join[-1][len(split)] = sign
                split.append(sign * (unit[u] - unit[v]))
    matrix = torch.zeros(len(join), len(split), dtype=torch.float64)
    for row, entries in enumerate(join):
        for column, value in entries.items():
            matrix[row, column] = value
    return torch.stack(split), matrix, new_groups


def _groups(call: str, sets: Sequence[Sequence[int]], num_pieces: int) -> Groups:
    groups = [[int(i) for i in pieces] for pieces in sets]
    if not groups or any(not pieces or min(pieces) < 0 or max(pieces) >= num_pieces for pieces in groups):
        raise ValueError(f"{call}(sets={groups}): needs at least one set, none empty, of pieces 0..{num_pieces - 1}.")
    return groups


def _check_pieces(call: str, slopes: Tensor, offsets: Tensor) -> None:
    if slopes.ndim != 2 or offsets.ndim != 1 or len(slopes) != len(offsets) or len(slopes) == 0:
        raise ShapeError(
            f"{call}: needs m >= 1 pieces, slopes of shape (m, d_in) and offsets of shape (m,); "
            f"got {tuple(slopes.shape)} and {tuple(offsets.shape)}."
        )
    check_numbers(call, slopes=slopes, offsets=offsets)
