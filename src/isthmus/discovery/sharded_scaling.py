"""The standardiser of columns whose rows lie in several processes. Rows in memory, and what it is: `scaling`."""

import numpy as np
import torch

from isthmus.discovery.scaling import Array, Standardiser
from isthmus.training.losses import SQUARED, DataLoss
from isthmus.training.shared_rows import SharedRows
from isthmus.training.team import Team


def shared_standardiser(values: Array, *, rows: int, team: Team, total: bool = False) -> Standardiser:
    """As `Standardiser.of`, of the rows of all processes: the same bits in each, however many.

    Args:
        values: (n_own, d) the rows of this process.
        rows: number of rows of all processes.
        team: the processes.
        total: total variance 1 in place of unit variance per column.
    """
    samples = torch.from_numpy(values)
    shared = SharedRows(samples, DataLoss(SQUARED, samples), total=rows, team=team)
    place = range(team.rank, team.rank + 1)
    # divided by the largest magnitude first: the variance of 1e300 overflows
    magnitude = team.gathered(samples.abs().amax(0)[None], place, team.size).amax(0)
    unit = torch.where(magnitude > 0, magnitude, 1.0)
    centre = shared.over_rows(lambda x, _: (x / unit).sum(0)) / rows
    spread = (shared.over_rows(lambda x, _: (x / unit - centre).square().sum(0)) / rows).sqrt()
    of_numpy: list[Array] = [np.asarray(tensor.numpy()) for tensor in (unit, centre, spread)]
    return Standardiser.of_moments(*of_numpy, total=total)
