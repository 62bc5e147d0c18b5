"""The cross-entropy of shares of classes: of what other networks say of rows instead of the class of each."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from isthmus.errors import DataError
from isthmus.training.losses.cross_entropy import CrossEntropy
from isthmus.training.losses.loss import Array, Words, shares_of


@dataclass(frozen=True)
class ClassShares(CrossEntropy):
    """log sum_c e^{f_ic} - sum_c p_ic f_ic of shares p_i (n, classes) that sum to 1, averaged over samples.

    A network that is told by another learns more of each row than its class (distillation). Asked for as an object,
    not by a word.
    """

    kind: ClassVar[str] = "class_shares"
    words: ClassVar[Words] = CrossEntropy.words
    classes: ClassVar[bool] = False

    def targets(self, y: Tensor, dtype: torch.dtype) -> Tensor:
        return y.to(dtype).contiguous()

    def check(self, y: Tensor, where: str) -> None:
        off = ((y < 0).any(1) | ((y.sum(1) - 1).abs() > 1e-3)).nonzero()
        if len(off):
            raise DataError(
                f"{where}: row {int(off[0])} of y holds a negative share, or the sum of its shares is not 1."
            )

    def cast(self, y: Tensor, dtype: torch.dtype) -> Tensor:
        return y.to(dtype)

    def num_outputs(self, y: Tensor) -> int:
        return y.shape[1]

    def scores(self, y: Tensor, num_outputs: int) -> Tensor:
        return y

    def from_gaussian(self, drawn: Array, y: Array) -> Array:
        raise NotImplementedError("class_shares: shares are told by networks, not drawn.")

    def total_and_gradient(self, outputs: Tensor, y: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]:
        log_normaliser = outputs.logsumexp(1, keepdim=True)
        share = weight[:, None] if weight is not None else torch.full_like(log_normaliser, 1.0 / len(outputs))
        total = ((log_normaliser - (y * outputs).sum(1, keepdim=True)) * share).sum()
        return total, outputs.sub_(log_normaliser).exp_().sub_(y).mul_(share)

    def batched(self, outputs: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        log_normaliser = outputs.logsumexp(2, keepdim=True)
        losses = ((log_normaliser - (y * outputs).sum(2, keepdim=True)) / len(y)).sum((1, 2))
        return losses, outputs.sub_(log_normaliser).exp_().sub_(y).div_(len(y))

    def row_losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        return nn.functional.cross_entropy(outputs, y, reduction="none")

    def summed(self, outputs: Tensor, y: Tensor) -> Tensor:
        classes = y.shape[-1]
        return nn.functional.cross_entropy(outputs.reshape(-1, classes), y.reshape(-1, classes), reduction="sum")

    def best_constant(self, y: Tensor, weight: Tensor | None, num_outputs: int) -> Tensor:
        return self._mean(y, weight).clamp_min(torch.finfo(y.dtype).tiny).log()

    def constant_loss(self, y: Tensor, weight: Tensor | None, num_outputs: int) -> float:
        mean = self._mean(y, weight)
        return float(-torch.xlogy(mean, mean).sum())

    def unit(self, y: Array, weight: Array | None) -> float:
        told = None if weight is None else torch.from_numpy(weight / weight.sum())
        return self.constant_loss(torch.from_numpy(y), told, y.shape[1])

    def scatter(self, y: Tensor) -> Tensor:
        return y.double()

    @staticmethod
    def _mean(y: Tensor, weight: Tensor | None) -> Tensor:
        return shares_of(len(y), weight) @ y.double()
