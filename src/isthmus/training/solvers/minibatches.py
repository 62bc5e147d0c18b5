"""A warm-up on a few rows at a time, for data on which a gradient of all rows takes long.

It gives the solver after it a start, no minimum: that one goes over all rows, in chunks where they do not fit into
memory (`sharded.row_step`). The update itself: `solvers.Adam`.
"""

import copy
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from isthmus.training.losses import DataLoss
from isthmus.training.sharded.row_step import ShardedStep
from isthmus.training.solvers.solver import Adam, State
from isthmus.training.steps.step import Step, step_of

BURST = 64  # batches between two looks at the clock; the buffers of a batch are made once for all of them
BATCH = 1024  # rows


@dataclass(frozen=True, slots=True)
class MiniBatches:
    """Adam on rows drawn at random, each row at most once an epoch.

    The gradient of a batch is that of (n / batch) sum_i w_i loss_i + ridge * penalty over its rows i, whose expectation
    is the gradient of the objective.

    Attributes:
        adam: its number of `steps` is that of batches.
        batch: rows of a batch.
        seed: of the order of the rows.
    """

    adam: Adam
    batch: int = BATCH
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.batch > 0:
            raise ValueError(f"MiniBatches(batch={self.batch}): needs at least one row. The default is {BATCH}.")

    def start(self, step: Step) -> State:
        """The state before the first iteration.

        Raises:
            ValueError: the rows lie in several processes.
        """
        if isinstance(step, ShardedStep) and step.rows.team.size > 1:
            raise ValueError(
                f"MiniBatches: needs all rows in one process, got {step.rows.team.size} processes. Use Adam."
            )
        return self.adam.start(step)

    def advance(self, step: Step, state: State) -> None:
        """A burst of batches, in place; the value is the mean of theirs."""
        count = len(step.x)
        size = min(self.batch, count)
        first = batch_of(step, torch.arange(size))
        inner = step_of(copy.deepcopy(step.network), *first, step.ridge, products=step.products)
        adam: State = dict(state)
        values: list[float] = []
        for rows in itertools.islice(self.batches(adam["t"], count), BURST):
            inner.use(*batch_of(step, rows))
            self.adam.advance(inner, adam)
            values.append(adam["value"])
            if adam["done"]:
                break
        step.theta.copy_(inner.theta)
        state.update(adam)
        state["value"] = sum(values) / len(values)
        state["evaluations"] = -(-state["t"] * size // count)

    def gentler(self, rate: float) -> "MiniBatches":
        """The same with its step size multiplied by `rate`."""
        return replace(self, adam=self.adam.gentler(rate))

    def batches(self, t: int, count: int) -> Iterator[Tensor]:
        """Row numbers of the batches from number t on, of `count` rows.

        An epoch is an order of the rows, which depends on the seed and its number alone, cut into batches; what is left
        over at its end is not used.
        """
        size = min(self.batch, count)
        while True:
            epoch, place = divmod(t, count // size)
            order = torch.randperm(
                count, generator=torch.Generator().manual_seed((self.seed * 1_000_003 + epoch) % 2**63)
            )
            for start in range(place * size, count // size * size, size):
                yield order[start : start + size]
                t += 1

    def iterations(self) -> int:
        """About how many gradient evaluations the phase takes, for time estimates: those of all rows, at least one."""
        return 1


def batch_of(step: Step, rows: Tensor) -> tuple[Tensor, DataLoss]:
    """The rows with their loss, weights scaled so that the mean over all batches is the loss of all rows."""
    rows = rows.to(step.x.device)
    data = step.data
    weight = None if data.weight is None else data.weight[rows] * (len(step.x) / len(rows))
    return step.x[rows], DataLoss(data.loss, data.y[rows], weight)
