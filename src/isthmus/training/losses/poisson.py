"""The Poisson loss of counts, whose outputs are logarithms of rates."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from isthmus.errors import DataError
from isthmus.training.losses.by_entry import LossByEntry
from isthmus.training.losses.loss import Array, Floats, Words, weighted_mean


@dataclass(frozen=True)
class Poisson(LossByEntry):
    """Negative log-likelihood e^f - y f of a count y with rate e^f, above the least that any rate has.

        loss = e^f - y f - (y - y log y) >= 0,   summed over outputs, averaged over samples

    What is taken off does not depend on f: it is half the Poisson deviance. Outputs, and predictions, are log rates.

    Accuracy: y (e^d - 1 - d), d = f - log y, keeps its digits for large counts in float32. Where e^f is infinite so is
    the loss, and a line search takes a shorter step.
    """

    kind: ClassVar[str] = "poisson"
    words: ClassVar[Words] = Words(
        left="the Poisson deviance of the best constant rate is left",
        unit="the Poisson deviance of the best constant rate",
        linear="a log-linear map (reduced-rank Poisson regression)",
        autoencoder="a log-linear map of the counts",
        outputs=("log rate of ",),
    )

    def check(self, y: Tensor, where: str) -> None:
        refused = ~(y >= 0) | ~torch.isfinite(y)
        if bool(refused.any()):
            place = int(refused.flatten(1).any(1).nonzero()[0]) if y.ndim > 1 else int(refused.nonzero()[0])
            raise DataError(
                f"{where}: the Poisson loss needs counts >= 0, got {float(y[refused][0]):g} in row {place + 1}."
            )

    def scores(self, y: Tensor, num_outputs: int) -> Tensor:
        return y.clamp_min(_half_of_the_least(y)).log()

    def means(self, outputs: Floats) -> Floats:
        return np.exp(outputs)

    def spreads(self, outputs: Floats) -> Floats | None:
        return np.exp(outputs / 2)

    def output_units(self, mean: Array, scale: Array) -> tuple[Array, Array]:
        return mean, scale

    def from_gaussian(self, drawn: Array, y: Array) -> Array:
        # the counts of each column in the order of what was drawn: they keep how often each comes
        places = np.argsort(np.argsort(drawn, axis=0, kind="stable"), axis=0, kind="stable")
        return np.take_along_axis(np.sort(y, axis=0), places, axis=0)

    def entries(self, outputs: Tensor, y: Tensor) -> Tensor:
        above = outputs - y.log().nan_to_num(neginf=0.0)
        return torch.where(y > 0, y * (above.expm1() - above), above.exp())

    def slopes(self, outputs: Tensor, y: Tensor) -> Tensor:
        return outputs.exp() - y

    def curvature(self, outputs: Tensor, y: Tensor) -> Tensor:
        return outputs.exp().amax(1)

    def best_constant(self, y: Tensor, weight: Tensor | None, num_outputs: int) -> Tensor:
        # a column that is 0 in all rows may be positive in others: half of the least count stands in one of them
        return weighted_mean(y, weight).clamp_min(_half_of_the_least(y) / len(y)).log()

    def reduced(self, y: Array, weight: Array | None) -> tuple[Array, float]:
        # the loss at counts over their mean m and outputs less log m is 1/m of itself: ridges, and the weights that a
        # training starts from, suit counts of any size
        level = float(np.average(y.mean(1), weights=weight))
        return y / level, math.log(level)

    def spread(self, variance: float) -> float:
        return 1.0 if variance > 0 else -1.0


def _half_of_the_least(y: Tensor) -> float:
    """What stands for a count of 0 where its logarithm is asked for; counts may be reduced."""
    positive = y[y > 0]
    return float(positive.min()) / 2 if len(positive) else 0.5
