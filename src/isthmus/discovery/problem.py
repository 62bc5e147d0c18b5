"""The data of a discovery in the form that training takes: standardised, split, in float32, with its loss."""

import hashlib
import sys
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from isthmus.discovery.scaling import Standardiser
from isthmus.training.losses import DataLoss, Loss
from isthmus.training.objective import in_float64

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
        weight, weight_held: of the training and of the held-out rows, each with sum 1; None: all rows count the same.
        rows: numbers, in the user's data from 0, of the training rows.
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
    weight: Tensor | None = None
    weight_held: Tensor | None = None
    rows: tuple[int, ...] = ()

    @property
    def d_in(self) -> int:
        """Number of inputs that vary."""
        return self.x.shape[1]

    @property
    def most_rank(self) -> int:
        """The rank that no map of these inputs to these targets exceeds; class scores count up to a common shift."""
        return min(self.d_in, self.d_out - self.classes)

    @property
    def classes(self) -> bool:
        """Whether the targets are classes."""
        return self.loss is Loss.CROSS_ENTROPY

    def train_error(self, network: nn.Module) -> float:
        """Data loss on the training rows relative to that of the best constant."""
        return self._error(network, self.x, self.y, self.weight)

    def heldout_error(self, network: nn.Module) -> float:
        """Data loss on the held-out rows relative to that of the best constant."""
        return self._error(network, self.x_held, self.y_held, self.weight_held)

    def objective(self, network: nn.Module, ridge: float) -> float:
        """What training minimises, data loss on the training rows + ridge * penalty, in float64."""
        loss, penalty = in_float64(network, self.x, DataLoss(self.loss, self.y, self.weight))
        return loss + ridge * penalty

    def heldout_accuracy(self, network: nn.Module) -> float:
        """Share, by weight, of the held-out rows whose class has the largest output."""
        with torch.no_grad():
            right = network(self.x_held.to(next(network.parameters()).dtype)).argmax(1) == self.y_held
        return float(weighted_mean(right[:, None], self.weight_held))

    def heldout_error_of_constant(self) -> float:
        """`heldout_error` of the best constant of the training rows."""
        return self.loss_of(self.best_constant().expand(len(self.x_held), -1), self.y_held, self.weight_held)

    def constant_loss(self) -> float:
        """Data loss of the best constant of the training rows, on those rows; positive, for its logarithm."""
        share = self.weight if self.weight is not None else torch.full((len(self.y),), 1.0 / len(self.y))
        share = share.double()
        if self.loss is Loss.CROSS_ENTROPY:
            p = torch.zeros(self.d_out, dtype=torch.float64).index_add_(0, self.y, share)
            return max(float(-torch.xlogy(p, p).sum()), sys.float_info.min)
        y = self.y.double()
        return max(float((share[:, None] * (y - share @ y).square()).sum()), sys.float_info.min)

    def best_constant(self) -> Tensor:
        """The constant outputs (d_out,) that fit the training rows best, float64.

        Means of the targets; for classes the logarithms of their shares, a class counted as half a row at least: a rare
        one may lie among the held-out rows alone.
        """
        if self.loss is not Loss.CROSS_ENTROPY:
            return weighted_mean(self.y, self.weight)
        weight = None if self.weight is None else self.weight * len(self.y)
        shares = torch.bincount(self.y, weight, minlength=self.d_out).double().clamp_min(0.5)
        return (shares / shares.sum()).log()

    def loss_of(self, outputs: Tensor, y: Tensor, weight: Tensor | None = None) -> float:
        """Relative data loss of given outputs, whose weights sum to 1."""
        return DataLoss(self.loss, y, weight).to(outputs.dtype).value(outputs) / self.unit

    def _error(self, network: nn.Module, x: Tensor, y: Tensor, weight: Tensor | None) -> float:
        with torch.no_grad():
            return self.loss_of(network(x.to(next(network.parameters()).dtype)).double(), y, weight)

    def fingerprint(self) -> str:
        """Hash of everything above, so that a resumed run can tell whether its data are the same."""
        digest = hashlib.sha256(self.loss.value.encode())
        weights = [w for w in (self.weight, self.weight_held) if w is not None]
        for tensor in (self.x, self.y, self.x_held, self.y_held, *weights):
            digest.update(str(tuple(tensor.shape)).encode())
            digest.update(tensor.contiguous().numpy().tobytes())
        return digest.hexdigest()


def pose(  # noqa: PLR0913
    x: Array,
    y: Array,
    held: NDArray[np.bool_],
    *,
    loss: Loss,
    inputs: Standardiser,
    targets: Standardiser | None,
    weight: Array | None = None,
) -> Problem:
    """Standardise and split; y is class numbers (n,) for cross-entropy, else (n, d_out) in the user's units.

    Weights, all positive, count in losses and errors; the standardisation leaves them aside.
    """
    z = torch.from_numpy(inputs.apply(x)).float()
    if loss is Loss.CROSS_ENTROPY:
        t = torch.from_numpy(y.astype(np.int64))
        counts = np.bincount(y.astype(np.int64), weight)
        share = counts / counts.sum()
        unit, d_out = float(-(share * np.log(np.where(share > 0, share, 1.0))).sum()), len(share)
    else:
        assert targets is not None
        t = torch.from_numpy(targets.apply(y)).float()
        unit, d_out = 1.0 if weight is None else _weighted_variance(targets.apply(y), weight), t.shape[1]
    mask = torch.from_numpy(held)
    parts = (z[~mask], t[~mask], z[mask], t[mask])
    x_train, y_train, x_held, y_held = (p.contiguous() for p in parts)
    same = targets is not None and y is x
    weights = (None, None) if weight is None else (_shares(weight[~held]), _shares(weight[held]))
    return Problem(
        x_train,
        y_train,
        x_held,
        y_held,
        loss,
        d_out,
        inputs,
        targets,
        unit,
        same,
        *weights,
        tuple(np.flatnonzero(~held).tolist()),
    )


def _weighted_variance(y: Array, weight: Array) -> float:
    """Squared distance from the weighted mean, summed over columns, in the weighted mean over rows."""
    mean = np.average(y, axis=0, weights=weight)
    return float(np.average(np.square(y - mean).sum(1), weights=weight))


def _shares(weight: Array) -> Tensor:
    return torch.from_numpy(weight / weight.sum())


def weighted_mean(values: Tensor, weight: Tensor | None) -> Tensor:
    """Mean of the rows in float64, by weights that sum to 1."""
    values = values.double()
    return values.mean(0) if weight is None else weight.double() @ values
