import pytest
import torch

from isthmus.errors import ShapeError
from isthmus.networks import FullyConnected, min_norm_projection, walk
from tolerances import rounding


def network_and_data(n: int, *, dtype: torch.dtype = torch.float64) -> tuple[FullyConnected, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return (
        FullyConnected(4, 2, width=9, depth=4, seed=1, dtype=dtype),
        torch.randn(n, 4, generator=generator, dtype=dtype),
    )


def assert_same_preactivations(one: FullyConnected, other: FullyConnected, x: torch.Tensor) -> None:
    for before, after in zip(walk(one, x), walk(other, x), strict=True):
        gap = (before.preactivation - after.preactivation).abs().max()
        assert gap <= rounding(size=40, condition=float(before.preactivation.detach().abs().max()), dtype=x.dtype)


def test_few_samples_leave_a_strictly_smaller_penalty_and_the_same_preactivations() -> None:
    network, x = network_and_data(5)
    projected = min_norm_projection(network, x)
    assert_same_preactivations(network, projected, x)
    assert projected.penalty() < 0.95 * network.penalty()


def test_dropping_a_real_direction_is_caught_by_the_same_assertion() -> None:
    network, x = network_and_data(5)
    with pytest.raises(AssertionError):
        assert_same_preactivations(network, min_norm_projection(network, x, relative=0.3), x)


def test_no_network_with_the_same_layers_on_the_data_has_a_smaller_penalty() -> None:
    network, x = network_and_data(5)
    projected = min_norm_projection(network, x)
    state = walk(projected, x)[1].activation
    null = torch.linalg.svd(torch.cat([state, torch.ones(5, 1, dtype=x.dtype)], 1))[2][5:]
    row = torch.cat([projected.weights[2], projected.biases[2][:, None]], 1)
    assert (row @ null.T).abs().max() <= rounding(size=10)


def test_enough_samples_change_nothing_at_all() -> None:
    network = FullyConnected(4, 2, width=6, depth=2, seed=0, negative_slope=0.5, dtype=torch.float64)
    x = torch.randn(60, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert torch.equal(min_norm_projection(network, x).weights[1], network.weights[1])


def test_float32_network_stays_float32_and_keeps_its_function() -> None:
    network, x = network_and_data(5, dtype=torch.float32)
    projected = min_norm_projection(network, x)
    assert projected.weights[0].dtype == torch.float32
    assert_same_preactivations(network, projected, x)


def test_bad_input_is_refused_in_words() -> None:
    network, x = network_and_data(5)
    with pytest.raises(ValueError, match="needs 0 <= relative < 1"):
        min_norm_projection(network, x, relative=-1.0)
    with pytest.raises(ShapeError, match=r"needs x of shape \(n, 4\)"):
        min_norm_projection(network, x[:, :3])


def test_written_down_layers_are_checked() -> None:
    with pytest.raises(ShapeError, match="needs weight l of shape"):
        FullyConnected.from_layers([torch.eye(2), torch.eye(3)])
    with pytest.raises(ShapeError, match="needs one bias per weight"):
        FullyConnected.from_layers([torch.eye(2), torch.eye(2)], [torch.zeros(2)])
    with pytest.raises(ShapeError, match="at least one weight"):
        FullyConnected.from_layers([])


def test_written_down_layers_compute_what_they_say() -> None:
    weights = [torch.tensor([[1.0], [-1.0]]), torch.tensor([[1.0, 2.0]])]
    network = FullyConnected.from_layers(weights, [torch.zeros(2), torch.ones(1)])
    x = torch.tensor([[3.0], [-3.0]], dtype=torch.float64)
    assert network(x).flatten().tolist() == [4.0, 7.0]
