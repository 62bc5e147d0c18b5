import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from closeness import assert_equals, assert_same_values, random
from isthmus.constructions import compose_with_identity
from isthmus.errors import ShapeError
from isthmus.networks import FullyConnected, output_range

pytestmark = pytest.mark.theorem("FC-15")


def pair(slope: float, seed: int = 0, *, bias: bool = True) -> tuple[FullyConnected, FullyConnected]:
    def make(d_in: int, d_out: int, width: int, depth: int, seed: int) -> FullyConnected:
        return FullyConnected(
            d_in, d_out, width=width, depth=depth, negative_slope=slope, bias=bias, seed=seed, dtype=torch.float64
        )

    return make(4, 2, 6, 3, seed), make(2, 3, 7, 2, seed + 100)


@pytest.mark.parametrize("slope", [0.0, 0.3, -0.4])
@pytest.mark.parametrize("num_identities", [0, 1, 20])
def test_the_composition_is_exact_and_each_identity_costs_k(slope: float, num_identities: int) -> None:
    g, h = pair(slope)
    x = random(40, 4)
    composed = compose_with_identity(g, h, num_identities, x=x)
    assert_same_values(composed.network(x), h(g(x)))
    assert composed.network.depth == 5 + num_identities
    assert composed.inner_dimension == 2
    assert_equals(composed.network.penalty(), 2 * composed.network.depth + composed.constant)
    with pytest.raises(AssertionError):  # without the identities' cost
        assert_equals(composed.network.penalty(), 2 * composed.network.depth + composed.constant + 2)
    without_shift = compose_with_identity(g, h, num_identities, shift=torch.zeros(2, dtype=torch.float64))
    with pytest.raises(AssertionError):  # the junction applies sigma to g: without the shift it cuts
        assert_same_values(without_shift.network(x), h(g(x)))


def test_the_shift_is_the_least_one_on_the_samples() -> None:
    g, h = pair(0.0)
    x = random(40, 4)
    shift = compose_with_identity(g, h, 3, x=x).shift
    assert_same_values(shift, (-g(x).amin(0)).clamp(min=0))
    less = compose_with_identity(g, h, 3, shift=shift * 0.99)
    with pytest.raises(AssertionError):
        assert_same_values(less.network(x), h(g(x)))


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 999), slope=st.sampled_from([0.0, 0.3, -0.4]))
def test_a_box_shift_is_sound_on_the_whole_box(seed: int, slope: float) -> None:
    g, h = pair(slope, seed)
    lower, upper = torch.tensor([-1.0, 0, 0, -2]).double(), torch.tensor([1.0, 2, 0, 1]).double()
    composed = compose_with_identity(g, h, 2, box=(lower, upper))
    x = lower + (upper - lower) * torch.rand(200, 4, generator=torch.Generator().manual_seed(seed)).double()
    low, high = output_range(g, lower, upper)
    assert bool(((g(x) >= low) & (g(x) <= high)).all())
    assert_same_values(composed.network(x), h(g(x)))


def test_networks_without_biases_get_them() -> None:
    g, h = pair(0.0, bias=False)
    x = random(20, 4)
    assert_same_values(compose_with_identity(g, h, 2, x=x).network(x), h(g(x)))


def test_linear_layers_stay_linear() -> None:
    g = FullyConnected(3, 2, width=4, depth=3, linear=[2], seed=0, dtype=torch.float64)
    h = FullyConnected(2, 2, width=4, depth=3, linear=[1], seed=1, dtype=torch.float64)
    x = random(20, 3)
    composed = compose_with_identity(g, h, 1, x=x)
    assert composed.network.linear == {2, 5}
    assert_same_values(composed.network(x), h(g(x)))


def test_bad_input_is_refused_in_words() -> None:
    g, h = pair(0.0)
    x = random(5, 4)
    with pytest.raises(ShapeError, match="The inner network comes first"):
        compose_with_identity(h, g, 1, x=x)
    with pytest.raises(ValueError, match="needs exactly one of"):
        compose_with_identity(g, h, 1)
    with pytest.raises(ValueError, match="needs num_identities >= 0"):
        compose_with_identity(g, h, -1, x=x)
    with pytest.raises(ValueError, match="needs equal negative slopes"):
        compose_with_identity(g, pair(0.3)[1], 1, x=x)
    with pytest.raises(ShapeError, match=r"needs shape \(2,\)"):
        compose_with_identity(g, h, 1, shift=torch.zeros(3))
    with pytest.raises(ValueError, match="needs lower <= upper"):
        output_range(g, torch.ones(4), torch.zeros(4))
    with pytest.raises(ShapeError, match="needs lower and upper of shape"):
        output_range(g, torch.ones(2), torch.zeros(2))
