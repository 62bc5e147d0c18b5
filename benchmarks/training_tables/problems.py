"""The reference problems: networks and data on which solvers and steps are compared.

W1 is fully connected, W2 leaky; both teachers have rank 5 and E|y|^2 = 1. A problem is a size and a seed, nothing more.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from isthmus import FullyConnected, LeakyResNet, tasks
from isthmus.tasks.teachers import ShallowNetwork
from isthmus.training.losses import SQUARED, DataLoss
from isthmus.training.steps.step import Step, step_of


@dataclass(frozen=True)
class Problem:
    """A network of one size on its data.

    Attributes:
        depth, width, rows: L, w, N.
        leak: Lt of a leaky network; None for a fully connected one.
        linear: hidden layers without activation.
        narrow: width of those layers, where it is another.
        device: where network and data lie.
    """

    depth: int
    width: int
    rows: int
    leak: float | None = None
    linear: tuple[int, ...] = ()
    narrow: int = 0
    device: str = "cpu"

    @property
    def ridge(self) -> float:
        """0.05 / L, or 0.002 for leaky networks."""
        return 0.05 / self.depth if self.leak is None else 0.002

    def network(self, seed: int) -> FullyConnected | LeakyResNet:
        """The network with fresh weights."""
        if self.leak is not None:
            leaky = LeakyResNet(20, 20, width=self.width, depth=self.depth, effective_depth=self.leak, seed=seed)
            return leaky.to(self.device)
        widths = [self.narrow if l in self.linear else self.width for l in range(1, self.depth)]
        return FullyConnected(50, 50, width=widths, depth=self.depth, linear=self.linear, seed=seed).to(self.device)

    def data(self) -> tuple[Tensor, Tensor]:
        """Inputs and targets, float32."""
        if self.leak is not None:
            x, y = _through_five(self.rows)
        else:
            task = tasks.teacher_reference(num_samples=self.rows)
            x, y = torch.from_numpy(task.x).float(), torch.from_numpy(task.target).float()
        return x.to(self.device), y.to(self.device)

    def step(self, seed: int = 0) -> Step:
        """Objective and gradient at fresh weights."""
        x, y = self.data()
        return step_of(self.network(seed), x, DataLoss(SQUARED, y), self.ridge)


def _through_five(rows: int) -> tuple[Tensor, Tensor]:
    """Normal x in R^20, y = h(g(x)) in R^20 with g(x) in R^5 standardised, y centred with E|y|^2 = 1."""
    generator = torch.Generator().manual_seed(2000)
    x = torch.randn(rows, 20, generator=generator)
    into, out = (ShallowNetwork.random(a, b, generator=generator, dtype=torch.float32) for a, b in ((20, 5), (5, 20)))
    z = into(x)
    y = out((z - z.mean(0)) / z.std(0))
    y = y - y.mean(0)
    return x, y / y.square().sum(1).mean().sqrt()


W1 = Problem(13, 100, 500)
W1_SMALL = Problem(9, 64, 256)
W2 = Problem(20, 100, 500, leak=8.0)
W2_SMALL = Problem(12, 64, 256, leak=6.0)
W2_STEP = Problem(50, 200, 1000, leak=8.0)
DISCOVERY = Problem(11, 64, 500, linear=(4, 5, 6, 7), narrow=24)
