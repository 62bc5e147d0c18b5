"""A loss with the targets and weights that it is taken of. What a loss is: `loss`."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from isthmus.training.losses.loss import Loss

CONSTANT = 1e-6  # a network whose outputs vary by less than this fraction of what the targets do computes a constant


@runtime_checkable
class Digest(Protocol):
    """A running hash, as those of `hashlib`."""

    def update(self, data: bytes, /) -> None:
        """Add bytes."""


@dataclass(frozen=True, slots=True)
class DataLoss:
    """Mean of a loss over samples:  sum_i w_i loss(f_i, y_i),   sum_i w_i = 1.

    Attributes:
        loss: of a row.
        y: targets, in the form of `Loss.targets`.
        weight: non-negative weights (n,) that sum to 1, or None for 1/n each.
    """

    loss: Loss
    y: Tensor
    weight: Tensor | None = None

    def to(self, dtype: torch.dtype) -> "DataLoss":
        """The same loss in another precision."""
        weight = None if self.weight is None else self.weight.to(dtype)
        return DataLoss(self.loss, self.loss.cast(self.y, dtype), weight)

    @property
    def share(self) -> float:
        """What `total_and_gradient` leaves out of the loss."""
        return self.loss.share(len(self.y), weighted=self.weight is not None)

    def value_and_gradient(self, outputs: Tensor) -> tuple[float, Tensor]:
        """The loss at `outputs` and its gradient there; `outputs` may be overwritten."""
        total, gradient = self.total_and_gradient(outputs)
        return self.share * float(total), gradient

    def total_and_gradient(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """The loss over `share`, a scalar that is not looked at, and the gradient; `outputs` may be overwritten."""
        return self.loss.total_and_gradient(outputs, self.y, self.weight)

    def value(self, outputs: Tensor) -> float:
        """The loss at `outputs`, which are left as they are."""
        return self.value_and_gradient(outputs.clone())[0]


def variance(values: Tensor) -> float:
    """Mean squared distance of rows from their mean, in float64: one of float32 is off by its size times 1e-7."""
    values = values.double()
    return float((values - values.mean(0)).square().sum(1).mean())


def is_constant(outputs: Tensor, data: DataLoss) -> bool:
    """Whether the outputs vary by no more than `CONSTANT` times what the targets do."""
    return variance(outputs) <= CONSTANT * data.loss.spread(variance(data.loss.scatter(data.y)))


def identify(digest: Digest, x: Tensor, data: DataLoss) -> None:
    """Add samples, targets and weights to a digest."""
    for tensor in (x, data.y, data.weight):
        if tensor is not None:
            flat = tensor.detach().cpu().contiguous().reshape(-1)  # numpy has no bfloat16
            digest.update(f"{tuple(tensor.shape)}".encode() + flat.view(torch.uint8).numpy().tobytes())
