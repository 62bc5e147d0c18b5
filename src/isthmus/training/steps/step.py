"""Objective and gradient of a network on its training data, written into one flat vector: what the solvers call.

`connected_step` and `leaky_step` are written by hand on preallocated buffers; `AutogradStep` serves every other
module and is the reference that these are tested against. Which class has which step: `STEPS`.
"""

import copy
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from isthmus.networks import FullyConnected, LeakyResNet
from isthmus.networks.kinds import of_class
from isthmus.networks.network import penalty_of
from isthmus.training.losses import DataLoss, Digest
from isthmus.training.sharded.coordinates import Coordinates
from isthmus.training.steps.connected_step import FullyConnectedStep
from isthmus.training.steps.leaky_step import LeakyStep
from isthmus.training.steps.live_bytes import bytes_of_row
from isthmus.training.steps.memory_step import MemoryStep, frozen, views
from isthmus.training.steps.products import Products


@runtime_checkable
class Step(Protocol):
    """Objective and gradient at the parameters that `theta` holds."""

    theta: Tensor
    gradient: Tensor
    ridge: float
    data: DataLoss
    data_value: float
    curvature: Tensor | float  # of the penalty, which is a sum of c_i theta_i^2 / 2
    coordinates: Coordinates  # that this process keeps the memory of a solver for
    products: Products  # which library multiplies its matrices

    @property
    def network(self) -> nn.Module:
        """The network whose parameters are views of `theta`."""
        ...

    @property
    def x(self) -> Tensor:
        """The training inputs."""
        ...

    @property
    def at_once(self) -> int:
        """Of how many rows the activations are held at once."""
        ...

    def __call__(self) -> float:
        """Objective at `theta`; fills `gradient` and `data_value`."""
        ...

    def refresh(self) -> None:
        """Take over what is no parameter of the network, after it changed."""

    def in_float64(self) -> tuple[float, float]:
        """Data loss and penalty, both computed in float64."""
        ...

    def computes_constant(self) -> bool:
        """Whether the network gives the same output for all its training data although the targets vary."""
        ...

    def identify(self, digest: Digest) -> None:
        """Add the training data to a digest."""


@runtime_checkable
class StepMaker(Protocol):
    """A class of steps, for one class of networks."""

    def __call__(
        self, network: Any, x: Tensor, data: DataLoss, ridge: float, products: Products | None = None
    ) -> MemoryStep[Any]:  # fmt: skip
        """The step on these data."""
        ...

    def bytes_of_row(self, network: Any, x: Tensor) -> int:
        """Bytes that one row of x takes while such a step, and the solver that goes with it, work."""
        ...


class AutogradStep(MemoryStep[nn.Module]):
    """Objective and gradient of any module; its penalty is `penalty()`, or the squared norm of all parameters."""

    def __init__(
        self, network: nn.Module, x: Tensor, data: DataLoss, ridge: float, products: Products | None = None
    ) -> None:
        self._parameters = [p for p in network.parameters() if p.requires_grad]
        super().__init__(network, self._parameters, ridge, products or Products(measuring=False))
        for parameter, view in zip(self._parameters, views(self.gradient, self._parameters), strict=True):
            parameter.grad = view
        self.x, self.data = x, data
        self.curvature: Tensor | float = self._penalty_curvature()

    @staticmethod
    def bytes_of_row(network: nn.Module, x: Tensor) -> int:
        """What autograd holds of a row, measured on two."""
        # a row through the network itself would count in its running averages
        return bytes_of_row(copy.deepcopy(network).eval(), x)

    def refresh(self) -> None:
        """Nothing: the network itself is called."""

    def use(self, x: Tensor, data: DataLoss) -> None:
        """Go over to other samples."""
        self.x, self.data = x, data

    def _penalty_curvature(self) -> Tensor:
        """Each c_i of a penalty sum c_i theta_i^2 / 2: its gradient where every parameter is 1."""
        kept = self.theta.clone()
        self.theta.fill_(1.0)
        with torch.enable_grad():
            gradients = torch.autograd.grad(penalty_of(self.network), self._parameters, materialize_grads=True)
        self.theta.copy_(kept)
        return torch.cat([gradient.reshape(-1) for gradient in gradients])

    def __call__(self) -> float:
        """Objective at `theta`; fills `gradient` and `data_value`."""
        self.gradient.zero_()
        with torch.enable_grad():
            outputs = self.network(self.x)
            self.data_value, at_outputs = self.data.value_and_gradient(outputs.detach().clone())
            penalty = penalty_of(self.network)
            # d/dtheta <gradient at the outputs, outputs> is the data gradient by the chain rule
            (torch.sum(outputs * at_outputs) + self.ridge * penalty).backward()
        return self.data_value + self.ridge * float(penalty.detach())

    def outputs(self) -> Tensor:
        """What the network gives on its training data, a new tensor."""
        return self.network(self.x).detach().clone()


STEPS: dict[type[nn.Module], StepMaker] = {FullyConnected: FullyConnectedStep, LeakyResNet: LeakyStep}


def maker_of(network: nn.Module) -> StepMaker:
    """The fastest exact step for networks of this class; those by hand take the gradient of all parameters."""
    return AutogradStep if frozen(network) else of_class(STEPS, network, AutogradStep)


def step_of(
    network: nn.Module, x: Tensor, data: DataLoss, ridge: float, *, products: Products | None = None
) -> MemoryStep[Any]:
    """The fastest exact step for this network, with the products that a fit has chosen already."""
    return maker_of(network)(network, x, data, ridge, products)
