import pytest
import torch

from closeness import assert_equals, assert_same_values, random
from isthmus.constructions import leaky_from_relu
from isthmus.networks import FullyConnected

pytestmark = pytest.mark.theorem("FC-18")


@pytest.mark.parametrize("a", [0.0, 0.3, -0.4, 0.9])
@pytest.mark.parametrize("linear", [(), (2,)])
def test_a_relu_network_is_written_exactly_with_another_slope(a: float, linear: tuple[int, ...]) -> None:
    network = FullyConnected(3, 2, width=5, depth=4, linear=linear, seed=0, dtype=torch.float64)
    x = random(40, 3)
    converted = leaky_from_relu(network, a)
    assert converted.negative_slope == a
    assert_same_values(converted(x), network(x))
    if a:
        misprint = leaky_from_relu(network, a)
        with torch.no_grad():
            misprint.weights[3][:, 5:] *= -1  # the paper's minus sign
        with pytest.raises(AssertionError):
            assert_same_values(misprint(x), network(x))


@pytest.mark.parametrize("a", [0.3, -0.4])
def test_squared_norms_grow_by_the_stated_factors(a: float) -> None:
    network = FullyConnected(3, 2, width=5, depth=3, seed=0, bias=False, dtype=torch.float64)
    converted = leaky_from_relu(network, a)
    last = (1 + a * a) / (1 - a * a) ** 2
    for factor, before, after in zip([2, 2 * last, last], network.weights, converted.weights, strict=True):
        assert_equals(after.square().sum(), factor * before.square().sum())
    assert converted.has_bias is False


def test_bad_slopes_are_refused_in_words() -> None:
    network = FullyConnected(3, 2, width=5, depth=3)
    with pytest.raises(ValueError, match=r"needs \|a\| < 1"):
        leaky_from_relu(network, -1.0)
    with pytest.raises(ValueError, match="needs a ReLU network"):
        leaky_from_relu(FullyConnected(3, 2, width=5, depth=3, negative_slope=0.1), 0.2)
