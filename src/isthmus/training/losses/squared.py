"""The squared error."""

import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from isthmus.training.losses.by_entry import LossInUnits
from isthmus.training.losses.loss import Array, Words, shares_of, weighted_mean


@dataclass(frozen=True)
class Squared(LossInUnits):
    """|f_i - y_i|^2, summed over outputs, averaged over samples; no 1/2."""

    kind: ClassVar[str] = "squared"
    words: ClassVar[Words] = Words(
        left="the variance is missed",
        unit="the variance of the targets",
        linear="a linear map (reduced-rank regression)",
        autoencoder="PCA",
    )
    is_quadratic: ClassVar[bool] = True

    def entries(self, outputs: Tensor, y: Tensor) -> Tensor:
        return (outputs - y).square()

    def total_and_gradient(self, outputs: Tensor, y: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]:
        residual = outputs.sub_(y)
        if weight is None:
            flat = residual.view(-1)
            return torch.dot(flat, flat), residual.mul_(2.0 * self.share(len(y), weighted=False))
        weighted = residual * weight[:, None]
        return torch.dot(weighted.view(-1), residual.view(-1)), weighted.mul_(2.0)

    def batched(self, outputs: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        residual = outputs.sub_(y)
        weighted = residual / len(y)
        return (weighted * residual).sum((1, 2)), weighted.mul_(2.0)

    def curvature(self, outputs: Tensor, y: Tensor) -> float:
        return 2.0

    def best_constant(self, y: Tensor, weight: Tensor | None, num_outputs: int) -> Tensor:
        return weighted_mean(y, weight)

    def constant_loss(self, y: Tensor, weight: Tensor | None, num_outputs: int) -> float:
        y, share = y.double(), shares_of(len(y), weight)
        return max(float((share[:, None] * (y - share @ y).square()).sum()), sys.float_info.min)

    def unit(self, y: Array, weight: Array | None) -> float:
        if weight is None:
            return 1.0  # standardised targets have a total variance of 1
        mean = np.average(y, axis=0, weights=weight)
        return float(np.average(np.square(y - mean).sum(1), weights=weight))
