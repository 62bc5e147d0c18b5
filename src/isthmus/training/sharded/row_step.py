"""Objective and gradient of a network whose samples lie in several processes: the same bits in each, however many.

One process alone goes over its rows in runs too, where their activations do not fit into memory at once: `step_within`.
What it computes on the rows of a run: `steps`. How the sum is ordered: `team`, `sharded.shared_rows`.
"""

import copy

import torch
from torch import Tensor, nn

from isthmus.networks.network import penalty_of
from isthmus.training.losses import CONSTANT, DataLoss, Digest
from isthmus.training.sharded.coordinates import Coordinates, SharedCoordinates, Split
from isthmus.training.sharded.shared_rows import ROWS_AT_ONCE, SharedRows
from isthmus.training.sharded.team import Team
from isthmus.training.steps.memory_step import frozen
from isthmus.training.steps.products import Products
from isthmus.training.steps.step import Step, maker_of, step_of

MEMORY = 2_000_000_000  # bytes of working memory where `Limits` names none
FEWEST = 256  # rows at once, however little memory there is
VECTORS = 45  # as long as the parameters, that L-BFGS works on: its pairs, gradients, directions


class ShardedStep:
    """A `Step` on the rows of all processes of a team.

        objective = sum over leaves of (sum of the losses of its rows) / n  +  ridge * sum_i c_i theta_i^2 / 2

    Each process computes its leaves, `rows.at_once` rows at a time, on the whole network. Every number that a solver
    decides by is the same in all processes to the last bit, so they stay together without being told to.

    Attributes:
        rows: the samples.
        theta, gradient, ridge, data_value, curvature: as those of every `Step`.
        data: the loss on the rows of this process.
        coordinates: the part of the memory of L-BFGS that this process keeps.
        products: never by a library that was chosen by measuring.
    """

    def __init__(
        self,
        network: nn.Module,
        x: Tensor,
        data: DataLoss,
        ridge: float,
        *,
        total: int,
        team: Team,
        at_once: int = ROWS_AT_ONCE,
    ) -> None:
        self.rows = rows = SharedRows(x, data, total=total, team=team, at_once=at_once)
        start = rows.leaves.start(rows.own.start)
        self.products = Products(measuring=False)  # the bits must not depend on which process computes a leaf
        self._inner = step_of(network, *rows.at(start, start + min(len(x), at_once)), 0.0, products=self.products)
        self.network, self.data = network, data
        self.theta, self.curvature = self._inner.theta, self._inner.curvature
        self.theta.copy_(team.shared(self.theta))  # one start for all, whatever each process was given
        self._apart = _penalty_apart(network, self.theta)
        self.gradient = torch.zeros_like(self.theta)
        self.ridge, self.data_value = ridge, float("nan")
        self.coordinates: Coordinates = SharedCoordinates(Split(len(self.theta), team))

    @property
    def at_once(self) -> int:
        """Rows of a run, at most."""
        return self.rows.at_once

    def refresh(self) -> None:
        """Take over what is no parameter of the network, after it changed."""
        self._inner.refresh()
        self.curvature = self._inner.curvature

    @property
    def x(self) -> Tensor:
        """The inputs of this process."""
        return self.rows.x

    def __call__(self) -> float:
        """Objective at `theta`; fills `gradient` and `data_value`."""
        rows = self.rows
        values = torch.zeros(len(rows.own), dtype=torch.float64, device=self.theta.device)

        def leaf(i: int) -> Tensor:
            total = torch.zeros_like(self.gradient)
            for run in rows.runs(i):
                self._inner.use(*rows.at(*run))
                values[i - rows.own.start] += self._inner()
                total.add_(self._inner.gradient)
            return total

        self.gradient.copy_(rows.team.fold(rows.leaves, leaf, lambda a, b: a.add_(b), self.gradient))
        self.data_value = float(rows.added(values))
        pull = self.theta * self.curvature
        self.gradient.add_(pull, alpha=self.ridge)
        return self.data_value + self.ridge * (float(torch.dot(pull, self.theta)) / 2 + self._apart)

    def in_float64(self) -> tuple[float, float]:
        """Data loss and penalty, both computed in float64."""
        exact = copy.deepcopy(self.network).double()

        def loss(x: Tensor, data: DataLoss) -> Tensor:
            # weights of 1/n in float32 do not add up to 1 in float64
            weighted = self.data.weight is not None
            double = data.to(torch.float64) if weighted else DataLoss(data.loss, data.to(torch.float64).y)
            value = double.value(exact(x.double())) * (1.0 if weighted else len(x) / self.rows.leaves.rows)
            return torch.tensor(value, dtype=torch.float64, device=x.device)

        with torch.no_grad():
            return float(self.rows.over_rows(loss)), float(penalty_of(exact))

    def computes_constant(self) -> bool:
        """Whether the network gives the same output for all its training data although the targets vary."""
        with torch.no_grad():
            spread = self.rows.spread(lambda x, _: self.network(x))
            return spread <= CONSTANT * self.rows.target_spread()

    def identify(self, digest: Digest) -> None:
        """Add the training data, and the shapes of the parameters, to a digest."""
        digest.update(str([tuple(p.shape) for p in self.network.parameters()]).encode())
        self.rows.identify(digest)


def _penalty_apart(network: nn.Module, theta: Tensor) -> float:
    """The penalty of what is frozen: that which is left where all that is trained is 0."""
    if not frozen(network):
        return 0.0
    kept = theta.clone()
    theta.zero_()
    apart = float(penalty_of(network))
    theta.copy_(kept)
    return apart


def step_within(network: nn.Module, x: Tensor, data: DataLoss, ridge: float, *, memory: int | None) -> Step:
    """The fastest exact step whose activations fit into `memory` bytes: all rows at once if that is possible.

    Objective and gradient are the same up to rounding, whatever the number of rows at once, of a network that treats
    each row on its own (as batch normalisation in training does not).
    """
    rows = FEWEST if len(x) <= FEWEST else rows_at_once(network, x, MEMORY if memory is None else memory)
    if len(x) <= rows:
        return step_of(network, x, data, ridge)
    return ShardedStep(network, x, data, ridge, total=len(x), team=Team(), at_once=rows)


def rows_at_once(network: nn.Module, x: Tensor, memory: int) -> int:
    """Rows whose activations fit into what the vectors of the solver leave of the memory; at least 256."""
    parameters = sum(p.numel() * p.element_size() for p in network.parameters())
    return max((memory - VECTORS * parameters) // maker_of(network).bytes_of_row(network, x), FEWEST)
