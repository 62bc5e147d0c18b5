from math import exp, inf, nan

import pytest
import torch

from closeness import assert_equals, assert_same_values
from isthmus.constructions import divergent_representation_example
from isthmus.networks import FullyConnected, walk

pytestmark = pytest.mark.theorem("FC-36")


def kink(x: torch.Tensor, alpha: float) -> torch.Tensor:
    return torch.cat([x[:, :2], x[:, 2:] + alpha * (x[:, :1] - x[:, 1:2]).relu()], 1)


def cube(n: int = 200) -> torch.Tensor:
    return torch.rand(n, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("depth", [2, 4, 20, 100])
@pytest.mark.parametrize("alpha", [0.0, 1.0, 5.0])
def test_the_network_is_the_map_at_the_stated_norm(depth: int, alpha: float) -> None:
    example = divergent_representation_example(depth, alpha=alpha, epsilon=depth**-0.75)
    assert_same_values(example.network(cube()), kink(cube(), alpha))
    assert_equals(example.network.penalty(), example.squared_norm)
    wrong = divergent_representation_example(depth, alpha=alpha + 0.1, epsilon=depth**-0.75)
    with pytest.raises(AssertionError):
        assert_same_values(wrong.network(cube()), kink(cube(), alpha))


def test_the_norm_tends_to_three_per_layer_while_activations_diverge() -> None:
    examples = [divergent_representation_example(depth, epsilon=depth**-0.75) for depth in (20, 100, 400, 1600)]
    excesses = [e.squared_norm - 3 * depth for e, depth in zip(examples, (20, 100, 400, 1600), strict=True)]
    assert [round(excess, 3) for excess in excesses] == [2.886, 1.230, 0.604, 0.300]
    sizes = [e.largest_activation for e in examples]
    assert [round(size, 1) for size in sizes] == [2.9, 4.9, 9.4, 23.6]


def largest_on_the_cube(network: FullyConnected) -> float:
    """Activations are largest at corners: convex along each edge of the cube."""
    corners = torch.cartesian_prod(*[torch.tensor([0.0, 1.0])] * 3).double()
    return max(float(state.activation.detach().max()) for state in walk(network, corners)[:-1])


# a weak kink; one whose image is the largest; one whose neuron is
@pytest.mark.parametrize(
    ("depth", "alpha", "epsilon"), [(20, 1.0, 0.1), (100, 5.0, 0.01), (2, 9.0, 0.1), (4, 0.0, 0.0)]
)
def test_the_largest_activation_is_the_stated_one(depth: int, alpha: float, epsilon: float) -> None:
    example = divergent_representation_example(depth, alpha=alpha, epsilon=epsilon)
    assert_equals(largest_on_the_cube(example.network), example.largest_activation)
    with pytest.raises(AssertionError):  # the kept coordinates alone, or without the half
        assert_equals(example.largest_activation, exp(depth * epsilon / (1 if alpha == 1 else 2)) + (alpha == 0))


@pytest.mark.parametrize(
    ("depth", "alpha", "epsilon"),
    [(3, 1.0, 0.1), (0, 1.0, 0.1), (4, -1.0, 0.1), (4, nan, 0.1), (4, inf, 0.1), (4, 1.0, -0.1), (4, 1.0, nan),
     (4, 1.0, 1e6)],
)  # fmt: skip
def test_bad_input_is_refused_in_words(depth: int, alpha: float, epsilon: float) -> None:
    with pytest.raises(ValueError, match=r"needs an even depth >= 2, alpha >= 0 and 0 <= epsilon <= 300 / depth"):
        divergent_representation_example(depth, alpha=alpha, epsilon=epsilon)
