"""Lower bounds on the rank of decoder o encoder that Jacobians cannot give: betweenness, antipodes, flat maps.

What is found here is a guess until `isthmus.recheck` has proved it. The theorems on values: `theory.topology`.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from isthmus.networks import FullyConnected

Array = NDArray[np.float64]
Map = Callable[[Tensor], Tensor]
ROWS, BETWEEN = 24, 33  # rows whose triples are tried, points at which the way between two of them is looked at
TRIPLES, CELLS = 4, (256, 4096, 2**16)  # the best that are handed on, with ever more points
SPHERES = {2: (512, 2**14), 3: (32, 128)}  # cells of a circle, of a sphere
RADII = (1.0, 0.5, 2.0)  # in standard deviations


def topological_certificates(
    halves: tuple[FullyConnected, FullyConnected], points: Array, numbers: Sequence[int], *, rank: int, above: int
) -> Iterator[tuple[dict[str, object], str]]:
    """Certificates that might hold, with their words, the likeliest first.

    Args:
        halves: encoder and decoder in the user's units.
        points: rows in these units.
        numbers: of these rows in the user's data.
        rank: the largest claim that makes sense.
        above: what is proved already.
    """
    encoder, decoder = halves

    def network(x: Tensor) -> Tensor:
        return decoder(encoder(x))

    with torch.no_grad():
        values = network(torch.from_numpy(points)).numpy()
    scales = np.where(values.std(0) > 0, values.std(0), 1.0)
    yield from _spheres(points, scales, range(max(above + 1, 3), rank + 1))
    if above < 2:
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


def _in(scales: Array) -> dict[str, object]:
    return {"scales": scales.tolist()}
