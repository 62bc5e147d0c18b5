"""How many dimensions the rows fill around each of them: on a curve one, however many the curve needs to lie in."""

import math

import numpy as np
import torch

from isthmus.discovery.problem import Problem
from isthmus.theory.neighbour_dimensions import two_neighbour_dimension

ROWS = 1500


def local_dimension(problem: Problem) -> float:
    """Dimension of the standardised inputs by their nearest neighbours (*estimate*); NaN below three distinct rows.

    At most 1500 distinct rows count (seeded choice), training and held-out ones. Accuracy: as
    `theory.two_neighbour_dimension`; noise raises it.
    """
    x = torch.cat([problem.x, problem.x_held]).double().unique(dim=0)
    chosen = torch.from_numpy(np.random.default_rng(0).permutation(len(x))[:ROWS])
    return two_neighbour_dimension(x[chosen]) if len(x) >= 3 else math.nan
