"""How far a network is off on its rows and between neighbouring ones: where it cuts the data open, this error is large.

Which ranks of a depth path hold the data together by it, and by the dimensions that rows fill: `with_holds`. Errors on
the rows alone: `problem`.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import xarray as xr
from numpy.typing import NDArray
from torch import Tensor

from isthmus.discovery.choices import FILLED, GLUED, GLUED_RATIO, GLUED_WIDTH, LOST, LOST_RATIO, SAVES, TOGETHER
from isthmus.discovery.data.problem import Problem
from isthmus.networks import FullyConnected
from isthmus.theory.neighbour_dimensions import likeliest_dimension, two_neighbour_dimension

ROWS, NEIGHBOURS, STEPS = 1500, 12, 8
AROUND_ROW = 20  # neighbours that the dimension around a row is read from
SHORT = 0.05  # squared length of a line, over the variance of the inputs, up to which it stays near curved data
FAR = 0.1  # that of the lines which connect the rows, from which rows lie far apart
CONNECTED = 0.9  # share of the rows that is to be connected
Array = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class LinesBetweenRows:
    """Straight lines between neighbouring inputs, on which a network is asked what it does between rows.

    Attributes:
        x, y: standardised inputs and targets of the rows.
        begin, end: numbers of the rows where each line begins and ends.
        length: squared lengths over the variance of the inputs.
        scale: the least length up to which lines connect nine tenths of the rows that all lines connect.
        unit: variance of the targets.
    """

    x: Tensor
    y: Tensor
    begin: Tensor
    end: Tensor
    length: Tensor
    scale: float
    unit: float

    @classmethod
    def of(cls, problem: Problem) -> "LinesBetweenRows":
        """Lines from each row to its 12 nearest neighbours, of at most 1500 distinct rows (seeded choice).

        Of inputs that were measured more than once the first measurement counts.

        Args:
            problem: training and held-out rows count.
        """
        from sklearn.neighbors import NearestNeighbors  # slow to import, and only depth paths need it

        x, y = torch.cat([problem.x, problem.x_held]), torch.cat([problem.y, problem.y_held])
        # the nearest neighbours of a row that was measured often would all be the row itself
        distinct = np.sort(np.unique(x.numpy(), axis=0, return_index=True)[1])
        chosen = torch.from_numpy(distinct[np.random.default_rng(0).permutation(len(distinct))[:ROWS]])
        x, y = x[chosen], y[chosen]
        count = min(NEIGHBOURS, len(x) - 1)
        places = NearestNeighbors(n_neighbors=count).fit(x.numpy()).kneighbors(return_distance=False)
        begin, end = torch.arange(len(x)).repeat_interleave(count), torch.from_numpy(places).flatten()
        length = (x[begin] - x[end]).double().square().sum(1) / float(x.double().var(0, correction=0).sum())
        scale = _connecting_length(begin.numpy(), end.numpy(), length.numpy(), len(x))
        return cls(x, y, begin, end, length, scale, problem.unit)

    @property
    def close(self) -> bool:
        """Whether the lines that connect the rows are short against the spread of the inputs.

        Where they are not, a straight line between two rows says little of what lies between them on the data. Of 2,500
        rows in six curved dimensions lines connect nine tenths from a squared length of .46 of the variance on only,
        and through the true coordinates, too, errors between rows are three times the variance. On a circle of 20
        places it is .098.
        """
        return self.scale <= FAR

    @property
    def asked(self) -> Tensor:
        """Which lines are asked: where rows lie close together those that stay near curved data, else all.

        Where rows come in clumps, the lines from clump to clump are among them.
        """
        return self.length <= (max(SHORT, self.scale) if self.close else math.inf)

    def error(self, network: FullyConnected) -> float:
        """Largest squared error of the network on these lines, over the variance of the targets.

            max over lines i, j and t in {0, 1/8, ..., 1} of |f((1-t) x_i + t x_j) - ((1-t) y_i + t y_j)|^2 / unit

        Finitely many rows always fit on a line (FC-02), by a map that runs through everything between two of them.
        Where the data are connected, their image in fewer dimensions than they embed in glues two points far apart: on
        a circle through one coordinate some point is missed by at least the radius (FC-07), and this error was 4.0 (the
        squared diameter), against .03 on a helix. It is an *estimate*: a sample of the connected set.

        Args:
            network: maps standardised inputs to standardised targets.
        """
        begin, end = self.begin[self.asked], self.end[self.asked]
        worst = 0.0
        with torch.no_grad():
            for t in torch.linspace(0, 1, STEPS + 1, dtype=torch.float32).tolist():
                between, target = (torch.lerp(v[begin], v[end], t) for v in (self.x, self.y))
                error = (network(between.to(network.weights[0].dtype)) - target).square().sum(1).max()
                worst = max(worst, float(error))
        return worst / self.unit


def _connecting_length(begin: Array, end: Array, length: Array, rows: int) -> float:
    """The least length up to which lines join nine tenths as many rows in one piece as all lines do."""
    from scipy.sparse import coo_array  # for depth paths alone, and half as long to import as all of our own modules
    from scipy.sparse.csgraph import connected_components

    sizes = np.unique(length)

    def joined(most: float) -> int:
        kept = length <= most
        graph = coo_array((np.ones(int(kept.sum())), (begin[kept], end[kept])), shape=(rows, rows))
        return int(np.bincount(connected_components(graph, directed=False)[1]).max())

    enough = CONNECTED * joined(sizes[-1])
    return float(sizes[bisect_left(sizes, True, key=lambda most: joined(most) >= enough)])


def local_dimension(problem: Problem) -> float:
    """Dimension of the standardised inputs by their nearest neighbours (*estimate*); NaN below three distinct rows.

    At most 1500 distinct rows count (seeded choice), training and held-out ones. Accuracy: as
    `theory.two_neighbour_dimension`; noise raises it.
    """
    x = _some_rows(problem)
    return two_neighbour_dimension(x) if len(x) >= 3 else math.nan


def near_dimension(problem: Problem) -> float:
    """The same by twenty neighbours of each row, which noise raises less; NaN without so many.

    Accuracy: as `theory.likeliest_dimension`, too low in many dimensions.
    """
    x = _some_rows(problem)
    return likeliest_dimension(x, neighbours=AROUND_ROW) if len(x) > AROUND_ROW else math.nan


def filled_dimension(points: Tensor) -> float:
    """Dimension that rows fill of their columns, by twenty neighbours, beside a Gaussian cloud that fills all of them.

        columns * likeliest_dimension(rows) / likeliest_dimension(as many Gaussian rows of the same covariance)

    That of the cloud is as much too low in many dimensions, or where columns vary little (*estimate*). NaN without
    enough distinct rows.

    Args:
        points: rows (n, columns).
    """
    rows = _distinct(points)
    if len(rows) <= AROUND_ROW:
        return math.nan
    factor = torch.linalg.svd(rows - rows.mean(0), full_matrices=False)
    cloud = torch.from_numpy(np.random.default_rng(0).normal(size=tuple(rows.shape)))
    cloud = cloud * factor.S / math.sqrt(len(rows)) @ factor.Vh
    near, full = (likeliest_dimension(part, neighbours=AROUND_ROW) for part in (rows, cloud))
    return points.shape[1] * near / full


def filled_by(encoder: FullyConnected, problem: Problem) -> float:
    """`filled_dimension` of the coordinates of all rows."""
    with torch.no_grad():
        return filled_dimension(encoder(torch.cat([problem.x, problem.x_held]).double()))


def _some_rows(problem: Problem) -> Tensor:
    return _distinct(torch.cat([problem.x, problem.x_held]))


def _distinct(points: Tensor) -> Tensor:
    rows = points.double().unique(dim=0)
    return rows[torch.from_numpy(np.random.default_rng(0).permutation(len(rows))[:ROWS])]


def with_holds(table: xr.Dataset, *, close: bool, autoencoding: bool = False) -> xr.Dataset:
    """The table with `holds` and `unsure`.

        close: a rank holds up to between = max(min(.25, what one fewer loses), 4 times that of the largest rank), and
        it is sure
        far apart: between > .25 is unsure; it holds up to a held-out error of max(.05, twice that of the largest rank)
        filled: nor does one hold of fewer dimensions than rows fill, by more than .5, that loses more than twice as
        much of held-out rows as the largest rank; of data that are autoencoded 1.5 times as much

    What fills k dimensions goes through no fewer coordinates unless it is torn, and rows too far apart do not show it:
    648 pictures of a double pendulum, which fill 3.7, lost .023 through three coordinates and .008 through seven; 721
    of an elastic one, rank 6, which fill 5.6, .018 through five, .010 through seven. A plane of 6 that filled 6.6 of
    eight lost .006 through six, .007 through eight.
    Noise fills dimensions too, and is lost through any number.

    Test: discovery/depth/test_path.
    """
    trained = table["objective"].notnull()
    largest = table.sel(rank=int(table["rank"].values[trained.any("middle_layers").values].max(initial=1)))
    fewer = table["heldout_error"].shift(rank=1)
    widest = np.fmin(GLUED, GLUED_WIDTH * fewer)
    glued = table["between"] > (np.fmax(widest, GLUED_RATIO * largest["between"]) if close else GLUED)
    lost = glued
    if not close:
        lost = glued & ~(table["heldout_error"] <= np.fmax(LOST, LOST_RATIO * largest["heldout_error"]))
    more_lost = table["heldout_error"] > (SAVES if autoencoding else LOST_RATIO) * largest["heldout_error"]
    short = more_lost & (table["rank"] + FILLED < table.attrs.get("filled", math.nan))
    holds = trained & ~lost & ~short
    return table.assign(holds=holds, unsure=holds & glued & (table["rank"] < largest["rank"]))


def two_do_not_hold(table: xr.Dataset) -> bool:
    """Whether the two lowest ranks so far hold the data together at no depth.

    Lower ones then do not either: what embeds in few dimensions embeds in more. One alone may be a failed training.
    """
    trained = table["objective"].notnull().any("middle_layers").values
    holds = table["holds"].any("middle_layers").values[trained]
    return len(holds) >= TOGETHER and not holds[:2].any()
