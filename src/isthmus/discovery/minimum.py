"""`Minimum`: where one training of a discovery ended, with the numbers that the search compares.

What makes them: `kinds`. In files they are plain dictionaries, which this file alone knows: `work`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from isthmus.training import Outcome
from isthmus.training.checkpoint import State


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Minimum:
    """A trained network of a discovery and what was measured of it, in standardised units.

    Attributes:
        objective: data loss + ridge * penalty, float64.
        theta: its parameters in one vector, in the order of `network.parameters()`.
        ridge: of its training; NaN for refined halves of an older version.
        data_loss, penalty: the two parts of the objective.
        stationarity: |gradient| / |ridge * gradient of the penalty|, see `FitResult`.
        outcome: how training ended.
        gradient_evaluations, seconds: what it took.
        train_error, heldout_error: data loss relative to that of the best constant.
        heldout_accuracy: share of the held-out rows whose class is right; None unless the targets are classes.
        jacobian_spectrum: medians over spread rows of the singular values of its Jacobian.
        jacobian_rank: the largest gap of that spectrum (*estimate*).
        activation_rank: directions that stand out in its middle (*estimate*).
        start: number of the start, and
        kind: where its initial weights came from; None and "" for what was made of another minimum.
        rank: dimensions that its middle was led through; None where it was left free.
        middle: linear layers of `rank` neurons in its middle; None where they have the width of the settings.
        between: largest error between neighbouring rows, in a depth path; else NaN.
        true_rank: rank that its middle ended with, in a depth path.
        waist_rank, waist_axes, waist_mean: of the waist of a residual stream, None without one.
    """

    objective: float
    theta: Tensor
    ridge: float
    data_loss: float = math.nan
    penalty: float = math.nan
    stationarity: float = math.nan
    outcome: Outcome = Outcome.CONVERGED
    gradient_evaluations: int = 0
    seconds: float = 0.0
    train_error: float = math.nan
    heldout_error: float = math.nan
    heldout_accuracy: float | None = None
    jacobian_spectrum: tuple[float, ...] = ()
    jacobian_rank: int = 0
    activation_rank: int = 0
    start: int | None = None
    kind: str = ""
    rank: int | None = None
    middle: int | None = None
    between: float = math.nan
    true_rank: int | None = None
    waist_rank: int | None = None
    waist_axes: Tensor | None = None
    waist_mean: Tensor | None = None

    @property
    def usable(self) -> bool:
        """Whether its training ended at numbers."""
        return self.outcome is not Outcome.DIVERGED

    @property
    def collapsed(self) -> bool:
        """Whether it is a constant function, of no rank: what is left of its Jacobian is rounding."""
        return self.outcome is Outcome.COLLAPSED

    @property
    def dimensions(self) -> int:
        """The rank that it was given.

        Raises:
            ValueError: it was left free.
        """
        if self.rank is None:
            raise ValueError(f"Minimum(start={self.start}): was led through no number of dimensions.")
        return self.rank

    def as_state(self) -> State:
        """What a file keeps of it."""
        state = {f.name: getattr(self, f.name) for f in fields(self)}
        return state | {"outcome": self.outcome.name, "jacobian_spectrum": list(self.jacobian_spectrum)}

    @classmethod
    def of_state(cls, state: Mapping[str, Any]) -> "Minimum":
        """The minimum that `as_state` described, or the unit of an older version, which left out what was unknown."""
        known = {f.name for f in fields(cls)}
        found = {name: value for name, value in state.items() if name in known}
        if "ridge" not in found:  # refined halves: of one linear layer, as narrow as their rank
            found |= {"ridge": math.nan, "middle": 1}
        found["outcome"], found["jacobian_spectrum"] = Outcome[found["outcome"]], tuple(found["jacobian_spectrum"])
        return cls(**found)


def least(minima: Sequence[Minimum]) -> Minimum:
    """That of the least objective: the theory speaks of the global minimum, so ranks are never averaged."""
    return min(minima, key=lambda m: m.objective)


def flat_parameters(network: torch.nn.Module) -> Tensor:
    """All parameters in one vector, in the order of `network.parameters()`."""
    return torch.cat([p.detach().reshape(-1) for p in network.parameters()])
