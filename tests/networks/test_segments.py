import numpy as np
import pytest
import torch

from closeness import assert_equals, assert_same_values, random
from isthmus.errors import ShapeError
from isthmus.networks import FullyConnected, jacobians, output_range, segment_pieces, slice_cells
from isthmus.networks.segments import SegmentPieces
from tolerances import rounding


def make(slope: float = 0.0, *, depth: int = 4, linear: tuple[int, ...] = (), seed: int = 0) -> FullyConnected:
    network = FullyConnected(
        3, 2, width=12, depth=depth, negative_slope=slope, linear=linear, seed=seed, dtype=torch.float64
    )
    with torch.no_grad():
        for bias in network.biases:
            bias.copy_(random(len(bias), seed=seed) / 2)
    return network


def assert_affine_on_every_piece(network: FullyConnected, pieces: SegmentPieces) -> None:
    share = torch.rand(len(pieces.jacobians), 1, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    t = pieces.breakpoints[:-1, None] + share * pieces.breakpoints.diff()[:, None]
    interpolated = pieces.values[:-1] + share * pieces.values.diff(dim=0)
    assert_same_values(network(pieces.start + t * (pieces.end - pieces.start)), interpolated)


@pytest.mark.parametrize("slope", [0.0, 0.3, -0.4])
@pytest.mark.parametrize("linear", [(), (2,)])
def test_the_network_is_affine_exactly_on_the_pieces(slope: float, linear: tuple[int, ...]) -> None:
    network, start, end = make(slope, linear=linear), random(3) * 3, -random(3, seed=1) * 3
    pieces = segment_pieces(network, start, end)
    assert len(pieces.jacobians) > 10
    assert_affine_on_every_piece(network, pieces)
    keep = [i for i in range(len(pieces.breakpoints)) if i != len(pieces.breakpoints) // 2]
    coarser = SegmentPieces(start, end, pieces.breakpoints[keep], pieces.values[keep], pieces.jacobians[1:])
    with pytest.raises(AssertionError):  # one breakpoint lost
        assert_affine_on_every_piece(network, coarser)


def test_the_jacobians_are_those_of_the_pieces() -> None:
    network, start, end = make(), random(3) * 3, -random(3, seed=1) * 3
    pieces = segment_pieces(network, start, end)
    steps = pieces.breakpoints.diff()[:, None] * (pieces.jacobians @ (end - start))
    assert_same_values(steps, pieces.values.diff(dim=0))
    x = random(4, 3, seed=2)
    by_autograd = torch.stack([torch.autograd.functional.jacobian(network, row[None])[0, :, 0] for row in x])  # pyright: ignore[reportArgumentType, reportCallIssue]
    assert_same_values(jacobians(network, x), by_autograd)


def test_the_lipschitz_constant_bounds_every_difference_and_is_attained() -> None:
    network, start, end = make(), random(3) * 3, -random(3, seed=1) * 3
    pieces = segment_pieces(network, start, end)
    t = torch.linspace(0, 1, 4001, dtype=torch.float64)[:, None]
    values = network(start + t * (end - start)).detach()
    sampled = float((values.diff(dim=0).norm(dim=1) / ((end - start).norm() / 4000)).max())
    assert sampled <= pieces.lipschitz_constant() + rounding(condition=1e5)
    assert sampled >= 0.99 * pieces.lipschitz_constant()


def test_the_distance_to_a_value_is_below_that_of_all_samples_and_zero_on_the_curve() -> None:
    network, start, end = make(), random(3) * 3, -random(3, seed=1) * 3
    pieces = segment_pieces(network, start, end)
    t = torch.linspace(0, 1, 4001, dtype=torch.float64)[:, None]
    values = network(start + t * (end - start)).detach()
    target = torch.tensor([0.3, 5.0], dtype=torch.float64)
    sampled = float((values - target).norm(dim=1).min())
    assert 0.999 * sampled <= pieces.distance_to(target) <= sampled
    assert pieces.distance_to(values[1234]) <= rounding(condition=10)


def test_rank_and_witness() -> None:
    network = FullyConnected.from_layers([torch.eye(2), torch.eye(2)])
    rank, witness = segment_pieces(network, torch.tensor([-1.0, -2.0]), torch.tensor([2.0, 1.0])).jacobian_rank()
    assert rank == 2
    assert bool((witness > 0).all())


def test_a_kink_at_the_end_leaves_the_end_in_place() -> None:
    network = FullyConnected.from_layers(
        [torch.ones(1, 1), torch.ones(1, 1)], [torch.tensor([1e-14 - 1]).double(), torch.zeros(1)]
    )
    pieces = segment_pieces(network, torch.zeros(1), torch.ones(1))
    assert pieces.breakpoints.tolist() == [0.0, 1.0]


def test_a_segment_of_one_point_and_bad_points() -> None:
    network = make()
    pieces = segment_pieces(network, torch.zeros(3), torch.zeros(3))
    assert len(pieces.jacobians) == 1
    assert pieces.lipschitz_constant() == 0.0
    with pytest.raises(ShapeError, match=r"needs points of shape \(3,\)"):
        segment_pieces(network, torch.zeros(2), torch.zeros(2))
    with pytest.raises(ValueError, match="needs 0 < relative < 1"):
        pieces.jacobian_rank(relative=0.0)


def test_a_short_steep_piece_keeps_its_digits() -> None:
    # 1000 + relu(t - 1/2) - relu(t - 1/2 - 3e-13): slope 1 on a piece of 3e-13
    network = FullyConnected.from_layers(
        [torch.ones(2, 1), torch.tensor([[1.0, -1.0]])],
        [torch.tensor([-0.5, -0.5 - 3e-13], dtype=torch.float64), 1000 * torch.ones(1)],
    )
    pieces = segment_pieces(network, torch.zeros(1), torch.ones(1))
    by_differences = float((pieces.values.diff(dim=0).abs().squeeze(1) / pieces.breakpoints.diff()).max())
    assert_equals(pieces.lipschitz_constant(), 1.0)
    with pytest.raises(AssertionError):
        assert_equals(by_differences, 1.0)


@pytest.mark.parametrize("power", [-560, -300, 300, 560])
def test_kinks_of_neurons_of_any_size_are_seen(power: int) -> None:
    """Products of small preactivations vanish: a path through 0 was said to avoid it by 1."""
    size = 2.0**power
    network = FullyConnected.from_layers(
        [
            torch.tensor([[size], [-size]], dtype=torch.float64),
            torch.tensor([[1 / size, 1 / size]], dtype=torch.float64),
        ]
    )
    pieces = segment_pieces(network, torch.tensor([-1.0]), torch.tensor([1.0]))
    assert pieces.breakpoints.tolist() == [0, 0.5, 1]
    assert pieces.lipschitz_constant() == 1
    assert pieces.distance_to(torch.zeros(1).double()) == 0


def test_a_box_as_large_as_numbers_go_is_bounded() -> None:
    network = FullyConnected.from_layers([torch.eye(2).double(), torch.ones(2, 2).double(), torch.eye(2).double()])
    for lower, upper, largest in ((-1e308, 1.7e308, torch.inf), (-1e307, 1e307, 2e307)):
        box = [torch.tensor([end, end], dtype=torch.float64) for end in (lower, upper)]
        low, high = output_range(network, *box)
        assert (low <= 0).all()
        assert (high >= largest).all()


def test_arrays_and_lists_are_points_as_tensors_are() -> None:
    network = FullyConnected.from_layers([torch.eye(2).double(), torch.ones(1, 2).double()])
    ends = [[-1.0, 0.5], [1.0, 0.5]]
    wanted = segment_pieces(network, *map(torch.tensor, ends))
    for kind in (list, np.array):
        found = segment_pieces(network, kind(ends[0]), kind(ends[1]))
        assert_same_values(found.breakpoints, wanted.breakpoints)
        low, high = output_range(network, kind(ends[0]), kind(ends[1]))
        assert (float(low), float(high)) == (0.5, 1.5)
        assert len(slice_cells(network, kind([0.0, 0.0]), kind([[1.0, 0.0], [0.0, 1.0]])).polygons) == 4
    with pytest.raises(TypeError, match="segment_pieces.*start.*str"):
        segment_pieces(network, "a", ends[1])  # pyright: ignore[reportArgumentType]
