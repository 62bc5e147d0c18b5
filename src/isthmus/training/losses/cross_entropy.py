"""The cross-entropy of classes."""

import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from scipy.special import softmax
from torch import Tensor, nn

from isthmus.training.losses.loss import Array, Floats, Loss, Words, shares_of


@dataclass(frozen=True)
class CrossEntropy(Loss):
    """log sum_c e^{f_ic} - f_{i,y_i} of class numbers y_i, averaged over samples; outputs are logits."""

    kind: ClassVar[str] = "cross_entropy"
    words: ClassVar[Words] = Words(
        left="the loss of the best constant is left",
        unit="the cross-entropy of the shares of the classes",
        linear="logistic regression on principal components",
        autoencoder="logistic regression on principal components",
        outputs=("logit of ",),
    )
    classes: ClassVar[bool] = True
    unseen: ClassVar[int] = 1

    def targets(self, y: Tensor, dtype: torch.dtype) -> Tensor:
        return y.long().reshape(-1).contiguous()

    def check(self, y: Tensor, where: str) -> None:
        """Numbers of classes are made by whoever reads labels."""

    def cast(self, y: Tensor, dtype: torch.dtype) -> Tensor:
        return y

    def num_outputs(self, y: Tensor) -> int:
        return int(y.max()) + 1

    def scores(self, y: Tensor, num_outputs: int) -> Tensor:
        return nn.functional.one_hot(y, num_outputs).float()

    def means(self, outputs: Floats) -> Floats:
        return softmax(outputs, axis=1)

    def spreads(self, outputs: Floats) -> Floats | None:
        p = self.means(outputs)
        return np.sqrt(p * (1 - p))

    def output_units(self, mean: Array, scale: Array) -> tuple[Array, Array]:
        return mean, scale

    def from_gaussian(self, drawn: Array, y: Array) -> Array:
        return drawn.argmax(1).astype(np.float64)

    def share(self, rows: int, *, weighted: bool) -> float:
        return 1.0

    def total_and_gradient(self, outputs: Tensor, y: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]:
        log_normaliser = outputs.logsumexp(1, keepdim=True)
        chosen = outputs.gather(1, y[:, None])
        share = weight[:, None] if weight is not None else torch.full_like(chosen, 1.0 / len(outputs))
        total = ((log_normaliser - chosen) * share).sum()
        gradient = outputs.sub_(log_normaliser).exp_()
        gradient.scatter_add_(1, y[:, None], -torch.ones_like(chosen))
        return total, gradient.mul_(share)

    def batched(self, outputs: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        log_normaliser = outputs.logsumexp(2, keepdim=True)
        place = y[None, :, None].expand(len(outputs), -1, 1)
        losses = ((log_normaliser - outputs.gather(2, place)) / len(y)).sum((1, 2))
        gradient = outputs.sub_(log_normaliser).exp_()
        return losses, gradient.scatter_add_(2, place, -torch.ones_like(log_normaliser)).div_(len(y))

    def row_losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        return nn.functional.cross_entropy(outputs, y, reduction="none")

    def summed(self, outputs: Tensor, y: Tensor) -> Tensor:
        return nn.functional.cross_entropy(outputs.flatten(0, -2), y.long().flatten(), reduction="sum")

    def curvature(self, outputs: Tensor, y: Tensor) -> float:
        return 0.5  # diag(p) - p p^T, with two classes of p = 1/2

    def best_constant(self, y: Tensor, weight: Tensor | None, num_outputs: int) -> Tensor:
        # a class counts as half a row at least: a rare one may lie among other rows alone
        counts = torch.bincount(y, None if weight is None else weight * len(y), minlength=num_outputs)
        shares = counts.double().clamp_min(0.5)
        return (shares / shares.sum()).log()

    def constant_loss(self, y: Tensor, weight: Tensor | None, num_outputs: int) -> float:
        p = torch.zeros(num_outputs, dtype=torch.float64).index_add_(0, y, shares_of(len(y), weight))
        return max(float(-torch.xlogy(p, p).sum()), sys.float_info.min)

    def unit(self, y: Array, weight: Array | None) -> float:
        counts = np.bincount(y.astype(np.int64), weight)
        share = counts / counts.sum()
        return float(-(share * np.log(np.where(share > 0, share, 1.0))).sum())

    def scatter(self, y: Tensor) -> Tensor:
        return y[:, None].double()

    def reduced(self, y: Array, weight: Array | None) -> tuple[Array, float]:
        return y, 0.0

    def spread(self, variance: float) -> float:
        return 1.0 if variance > 0 else 0.0
