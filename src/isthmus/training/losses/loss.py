"""What a data loss is asked for, by training, discovery, tables and words alike. The losses themselves: their files.

A new one is a class in a file of its own and a row in the registry, `isthmus.training.losses`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from isthmus.networks.arguments import check_fits
from isthmus.theory.comparison import Comparison, by_ratio

Array = NDArray[np.float64]
Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class Words:
    """How reports speak of a loss.

    Attributes:
        left: what a network leaves, after a percentage: "the variance is missed".
        unit: what errors are divided by: "the variance of the targets".
        linear: the linear model that a network is compared with.
        autoencoder: that model where the targets are the inputs.
        outputs: what stands before the name of a target for each of its outputs: "logit of ".
        parts: what of a target is predicted, where that is more than its mean: "mean and spread".
    """

    left: str
    unit: str
    linear: str
    autoencoder: str
    outputs: tuple[str, ...] = ("",)
    parts: str = ""


@dataclass(frozen=True)
class Loss(ABC):
    """A data loss, the mean over samples of a loss of each row; without state, so that equal ones are one.

    Fields are its parameters, numbers. "Rows" below are targets and outputs of samples; where a tensor of weights is
    taken, it sums to 1, and None is the same weight for all.

    Attributes:
        kind: the word by which it is asked for.
        words: for reports.
        classes: whether targets are class numbers (n,) and outputs are scores of the classes; else targets are (n, d)
            and outputs (n, per_target * d).
        standardised: whether a discovery standardises the targets, so that outputs have their units.
        robust: whether a few wild targets count little, so that they must not set the scale of the others either.
        is_quadratic: whether it is the squared error, for which alone some formulas and solvers hold.
        unseen: dimensions of the outputs that it does not see; scores of classes count up to a common shift.
        compared: how a discovery compares objectives and errors: by ratios, where 0 is an exact prediction.
    """

    kind: ClassVar[str]
    words: ClassVar[Words]
    classes: ClassVar[bool] = False
    standardised: ClassVar[bool] = False
    robust: ClassVar[bool] = False
    is_quadratic: ClassVar[bool] = False
    unseen: ClassVar[int] = 0
    compared: ClassVar[Comparison] = by_ratio

    @property
    def name(self) -> str:
        """What users type for it, and what stamps of files hold: the kind, and parameters unless all are usual."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        if all(values[field.name] == field.default for field in fields(self)):
            return self.kind
        return ":".join([self.kind, *map(str, values.values())])

    def check_precision(self, dtype: torch.dtype) -> None:
        """Refuse a parameter that is infinite, or 0, in the precision of the outputs.

        Raises:
            ValueError: says which.
        """
        for field in fields(self):
            check_fits(float(getattr(self, field.name)), f"loss {self.name!r}: {field.name}", dtype)

    @property
    def per_target(self) -> int:
        """How many outputs belong to one target, or one class."""
        return len(self.words.outputs)

    def output_names(self, targets: Sequence[str]) -> list[str]:
        """What the outputs of targets, or classes, of these names are called."""
        return [f"{before}{name}" for before in self.words.outputs for name in targets]

    @abstractmethod
    def targets(self, y: Tensor, dtype: torch.dtype) -> Tensor:
        """Targets in the form and type that the other methods take, whatever shape of one column came."""

    @abstractmethod
    def check(self, y: Tensor, where: str) -> None:
        """Refuse targets that this loss has no value for.

        Raises:
            DataError: begins with `where`, says which row.
        """

    @abstractmethod
    def cast(self, y: Tensor, dtype: torch.dtype) -> Tensor:
        """Targets for outputs of another precision."""

    @abstractmethod
    def num_outputs(self, y: Tensor) -> int:
        """How many outputs these targets ask for, at least."""

    @abstractmethod
    def scores(self, y: Tensor, num_outputs: int) -> Tensor:
        """Outputs (n, num_outputs) that stand for the targets: what a linear start regresses on."""

    @abstractmethod
    def means(self, outputs: Floats) -> Floats:
        """Expected targets at these outputs; of classes their probabilities."""

    @abstractmethod
    def spreads(self, outputs: Floats) -> Floats | None:
        """Standard deviations of the targets at these outputs; None where the loss says nothing of them."""

    @abstractmethod
    def output_units(self, mean: Array, scale: Array) -> tuple[Array, Array]:
        """Offsets and scales by which outputs have the user's units, given those of the targets; scale 0: constant."""

    @abstractmethod
    def from_gaussian(self, drawn: Array, y: Array) -> Array:
        """Targets of the form of `y` from Gaussian numbers of the covariance of `y`, or of its 0/1 columns."""

    @abstractmethod
    def share(self, rows: int, *, weighted: bool) -> float:
        """The factor that `total_and_gradient` leaves out of the loss."""

    @abstractmethod
    def total_and_gradient(self, outputs: Tensor, y: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]:
        """The loss over `share`, a scalar that is not looked at, and the gradient; `outputs` may be overwritten."""

    @abstractmethod
    def batched(self, outputs: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Losses (B,) of outputs (B, n, d_out) on the same targets, and gradients; `outputs` may be overwritten."""

    @abstractmethod
    def row_losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        """The loss of each row (n,)."""

    @abstractmethod
    def summed(self, outputs: Tensor, y: Tensor) -> Tensor:
        """The sum of the losses of all rows, of any shape, differentiable."""

    @abstractmethod
    def curvature(self, outputs: Tensor, y: Tensor) -> Tensor | float:
        """No less than the second derivative of any row's loss along any unit vector, for each row (n,) or for all."""

    @abstractmethod
    def best_constant(self, y: Tensor, weight: Tensor | None, num_outputs: int) -> Tensor:
        """The outputs (num_outputs,) that fit all rows best, float64."""

    @abstractmethod
    def constant_loss(self, y: Tensor, weight: Tensor | None, num_outputs: int) -> float:
        """The loss of the best constant on these rows."""

    @abstractmethod
    def unit(self, y: Array, weight: Array | None) -> float:
        """What a discovery divides errors by: the loss of the best constant on all rows, standardised if they are."""

    @abstractmethod
    def reduced(self, y: Array, weight: Array | None) -> tuple[Array, float]:
        """Targets that a discovery trains on where it does not standardise them, and what outputs lack for that."""

    @abstractmethod
    def scatter(self, y: Tensor) -> Tensor:
        """Numbers (n, c) which differ from row to row where the targets do, see `spread`."""

    @abstractmethod
    def spread(self, variance: float) -> float:
        """What outputs that follow the targets vary by, given the variance of `scatter`.

        Negative for constant targets, for which the constant network is the answer and not a collapse.
        """


def weighted_mean(values: Tensor, weight: Tensor | None) -> Tensor:
    """Mean of the rows in float64, by weights that sum to 1."""
    values = values.double()
    return values.mean(0) if weight is None else shares_of(len(values), weight) @ values


def shares_of(rows: int, weight: Tensor | None) -> Tensor:
    """The weights, or 1/n for each row, in float64; those of a float32 sum to 1 only up to a rounding of theirs."""
    if weight is None:
        return torch.full((rows,), 1.0 / rows, dtype=torch.float64)
    share = weight.double()
    return share / share.sum()
