"""Losses of targets that are numbers, one column for each output. Of classes: `cross_entropy`."""

import sys
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.training.losses.loss import Array, Floats, Loss, weighted_mean


@dataclass(frozen=True)
class LossOfNumbers(Loss):
    """What losses of targets (n, d_out) have in common."""

    def targets(self, y: Tensor, dtype: torch.dtype) -> Tensor:
        y = y.to(dtype)
        return y[:, None] if y.ndim == 1 else y.contiguous()

    def cast(self, y: Tensor, dtype: torch.dtype) -> Tensor:
        return y.to(dtype)

    def num_outputs(self, y: Tensor) -> int:
        return self.per_target * y.shape[1]

    def share(self, rows: int, *, weighted: bool) -> float:
        return 1.0 if weighted else 1.0 / rows

    def row_losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        return self.entries(outputs, y).flatten(1).sum(1)

    def summed(self, outputs: Tensor, y: Tensor) -> Tensor:
        return self.entries(outputs, y).sum()

    def scatter(self, y: Tensor) -> Tensor:
        return y

    def unit(self, y: Array, weight: Array | None) -> float:
        shares = None if weight is None else torch.from_numpy(weight / weight.sum())
        return self.constant_loss(torch.from_numpy(y), shares, self.per_target * y.shape[1])

    @abstractmethod
    def entries(self, outputs: Tensor, y: Tensor) -> Tensor:
        """The loss of each entry of the targets, in their shape; differentiable."""


@dataclass(frozen=True)
class StandardisedLoss(LossOfNumbers):
    """What losses of any numbers, which a discovery standardises, have in common."""

    standardised: ClassVar[bool] = True

    def from_gaussian(self, drawn: Array, y: Array) -> Array:
        return drawn

    def reduced(self, y: Array, weight: Array | None) -> tuple[Array, float]:
        return y, 0.0

    def spread(self, variance: float) -> float:
        return variance if variance > 0 else -1.0


@dataclass(frozen=True)
class LossInUnits(StandardisedLoss):
    """What losses whose outputs have the units of the targets have in common."""

    def check(self, y: Tensor, where: str) -> None:
        """Any number is a target."""

    def scores(self, y: Tensor, num_outputs: int) -> Tensor:
        return y

    def means(self, outputs: Floats) -> Floats:
        return outputs

    def spreads(self, outputs: Floats) -> Floats | None:
        return None

    def output_units(self, mean: Array, scale: Array) -> tuple[Array, Array]:
        return mean, scale


@dataclass(frozen=True)
class LossByEntry(LossOfNumbers):
    """What such a loss needs no more than `entries`, `slopes` and its best constant for."""

    @abstractmethod
    def slopes(self, outputs: Tensor, y: Tensor) -> Tensor:
        """The derivative of each entry by its output."""

    def total_and_gradient(self, outputs: Tensor, y: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]:
        if outputs.shape != y.shape:  # it would be spread silently
            raise ShapeError(f"a network with outputs of shape {tuple(outputs.shape)} has targets of {tuple(y.shape)}.")
        slopes = self.slopes(outputs, y)
        if weight is None:
            return self.summed(outputs, y), slopes.mul_(self.share(len(y), weighted=False))
        by_row = weight.view(-1, *[1] * (y.ndim - 1))
        return torch.dot(self.row_losses(outputs, y), weight), slopes.mul_(by_row)

    def batched(self, outputs: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        y = y.expand_as(outputs)
        return self.entries(outputs, y).sum((1, 2)) / y.shape[1], self.slopes(outputs, y).div_(y.shape[1])

    def constant_loss(self, y: Tensor, weight: Tensor | None, num_outputs: int) -> float:
        constant = self.best_constant(y, weight, num_outputs).expand(y.shape)
        found = float(weighted_mean(self.row_losses(constant, y.double()), weight))
        return max(found, sys.float_info.min)
