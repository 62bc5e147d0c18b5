"""A run of linear layers with fewer neurons, and back: the same function, in the coordinates that the run carries on.

The depth of a run: `networks.folding`. Lowering its rank: `training.moves.truncate_middle`.
"""

import torch
from torch import Tensor

from isthmus.networks.fully_connected import FullyConnected


def narrow_linear_run(network: FullyConnected, rank: int) -> FullyConnected:
    """The network with each linear hidden layer written in the `rank` coordinates that the next matrix reads.

        W_{l+1} = U S V^T  ->  U S,     (W_l, b_l)  ->  V^T (W_l, b_l),     from the last layer of a run to its first

    The same function up to rounding where every matrix that reads a linear layer has at most that rank, and the
    penalty never rises: what a layer held outside the rows of V^T was read by nobody.

    Args:
        network: any fully connected network; it is not changed.
        rank: neurons of each linear hidden layer; layers that are as narrow already stay.

    Source: ours. Test: networks/test_narrow_runs.
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

    Test: networks/test_narrow_runs.
    """
    with torch.no_grad():
        for mine, theirs in zip(wide.parameters(), network.parameters(), strict=True):
            _first_part(mine.zero_(), theirs.shape).copy_(theirs)


def _first_part(tensor: Tensor, shape: torch.Size) -> Tensor:
    return tensor[tuple(slice(size) for size in shape)]
