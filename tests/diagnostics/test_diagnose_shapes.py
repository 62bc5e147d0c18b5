import torch

from isthmus.diagnostics import diagnose
from isthmus.networks import FullyConnected


def test_a_wide_network_between_few_inputs_and_outputs_has_one_table() -> None:
    """A Jacobian has at most d_out singular values, a weight matrix up to `width`: all share one dimension."""
    network = FullyConnected(3, 2, width=8, depth=3, seed=0, dtype=torch.float64)
    layers = diagnose(network, torch.randn(30, 3, generator=torch.Generator().manual_seed(0))).layers
    assert layers.sizes["component"] == 8
    assert layers["jacobian_singular_values"].notnull().sum("component").values.tolist() == [2, 2, 2]
