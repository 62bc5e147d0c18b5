"""How far a network is off on its rows and between neighbouring ones: where it cuts the data open, this error is large.

Errors on the rows alone: `problem`.
"""

import numpy as np
import torch

from isthmus.discovery.problem import Problem
from isthmus.networks import FullyConnected

ROWS, NEIGHBOURS, STEPS = 1500, 12, 8


def error_between_rows(problem: Problem, network: FullyConnected) -> float:
    """Largest squared error on straight lines between neighbouring inputs, over the variance of the targets.

        max over neighbours i, j and t in {0, 1/8, ..., 1} of |f((1-t) x_i + t x_j) - ((1-t) y_i + t y_j)|^2 / unit

    Finitely many rows always fit on a line (FC-02), by a map that runs through everything between two of them. Where
    the data are connected, their image in fewer dimensions than they embed in glues two points far apart: on a circle
    through one coordinate some point is missed by at least the radius (FC-07), and this error was 4.0 (the squared
    diameter), against .03 on a helix. It is an *estimate*: a sample of the connected set.

    Args:
        problem: a squared loss; training and held-out rows count, at most 1500 of them (seeded choice), each with its
            12 nearest neighbours among these.
        network: maps standardised inputs to standardised targets.
    """
    from sklearn.neighbors import NearestNeighbors  # slow to import, and only depth paths need it

    x, y = torch.cat([problem.x, problem.x_held]), torch.cat([problem.y, problem.y_held])
    chosen = torch.from_numpy(np.random.default_rng(0).permutation(len(x))[:ROWS])
    x, y = x[chosen], y[chosen]
    count = min(NEIGHBOURS, len(x) - 1)
    places = NearestNeighbors(n_neighbors=count).fit(x.numpy()).kneighbors(return_distance=False)
    neighbours = torch.from_numpy(places)
    worst = 0.0
    with torch.no_grad():
        for t in torch.linspace(0, 1, STEPS + 1).tolist():
            between, target = (torch.lerp(v[:, None], v[neighbours], t).flatten(0, 1) for v in (x, y))
            error = (network(between.to(network.weights[0].dtype)) - target).square().sum(1).max()
            worst = max(worst, float(error))
    return worst / problem.unit
