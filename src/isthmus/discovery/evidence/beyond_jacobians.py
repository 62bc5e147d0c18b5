"""Lower bounds on the rank of decoder o encoder that Jacobians cannot give: betweenness, antipodes, trees, tripoints.

What is found here is a guess until `isthmus.recheck` has proved it. The theorems on values: `theory.topology`.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from isthmus.discovery.factorisation import joined
from isthmus.networks import FullyConnected, class_regions, segment_pieces, slice_cells

Array = NDArray[np.float64]
Map = Callable[[Tensor], Tensor]
ROWS, BETWEEN = 24, 33  # rows whose triples are tried, points at which the way between two of them is looked at
TRIPLES, CELLS = 4, (256, 4096, 2**16)  # the best that are handed on, with ever more points
SPHERES = {2: (512, 2**14), 3: (32, 128)}  # cells of a circle, of a sphere
RADII = (1.0, 0.5, 2.0)  # in standard deviations
PLANES, MEETINGS = 3, 4  # planes through rows of three classes that are searched for tripoints, and tripoints of each
CERTAINLY_APART = 1e-9  # of directions of a plane, least to largest
RINGS, RING = (0.1, 1e-2, 1e-3), 24  # radii around a tripoint, as shares of its plane, and points on each ring


def topological_certificates(
    halves: tuple[FullyConnected, FullyConnected],
    points: Array,
    numbers: Sequence[int],
    *,
    rank: int,
    above: int,
    classes: bool = False,
) -> Iterator[tuple[dict[str, object], str]]:
    """Certificates that might hold, with their words, the likeliest first.

    Args:
        halves: encoder and decoder in the user's units.
        points: rows in these units.
        numbers: of these rows in the user's data.
        rank: the largest claim that makes sense.
        above: what is proved already.
        classes: whether the largest output is the class that is predicted.
    """
    encoder, decoder = halves

    def network(x: Tensor) -> Tensor:
        return decoder(encoder(x))

    with torch.no_grad():
        values = network(torch.from_numpy(points)).numpy()
    scales = np.where(values.std(0) > 0, values.std(0), 1.0)
    yield from _spheres(points, scales, range(max(above + 1, 3), rank + 1))
    if above < 2:
        if classes:
            yield from _tripoints(joined(encoder, decoder), points)
        yield from _betweenness(network, points, numbers, scales)
        yield from _spheres(points, scales, range(2, 3))
        spread = points.std(0)
        where = {"x": points.tolist(), "units": np.where(spread > 0, spread, 1.0).tolist(), **_in(scales)}
        text = f"{len(points)} rows have values too far apart for so flat a map to pass by them in one line"
        yield {"kind": "spanning_tree_network", "claim": 2, **where}, text


def _spheres(points: Array, scales: Array, claims: range) -> Iterator[tuple[dict[str, object], str]]:
    """Around the middle of the rows, in their leading directions, from as many axes as the rank down."""
    centre, spread = points.mean(0), points.std(0)
    directions = np.linalg.svd((points - centre) / np.where(spread > 0, spread, 1.0), full_matrices=False)[2]
    for claim in (k for k in sorted(SPHERES, reverse=True) if k in claims and k <= len(directions)):
        for radius in RADII:
            for cells in SPHERES[claim]:
                where = {"centre": centre.tolist(), "axes": (radius * directions[:claim] * spread).tolist()}
                text = f"antipodes of a sphere of {claim} axes among the inputs never share a value (Borsuk and Ulam)"
                yield {"kind": "antipodal_sphere", "claim": claim, **where, "cells": cells, **_in(scales)}, text


def _betweenness(
    network: Map, points: Array, numbers: Sequence[int], scales: Array
) -> Iterator[tuple[dict[str, object], str]]:
    chosen = np.unique(np.linspace(0, len(points) - 1, min(ROWS, len(points))).astype(int))
    x = torch.from_numpy(points[chosen])
    for i, j, k in _best_triples(network, x, torch.from_numpy(scales)):
        rows = [numbers[int(chosen[r])] for r in (i, j, k)]
        text = f"between any two of rows {rows[0]}, {rows[1]} and {rows[2]} the value of the third is never met"
        where = {"x": x[[i, j, k]].tolist(), **_in(scales)}
        for cells in CELLS:
            yield {"kind": "betweenness_network", "claim": 2, **where, "cells": cells}, text


def _best_triples(network: Map, x: Tensor, scales: Tensor) -> list[tuple[int, int, int]]:
    """The triples whose values keep furthest from the ways between the two others, at a few points of these."""
    shares = torch.linspace(0, 1, BETWEEN, dtype=x.dtype)[:, None]
    with torch.no_grad():
        values = network(x) / scales
        away = torch.zeros(len(x), len(x), len(x), dtype=x.dtype)  # of the value of i from the way between j and k
        for j, k in combinations(range(len(x)), 2):
            way = network(x[j] + shares * (x[k] - x[j])) / scales
            away[:, j, k] = torch.cdist(values, way).amin(1)
    least = {
        (i, j, k): float(min(away[i, j, k], away[j, i, k], away[k, i, j])) for i, j, k in combinations(range(len(x)), 3)
    }
    return [triple for triple in sorted(least, key=lambda t: -least[t])[:TRIPLES] if least[triple] > 0]


def _tripoints(network: FullyConnected, points: Array) -> Iterator[tuple[dict[str, object], str]]:
    """Three points, each class nowhere largest between the two others: rows, then points around tripoints of planes."""
    rows = torch.from_numpy(points[np.unique(np.linspace(0, len(points) - 1, min(ROWS, len(points))).astype(int))])
    yield from _of_three_classes(network, rows)
    with torch.no_grad():
        labels = network(rows).argmax(1)
    firsts = [int((labels == label).nonzero()[0]) for label in labels.unique()]
    for chosen in list(combinations(firsts, 3))[:PLANES]:
        origin, basis = rows[list(chosen)].mean(0), (rows[list(chosen[1:])] - rows[chosen[0]])
        spread = torch.linalg.svdvals(basis)
        if not spread[-1] > CERTAINLY_APART * spread[0]:
            continue
        for meeting in class_regions(slice_cells(network, origin, basis)).tripoints[:MEETINGS]:
            angles = torch.arange(RING, dtype=rows.dtype) * (2 * torch.pi / RING)
            for radius in RINGS:
                ring = meeting + radius * torch.stack([angles.cos(), angles.sin()], 1)
                yield from _of_three_classes(network, origin + ring @ basis)


def _of_three_classes(network: FullyConnected, x: Tensor) -> Iterator[tuple[dict[str, object], str]]:
    """A certificate from the triple of these points whose classes lead there more clearly than on the ways past."""
    shares = torch.linspace(0, 1, BETWEEN, dtype=x.dtype)[:, None]
    with torch.no_grad():
        labels, here = network(x).argmax(1).tolist(), _leads(network(x))
        ways = {
            pair: network(x[pair[0]] + shares * (x[pair[1]] - x[pair[0]])) for pair in combinations(range(len(x)), 2)
        }
    most = {
        pair: _leads(values).amax(0) for pair, values in ways.items()
    }  # of each class, on the way between two points
    least = {
        (i, j, k): min(
            float(here[a, labels[a]] - most[way][labels[a]]) for a, way in ((i, (j, k)), (j, (i, k)), (k, (i, j)))
        )
        for i, j, k in combinations(range(len(x)), 3)
        if len({labels[i], labels[j], labels[k]}) == 3
    }
    for triple in sorted(least, key=lambda t: -least[t])[:1]:
        if least[triple] > 0:
            corners, classes = x[list(triple)], [labels[i] for i in triple]
            where = {"x": corners.tolist(), "classes": classes, "shares": _ways(network, corners)}
            text = f"three classes, {classes}, meet among points between which none leads as at its own (tripoint)"
            yield {"kind": "tripoint_network", "claim": 2, **where}, text


def _leads(values: Tensor) -> Tensor:
    """By how much each output (column) exceeds the largest of the others."""
    best, second = values.topk(2, dim=1).values.mT
    others = torch.where(values == best[:, None], second[:, None], best[:, None])
    return values - others


def _ways(network: FullyConnected, corners: Tensor) -> list[list[float]]:
    """Where the sides opposite to the corners bend, and places between."""
    found = list[list[float]]()
    for i in range(3):
        start, end = (corners[j] for j in range(3) if j != i)
        bends = segment_pieces(network, start, end).breakpoints
        found.append(torch.cat([bends, torch.linspace(0, 1, BETWEEN, dtype=bends.dtype)]).unique().tolist())
    return found


def _in(scales: Array) -> dict[str, object]:
    return {"scales": scales.tolist()}
