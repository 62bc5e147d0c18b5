from collections.abc import Callable

import pytest
import torch

from closeness import assert_equals, assert_same_values, random
from isthmus.constructions import x_cross_example
from isthmus.networks import jacobians, segment_pieces
from tolerances import rounding

pytestmark = pytest.mark.theorem("FC-05")


def x_cross(x: torch.Tensor) -> torch.Tensor:
    return x.sign() * x.abs().amin(1, keepdim=True)


def misprint(x: torch.Tensor) -> torch.Tensor:
    """The paper's two cases in their printed order: it jumps across the axes."""
    a, b = x.T
    swapped = a.abs() > b.abs()
    return torch.where(
        swapped[:, None], torch.stack([a, b.sign() * a.abs()], 1), torch.stack([a.sign() * b.abs(), b], 1)
    )


def assert_continuous_on_the_axes(f: Callable[[torch.Tensor], torch.Tensor]) -> None:
    near = torch.tensor([[1.0, 1e-13], [1.0, -1e-13], [1e-13, 2.0], [-1e-13, 2.0]], dtype=torch.float64)
    values = f(near)
    assert_same_values(values[[0, 2]], values[[1, 3]])


def test_the_network_is_the_map() -> None:
    example, x = x_cross_example(), random(500, 2)
    assert example.network.dimensions == (2, 4, 8, 2)
    assert_same_values(example.network(x), x_cross(x))
    with pytest.raises(AssertionError):
        assert_same_values(example.network(x), misprint(x))
    assert_equals(example.network.penalty(), 38.0)


def test_it_is_continuous_and_the_printed_map_is_not() -> None:
    assert_continuous_on_the_axes(x_cross_example().network)
    with pytest.raises(AssertionError):
        assert_continuous_on_the_axes(misprint)


def test_every_sector_has_rank_one_and_the_cross_stays() -> None:
    example, x = x_cross_example(), random(500, 2)
    ranks = torch.linalg.matrix_rank(jacobians(example.network, x), rtol=rounding(size=10))
    assert ranks.unique().tolist() == [example.jacobian_rank]
    t = random(50, 1).abs()
    cross = torch.cat([torch.cat([t, t], 1), torch.cat([t, -t], 1), -torch.cat([t, t], 1)])
    assert_same_values(example.network(cross), cross)


@pytest.mark.theorem("FC-06")
def test_three_arms_of_the_cross_certify_a_bottleneck_rank_of_two() -> None:
    """If f = h o g with g into a line, every path between two of the points meets the level of the median one."""
    network = x_cross_example().network
    arms = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]], dtype=torch.float64)
    centre = torch.zeros(2, dtype=torch.float64)

    def distance(avoided: int, via: torch.Tensor) -> float:
        start, end = (arms[i] for i in range(3) if i != avoided)
        value = network(arms[avoided][None])[0].detach()
        return min(segment_pieces(network, a, b).distance_to(value) for a, b in ((start, via), (via, end)))

    for avoided in range(3):
        assert_equals(distance(avoided, centre), 2**0.5)
    assert_equals(distance(0, arms[0]), 0.0)  # a path through the point itself certifies nothing
