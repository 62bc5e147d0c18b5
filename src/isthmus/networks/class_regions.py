"""Which output is largest where on a two-dimensional slice: class polygons, neighbours and tripoints (FC-45).

The cells of the slice: `networks.slices`. What tripoints say about the rank: `theory`.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from isthmus.networks.slices import Polygon, SliceCells, polygon_area, split_polygon
from isthmus.theory.home import at_home


@dataclass(frozen=True, slots=True)
class ClassRegions:
    """The strict argmax regions of the outputs on a slice (*exact* up to rounding).

    Attributes:
        polygons: convex pieces of the regions, vertices (u, v), shapes (num_vertices, 2).
        labels: class of each piece, shape (num_pieces,).
        adjacent: pairs (c, d), c < d, of classes that share a boundary of positive length.
        tripoints: points (u, v) adherent to three or more regions, shape (num_tripoints, 2). One of them certifies a
            bottleneck rank of 2 at least.
        tripoint_classes: the classes that meet at each tripoint.

    >>> network = isthmus.FullyConnected.from_layers([torch.eye(2)])
    >>> cells = networks.slice_cells(network, torch.zeros(2), torch.eye(2))
    >>> networks.class_regions(cells).labels.tolist()
    [0, 1]
    """

    polygons: tuple[Tensor, ...]
    labels: Int[Tensor, " num_pieces"]
    adjacent: frozenset[tuple[int, int]]
    tripoints: Float[Tensor, "num_tripoints 2"]
    tripoint_classes: tuple[tuple[int, ...], ...]


@at_home
def class_regions(cells: SliceCells, *, relative: float = 1e-9) -> ClassRegions:
    """The regions of the slice where each output is the largest, and where they meet.

    In each cell the outputs are affine, so a region is the cell clipped by half-planes. Three regions meet at a point
    when pieces of three classes have it as a vertex or boundary point; strips thinner than the tolerance are not
    told from points, zoom in to separate them.

    Args:
        cells: from `slice_cells` of a network with at least two outputs.
        relative: tolerance of ties relative to the largest output, and of positions relative to the slice.

    Raises:
        ValueError: fewer than two outputs, or `relative` outside (0, 1).

    Source: Jacot 2023a, section 5. Test: FC-45.

    >>> network = isthmus.FullyConnected.from_layers([torch.eye(2)])
    >>> cells = networks.slice_cells(network, torch.zeros(2), torch.eye(2))
    >>> len(networks.class_regions(cells).polygons)
    2
    """
    num_classes = cells.values[0].shape[1]
    if num_classes < 2 or not 0 < relative < 1:
        raise ValueError(
            f"class_regions(relative={relative}): needs at least two outputs, got {num_classes}, and 0 < relative < 1."
        )
    size = relative * float(max(polygon.abs().max() for polygon in cells.polygons))
    tie = relative * float(max(values.abs().max() for values in cells.values))
    pieces: list[Polygon] = []
    labels: list[int] = []
    for polygon, values in zip(cells.polygons, cells.values, strict=True):
        for label, piece in _pieces_of_cell(np.concatenate([polygon.numpy(), values.numpy()], 1), tie * 1e-3, size**2):
            pieces.append(piece)
            labels.append(label)
    meeting = _Meeting(pieces, np.array(labels), size)
    adjacent = _adjacent(pieces, labels, meeting, tie=tie, size=size)
    tripoints, classes = _tripoints(pieces, meeting, tie=tie, size=size)
    polygons = tuple(torch.from_numpy(piece[:, :2].copy()) for piece in pieces)
    return ClassRegions(polygons, torch.tensor(labels), adjacent, tripoints, classes)


class _Meeting:
    """Which classes have a piece that contains a point, boundary included."""

    def __init__(self, pieces: list[Polygon], labels: NDArray[np.int64], size: float) -> None:
        self.pieces, self.labels, self.size = pieces, labels, size
        self.low = np.stack([piece[:, :2].min(0) for piece in pieces]) - size
        self.high = np.stack([piece[:, :2].max(0) for piece in pieces]) + size

    def classes(self, point: NDArray[np.float64]) -> tuple[int, ...]:
        near = np.flatnonzero(((self.low <= point) & (point <= self.high)).all(1))
        return tuple(sorted({int(self.labels[i]) for i in near if self._contains(self.pieces[i], point)}))

    def _contains(self, piece: Polygon, point: NDArray[np.float64]) -> bool:
        edge = np.roll(piece[:, :2], -1, 0) - piece[:, :2]
        away = point - piece[:, :2]
        turn = edge[:, 0] * away[:, 1] - edge[:, 1] * away[:, 0]
        margin = self.size * np.hypot(edge[:, 0], edge[:, 1])
        return bool((turn >= -margin).all() or (turn <= margin).all())


def _pieces_of_cell(cell: Polygon, tie: float, smallest: float) -> list[tuple[int, Polygon]]:
    """(class, polygon) for the classes that win somewhere in a cell with positive area."""
    values = cell[:, 2:]
    num_classes = values.shape[1]
    winners = np.flatnonzero((values >= values.max(1, keepdims=True)).all(0))
    if len(winners) == 1:
        return [(int(winners[0]), cell)]
    found: list[tuple[int, Polygon]] = []
    for c in range(num_classes):
        piece: Polygon | None = cell
        for d in range(num_classes):
            if d != c and piece is not None:
                lead = np.concatenate([piece, (piece[:, 2 + c] - piece[:, 2 + d])[:, None]], 1)
                # a class that ties everywhere wins nowhere strictly
                kept = split_polygon(lead, lead.shape[1] - 1, tie)[0] if lead[:, -1].max() > tie else None
                piece = None if kept is None else kept[:, :-1]
        if piece is not None and polygon_area(piece) > smallest:
            found.append((c, piece))
    return found


def _adjacent(
    pieces: list[Polygon], labels: list[int], meeting: _Meeting, *, tie: float, size: float
) -> frozenset[tuple[int, int]]:
    found: set[tuple[int, int]] = set()
    for piece, label in zip(pieces, labels, strict=True):
        for start, end in zip(piece, np.roll(piece, -1, 0), strict=True):
            middle = (start + end) / 2
            # the label's output is largest all along the edge: a tie in the middle is a tie along it
            others = np.delete(middle[2:], label)
            tied = bool((others >= middle[2 + label] - tie).any())
            if tied and np.hypot(*(end - start)[:2]) > size:
                classes = meeting.classes(middle[:2])
                found |= {pair for pair in combinations(classes, 2) if label in pair}
    return frozenset(found)


def _tripoints(
    pieces: list[Polygon], meeting: _Meeting, *, tie: float, size: float
) -> tuple[Tensor, tuple[tuple[int, ...], ...]]:
    points: list[NDArray[np.float64]] = []
    classes: list[tuple[int, ...]] = []
    for vertex in np.concatenate(pieces):
        is_tie = (vertex[2:] >= vertex[2:].max() - tie).sum() >= 3
        if is_tie and not any(np.hypot(*(vertex[:2] - point)) <= 2 * size for point in points):
            met = meeting.classes(vertex[:2])
            if len(met) >= 3:
                points.append(vertex[:2])
                classes.append(met)
    stacked = torch.from_numpy(np.stack(points)) if points else torch.zeros(0, 2, dtype=torch.float64)
    return stacked, tuple(classes)
