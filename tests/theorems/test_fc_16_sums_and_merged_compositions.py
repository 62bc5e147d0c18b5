import pytest
import torch

from closeness import assert_equals, assert_same_values, random
from isthmus.constructions import merged_composition, parallel_sum
from isthmus.errors import ShapeError
from isthmus.networks import FullyConnected

pytestmark = pytest.mark.theorem("FC-16")


def make(
    depth: int, *, slope: float = 0.0, seed: int = 0, d_in: int = 3, linear: tuple[int, ...] = ()
) -> FullyConnected:
    network = FullyConnected(
        d_in, 2, width=5, depth=depth, negative_slope=slope, seed=seed, linear=linear, dtype=torch.float64
    )
    with torch.no_grad():
        for bias in network.biases:
            bias.copy_(random(len(bias), seed=seed + 50))
    return network


@pytest.mark.parametrize("slope", [0.0, 0.3, -0.4])
@pytest.mark.parametrize("depths", [(1, 1), (3, 3), (1, 3), (4, 2)])
def test_the_sum_is_exact_and_its_penalty_has_the_cross_term(slope: float, depths: tuple[int, int]) -> None:
    f, g = make(depths[0], slope=slope), make(depths[1], slope=slope, seed=7)
    total = parallel_sum(f, g)
    x = random(30, 3)
    assert_same_values(total.network(x), f(x) + g(x))
    assert total.padding == (max(depths) - depths[0], max(depths) - depths[1])
    if depths[0] == depths[1]:
        separate = f.penalty() + g.penalty()
        assert_equals(total.network.penalty(), separate + total.cross_term)
        with pytest.raises(AssertionError):  # the paper forgets the cross term
            assert_equals(total.network.penalty(), separate)


def test_the_shallower_network_is_padded_where_that_is_cheapest() -> None:
    weights = [random(6, 3), random(4, 6, seed=1), random(2, 4, seed=2)]
    f, g = FullyConnected.from_layers(weights, [random(len(w), seed=9) for w in weights]), make(5, seed=7)
    total = parallel_sum(f, g)

    def assert_paid(per_layer: int) -> None:
        assert_equals(total.network.penalty(), f.penalty() + g.penalty() + total.cross_term + 2 * per_layer)

    assert_same_values(total.network(random(30, 3)), f(random(30, 3)) + g(random(30, 3)))
    assert_paid(4)  # two identities at the hidden layer of width 4
    with pytest.raises(AssertionError):  # at the layer of width 6
        assert_paid(6)


@pytest.mark.parametrize("slope", [0.0, 0.3])
@pytest.mark.parametrize("depths", [(1, 1), (3, 2), (1, 3), (2, 1)])
def test_the_merged_composition_is_exact_without_any_shift(slope: float, depths: tuple[int, int]) -> None:
    g, h = make(depths[0], slope=slope), make(depths[1], slope=slope, seed=7, d_in=2)
    merged = merged_composition(g, h)
    x = random(30, 3)
    assert merged.depth == sum(depths) - 1
    assert_same_values(merged(x), h(g(x)))
    with torch.no_grad():
        merged.biases[depths[0] - 1].copy_(h.biases[0])  # the bias of g lost at the junction
    with pytest.raises(AssertionError):
        assert_same_values(merged(x), h(g(x)))


def test_linear_layers_move_with_the_composition() -> None:
    g, h = make(3, linear=(2,)), make(3, seed=7, d_in=2, linear=(1,))
    x = random(30, 3)
    assert_same_values(merged_composition(g, h)(x), h(g(x)))


def test_sums_that_do_not_fit_are_refused_in_words() -> None:
    with pytest.raises(ShapeError, match="the same inputs and outputs"):
        parallel_sum(make(2), make(2, d_in=4))
    with pytest.raises(ValueError, match="the same activation in each layer"):
        parallel_sum(make(3), make(3, linear=(1,)))
    with pytest.raises(ValueError, match="the same activation in each layer"):
        parallel_sum(make(3), make(3, slope=0.2))
