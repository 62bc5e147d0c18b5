"""Networks with more or fewer neurons: a linear run in fewer coordinates and back, and a start with room for training.

The depth of a run: `networks.folding`. Lowering its rank: `training.moves.truncate_middle`.
"""

import torch
from torch import Tensor

from isthmus.networks.departures import check_as_written
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
        A float64 network. Test: networks/test_layer_widths.
    """
    check_as_written("widened", network, FullyConnected)
    generator = torch.Generator().manual_seed(seed)
    sizes = [network.dimensions[0], *(max(width, d) for d in network.dimensions[1:-1]), network.dimensions[-1]]
    weights: list[Tensor] = []
    biases: list[Tensor] = []
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


def narrow_linear_run(network: FullyConnected, rank: int) -> FullyConnected:
    """The network with each linear hidden layer written in the `rank` coordinates that the next matrix reads.

        W_{l+1} = U S V^T  ->  U S,     (W_l, b_l)  ->  V^T (W_l, b_l),     from the last layer of a run to its first

    The same function up to rounding where every matrix that reads a linear layer has at most that rank, and the
    penalty never rises: what a layer held outside the rows of V^T was read by nobody.

    Args:
        network: any fully connected network; it is not changed.
        rank: neurons of each linear hidden layer; layers that are as narrow already stay.

    Source: ours. Test: networks/test_layer_widths.
    """
    weights, biases = network.written_layers()
    for l in sorted(network.linear, reverse=True):
        if len(weights[l - 1]) <= rank:
            continue
        like = weights[l]
        u, s, vh = torch.linalg.svd(like.double(), full_matrices=False)
        # fewer rows than coordinates: the other coordinates are read by nobody either
        axes = vh[:rank]
        weights[l] = (u[:, :rank] * s[:rank]).to(like.dtype)
        weights[l - 1] = (axes @ weights[l - 1].double()).to(like.dtype)
        if biases is not None:
            biases[l - 1] = (axes @ biases[l - 1].double()).to(like.dtype)
    return network.rewritten(weights, biases)


def widen_linear_run(network: FullyConnected, wide: FullyConnected) -> None:
    """Write `network` into the first neurons of the layers of `wide`, and zeros into the others, in place.

    Args:
        network: no layer of it is wider than that of `wide`.
        wide: of the same depth; it computes the function of `network` afterwards, at the same penalty.

    Test: networks/test_layer_widths.
    """
    with torch.no_grad():
        for mine, theirs in zip(wide.parameters(), network.parameters(), strict=True):
            _first_part(mine.zero_(), theirs.shape).copy_(theirs)


def _first_part(tensor: Tensor, shape: torch.Size) -> Tensor:
    return tensor[tuple(slice(size) for size in shape)]
