import pytest
import torch

from isthmus.errors import ShapeError
from isthmus.networks import FullyConnected, compress_depth, insert_identity_layers, merge_layers
from tolerances import rounding


def near_identity_network(depth: int = 6) -> tuple[FullyConnected, torch.Tensor]:
    """A ReLU net whose middle layers are close to the identity on a non-negative representation."""
    generator = torch.Generator().manual_seed(2)
    eye = torch.eye(3, dtype=torch.float64)
    noise = [0.02 * torch.randn(3, 3, generator=generator, dtype=torch.float64) for _ in range(depth - 2)]
    first, last = (torch.randn(*s, generator=generator, dtype=torch.float64) for s in ((3, 4), (2, 3)))
    biases = [torch.full((3,), 1.0)] + [torch.zeros(3)] * (depth - 2) + [torch.zeros(2)]
    network = FullyConnected.from_layers([first, *(eye + e for e in noise), last], biases)
    return network, torch.randn(60, 4, generator=generator, dtype=torch.float64)


def test_merging_reports_the_error_that_it_makes() -> None:
    network, x = near_identity_network()
    merged = merge_layers(network, 3, x)
    with torch.no_grad():
        error = float((merged.network(x) - network(x)).norm() / network(x).norm())
    assert merged.network.depth == network.depth - 1
    assert abs(merged.relative_error - error) <= rounding()


def test_merging_is_exact_where_no_neuron_changes_sign() -> None:
    weights = [torch.tensor([[1.0, 1.0], [-1.0, -1.0]]), torch.tensor([[1.0, 3.0]])]
    network = FullyConnected.from_layers(weights, negative_slope=0.2)
    x = torch.tensor([[1.0, 2.0], [0.5, 4.0]], dtype=torch.float64)
    merged = merge_layers(network, 1, x)
    assert merged.is_exact
    assert merged.relative_error <= rounding()
    assert not merge_layers(network, 1, torch.cat([x, -x])).is_exact


def test_compression_merges_near_identities_and_stops_before_the_tolerance() -> None:
    network, x = near_identity_network()
    compressed = compress_depth(network, x, tolerance=0.02)
    assert compressed.network.depth <= 3
    assert compressed.relative_error <= 0.02
    assert len(compressed.merged) == network.depth - compressed.network.depth
    full = compress_depth(network, x, tolerance=10.0)
    assert full.network.depth == 1
    assert full.relative_error > 0.02


def test_the_layers_that_went_are_those_of_the_original_network() -> None:
    """Hidden layer 2 repeats 1 and 4 repeats 3, so that one of each pair may go."""
    eye = torch.eye(4, dtype=torch.float64)
    w = [torch.randn(4, 4, generator=torch.Generator().manual_seed(i), dtype=torch.float64) for i in range(3)]
    network = FullyConnected.from_layers([w[0], eye, w[1], eye, w[2]])
    x = torch.randn(50, 4, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    compressed = compress_depth(network, x, tolerance=1e-9)
    assert compressed.merged in ((2, 3), (2, 4))
    assert compressed.network.depth == 3
    assert float((compressed.network(x) - network(x)).detach().abs().max()) <= rounding(condition=100)


def test_bad_positions_are_refused_in_words() -> None:
    network, x = near_identity_network()
    with pytest.raises(ValueError, match=r"needs a hidden layer, 1\.\.5"):
        merge_layers(network, 6, x)
    with pytest.raises(ValueError, match="needs count >= 0"):
        insert_identity_layers(network, -1)
    with pytest.raises(ValueError, match="needs a finite tolerance"):
        compress_depth(network, x, tolerance=float("nan"))
    with pytest.raises(ShapeError, match="samples as rows"):
        merge_layers(network, 1, x[:, :2])
