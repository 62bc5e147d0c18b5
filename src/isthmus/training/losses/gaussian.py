"""The Gaussian loss of numbers: their mean and their spread from the same coordinates."""

import math
import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from isthmus.errors import DataError, ShapeError
from isthmus.theory.comparison import Comparison, in_nats
from isthmus.training.losses.by_entry import StandardisedLoss
from isthmus.training.losses.loss import Array, Floats, Words, weighted_mean

LOG_OF_NOTHING = math.log(sys.float_info.min)  # log variance of a target that does not vary
LOG_OF_CHI_SQUARE = -1.2703628454614782  # E log z^2 of a standard normal z: -gamma - log 2


@dataclass(frozen=True)
class Gaussian(StandardisedLoss):
    """Divergence of a normal distribution from one around the target: negative log-likelihood with a least variance.

        loss = mean_j KL( N(y_j, v) || N(m_j, e^s_j) ) = mean_j [ s_j - log v + ((y_j - m_j)^2 + v) / e^s_j - 1 ] / 2
        v = floor / d

    in nats for each of d targets, averaged over samples. Outputs are d means m, then d log variances s. Between
    predictions whose variances are well above v it differs as the negative log-likelihood does. It is the expected
    one of targets with an error of variance v each, less the least that any m and s have, so that it is never negative,
    0 only at m = y, e^s = v, and no variance below v pays.

    Attributes:
        floor: > 0, the least variance v summed over the targets; in a discovery these are standardised to a total
            variance of 1, so that it is a share of it. Spreads below sqrt(floor) of theirs are hardly told apart.

    It is not homogeneous: targets c y and a floor c^2 floor have the same loss, not c^2 times as much as of the squared
    error, and its ratios depend on the floor: the best constant has log(1 + 1/floor) / 2. Differences hardly do, so
    that curves are read by them. Nor is it convex in m and s together.

    Accuracy: e^-s is infinite in float32 for s < -88, as is the loss there, and a line search takes a shorter step.
    Source: Nix and Weigend (1994); why the floor, and what was dropped: docs/notes/gaussian.md.
    """

    floor: float = 0.03

    kind: ClassVar[str] = "gaussian"
    words: ClassVar[Words] = Words(
        left="the Gaussian divergence of the best constant mean and spread is left",
        unit="the Gaussian divergence of the best constant mean and spread",
        linear="a linear map to mean and log variance",
        autoencoder="a linear map to mean and log variance",
        outputs=("mean of ", "log variance of "),
        parts="mean and spread",
    )

    compared: ClassVar[Comparison] = in_nats

    def __post_init__(self) -> None:
        if not 0 < self.floor < float("inf"):
            raise ValueError(f"Gaussian(floor={self.floor}): needs a finite floor > 0, or variances end at 0.")

    def least_variance(self, num_targets: int) -> float:
        """The v of each of so many targets."""
        return self.floor / num_targets

    def check(self, y: Tensor, where: str) -> None:
        if bool(((y == 0) | (y == 1)).all()) and bool((y == 0).any()) and bool((y == 1).any()):
            raise DataError(
                f"{where}: the Gaussian loss needs numbers, but every target is 0 or 1, as of classes, whose mean says "
                "all. Use 'cross_entropy'."
            )

    def scores(self, y: Tensor, num_outputs: int) -> Tensor:
        squares = (y - y.mean(0)).square().add_(self.least_variance(y.shape[1]))
        return torch.cat([y, squares.log().sub_(LOG_OF_CHI_SQUARE)], 1)

    def means(self, outputs: Floats) -> Floats:
        return outputs[:, : outputs.shape[1] // 2]

    def spreads(self, outputs: Floats) -> Floats:
        return np.exp(outputs[:, outputs.shape[1] // 2 :] / 2)

    def output_units(self, mean: Array, scale: Array) -> tuple[Array, Array]:
        logs = 2 * np.log(scale, out=np.full_like(scale, LOG_OF_NOTHING / 2), where=scale > 0)
        return np.concatenate([mean, logs]), np.concatenate([scale, np.sign(scale)])

    def entries(self, outputs: Tensor, y: Tensor) -> Tensor:
        v, m, s = self._parts(outputs, y)
        return (s - math.log(v) + ((m - y).square() + v) * (-s).exp() - 1) / (2 * y.shape[-1])

    def total_and_gradient(self, outputs: Tensor, y: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]:
        rows, gradient = self._rows_and_slopes(outputs, y)
        if weight is None:
            return rows.sum(), gradient.mul_(self.share(len(y), weighted=False))
        return torch.dot(rows, weight), gradient.mul_(weight[:, None])

    def batched(self, outputs: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        rows, gradient = self._rows_and_slopes(outputs, y)
        return rows.sum(1) / len(y), gradient.div_(len(y))

    def curvature(self, outputs: Tensor, y: Tensor) -> Tensor:
        v, m, s = self._parts(outputs, y)
        precision, residual = (-s).exp(), m - y
        # [[e^-s, (y - m) e^-s], [(y - m) e^-s, ((y - m)^2 + v) e^-s / 2]] for each target
        below = (residual.square() + v) / 2
        largest = (1 + below) / 2 + ((1 - below).square() / 4 + residual.square()).sqrt()
        return (precision * largest).amax(1) / y.shape[1]

    def best_constant(self, y: Tensor, weight: Tensor | None, num_outputs: int) -> Tensor:
        mean, variance = self._moments(y, weight)
        return torch.cat([mean, (variance + self.least_variance(y.shape[1])).log()])

    def constant_loss(self, y: Tensor, weight: Tensor | None, num_outputs: int) -> float:
        _, variance = self._moments(y, weight)
        found = float((variance / self.least_variance(y.shape[1])).log1p().mean()) / 2
        return max(found, sys.float_info.min)

    def _moments(self, y: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]:
        mean = weighted_mean(y, weight)
        return mean, weighted_mean((y.double() - mean).square(), weight)

    def _parts(self, outputs: Tensor, y: Tensor) -> tuple[float, Tensor, Tensor]:
        """v, means and log variances."""
        if outputs.shape[-1] != 2 * y.shape[-1]:  # it would be spread silently
            raise ShapeError(
                f"outputs of shape {tuple(outputs.shape)} for targets of {tuple(y.shape)}: the Gaussian loss needs a "
                "mean and a log variance for each."
            )
        m, s = outputs.chunk(2, -1)
        return self.least_variance(y.shape[-1]), m, s

    def _rows_and_slopes(self, outputs: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The loss of each row and its derivative, of one network or of a batch of them."""
        v, m, s = self._parts(outputs, y)
        q, residual, precision = y.shape[-1], m - y, (-s).exp()
        surprise = (residual.square() + v).mul_(precision)
        rows = (s - math.log(v) + surprise - 1).sum(-1).div_(2 * q)
        return rows, torch.cat([residual.mul_(precision), surprise.neg_().add_(1).div_(2)], -1).div_(q)
