"""The affine pieces of a network on a two-dimensional slice: polygons cut neuron by neuron, exact maxima over them.

Segments: `networks.segments`. Who wins where among the outputs: `networks.class_regions`. Drawing: `plots`.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.networks.fully_connected import FullyConnected
from isthmus.networks.jacobians import jacobians
from isthmus.networks.layers import Points, as_points, walk
from isthmus.networks.segments import check_relative, in_float64, largest_rank
from isthmus.theory.home import at_home
from isthmus.theory.spectra import power_sum

Polygon = NDArray[np.float64]  # one vertex per row: two coordinates, then values that are affine on the polygon


@dataclass(frozen=True, slots=True)
class SliceCells:
    """A network on the slice x(u, v) = origin + u basis_1 + v basis_2, (u, v) in a box: affine on m convex cells.

    Attributes:
        origin: x(0, 0), shape (d_in,).
        basis: basis_1 and basis_2 as rows, shape (2, d_in).
        polygons: vertices (u, v) of each cell in order around it, shapes (num_vertices, 2).
        values: f at the vertices of each cell, shapes (num_vertices, d_out).
        centroids: a point (u, v) inside each cell, shape (m, 2).
        jacobians: Jf inside each cell, shape (m, d_out, d_in).

    >>> network = isthmus.FullyConnected.from_layers([torch.eye(2), torch.ones(1, 2)])
    >>> len(networks.slice_cells(network, torch.zeros(2), torch.eye(2)).polygons)  # four quadrants
    4
    """

    origin: Tensor
    basis: Tensor
    polygons: tuple[Tensor, ...]
    values: tuple[Tensor, ...]
    centroids: Tensor
    jacobians: Tensor

    def points(self, coordinates: Float[Tensor, "n 2"]) -> Float[Tensor, "n d_in"]:
        """x(u, v) of coordinates on the slice."""
        return self.origin + coordinates @ self.basis

    def areas(self) -> Float[Tensor, " m"]:
        """Area of each cell in the (u, v) plane."""
        return torch.tensor([polygon_area(polygon.cpu().numpy()) for polygon in self.polygons], dtype=torch.float64)

    def jacobian_rank(self, *, relative: float = 1e-9) -> tuple[int, Tensor]:
        """Largest rank of Jf over the slice (*exact* above the tolerance) and a point (d_in,) where it is attained."""
        return largest_rank(self.jacobians, self.points(self.centroids), relative=relative)

    def schatten_sums(self, power: float, *, relative: float = 1e-9) -> Float[Tensor, " m"]:
        """sum_i s_i(Jf)^power in each cell; power 2/L times L bounds the representation cost from below (FC-13).

        Singular values up to `relative` times the largest of the cell are dropped: a rounding of 1e-16 would count
        .48 at L = 100. What is kept carries its rounding: the bound that counts this is `schatten_lower_bound`.
        """
        if not power > 0:
            raise ValueError(f"schatten_sums(power={power}): needs power > 0; 2/L for a network of depth L.")
        check_relative("schatten_sums", relative)
        values = torch.linalg.svdvals(self.jacobians)
        return power_sum(values, values > relative * values[:, :1], power)

    def jacobian_norm(self) -> float:
        """Largest operator norm of Jf over the slice, in all directions (*exact*)."""
        return float(torch.linalg.matrix_norm(self.jacobians, 2).max())

    def lipschitz_constant(self) -> float:
        """Lipschitz constant of f restricted to the slice, which is convex (*exact*)."""
        tangent = torch.linalg.qr(self.basis.T)[0]
        return float(torch.linalg.matrix_norm(self.jacobians @ tangent, 2).max())


@at_home
def slice_cells(
    network: FullyConnected,
    origin: Float[Tensor, " d_in"] | Points,
    basis: Float[Tensor, "2 d_in"] | Points,
    *,
    lower: tuple[float, float] = (-1.0, -1.0),
    upper: tuple[float, float] = (1.0, 1.0),
) -> SliceCells:
    """The cells on which a network is affine, in the box lower <= (u, v) <= upper of a slice (*exact* up to rounding).

    Each layer is affine on the cells of the layers before it: a neuron cuts a cell along the line where its
    preactivation vanishes. Cells of less than 1e-14 of the area of the box are dropped.

    Args:
        network: any fully connected network, used in float64 on the CPU.
        origin: a point of the slice.
        basis: two independent directions as rows.
        lower: least u and v.
        upper: largest u and v.

    Raises:
        ShapeError: an origin or basis that does not fit the network.
        TypeError: an origin or basis that is not of real floating-point numbers.
        ValueError: a box without area, directions that are not independent, or numbers that are not finite.

    Cost: a few microseconds per cell and cutting neuron; the number of cells grows like (neurons)^2 / 2 at most per
    layer.
    Source: ours. Test: networks/test_slices.

    >>> network = isthmus.FullyConnected.from_layers([torch.eye(2), torch.ones(1, 2)])
    >>> len(networks.slice_cells(network, torch.zeros(2), torch.eye(2)).polygons)
    4
    """
    origin, basis = as_points("slice_cells", origin=origin, basis=basis)
    _check_slice(network, origin, basis, lower, upper)
    network, origin, basis = in_float64(network).cpu(), origin.double().cpu(), basis.double().cpu()
    (u0, v0), (u1, v1) = lower, upper
    cells: list[Polygon] = [np.array([[u0, v0], [u1, v0], [u1, v1], [u0, v1]], dtype=np.float64)]
    smallest = 1e-14 * (u1 - u0) * (v1 - v0)
    with torch.no_grad():
        for l in range(1, network.depth):
            if network.is_activated(l):
                z, sizes = _at_vertices(network, cells, origin, basis, l)
                tolerance = 1e-12 * sizes
                cells = [
                    piece[:, :2]
                    for cell, values in zip(cells, z, strict=True)
                    for piece in _split_by_all(np.concatenate([cell, values], 1), tolerance, smallest)
                ]
        values, _ = _at_vertices(network, cells, origin, basis, network.depth)
        centroids = torch.from_numpy(np.stack([cell.mean(0) for cell in cells]))
        inside = jacobians(network, origin + centroids @ basis)
    polygons, corners = tuple(map(torch.from_numpy, cells)), tuple(map(torch.from_numpy, values))
    return SliceCells(origin, basis, polygons, corners, centroids, inside)


def split_polygon(polygon: Polygon, column: int, tolerance: float) -> tuple[Polygon | None, Polygon | None]:
    """The parts of a convex polygon where a column is >= 0 and where it is <= 0; None for a part without area."""
    height = polygon[:, column]
    if height.min() >= -tolerance:
        return polygon, None
    if height.max() <= tolerance:
        return None, polygon
    above: list[NDArray[np.float64]] = []
    below: list[NDArray[np.float64]] = []
    for i, h in enumerate(height):
        j = (i + 1) % len(height)
        if h >= -tolerance:
            above.append(polygon[i])
        if h <= tolerance:
            below.append(polygon[i])
        if (h > tolerance and height[j] < -tolerance) or (h < -tolerance and height[j] > tolerance):
            crossing = polygon[i] + h / (h - height[j]) * (polygon[j] - polygon[i])
            above.append(crossing)
            below.append(crossing)
    return _with_area(above), _with_area(below)


def polygon_area(polygon: Polygon) -> float:
    """Area of a polygon whose vertices go around it."""
    x, y = polygon[:, 0] - polygon[0, 0], polygon[:, 1] - polygon[0, 1]
    return float(abs(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y)) / 2)


def _with_area(vertices: list[NDArray[np.float64]]) -> Polygon | None:
    return np.stack(vertices) if len(vertices) >= 3 else None


def _split_by_all(cell: Polygon, tolerance: NDArray[np.float64], smallest: float) -> list[Polygon]:
    """A cell cut along the zero line of each of its value columns, with the tolerance of each."""
    pieces = [cell]
    heights = cell[:, 2:]
    for j in np.flatnonzero((heights.min(0) < -tolerance) & (heights.max(0) > tolerance)):
        parts = [part for piece in pieces for part in split_polygon(piece, int(j) + 2, float(tolerance[j]))]
        pieces = [part for part in parts if part is not None and polygon_area(part) > smallest]
    return pieces


def _at_vertices(
    network: FullyConnected, cells: list[Polygon], origin: Tensor, basis: Tensor, position: int
) -> tuple[list[NDArray[np.float64]], NDArray[np.float64]]:
    """Preactivations of a layer at the vertices of each cell; and of each neuron what its rounding is relative to.

    That is the largest |W| |a| + |b|: of one neuron beside a much larger one all would be rounding, and of one whose
    terms cancel nothing.
    """
    points = origin + torch.from_numpy(np.concatenate(cells)) @ basis
    states = walk(network, points)
    state, enters = states[position - 1], states[position - 2].activation if position > 1 else points
    sizes = enters.abs() @ state.weight.abs().mT + (0.0 if state.bias is None else state.bias.abs())
    values = np.split(state.preactivation.numpy(), np.cumsum([len(cell) for cell in cells])[:-1])
    return values, sizes.amax(0).numpy()


def _check_slice(
    network: FullyConnected, origin: Tensor, basis: Tensor, lower: tuple[float, float], upper: tuple[float, float]
) -> None:
    d_in = network.dimensions[0]
    if tuple(origin.shape) != (d_in,) or tuple(basis.shape) != (2, d_in):
        raise ShapeError(
            f"slice_cells: needs origin ({d_in},) and basis (2, {d_in}); got {tuple(origin.shape)} and "
            f"{tuple(basis.shape)}. Directions are rows."
        )
    if not (lower[0] < upper[0] and lower[1] < upper[1]):
        raise ValueError(f"slice_cells(lower={lower}, upper={upper}): needs lower < upper in both coordinates.")
    singular_values = torch.linalg.svdvals(basis.double())
    if not float(singular_values[-1]) > 1e-12 * float(singular_values[0]):
        raise ValueError("slice_cells(basis=): needs two independent directions. Use segment_pieces for a line.")
