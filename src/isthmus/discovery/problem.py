"""The data of a discovery in the form that training takes: standardised, split, in float32, with its loss."""

import hashlib
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from isthmus.discovery.scaling import Standardiser
from isthmus.training.losses import DataLoss, Loss

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Training and held-out rows in standardised units, and how errors are counted.

    Attributes:
        x, y: training rows, float32; y is (n, d_out), or class numbers (n,) for cross-entropy.
        x_held, y_held: held-out rows.
        loss: which data loss.
        d_out: number of outputs.
        inputs, targets: the maps from the user's units (`targets` is None when classifying).
        unit: data loss of the best constant on all rows, by which errors are divided.
        autoencoding: whether the targets are the inputs.
    """

    x: Tensor
    y: Tensor
    x_held: Tensor
    y_held: Tensor
    loss: Loss
    d_out: int
    inputs: Standardiser
    targets: Standardiser | None
    unit: float
    autoencoding: bool

    @property
    def d_in(self) -> int:
        """Number of inputs that vary."""
        return self.x.shape[1]

    def train_error(self, network: nn.Module) -> float:
        """Data loss on the training rows relative to that of the best constant."""
        return self._error(network, self.x, self.y)

    def heldout_error(self, network: nn.Module) -> float:
        """Data loss on the held-out rows relative to that of the best constant."""
        return self._error(network, self.x_held, self.y_held)

    def loss_of(self, outputs: Tensor, y: Tensor) -> float:
        """Relative data loss of given outputs."""
        return DataLoss(self.loss, y).to(outputs.dtype).value(outputs) / self.unit

    def _error(self, network: nn.Module, x: Tensor, y: Tensor) -> float:
        with torch.no_grad():
            return self.loss_of(network(x.to(next(network.parameters()).dtype)).double(), y)

    def fingerprint(self) -> str:
        """Hash of everything above, so that a resumed run can tell whether its data are the same."""
        digest = hashlib.sha256(self.loss.value.encode())
        for tensor in (self.x, self.y, self.x_held, self.y_held):
            digest.update(str(tuple(tensor.shape)).encode())
            digest.update(tensor.contiguous().numpy().tobytes())
        return digest.hexdigest()


def pose(
    x: Array, y: Array, held: NDArray[np.bool_], *, loss: Loss, inputs: Standardiser, targets: Standardiser | None
) -> Problem:
    """Standardise and split; y is class numbers (n,) for cross-entropy, else (n, d_out) in the user's units."""
    z = torch.from_numpy(inputs.apply(x)).float()
    if loss is Loss.CROSS_ENTROPY:
        t = torch.from_numpy(y.astype(np.int64))
        share = np.bincount(y.astype(np.int64)) / len(y)
        unit, d_out = float(-(share * np.log(np.where(share > 0, share, 1.0))).sum()), len(share)
    else:
        assert targets is not None
        t = torch.from_numpy(targets.apply(y)).float()
        unit, d_out = 1.0, t.shape[1]
    mask = torch.from_numpy(held)
    parts = (z[~mask], t[~mask], z[mask], t[mask])
    x_train, y_train, x_held, y_held = (p.contiguous() for p in parts)
    same = targets is not None and y is x
    return Problem(x_train, y_train, x_held, y_held, loss, d_out, inputs, targets, unit, same)
