"""Objective and gradient of a fully connected network of which each process holds a part of the parameters.

Layer by layer: a layer is put together, all rows of this process go through it, and it is let go again. With whole
parameters in each process: `row_step`. The layers: `layer_shares`; why it is done so: docs/notes/distributed.md.
"""

import itertools
from functools import reduce

import torch
from torch import Tensor

from isthmus.networks import FullyConnected
from isthmus.networks.layers import activation, activation_derivative
from isthmus.training.losses import CONSTANT, DataLoss, Digest
from isthmus.training.sharded.coordinates import Coordinates
from isthmus.training.sharded.layer_shares import spread_out
from isthmus.training.sharded.shared_rows import SharedRows
from isthmus.training.sharded.team import Team
from isthmus.training.sharded.vector import SplitCoordinates, SplitVector, plain
from isthmus.training.steps.products import Products

Runs = list[Tensor]  # one tensor for each run of own rows


class LayerwiseStep:
    """A `Step` whose theta and gradient are split between the processes of a team, as are the rows.

        objective = sum over leaves of (sum of the losses of its rows) / n  +  ridge * |theta|^2

    The activations of all own rows are kept until the gradient is there: n_own numbers for each neuron. Sums over rows
    are folds over leaves (`team`), so the bits do not depend on the number of processes.

    Attributes:
        network: asks for its layers when it is read; all processes have to read it together.
        layers: its layers in `theta`.
        slopes: of the activation after each layer, None where there is none.
        rows: the samples.
        theta, gradient, ridge, data_value, curvature: as those of every `Step`, split.
        data: the loss on the rows of this process.
        coordinates: the part of the memory of L-BFGS that this process keeps.
        products: never by a library that was chosen by measuring.
    """

    def __init__(
        self, network: FullyConnected, x: Tensor, data: DataLoss, ridge: float, *, total: int, team: Team
    ) -> None:
        self.rows = SharedRows(x, data, total=total, team=team)
        self.slopes = [network.negative_slope if network.is_activated(l) else None for l in range(1, network.depth + 1)]
        self.layers = spread_out(network, team)
        self.network, self.data = network, data
        self.theta: Tensor = self.layers.theta
        self.gradient: Tensor = torch.zeros_like(self.theta)
        self.curvature: Tensor | float = 2.0
        self.ridge, self.data_value = ridge, float("nan")
        self.coordinates: Coordinates = SplitCoordinates(self.layers.split)
        self.products = Products(measuring=False)
        self._leaves = [leaf for leaf in self.rows.own for _ in self.rows.runs(leaf)]

    @property
    def at_once(self) -> int:
        """All rows of this process."""
        return len(self.x)

    def refresh(self) -> None:
        """Nothing: all of the network are parameters."""

    @property
    def x(self) -> Tensor:
        """The inputs of this process."""
        return self.rows.x

    def __call__(self) -> float:
        """Objective at `theta`; fills `gradient` and `data_value`."""
        inputs, outputs = self._forward()
        values = torch.zeros(len(self.rows.own), dtype=torch.float64, device=self.theta.device)
        pulls: Runs = []
        for leaf, (_, data), output in zip(self._leaves, self._samples(), outputs, strict=True):
            value, pull = data.value_and_gradient(output)
            values[leaf - self.rows.own.start] += value
            pulls.append(pull)
        self._backward(inputs, pulls)
        self.data_value = float(self.rows.added(values))
        self.gradient.add_(self.theta, alpha=2 * self.ridge)
        return self.data_value + self.ridge * float(torch.dot(self.theta, self.theta))

    def run_inputs(self) -> Runs:
        """The inputs of this process, run by run."""
        return [x for x, _ in self._samples()]

    def of_leaf(self, leaf: int, values: Runs) -> Runs:
        """Those of a leaf, of one tensor for each run."""
        return [value for of, value in zip(self._leaves, values, strict=True) if of == leaf]

    def _samples(self) -> list[tuple[Tensor, DataLoss]]:
        return [self.rows.at(*run) for leaf in self.rows.own for run in self.rows.runs(leaf)]

    def _forward(self, dtype: torch.dtype | None = None) -> tuple[list[Runs], Runs]:
        """What each layer receives, and the outputs; in another precision only the outputs."""
        received: list[Runs] = []
        current = [x.to(dtype or x.dtype) for x in self.run_inputs()]
        for l, slope in enumerate(self.slopes, 1):
            received += [] if dtype else [current]
            weight, bias = self.layers.read(l)
            if dtype:
                weight, bias = weight.to(dtype), None if bias is None else bias.to(dtype)
            current = [passed(a, weight, bias, slope) for a in current]
        return received, current

    def _backward(self, received: list[Runs], pulls: Runs) -> None:
        """Fill `gradient` with that of the data loss, from its gradients at the outputs; uses up what it is given."""
        for l in range(self.layers.depth, 0, -1):
            inputs = received.pop()
            self.layers.keep(l, self._summed(l, inputs, pulls), self.gradient)
            if l == 1:
                return
            weight = self.layers.read_weight(l)
            pulls = [pull @ weight for pull in pulls]
            slope, signs = self.slopes[l - 2], inputs
            if slope is not None and slope < 0:  # no activation is negative, so what they came from is computed again
                below = self.layers.read(l - 1)
                signs = [passed(a, *below, None) for a in received[-1]]
            for pull, sign in zip(pulls, signs, strict=True):
                if slope is not None:  # as `steps`: without a leak, 0 where the activation is 0
                    pull.mul_(sign.sign() if slope == 0 else activation_derivative(sign, slope))

    def _summed(self, l: int, inputs: Runs, pulls: Runs) -> Tensor:
        """The gradient of the data loss by [W_l b_l], one after the other, over the rows of all processes."""

        def leaf(i: int) -> Tensor:
            return reduce(Tensor.add_, map(self._of_run, self.of_leaf(i, inputs), self.of_leaf(i, pulls)))

        like = plain(self.theta).new_empty(self.layers.size(l))
        return self.rows.team.fold(self.rows.leaves, leaf, lambda a, b: a.add_(b), like)

    def _of_run(self, inputs: Tensor, pull: Tensor) -> Tensor:
        by_weight = (pull.t() @ inputs).view(-1)
        return torch.cat([by_weight, pull.sum(0)]) if self.layers.has_bias else by_weight

    def in_float64(self) -> tuple[float, float]:
        """Data loss and penalty, both computed in float64."""
        # the sums over rows come after the layers: processes with other numbers of runs read a layer equally often
        outputs = iter(self._forward(torch.float64)[1])

        def loss(x: Tensor, data: DataLoss) -> Tensor:
            # weights of 1/n in float32 do not add up to 1 in float64
            double = DataLoss(data.loss, data.to(torch.float64).y)
            value = double.value(next(outputs)) * (len(x) / self.rows.leaves.rows)
            return torch.tensor(value, dtype=torch.float64, device=x.device)

        theta = SplitVector.of(plain(self.theta).double(), self.layers.split)
        return float(self.rows.over_rows(loss)), float(torch.dot(theta, theta))

    def computes_constant(self) -> bool:
        """Whether the network gives the same output for all its training data although the targets vary."""
        outputs = itertools.cycle(self._forward(self.theta.dtype)[1])
        return self.rows.spread(lambda _x, _data: next(outputs)) <= CONSTANT * self.rows.target_spread()

    def identify(self, digest: Digest) -> None:
        """Add the training data, and the shapes of the parameters, to a digest."""
        digest.update(f"split {self.network.dimensions} {self.network.has_bias}".encode())
        self.rows.identify(digest)


def passed(inputs: Tensor, weight: Tensor, bias: Tensor | None, slope: float | None) -> Tensor:
    """What a layer makes of its inputs; without slope it has no activation."""
    out = torch.nn.functional.linear(inputs, weight, bias)
    return out if slope is None else activation(out, slope)
