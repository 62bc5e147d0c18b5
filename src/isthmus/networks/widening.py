"""A network with more neurons, close to the function of the one it is made from: a start for training.

Exact moves are in files of their own (`narrow_runs` widens linear layers and keeps the function).
"""

import torch

from isthmus.networks.fully_connected import FullyConnected
from isthmus.networks.layers import walk


def widened(network: FullyConnected, width: int, *, noise: float, seed: int = 0) -> FullyConnected:
    """The same network with more neurons of small random weights in every hidden layer (*estimate*).

        W' = noise * G,  G normal, but for the block of the neurons that were there:  W'[:m, :n] = W;   b' = (b, 0)

    Weights to and from an added neuron are small alike, so that the function changes by O(noise^2); with noise 0 it
    stays, and training cannot leave it by them.

    Args:
        network: with biases; not changed.
        width: neurons of each hidden layer, or as many as there were where that is more.
        noise: standard deviation of every new weight.
        seed: of them.

    Returns:
        A float64 network. Test: networks/test_widening.
    """
    generator = torch.Generator().manual_seed(seed)
    sizes = [network.dimensions[0], *(max(width, d) for d in network.dimensions[1:-1]), network.dimensions[-1]]
    weights: list[torch.Tensor] = []
    biases: list[torch.Tensor] = []
    with torch.no_grad():
        for state in walk(network, torch.zeros(1, sizes[0], dtype=torch.float64)):
            rows, columns = sizes[state.position], sizes[state.position - 1]
            weight = noise * torch.randn(rows, columns, generator=generator, dtype=torch.float64)
            bias = torch.zeros(rows, dtype=torch.float64)
            weight[: state.weight.shape[0], : state.weight.shape[1]] = state.weight
            assert state.bias is not None
            bias[: len(state.bias)] = state.bias
            weights.append(weight)
            biases.append(bias)
    return FullyConnected.from_layers(weights, biases)
