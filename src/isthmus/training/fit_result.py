"""How a training run ended: the network, the numbers, and the reason in words."""

from dataclasses import dataclass
from enum import Enum, StrEnum

import xarray as xr
from torch import nn

from isthmus.writing.shown import Shown


class Outcome(Enum):
    """Why a training run ended; the value is the sentence that the user reads.

    >>> [outcome.name for outcome in isthmus.Outcome]
    ['CONVERGED', 'PLATEAU', 'STEP_LIMIT', 'TIME_LIMIT', 'DIVERGED', 'COLLAPSED', 'INTERRUPTED']
    """

    CONVERGED = "converged: the relative gradient is below the tolerance"
    PLATEAU = "plateau: the objective no longer falls (minima sit on kinks of the activation)"
    STEP_LIMIT = (
        "step limit: the gradient evaluations were used up, or each solver's share of them; give more evaluations or a "
        "longer schedule"
    )
    TIME_LIMIT = "time limit: the seconds were used up; resume from the checkpoint or give more"
    DIVERGED = (
        "diverged: the objective, its gradient or a step became infinite or NaN in the precision of the training; use "
        "a smaller step, a larger ridge, scaled data or float64"
    )
    COLLAPSED = "collapsed: the network computes a constant; use a smaller ridge, less depth or another start"
    INTERRUPTED = "interrupted: the state was saved; resume from the checkpoint"

    @property
    def is_lost(self) -> bool:
        """Whether it left no map whose rank could be read: what spectra show of one is rounding."""
        return self in {Outcome.DIVERGED, Outcome.COLLAPSED}


class StopReason(StrEnum):
    """Why a solver, or the fit, ended; a checkpoint holds the value, as plain text."""

    STEPS_MADE = ""  # all that were asked for
    NOTHING_BETTER = "nothing better"  # trials left the parameters as they were: why these stand is known already
    CONVERGED = "converged"
    PLATEAU = "plateau"
    LIMIT = "limit"
    TIME = "time"
    DIVERGED = "diverged"
    INTERRUPTED = "interrupted"

    @property
    def is_stop(self) -> bool:
        """Whether it came before the end: the same call goes on."""
        return self in {StopReason.INTERRUPTED, StopReason.TIME}

    @property
    def outcome(self) -> Outcome:
        """What it is to whoever asked for the fit, if its network is good."""
        return _OUTCOMES[self]


_OUTCOMES = {
    StopReason.STEPS_MADE: Outcome.STEP_LIMIT,
    StopReason.NOTHING_BETTER: Outcome.PLATEAU,
    StopReason.CONVERGED: Outcome.CONVERGED,
    StopReason.PLATEAU: Outcome.PLATEAU,
    StopReason.LIMIT: Outcome.STEP_LIMIT,
    StopReason.TIME: Outcome.TIME_LIMIT,
    StopReason.DIVERGED: Outcome.DIVERGED,
    StopReason.INTERRUPTED: Outcome.INTERRUPTED,
}


@dataclass(frozen=True, slots=True, repr=False)
class FitResult(Shown):
    """A trained network and how its training ended.

    Attributes:
        network: the trained network (the object that was given, its parameters changed).
        objective: data_loss + ridge * penalty, recomputed in float64.
        data_loss: the loss summed over outputs and averaged over samples; float64.
        penalty: `network.penalty()`, float64.
        gradient_evaluations: how often objective and gradient were computed.
        outcome: why it ended.
        stationarity: |grad objective| / |ridge * grad penalty| in the coordinates sqrt(c_i) theta_i, in which the
            penalty sum c_i theta_i^2 / 2 is Euclidean:  sqrt(sum g_i^2 / c_i) / (ridge sqrt(sum c_i theta_i^2)), g the
            gradient of the objective by theta; a parameter that the penalty leaves free counts with the largest c.
            Where all c are equal, as in fully connected networks, these are Euclidean norms in theta. 0 at a smooth
            minimum, NaN without ridge.
        steps: iterations of all solvers.
        seconds: wall-clock time, all sittings together.
        history: dimension "evaluation": `objective` as training saw it.
        rank: the rank of the middle matrices of a fully connected network at the end (*estimate*); None of other
            networks, where there is no middle, as in those of two layers, and where the training diverged or collapsed.

    >>> net = isthmus.FullyConnected(4, 2, width=6, depth=2, seed=0, dtype=torch.float64)
    >>> result = isthmus.fit(net, x, y, ridge=1e-1, limits=isthmus.Limits(evaluations=20))
    >>> result.gradient_evaluations <= 21, result.outcome.name
    (True, 'STEP_LIMIT')
    """

    network: nn.Module
    objective: float
    data_loss: float
    penalty: float
    gradient_evaluations: int
    outcome: Outcome
    stationarity: float
    steps: int
    seconds: float
    history: xr.Dataset
    rank: int | None = None
