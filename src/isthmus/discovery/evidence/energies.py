"""What the energies of a leaky network say about the rank, beside the readings that decide: `decision`.

The formulas: `theory.leaky`; the table that they stand in: `diagnostics`.
"""

import math
import warnings

import numpy as np
from torch import nn

from isthmus.diagnostics import Diagnosis, diagnose, leaky_diagnosis
from isthmus.discovery.data.problem import Problem
from isthmus.errors import NumericalWarning
from isthmus.networks import LeakyResNet

Readings = dict[str, float | int | None]


def diagnosed(network: nn.Module, problem: Problem, ridge: float) -> tuple[Diagnosis, Readings]:
    """The table by layer of a trained network, and what its energies say if it is leaky.

        hamiltonian_rank: median of -2 H / Lt over the layers (*estimate*, from below as Lt grows)
        identity_rank: least cost of identity over the layers (*estimate*, from above)

    H is Pontryagin's form, right to first order away from critical weights, where the other forms are lost.

    Args:
        network: in standardised units, float64.
        problem: the data that it was trained on.
        ridge: of its training.

    Returns:
        The diagnosis, with energies where the loss is squared and unweighted; the readings, also effective_depth and
        leaky_stationarity, or none.
    """
    if not isinstance(network, LeakyResNet):
        return diagnose(network, problem.x), {}
    if not problem.loss.is_quadratic or problem.weight is not None:
        found = diagnose(network, problem.x)
        return found, {"identity_rank": _finite(np.nanmin(found.layers["cost_of_identity"].values))}
    found = diagnose(network, problem.x, problem.y, ridge=ridge)
    if not network.effective_depth:
        return found, {"identity_rank": _finite(np.nanmin(found.layers["cost_of_identity"].values))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)  # the diagnosis says it already, in words
        table = leaky_diagnosis(network, problem.x, problem.y, ridge=ridge)
    Lt = network.effective_depth
    return found, {
        "hamiltonian_rank": _finite(np.median(-2 * table["hamiltonian_pontryagin"].values / Lt)),
        "identity_rank": _finite(np.min(table["cost_of_identity"].values)),
        "effective_depth": Lt,
        "leaky_stationarity": _finite(table.attrs["stationarity"]),
    }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
