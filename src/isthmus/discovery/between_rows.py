"""How far a network is off on its rows and between neighbouring ones: where it cuts the data open, this error is large.

Errors on the rows alone: `problem`.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from isthmus.discovery.problem import Problem
from isthmus.networks import FullyConnected

ROWS, NEIGHBOURS, STEPS = 1500, 12, 8
SHORT = 0.05  # squared length of a line, over the variance of the inputs, up to which it stays near curved data
CLOSE = 0.25  # share of the lines that are short, from which rows lie close together


def error_between_rows(problem: Problem, network: FullyConnected) -> float:
    """Largest squared error on straight lines between neighbouring inputs, over the variance of the targets.

        max over neighbours i, j and t in {0, 1/8, ..., 1} of |f((1-t) x_i + t x_j) - ((1-t) y_i + t y_j)|^2 / unit

    Where rows lie close together, over short lines alone: a long one leaves curved data, or joins two of its sheets.

    Finitely many rows always fit on a line (FC-02), by a map that runs through everything between two of them. Where
    the data are connected, their image in fewer dimensions than they embed in glues two points far apart: on a circle
    through one coordinate some point is missed by at least the radius (FC-07), and this error was 4.0 (the squared
    diameter), against .03 on a helix. It is an *estimate*: a sample of the connected set.

    Args:
        problem: a squared loss; training and held-out rows count, at most 1500 of them (seeded choice), each with its
            12 nearest neighbours among these.
        network: maps standardised inputs to standardised targets.
    """
    lines = _lines(problem)
    kept = lines.short if lines.close else torch.ones_like(lines.short)
    worst = 0.0
    with torch.no_grad():
        for t in torch.linspace(0, 1, STEPS + 1).tolist():
            between, target = (torch.lerp(v[lines.begin[kept]], v[lines.end[kept]], t) for v in (lines.x, lines.y))
            error = (network(between.to(network.weights[0].dtype)) - target).square().sum(1).max()
            worst = max(worst, float(error))
    return worst / problem.unit


def rows_lie_close(problem: Problem) -> bool:
    """Whether a quarter of the lines between neighbouring rows are short against the spread of the inputs.

    Where they are not, a straight line between two rows says little of what lies between them on the data. Of 2,500
    rows in six curved dimensions hardly any line is short, and through the true coordinates, too, errors between rows
    are three times the variance.
    """
    return _lines(problem).close


@dataclass(frozen=True, slots=True, eq=False)
class _Lines:
    """Lines between neighbouring rows: numbers of the rows where they begin and end, and which of them are short."""

    x: Tensor
    y: Tensor
    begin: Tensor
    end: Tensor
    short: Tensor

    @property
    def close(self) -> bool:
        return float(self.short.double().mean()) >= CLOSE


def _lines(problem: Problem) -> _Lines:
    from sklearn.neighbors import NearestNeighbors  # slow to import, and only depth paths need it

    x, y = torch.cat([problem.x, problem.x_held]), torch.cat([problem.y, problem.y_held])
    chosen = torch.from_numpy(np.random.default_rng(0).permutation(len(x))[:ROWS])
    x, y = x[chosen], y[chosen]
    count = min(NEIGHBOURS, len(x) - 1)
    distances, places = NearestNeighbors(n_neighbors=count).fit(x.numpy()).kneighbors()
    begin = torch.arange(len(x)).repeat_interleave(count)
    short = torch.from_numpy(distances).flatten().square() <= SHORT * float(x.double().var(0, correction=0).sum())
    return _Lines(x, y, begin, torch.from_numpy(places).flatten(), short)
