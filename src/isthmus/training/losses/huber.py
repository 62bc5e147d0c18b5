"""The Huber loss: squared near the targets, linear far from them, so that a few wrong targets pull little."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from isthmus.training.losses.by_entry import LossByEntry, LossInUnits
from isthmus.training.losses.loss import Words, weighted_mean

HALVINGS = 100  # of the interval that holds a best constant: past the digits of float64


@dataclass(frozen=True)
class Huber(LossInUnits, LossByEntry):
    """r^2 for |r| <= delta, 2 delta |r| - delta^2 beyond, r = f_ij - y_ij, summed over outputs, averaged over samples.

    Attributes:
        delta: > 0, in the units of the targets; in a discovery these are standardised to a total variance of 1, that of
            values moved in to three deviations around the median (1.4826 times the median distance from it).

    Source: Huber (1964), twice his form, so that it is the squared error here for large delta.
    """

    delta: float = 1.0

    kind: ClassVar[str] = "huber"
    robust: ClassVar[bool] = True
    words: ClassVar[Words] = Words(
        left="the Huber loss of the best constant is left",
        unit="the Huber loss of the best constant",
        linear="a linear map under the Huber loss",
        autoencoder="a linear map under the Huber loss",
    )

    def __post_init__(self) -> None:
        if not 0 < self.delta < float("inf"):
            raise ValueError(
                f"Huber(delta={self.delta}): needs a finite delta > 0. For the squared error leave it out."
            )

    def entries(self, outputs: Tensor, y: Tensor) -> Tensor:
        residual = outputs - y
        clipped = residual.clamp(-self.delta, self.delta)
        return clipped * (2 * residual - clipped)

    def slopes(self, outputs: Tensor, y: Tensor) -> Tensor:
        return (outputs - y).clamp_(-self.delta, self.delta).mul_(2.0)

    def curvature(self, outputs: Tensor, y: Tensor) -> float:
        return 2.0

    def best_constant(self, y: Tensor, weight: Tensor | None, num_outputs: int) -> Tensor:
        # the mean slope rises with the constant, and is 0 at the best one
        y = y.double()
        low, high = y.amin(0), y.amax(0)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            is_low = weighted_mean(self.slopes(middle.expand_as(y), y), weight) < 0
            low, high = torch.where(is_low, middle, low), torch.where(is_low, high, middle)
        return (low + high) / 2
