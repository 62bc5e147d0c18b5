import pytest
import torch

from closeness import assert_equals, assert_same_values, random
from isthmus.constructions import rank_one_interpolator, x_cross_example
from isthmus.errors import ShapeError
from isthmus.networks import FullyConnected, SliceCells, jacobians, segment_pieces, slice_cells
from tolerances import rounding


def make(slope: float = 0.0, *, depth: int = 3, linear: tuple[int, ...] = ()) -> FullyConnected:
    network = FullyConnected(
        4, 3, width=8, depth=depth, negative_slope=slope, linear=linear, seed=0, dtype=torch.float64
    )
    with torch.no_grad():
        for bias in network.biases:
            bias.copy_(random(len(bias)) / 2)
    return network


ORIGIN, BASIS = random(4, seed=1) / 4, random(2, 4, seed=2)


def assert_affine_on_every_cell(network: FullyConnected, cells: SliceCells) -> None:
    generator = torch.Generator().manual_seed(0)
    for polygon, values in zip(cells.polygons, cells.values, strict=True):
        shares = torch.rand(len(polygon), generator=generator, dtype=torch.float64)
        shares = shares / shares.sum()
        assert_same_values(network(cells.points((shares @ polygon)[None])), (shares @ values)[None])


@pytest.mark.parametrize("slope", [0.0, 0.3, -0.4])
@pytest.mark.parametrize("linear", [(), (1,)])
def test_the_network_is_affine_on_cells_that_fill_the_box(slope: float, linear: tuple[int, ...]) -> None:
    network = make(slope, linear=linear)
    cells = slice_cells(network, ORIGIN, BASIS, lower=(-2.0, -1.0), upper=(2.0, 3.0))
    assert len(cells.polygons) > 10
    assert_affine_on_every_cell(network, cells)
    assert_equals(cells.areas().sum(), 16.0)
    shallower = make(slope, linear=(*linear, 2))
    with pytest.raises(AssertionError):  # cells found without the kinks of layer 2
        assert_affine_on_every_cell(
            network, slice_cells(shallower, ORIGIN, BASIS, lower=(-2.0, -1.0), upper=(2.0, 3.0))
        )


def test_maxima_over_cells_dominate_all_samples_and_are_attained() -> None:
    network = make(depth=4)
    cells = slice_cells(network, ORIGIN, BASIS)
    square = 2 * torch.rand(5000, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) - 1
    found = jacobians(network, cells.points(square))
    sampled = float(torch.linalg.matrix_norm(found, 2).max())
    assert sampled <= cells.jacobian_norm() + rounding(condition=cells.jacobian_norm())
    tangent = torch.linalg.qr(BASIS.T)[0]
    inside = float(torch.linalg.matrix_norm(found @ tangent, 2).max())
    assert inside <= cells.lipschitz_constant() + rounding(condition=cells.jacobian_norm())
    assert cells.lipschitz_constant() <= cells.jacobian_norm()
    at_cells = jacobians(network, cells.points(cells.centroids))
    assert_equals(cells.jacobian_norm(), float(torch.linalg.svdvals(at_cells)[:, 0].max()))
    assert_equals(cells.lipschitz_constant(), float(torch.linalg.svdvals(at_cells @ tangent)[:, 0].max()))
    sums = torch.linalg.svdvals(found).pow(0.5).sum(1)
    assert float(sums.max()) <= float(cells.schatten_sums(0.5).max()) + rounding(condition=10)
    with pytest.raises(AssertionError):  # the smallest cell norm is no bound
        assert sampled <= float(torch.linalg.matrix_norm(cells.jacobians, 2).min())


def assert_lower_bound_on_a_rank_one_network(sums: torch.Tensor, depth: int) -> None:
    """A network of rank 1 and norm L + C has L * sum <= L s_1^(2/L), whatever the rounding of its Jacobians."""
    assert float(sums.max()) <= STEEPEST ** (2 / depth) * (1 + rounding(size=100))


RANK_ONE = rank_one_interpolator(random(6, 2), random(6, 3, seed=1), depth=100).network
STEEPEST = slice_cells(RANK_ONE, torch.zeros(2), torch.eye(2)).jacobian_norm()


def test_roundings_do_not_raise_the_schatten_sums_of_a_rank_deficient_map() -> None:
    cells = slice_cells(RANK_ONE, torch.zeros(2), torch.eye(2))
    assert_lower_bound_on_a_rank_one_network(cells.schatten_sums(2 / 100), 100)
    with pytest.raises(AssertionError):  # second singular values of 1e-16 count .48 each
        assert_lower_bound_on_a_rank_one_network(torch.linalg.svdvals(cells.jacobians).pow(2 / 100).sum(1), 100)
    with pytest.raises(ValueError, match=r"schatten_sums\(relative=0.0\): needs 0 < relative < 1"):
        cells.schatten_sums(0.5, relative=0.0)


@pytest.mark.theorem("FC-01")
def test_the_exact_rank_of_the_x_cross_is_one_and_of_a_plane_two() -> None:
    square = slice_cells(x_cross_example().network, torch.zeros(2), torch.eye(2))
    assert len(square.polygons) == 8
    assert square.jacobian_rank()[0] == 1
    rank, witness = slice_cells(make(), ORIGIN, BASIS).jacobian_rank()
    assert rank == int(torch.linalg.matrix_rank(jacobians(make(), witness[None])[0], rtol=rounding(condition=1e4)))


def test_the_zero_network_has_rank_zero() -> None:
    cells = slice_cells(FullyConnected.from_layers([torch.zeros(2, 2)]), torch.zeros(2), torch.eye(2))
    assert cells.jacobian_rank()[0] == 0
    assert len(cells.polygons) == 1


def resized_neurons(network: FullyConnected, powers: list[int]) -> FullyConnected:
    """The same function: neuron i of the first layer times 2^powers[i], undone behind it."""
    sizes = torch.tensor([2.0**power for power in powers], dtype=torch.float64)
    weights, biases = network.written_layers()
    assert biases is not None
    return FullyConnected.from_layers(
        [sizes[:, None] * weights[0], weights[1] / sizes, *weights[2:]], [sizes * biases[0], *biases[1:]],
        negative_slope=network.negative_slope,
    )  # fmt: skip


@pytest.mark.parametrize("powers", [[40] + [0] * 7, [-40] + [0] * 7, [200, -200] * 4, [500] * 8, [-500] * 8])
def test_what_is_exact_does_not_depend_on_the_sizes_of_neurons(powers: list[int]) -> None:
    """One tolerance of ties for a whole layer lost every cell of a neuron beside one that is 1e12 times as large."""
    network = make()
    usual, found = (slice_cells(one, ORIGIN, BASIS) for one in (network, resized_neurons(network, powers)))
    assert len(found.polygons) == len(usual.polygons) > 5
    assert_equals(found.lipschitz_constant(), usual.lipschitz_constant())
    assert_affine_on_every_cell(network, found)
    ends = ORIGIN - 2 * BASIS[0], ORIGIN + 2 * BASIS[1]
    first, second = (segment_pieces(one, *ends) for one in (network, resized_neurons(network, powers)))
    assert len(first.breakpoints) > 3
    assert_same_values(first.breakpoints, second.breakpoints)
    assert_equals(first.lipschitz_constant(), second.lipschitz_constant())


@pytest.mark.parametrize("seed", range(5))
def test_a_neuron_whose_terms_cancel_cuts_nothing(seed: int) -> None:
    """It is zero on the whole slice, and its rounding has both signs."""
    first, second = random(8, 2, seed=seed), random(8, 8, seed=seed + 10)
    away = torch.linalg.qr(second @ first, mode="complete").Q[:, 2:].mT  # on which nothing of the input is left
    others = torch.cat([away, (second @ first)[:, :1].mT])
    network = FullyConnected.from_layers([first, second, others, torch.ones(1, 7).double()], linear=(1, 2))
    cells = slice_cells(network, torch.zeros(2).double(), torch.eye(2).double())
    assert len(cells.polygons) == 2


def test_bad_input_is_refused_in_words() -> None:
    network = make()
    with pytest.raises(ShapeError, match="Directions are rows"):
        slice_cells(network, ORIGIN[:3], BASIS[:, :3])
    with pytest.raises(ValueError, match="needs lower < upper"):
        slice_cells(network, ORIGIN, BASIS, lower=(0.0, 0.0), upper=(0.0, 1.0))
    with pytest.raises(ValueError, match="two independent directions"):
        slice_cells(network, ORIGIN, BASIS[[0, 0]])
    with pytest.raises(ValueError, match="needs power > 0"):
        slice_cells(network, ORIGIN, BASIS).schatten_sums(0.0)
