"""The affine pieces of a network along a segment, found exactly layer by layer.

Two-dimensional slices: `networks.slices`. Certificates that use the pieces: `theory`.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.networks.fully_connected import FullyConnected
from isthmus.networks.jacobians import jacobians
from isthmus.networks.layers import Points, as_points, walk


@dataclass(frozen=True, slots=True)
class SegmentPieces:
    """A network on the segment x(t) = start + t (end - start), 0 <= t <= 1: affine on each of m pieces (*exact*).

    Attributes:
        start: x(0), shape (d_in,).
        end: x(1), shape (d_in,).
        breakpoints: 0 = t_0 < .. < t_m = 1, shape (m + 1,).
        values: f(x(t_i)), shape (m + 1, d_out).
        jacobians: Jf inside each piece, shape (m, d_out, d_in).

    >>> network = isthmus.FullyConnected.from_layers([torch.tensor([[1.0], [-1.0]]), torch.ones(1, 2)])
    >>> networks.segment_pieces(network, torch.tensor([-1.0]), torch.tensor([1.0])).breakpoints.tolist()
    [0.0, 0.5, 1.0]
    """

    start: Tensor
    end: Tensor
    breakpoints: Tensor
    values: Tensor
    jacobians: Tensor

    def jacobian_rank(self, *, relative: float = 1e-9) -> tuple[int, Tensor]:
        """Largest rank of Jf on the segment and a point where it is attained; `relative` to the largest of all s_1."""
        return largest_rank(self.jacobians, self._midpoints(), relative=relative)

    def lipschitz_constant(self) -> float:
        """Largest |f(x(t)) - f(x(t'))| / |x(t) - x(t')| on the segment (*exact*; 0 on a segment of length 0)."""
        along, length = self.end - self.start, (self.end - self.start).norm()
        # by Jacobians: differences of values lose their digits on short pieces
        return float(((self.jacobians @ along).norm(dim=1) / length).max()) if length > 0 else 0.0

    def distance_to(self, value: Tensor) -> float:
        """Least |f(x(t)) - value| on the segment (*exact*): 0 where f passes through the value (FC-06)."""
        start, step = self.values[:-1] - value, self.values.diff(dim=0)
        squared = step.square().sum(1)
        nearest = (-(start * step).sum(1) / torch.where(squared > 0, squared, torch.ones_like(squared))).clamp(0, 1)
        return float((start + nearest[:, None] * step).norm(dim=1).min())

    def _midpoints(self) -> Tensor:
        middle = (self.breakpoints[1:] + self.breakpoints[:-1]) / 2
        return self.start + middle[:, None] * (self.end - self.start)


def segment_pieces(
    network: FullyConnected, start: Float[Tensor, " d_in"] | Points, end: Float[Tensor, " d_in"] | Points
) -> SegmentPieces:
    """The affine pieces of a network on the segment from `start` to `end` (*exact* up to rounding).

    Each layer is affine on the pieces of the layers before it: a neuron breaks a piece where its preactivation changes
    sign. Pieces shorter than 1e-13 of the segment are not told apart.

    Args:
        network: any fully connected network, used in float64.
        start: first point.
        end: last point.

    Raises:
        ShapeError: a point that does not fit the network.
        TypeError: points that are not real floating-point numbers.
        ValueError: points that are not finite.

    Cost: one pass through the network per layer, on all breakpoints found so far.
    Source: ours. Test: networks/test_segments.

    >>> network = isthmus.FullyConnected.from_layers([torch.tensor([[1.0], [-1.0]]), torch.ones(1, 2)])
    >>> networks.segment_pieces(network, torch.tensor([-1.0]), torch.tensor([1.0])).jacobians.flatten().tolist()
    [-1.0, 1.0]
    """
    start, end = as_points("segment_pieces", start=start, end=end)
    d_in = network.dimensions[0]
    if tuple(start.shape) != (d_in,) or tuple(end.shape) != (d_in,):
        raise ShapeError(
            f"segment_pieces: needs points of shape ({d_in},); got {tuple(start.shape)} and {tuple(end.shape)}."
        )
    network, start, end = in_float64(network), start.double(), end.double()
    t = torch.tensor([0.0, 1.0], dtype=torch.float64, device=start.device)
    with torch.no_grad():
        for l in range(1, network.depth):
            if network.is_activated(l):
                z = walk(network, start + t[:, None] * (end - start))[l - 1].preactivation
                t = torch.cat([t, _sign_changes(t, z)]).sort().values
                t = torch.cat([t[:1], t[1:][t.diff() > 1e-13]])
                t[-1] = 1.0
        values = network(start + t[:, None] * (end - start))
        middle = (t[1:] + t[:-1]) / 2
        inside = jacobians(network, start + middle[:, None] * (end - start))
    return SegmentPieces(start, end, t, values, inside)


def largest_rank(found: Tensor, points: Tensor, *, relative: float) -> tuple[int, Tensor]:
    """Largest numerical rank among Jacobians, relative to the largest singular value of all, and the first witness."""
    check_relative("jacobian_rank", relative)
    singular_values = torch.linalg.svdvals(found)
    ranks = (singular_values > relative * singular_values.max()).sum(1)  # strict: the zero map has rank 0
    witness = int(ranks.argmax())
    return int(ranks[witness]), points[witness]


def check_relative(call: str, relative: float) -> None:
    """Raise unless a tolerance on singular values is a fraction."""
    if not 0 < relative < 1:
        raise ValueError(f"{call}(relative={relative}): needs 0 < relative < 1; rounding is below 1e-9.")


def in_float64(network: FullyConnected) -> FullyConnected:
    """The network with float64 parameters."""
    weights, biases = network.written_layers()
    return FullyConnected.from_layers(weights, biases, negative_slope=network.negative_slope, linear=network.linear)


def _sign_changes(t: Tensor, z: Tensor) -> Tensor:
    """Where the columns of z, affine between consecutive t, change sign."""
    left, right = z[:-1], z[1:]
    crossing = left.sign() * right.sign() < 0  # products of small numbers vanish
    share = 1 / (1 - torch.where(crossing, right / left, 0.0))  # and differences of large ones are infinite
    return (t[:-1, None] + t.diff()[:, None] * share)[crossing]
