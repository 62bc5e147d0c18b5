"""The layers of a fully connected network whose parameters lie in several processes: put together when they are read.

The vector that holds them: `sharded.vector`. The objective on them: `sharded.layer_step`.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from isthmus.networks import FullyConnected
from isthmus.training.sharded.coordinates import Split
from isthmus.training.sharded.team import Team
from isthmus.training.sharded.vector import SplitVector, plain


class SplitLayers:
    """Where W_1, b_1, W_2, ... of a network lie in a split vector, and the way out of it and back.

    Attributes:
        theta: the parameters, own coordinates only.
        split: how they are shared out.
        depth: number of layers L; they are numbered 1..L.
        has_bias: whether there are b_l.
    """

    def __init__(self, network: FullyConnected, team: Team) -> None:
        dimensions, self.has_bias = network.dimensions, network.has_bias
        self.depth = network.depth
        self._shapes = [(dimensions[l + 1], dimensions[l]) for l in range(self.depth)]
        sizes = [outs * (ins + self.has_bias) for outs, ins in self._shapes]
        self._starts = [sum(sizes[:l]) for l in range(self.depth + 1)]
        self.split = Split(sum(sizes), team)
        like = network.weights[0].detach()
        self.theta = SplitVector.of(like.new_zeros(len(self.split.own)), self.split)
        for l in range(1, self.depth + 1):
            # one start for all, whatever each process was given
            bias = network.bias_of(l)
            shared = [team.shared(part.detach()) for part in (network.weights[l - 1], bias) if part is not None]
            self.write(l, shared[0], shared[1] if self.has_bias else None)

    def size(self, l: int) -> int:
        """Number of parameters of layer l."""
        return self._starts[l] - self._starts[l - 1]

    def read(self, l: int) -> tuple[Tensor, Tensor | None]:
        """W_l and b_l, whole, new tensors; all processes have to read together."""
        return self.parts(l, self._gathered(range(self._starts[l - 1], self._starts[l])))

    def read_weight(self, l: int) -> Tensor:
        """W_l alone."""
        outs, ins = self._shapes[l - 1]
        return self._gathered(range(self._starts[l - 1], self._starts[l - 1] + outs * ins)).view(outs, ins)

    def read_bias(self, l: int) -> Tensor:
        """b_l alone, of a network with biases."""
        return self._gathered(range(self._starts[l] - self._shapes[l - 1][0], self._starts[l]))

    def write(self, l: int, weight: Tensor, bias: Tensor | None) -> None:
        """Keep the own coordinates of W_l and b_l, which are the same in all processes."""
        parts = [weight.reshape(-1), *(() if bias is None else (bias,))]
        self.keep(l, torch.cat(parts), self.theta)

    def keep(self, l: int, flat: Tensor, vector: Tensor) -> None:
        """Keep in a split vector the own coordinates of what belongs to layer l, [W_l b_l] one after the other."""
        place, inside = self._own(range(self._starts[l - 1], self._starts[l]))
        plain(vector)[place.start : place.stop] = flat[inside.start : inside.stop]

    def parts(self, l: int, flat: Tensor) -> tuple[Tensor, Tensor | None]:
        """[W_l b_l], one after the other, as matrix and vector."""
        outs, ins = self._shapes[l - 1]
        return flat[: outs * ins].view(outs, ins), flat[outs * ins :] if self.has_bias else None

    def _gathered(self, wanted: range) -> Tensor:
        place, inside = self._own(wanted)
        # + 0.0 because the sum over processes makes 0.0 of -0.0, and one process alone would not
        mine = plain(self.theta)[place.start : place.stop] + 0.0
        return self.split.team.gathered(mine, inside, len(wanted))

    def _own(self, wanted: range) -> tuple[range, range]:
        """Where the wanted coordinates that are own lie: among the own ones, and among the wanted."""
        own = self.split.own
        low = max(wanted.start, own.start)
        high = max(low, min(wanted.stop, own.stop))
        return range(low - own.start, high - own.start), range(low - wanted.start, high - wanted.start)


class _Read(nn.Module):
    """Weights or biases as `FullyConnected` asks for them, each read when it is asked for and then let go."""

    def __init__(self, read: Callable[[int], Tensor], count: int) -> None:
        super().__init__()
        self._read, self._count = read, count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Tensor:
        if not 0 <= index < self._count:
            raise IndexError(index)
        return self._read(index + 1)

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(self._count))


def spread_out(network: FullyConnected, team: Team) -> SplitLayers:
    """Share the parameters of a network out; it keeps its shape, and reads a layer whenever one is asked for.

    Args:
        network: changed: it lets go of its parameters. Those of the first process are the start of all.
        team: the processes.
    """
    layers = SplitLayers(network, team)
    biases = network.depth if network.has_bias else 0
    network.weights = _Read(layers.read_weight, network.depth)  # pyright: ignore[reportAttributeAccessIssue]
    network.biases = _Read(layers.read_bias, biases)  # pyright: ignore[reportAttributeAccessIssue]
    return layers


def brought_together(network: FullyConnected, team: Team) -> FullyConnected | None:
    """The whole network in memory of the first process, layer by layer; None in the others.

    Args:
        network: as `spread_out` left it, or any other.
        team: the processes, which have to call this together.
    """
    weights: list[Tensor] = []
    biases: list[Tensor] = []
    for l in range(1, network.depth + 1):
        weight, bias = network.weights[l - 1].detach().cpu(), network.bias_of(l)
        if team.rank == 0:
            weights.append(weight)
            biases += [] if bias is None else [bias.detach().cpu()]
    if team.rank > 0:
        return None
    return FullyConnected.from_layers(
        weights, biases if network.has_bias else None, negative_slope=network.negative_slope, linear=network.linear,
        dtype=None,
    )  # fmt: skip
