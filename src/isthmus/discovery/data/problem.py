"""The data of a discovery in the form that training takes: standardised, split, in float32, with its loss."""

import copy
import hashlib
import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from isthmus.discovery.data.scaling import Standardiser
from isthmus.theory.comparison import Comparison
from isthmus.training.losses import DataLoss, Loss, weighted_mean
from isthmus.training.steps.memory_step import in_float64

LOOKED_AT = 1e10  # rows * columns^2 up to which it is looked whether columns are made of others
ROUNDED = 1e-6  # of the largest singular value: what float32 leaves of directions in which rows do not vary
Array = NDArray[np.float64]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Training and held-out rows in standardised units, and how errors are counted.

    Attributes:
        x, y: training rows, float32; y is in the form that the loss takes.
        x_held, y_held: held-out rows.
        loss: which data loss.
        d_out: number of outputs.
        inputs, targets: the maps from the user's units (`targets` is None where the loss takes them as they are).
        unit: data loss of the best constant on all rows, by which errors are divided.
        autoencoding: whether the targets are the inputs.
        weight, weight_held: of the training and of the held-out rows, each with sum 1; None: all rows count the same.
        rows: numbers, in the user's data from 0, of the training rows.
        shift: added to outputs in the user's units, where targets are not standardised; see `Loss.reduced`.
        trained_share: of all weight, that of the training rows; None: by their number.
        directions: in how many directions the inputs vary, and targets whose means networks give; None: in all.
        target_names: of the standardised targets, for words; empty where they are not known.
        together, together_held: a number of each training and each held-out row, the same for rows of one group or of
            one stretch of a series, which resemble each other; None: rows are independent.
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
    shift: float = 0.0
    trained_share: float | None = None
    together: Numbers | None = None
    together_held: Numbers | None = None
    directions: tuple[int | None, int | None] = (None, None)
    target_names: tuple[str, ...] = ()

    @property
    def d_in(self) -> int:
        """Number of inputs that vary."""
        return self.x.shape[1]

    @property
    def free_outputs(self) -> int:
        """Number of outputs that count; class scores count up to a common shift."""
        return self.d_out - self.loss.unseen

    @property
    def most_in(self) -> int:
        """Number of directions in which the inputs vary: what they have to say passes through so many dimensions."""
        return self.d_in if self.directions[0] is None else self.directions[0]

    @property
    def most_out(self) -> int:
        """Number of directions in which the best outputs vary: they are made of so many dimensions."""
        return self.free_outputs if self.directions[1] is None else min(self.directions[1], self.free_outputs)

    @property
    def outputs(self) -> Standardiser | None:
        """The map from the user's units of what networks give; None where these have none."""
        return None if self.targets is None else self.targets.of_outputs(self.loss)

    @property
    def classes(self) -> bool:
        """Whether the targets are classes."""
        return self.loss.classes

    @property
    def errors_compared(self) -> Comparison:
        """How errors, relative to that of the best constant, are compared; objectives are by `loss.compared`."""
        return self.loss.compared.of_errors(self.unit)

    def on_all_rows(self) -> "Problem":
        """The same with the held-out rows among the training rows: for directions, never for errors."""
        x, y = torch.cat([self.x, self.x_held]), torch.cat([self.y, self.y_held])
        whole = replace(self, x=x, y=y, rows=(), together=None)  # which row stands where was the training rows' alone
        if self.weight is None or self.weight_held is None:
            return whole
        share = len(self.x) / len(x) if self.trained_share is None else self.trained_share
        weight = torch.cat([self.weight * share, self.weight_held * (1 - share)])  # each part has sum 1
        return replace(whole, weight=weight)

    def at_rows(self, rows: Tensor) -> "Problem":
        """The same with these of the training rows alone, given by their numbers."""
        weight = None if self.weight is None else self.weight[rows] / self.weight[rows].sum()
        numbers = tuple(self.rows[i] for i in rows.tolist()) if self.rows else ()
        together = None if self.together is None else self.together[rows.numpy()]
        return replace(self, x=self.x[rows], y=self.y[rows], weight=weight, rows=numbers, together=together)

    def with_held(self, x: Array, y: Array, weight: Array | None) -> "Problem":
        """The same with other held-out rows, given in the user's units."""
        # targets that are not standardised are at most divided by what outputs are short of, see `Loss.reduced`
        values = y / math.exp(self.shift) if self.targets is None else self.targets.apply(y)
        y_held = self.loss.targets(torch.from_numpy(values), self.x.dtype)
        shares = None if weight is None else _shares(weight)
        x_held = torch.from_numpy(self.inputs.apply(x)).float()
        return replace(self, x_held=x_held, y_held=y_held, weight_held=shares, together_held=None)

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
        return float(weighted_mean(self.right(network)[:, None], self.weight_held))

    def right(self, network: nn.Module) -> Tensor:
        """Of each held-out row, 1 where its class has the largest output, else 0, float64."""
        with torch.no_grad():
            return (network(self.x_held.to(next(network.parameters()).dtype)).argmax(1) == self.y_held).double()

    def heldout_error_of_constant(self) -> float:
        """`heldout_error` of the best constant of the training rows."""
        return self.loss_of(self.best_constant().expand(len(self.x_held), -1), self.y_held, self.weight_held)

    def constant_loss(self) -> float:
        """Data loss of the best constant of the training rows, on those rows; positive, for its logarithm."""
        return self.loss.constant_loss(self.y, self.weight, self.d_out)

    def best_constant(self) -> Tensor:
        """The constant outputs (d_out,) that fit the training rows best, float64."""
        return self.loss.best_constant(self.y, self.weight, self.d_out)

    def loss_of(self, outputs: Tensor, y: Tensor, weight: Tensor | None = None) -> float:
        """Relative data loss of given outputs, whose weights sum to 1."""
        return DataLoss(self.loss, y, weight).to(outputs.dtype).value(outputs) / self.unit

    def _error(self, network: nn.Module, x: Tensor, y: Tensor, weight: Tensor | None) -> float:
        with torch.no_grad():
            return self.loss_of(network(x.to(next(network.parameters()).dtype)).double(), y, weight)

    def fingerprint(self) -> str:
        """Hash of everything above, so that a resumed run can tell whether its data are the same."""
        digest = hashlib.sha256(self.loss.name.encode())
        weights = [w for w in (self.weight, self.weight_held) if w is not None]
        for tensor in (self.x, self.y, self.x_held, self.y_held, *weights):
            digest.update(str(tuple(tensor.shape)).encode())
            digest.update(tensor.contiguous().numpy().tobytes())
        return digest.hexdigest()


@dataclass(frozen=True, slots=True, eq=False)
class RowLabels:
    """Which rows some are.

    Attributes:
        numbers: of each in the user's data; None: as they stand.
        together: a number of each, the same for rows that resemble each other; None: each by itself.
    """

    numbers: Numbers | None = None
    together: Numbers | None = None


class HeldOutRises:
    """Whether the held-out error of a network lies above what it was."""

    def __init__(self, problem: Problem, error: float) -> None:
        self.problem, self.error = problem, error

    def __call__(self, network: nn.Module) -> bool:
        """Of a network on any device."""
        return not self.problem.heldout_error(copy.deepcopy(network).to(self.problem.x.device)) <= self.error

    def __repr__(self) -> str:
        return f"HeldOutRises({self.error!r})"  # by which a fit knows its checkpoint in every process


def pose(  # noqa: PLR0913
    x: Array,
    y: Array,
    held: NDArray[np.bool_],
    *,
    loss: Loss,
    inputs: Standardiser,
    targets: Standardiser | None,
    weight: Array | None = None,
    labels: RowLabels | None = None,
) -> Problem:
    """Standardise and split; y is class numbers (n,) where the loss takes classes, else (n, d_out) in the user's units.

    Weights, all positive, count in losses and errors; the standardisation leaves them aside.

    Args:
        x: all rows.
        y: theirs.
        held: which are held out.
        loss: see `Problem`.
        inputs: see `Problem`.
        targets: see `Problem`.
        weight: of each row.
        labels: which rows these are; None: as they stand, each by itself.
    """
    z = torch.from_numpy(inputs.apply(x)).float()
    values, shift = loss.reduced(y, weight) if targets is None else (targets.apply(y), 0.0)
    t = loss.targets(torch.from_numpy(values), z.dtype)
    mask = torch.from_numpy(held)
    parts = (z[~mask], t[~mask], z[mask], t[mask])
    x_train, y_train, x_held, y_held = (p.contiguous() for p in parts)
    same = y is x
    weights = (None, None) if weight is None else (_shares(weight[~held]), _shares(weight[held]))
    numbers, together = (None, None) if labels is None else (labels.numbers, labels.together)
    rows = np.arange(len(held)) if numbers is None else numbers
    return Problem(
        x_train,
        y_train,
        x_held,
        y_held,
        loss,
        loss.num_outputs(t),
        inputs,
        targets,
        loss.unit(values, weight),
        same,
        *weights,
        tuple(rows[~held].tolist()),
        shift,
        None if weight is None else float(weight[~held].sum() / weight.sum()),
        *((None, None) if together is None else (together[~held], together[held])),
        (directions(z), directions(t) if targets is not None and loss.is_quadratic else None),
    )


def directions(rows: Tensor) -> int | None:
    """In how many directions rows vary, beyond what float32 rounds; None where it is all, or rows are too few to tell.

    Args:
        rows: (n, columns), in units in which every column counts.
    """
    n, columns = rows.shape
    if not 1 < columns < n or n * columns**2 > LOOKED_AT:
        return None
    centred = rows.double() - rows.double().mean(0)
    squares = torch.linalg.eigvalsh(centred.mT @ centred)
    found = int((squares > ROUNDED**2 * squares[-1]).sum())
    return found if found < columns else None


def _shares(weight: Array) -> Tensor:
    return torch.from_numpy(weight / weight.sum())
