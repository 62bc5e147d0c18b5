import pytest
import torch

from closeness import assert_same_values, random
from isthmus.constructions import compose_with_identity, piecewise_linear_network
from isthmus.networks import ClassRegions, FullyConnected, class_regions, slice_cells

pytestmark = pytest.mark.theorem("FC-45")

SQUARE = (torch.zeros(2), torch.eye(2))


def fan(num_classes: int, centre: tuple[float, float] = (0.0, 0.0)) -> FullyConnected:
    """Affine logits whose regions are sectors around `centre`."""
    angles = torch.arange(num_classes, dtype=torch.float64) * (2 * torch.pi / num_classes) + 0.1
    weight = torch.stack([angles.cos(), angles.sin()], 1)
    return FullyConnected.from_layers([weight], [-weight @ torch.tensor(centre, dtype=torch.float64)])


def assert_no_tripoints(regions: ClassRegions) -> None:
    assert len(regions.tripoints) == 0


@pytest.mark.parametrize("num_classes", [3, 4, 5])
def test_a_fan_has_one_point_where_all_classes_meet(num_classes: int) -> None:
    regions = class_regions(slice_cells(fan(num_classes, (0.2, -0.3)), *SQUARE))
    assert_same_values(regions.tripoints, torch.tensor([[0.2, -0.3]], dtype=torch.float64))
    assert regions.tripoint_classes == (tuple(range(num_classes)),)
    neighbours = {(min(c, d), max(c, d)) for c in range(num_classes) for d in [(c + 1) % num_classes]}
    assert regions.adjacent == neighbours
    with pytest.raises(AssertionError):
        assert_no_tripoints(regions)


@pytest.mark.parametrize("seed", range(4))
def test_logits_through_one_dimension_have_no_tripoint(seed: int) -> None:
    inner = FullyConnected(2, 1, width=6, depth=3, seed=seed, dtype=torch.float64)
    with torch.no_grad():  # its values fill the range on which the outer map has its pieces
        ticks = torch.linspace(-1, 1, 41, dtype=torch.float64)
        values = inner(torch.cartesian_prod(ticks, ticks))
        scale = 2 / (values.max() - values.min())
        inner.weights[-1].mul_(scale)
        inner.biases[-1].copy_(scale * (inner.biases[-1] - (values.max() + values.min()) / 2))
    outer = piecewise_linear_network(torch.linspace(-1, 1, 9), random(9, 4, seed=seed))
    shifted = compose_with_identity(inner, outer, 2, box=(-torch.ones(2), torch.ones(2)))
    regions = class_regions(slice_cells(shifted.network, *SQUARE))
    assert len(regions.labels.unique()) >= 2
    assert_no_tripoints(regions)


def test_the_pieces_carry_the_class_that_wins_inside_them() -> None:
    network = FullyConnected(2, 4, width=12, depth=3, seed=5, dtype=torch.float64)
    with torch.no_grad():
        for bias in network.biases:
            bias.copy_(random(len(bias), seed=5) / 2)
    regions = class_regions(slice_cells(network, *SQUARE))
    centres = torch.stack([polygon.mean(0) for polygon in regions.polygons])
    assert torch.equal(network(centres).argmax(1), regions.labels)
    assert {c for pair in regions.adjacent for c in pair} == set(regions.labels.tolist())
    for point, classes in zip(regions.tripoints, regions.tripoint_classes, strict=True):
        angles = torch.linspace(0, 2 * torch.pi, 721, dtype=torch.float64)[:-1]
        ring = point + 1e-6 * torch.stack([angles.cos(), angles.sin()], 1)
        inside = (ring.abs() <= 1).all(1)
        assert set(network(ring[inside]).argmax(1).tolist()) == set(classes)


def test_strips_side_by_side_are_adjacent_in_order_only() -> None:
    # logits i t - i^2/4 on t = u: classes win on successive intervals of t
    weight = torch.tensor([[0.0, 0], [1, 0], [2, 0], [3, 0]])
    bias = torch.tensor([0.0, 0.75, 1.0, 0.75])
    regions = class_regions(slice_cells(FullyConnected.from_layers([weight], [bias]), *SQUARE))
    assert regions.adjacent == {(0, 1), (1, 2), (2, 3)}
    assert_no_tripoints(regions)


def test_a_class_that_only_ties_at_a_point_makes_no_tripoint() -> None:
    # logits u, -u and -|v| tie at the origin, where the third never wins
    first = torch.tensor([[1.0, 0], [-1, 0], [0, 1], [0, -1]])
    second = torch.tensor([[1.0, -1, 0, 0], [-1, 1, 0, 0], [0, 0, -1, -1]])
    regions = class_regions(slice_cells(FullyConnected.from_layers([first, second]), *SQUARE))
    assert set(regions.labels.tolist()) == {0, 1}
    assert regions.adjacent == {(0, 1)}
    assert_no_tripoints(regions)


@pytest.mark.parametrize("away", [1e-13, 1e-12, 1e-11])
def test_an_edge_of_rounding_length_where_four_classes_meet_makes_no_neighbours(away: float) -> None:
    # a neuron that nobody reads cuts the sectors beside their common corner: pieces with edges as short as `away`
    centre = torch.tensor([0.2, -0.3], dtype=torch.float64)
    eye, cut = torch.eye(2, dtype=torch.float64), torch.tensor([[0.6, 0.8]], dtype=torch.float64)
    first = torch.cat([eye, -eye, cut])
    bias = torch.zeros(5, dtype=torch.float64)
    bias[4] = -(cut @ centre) - away
    angles = torch.arange(4, dtype=torch.float64) * (torch.pi / 2) + 0.1
    weight = torch.stack([angles.cos(), angles.sin()], 1)
    second = torch.cat([weight, -weight, torch.zeros(4, 1, dtype=torch.float64)], 1)
    network = FullyConnected.from_layers([first, second], [bias, -weight @ centre])
    regions = class_regions(slice_cells(network, *SQUARE))
    assert regions.adjacent == {(0, 1), (1, 2), (2, 3), (0, 3)}


def test_one_output_is_refused() -> None:
    cells = slice_cells(FullyConnected(2, 1, width=3, depth=2), *SQUARE)
    with pytest.raises(ValueError, match="needs at least two outputs"):
        class_regions(cells)
