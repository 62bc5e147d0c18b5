"""What steps on rows that all lie in memory have in common: one flat vector, and what is read off its network.

The steps themselves: `connected_step`, `leaky_step`, `step`. Rows in runs or in other processes: `sharded.row_step`.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

from isthmus.errors import DataError, IsthmusError, ShapeError
from isthmus.networks import LeakyResNet
from isthmus.networks.network import Network, penalty_of
from isthmus.tasks.arrays import counted
from isthmus.theory.undisturbed import chance_kept
from isthmus.training.losses import DataLoss, Digest, identify, is_constant
from isthmus.training.sharded.coordinates import AllCoordinates, Coordinates
from isthmus.training.steps.products import Products

ROWS_AT_ONCE = 128  # float64 activations of 1024 rows were the largest thing in a fit of 50 layers, four times the rest
MAPS_OF_LEAKY = ("embedding", "unembedding")
N = TypeVar("N", bound=nn.Module)


class MemoryStep(ABC, Generic[N]):
    """A `Step` that goes over all rows at once; how it computes, its class says.

    Args:
        network: whose parameters become views of `theta`.
        parameters: those that are trained, in the order of `theta`.
        ridge: of the objective.
        products: which library multiplies its matrices.
    """

    x: Tensor
    data: DataLoss
    curvature: Tensor | float

    def __init__(self, network: N, parameters: Sequence[nn.Parameter], ridge: float, products: Products) -> None:
        self.network = network
        self.theta, self.gradient = flatten_parameters(parameters)
        self.ridge, self.data_value = ridge, float("nan")
        self.products = products
        self.coordinates: Coordinates = AllCoordinates()

    @property
    def at_once(self) -> int:
        """All rows."""
        return len(self.x)

    @abstractmethod
    def __call__(self) -> float:
        """Objective at `theta`; fills `gradient` and `data_value`."""

    @abstractmethod
    def use(self, x: Tensor, data: DataLoss) -> None:
        """Go over to other samples, at most as many as the step was made with."""

    @abstractmethod
    def refresh(self) -> None:
        """Take over what is no parameter of the network, after it changed."""

    @abstractmethod
    def outputs(self) -> Tensor:
        """What the network gives on its training data, a new tensor."""

    def in_float64(self) -> tuple[float, float]:
        """Data loss and penalty, both computed in float64."""
        return in_float64(self.network, self.x, self.data)

    def computes_constant(self) -> bool:
        """Whether the network gives the same output for all its training data although the targets vary."""
        return is_constant(self.outputs(), self.data)

    def identify(self, digest: Digest) -> None:
        """Add the training data to a digest."""
        identify(digest, self.x, self.data)


def frozen(network: nn.Module) -> list[str]:
    """Names of the parameters that the caller holds where they are; fixed maps of a leaky network are none."""
    fixed = MAPS_OF_LEAKY if isinstance(network, LeakyResNet) and network.maps == "fixed" else ()
    return [name for name, p in network.named_parameters() if not p.requires_grad and name not in fixed]


def check_trainable(network: nn.Module, call: str) -> None:
    """Refuse a network with nothing to train.

    Raises:
        DataError: it has no parameters, all are frozen, or it was made within torch.inference_mode.
    """
    if not any(True for _ in network.parameters()):
        raise DataError(f"{call}: the network has no parameters; there is nothing to train.")
    if not any(p.requires_grad for p in network.parameters()):
        raise DataError(
            f"{call}: all parameters of the network are frozen (requires_grad=False); there is nothing to train. Thaw "
            "those that are to be trained with requires_grad_(True)."
        )
    if any(p.is_inference() for p in network.parameters()):
        raise DataError(
            f"{call}: the network was made within torch.inference_mode, where torch makes nothing that can be trained. "
            "Make it outside, or train copy.deepcopy(network), copied outside."
        )


@contextmanager
def left_in_place(network: nn.Module) -> Generator[None]:
    """A module that is not ours has its own storages and gradients again after the block, with what was learnt in them.

    What shares its weights (another process, a tensor kept beside) follows, and a later `backward` adds to nothing of
    ours.
    """
    before = [] if isinstance(network, Network) else [(p, p.data, p.grad) for p in network.parameters()]
    try:
        yield
    finally:
        for parameter, own, gradient in before:
            if parameter.data is not own:
                own.copy_(parameter.data)
                parameter.data = own
            parameter.grad = gradient


def check_answers(network: nn.Module, x: Tensor, data: DataLoss, call: str) -> None:
    """Refuse a module whose answers are not what the targets need, or are others each time: that has no minimum.

    Raises:
        DataError: it fails on the first rows, gives no tensor of real numbers with a gradient, or other ones each time.
        ShapeError: no row for each row of `x`, or not the outputs that the loss of these targets needs.
    """
    if isinstance(network, Network):
        return
    tried = copy.deepcopy(network)  # a row through the network itself would count in its running averages
    rows = x[:ROWS_AT_ONCE]
    try:
        with chance_kept(x.device):
            with torch.enable_grad():
                first = tried(rows)
            second = tried(rows)
    except IsthmusError:
        raise
    except Exception as error:  # any error of a foreign module
        what = f"{type(network).__name__} on x of shape {tuple(rows.shape)}"
        detail = " ".join(str(error).split())[:300]
        raise DataError(f"{call}: running {what} failed: {type(error).__name__}: {detail}") from error
    _check_outputs(first, len(rows), data, call)
    if not torch.equal(first.nan_to_num(), second.nan_to_num()):
        raise DataError(
            f"{call}: the module gives something else each time it is called, as dropout does while it trains; that "
            "has no minimum. Call network.eval() first."
        )


def _check_outputs(outputs: object, rows: int, data: DataLoss, call: str) -> None:
    if not isinstance(outputs, Tensor):
        raise DataError(
            f"{call}: the module gives a {type(outputs).__name__}, and one tensor is needed, with a row for each row "
            "of x. Put it into a module that returns that tensor."
        )
    if not outputs.is_floating_point():
        raise DataError(f"{call}: the module gives numbers of {outputs.dtype}; real ones are needed.")
    if not outputs.requires_grad:
        raise DataError(f"{call}: no gradient leads from the outputs of the module to what is trained.")
    loss, y, shape = data.loss, data.y, tuple(outputs.shape)
    if loss.classes:
        needed, more = (rows, loss.num_outputs(y)), ", or more scores"
        fits = len(shape) == 2 and shape[0] == rows and shape[1] >= needed[1]
    else:
        needed, more = (rows, loss.per_target * y.shape[1], *y.shape[2:]), ""
        fits = shape == needed  # one column of y would be spread silently over all outputs
    if not fits:
        raise ShapeError(
            f"{call}: the module gives shape {shape} for {counted(rows, 'row')} of x; for y of shape {tuple(y.shape)} "
            f"the loss {loss.name!r} needs {needed}{more}."
        )


def flatten_parameters(parameters: Sequence[nn.Parameter]) -> tuple[Tensor, Tensor]:
    """Move parameters into one vector (they become views of it) and return it with a gradient vector of equal layout.

    The vectors are padded to nothing and keep the order of `parameters`; solvers then work on two tensors only.
    """
    theta = torch.cat([p.detach().reshape(-1) for p in parameters]).clone()
    for parameter, view in zip(parameters, views(theta, parameters), strict=True):
        parameter.data = view
    return theta, torch.zeros_like(theta)


def views(vector: Tensor, parameters: Sequence[Tensor]) -> list[Tensor]:
    """Views of `vector` with the shapes of `parameters`, in order."""
    parts = vector.split([p.numel() for p in parameters])
    return [part.view(p.shape) for part, p in zip(parts, parameters, strict=True)]


def in_float64(network: nn.Module, x: Tensor, data: DataLoss) -> tuple[float, float]:
    """Data loss and penalty, both computed in float64; a run of rows at a time where each stands for itself."""
    exact = copy.deepcopy(network).double()
    rows = ROWS_AT_ONCE if isinstance(network, Network) and network.rows_stand_alone else len(x)
    with torch.no_grad():
        if len(x) <= rows:
            return data.to(torch.float64).value(exact(x.double())), float(penalty_of(exact))
        value = 0.0
        for start in range(0, len(x), rows):
            part = slice(start, start + rows)
            weight = None if data.weight is None else data.weight[part].double()
            y = data.loss.cast(data.y[part], torch.float64)
            share = len(y) / len(x) if weight is None else 1.0
            value += share * DataLoss(data.loss, y, weight).value(exact(x[part].double()))
        return value, float(penalty_of(exact))
