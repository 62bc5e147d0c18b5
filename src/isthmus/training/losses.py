"""Data losses with their gradients at the outputs: squared error and cross-entropy, optionally weighted per sample."""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

CONSTANT = 1e-6  # a network whose outputs vary by less than this fraction of what the targets do computes a constant


@runtime_checkable
class Digest(Protocol):
    """A running hash, as those of `hashlib`."""

    def update(self, data: bytes, /) -> None:
        """Add bytes."""
        ...


class Loss(Enum):
    """The data loss; the value is the name that users type."""

    SQUARED = "squared"
    CROSS_ENTROPY = "cross_entropy"


@dataclass(frozen=True, slots=True)
class DataLoss:
    """Mean over samples of the squared error summed over outputs, or of the cross-entropy of logits.

        squared: sum_i w_i |f_i - y_i|^2,    cross-entropy: sum_i w_i (log sum_c e^{f_ic} - f_{i,y_i}),    sum_i w_i = 1

    Attributes:
        loss: which of the two.
        y: targets (n, d_out), or class numbers (n,) for cross-entropy.
        weight: non-negative weights (n,) that sum to 1, or None for 1/n each.
    """

    loss: Loss
    y: Tensor
    weight: Tensor | None = None

    def to(self, dtype: torch.dtype) -> "DataLoss":
        """The same loss in another precision."""
        y = self.y.to(dtype) if self.loss is Loss.SQUARED else self.y
        return DataLoss(self.loss, y, None if self.weight is None else self.weight.to(dtype))

    @property
    def share(self) -> float:
        """What `total_and_gradient` leaves out of the loss: 1/n of the squared error without weights, else 1."""
        return 1.0 / len(self.y) if self.loss is Loss.SQUARED and self.weight is None else 1.0

    def value_and_gradient(self, outputs: Tensor) -> tuple[float, Tensor]:
        """The loss at `outputs` and its gradient there; `outputs` is overwritten."""
        total, gradient = self.total_and_gradient(outputs)
        return self.share * float(total), gradient

    def total_and_gradient(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """The loss over `share`, a scalar that is not looked at, and the gradient; `outputs` is overwritten."""
        if self.loss is Loss.SQUARED:
            residual = outputs.sub_(self.y)
            if self.weight is None:
                flat = residual.view(-1)
                return torch.dot(flat, flat), residual.mul_(2.0 * self.share)
            weighted = residual * self.weight[:, None]
            return torch.dot(weighted.view(-1), residual.view(-1)), weighted.mul_(2.0)
        log_normaliser = outputs.logsumexp(1, keepdim=True)
        chosen = outputs.gather(1, self.y[:, None])
        weight = self.weight[:, None] if self.weight is not None else torch.full_like(chosen, 1.0 / len(outputs))
        total = ((log_normaliser - chosen) * weight).sum()
        gradient = outputs.sub_(log_normaliser).exp_()
        gradient.scatter_add_(1, self.y[:, None], -torch.ones_like(chosen))
        return total, gradient.mul_(weight)

    def value(self, outputs: Tensor) -> float:
        """The loss at `outputs`, which are left as they are."""
        return self.value_and_gradient(outputs.clone())[0]


def target_spread(data: DataLoss) -> float:
    """Mean squared distance of the targets from their mean; 1 for classes that differ, below 0 for constant targets."""
    if data.loss is Loss.CROSS_ENTROPY:
        return 1.0 if len(data.y.unique()) > 1 else 0.0
    # strictly negative for constant targets, for which the constant network is the answer and not a collapse
    spread = float((data.y - data.y.mean(0)).square().sum(1).mean())
    return spread if spread > 0 else -1.0


def is_constant(outputs: Tensor, data: DataLoss) -> bool:
    """Whether the outputs vary by no more than `CONSTANT` times what the targets do."""
    spread = float((outputs - outputs.mean(0)).square().sum(1).mean())
    return spread <= CONSTANT * target_spread(data)


def identify(digest: Digest, x: Tensor, data: DataLoss) -> None:
    """Add samples, targets and weights to a digest."""
    for tensor in (x, data.y, data.weight):
        if tensor is not None:
            digest.update(f"{tuple(tensor.shape)}".encode() + tensor.detach().cpu().contiguous().numpy().tobytes())


def scale_of(data_loss: DataLoss) -> float:
    """The loss of the zero function, the natural unit of the data loss."""
    width = data_loss.y.shape[1] if data_loss.loss is Loss.SQUARED else int(data_loss.y.max()) + 1
    dtype = data_loss.y.dtype if data_loss.loss is Loss.SQUARED else torch.float64
    return data_loss.value(torch.zeros(len(data_loss.y), width, dtype=dtype, device=data_loss.y.device))
