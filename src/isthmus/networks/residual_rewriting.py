"""Residual networks written as fully connected ones: the stream is carried by its positive and its negative part.

The fully connected form can be cut, certified, exported and folded as any other. Its norm is another one: costs belong
to the network itself.
"""

from torch import Tensor

from isthmus.networks.departures import departure, refuse
from isthmus.networks.fully_connected import FullyConnected
from isthmus.networks.residual_stream import ResidualStream
from isthmus.networks.waist import Waist
from isthmus.theory.home import at_home

Map = tuple[Tensor, Tensor]  # h -> h R^T + r


@at_home
def as_fully_connected(network: ResidualStream) -> FullyConnected:
    """The same function as a fully connected network (*exact*), float64.

        leaky:   h_l = relu([A_l, -A_l]),              A_{l+1} = (1 - rho Lt) [I, -I] h_l + rho (V [I, 0] h_l + b)
        ResNet:  h_l = relu([s_l, -s_l, W_1 s_l + b_1]),  s_{l+1} = [I, -I, I or W_2] h_l + b_2
        linear:  h_l = s_l,                            s_{l+1} = (I + W) h_l

    Args:
        network: not changed; a waist in it becomes part of a weight.

    Returns:
        A network of depth L + 2, whose hidden layer l + 1 holds the stream behind layer l = 0..L: as in `walk`. It is
        2 or 3 times as wide.

    Raises:
        ValueError: a leaky network with a smoothed relu, which no relu network computes; weights that need not say what
            the network computes, as with a hook.

    Accuracy: rounding. Source: ours. Test: tests/networks/test_residual_rewriting.py.

    >>> network = isthmus.ResNet(2, 1, width=3, depth=2, block_depth=2, seed=0, dtype=torch.float64)
    >>> x = torch.ones(1, 2, dtype=torch.float64)
    >>> bool((networks.as_fully_connected(network)(x) - network(x)).abs() < 1e-12)
    True
    """
    refuse("as_fully_connected", network, stream_departure(network))
    return network.as_fully_connected()


def stream_departure(network: ResidualStream) -> str:
    """What lets a network compute something else than the class whose rewriting it has, or its waist; else nothing."""
    written = next(kind for kind in type(network).__mro__ if "as_fully_connected" in vars(kind))
    return departure(network, written) or ("" if network.waist is None else departure(network.waist, Waist))


def narrowed(maps: list[Map], waist: Waist | None) -> list[Map]:
    """The maps that make the streams, with the waist behind its layer."""
    if waist is None:
        return maps
    projection, offset = waist.projection.double(), waist.offset.double()
    weight, bias = maps[waist.layer]
    maps[waist.layer] = (projection @ weight, bias @ projection + offset)
    return maps


def chained(maps: list[Map], parts: list[Map], end: Map, *, linear: bool) -> FullyConnected:
    """Preactivation of hidden layer l + 1: `parts` of the stream that `maps` makes of the layer before."""
    pairs = [(P @ R, P @ r + p) for (R, r), (P, p) in zip(maps, parts, strict=True)]
    weights, biases = zip(*pairs, end, strict=True)
    return FullyConnected.from_layers(weights, biases, linear=range(1, len(pairs) + 1) if linear else ())
