"""Whether the inputs tell what a rank loses otherwise than through its coordinates: kernel regression on held-out rows.

A weak dimension costs more than it saves, at any ridge that pays for noise. Who asks: `search`. Of many columns
combinations tell more than kernels: `leftovers`.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from isthmus.discovery.choices import FORETOLD, FORETOLD_ERROR, NOTHING_LEFT, ONE_WAY
from isthmus.discovery.data.problem import Problem
from isthmus.discovery.factorisation import Factorisation
from isthmus.discovery.findings import Decision
from isthmus.networks import FullyConnected
from isthmus.tasks.arrays import NUMBERS_AT_ONCE
from isthmus.tasks.names import quoted

KERNEL_ROWS = 600  # whose products are decomposed, a tenth of a second
WIDTHS, PENALTIES = (0.1, 0.5, 2.0), (0.01, 0.1, 1.0)  # of kernels over the mean squared distance, and of their sums
FORETOLD_LEAST = 1e-5  # of the variance of all targets, below which a target or a component is what rounding leaves
LEAST_OF_EXACT = (NOTHING_LEFT, NOTHING_LEFT)
MOST_ALONE = 500  # targets up to which each is asked by itself
FEWEST_DIRECTIONS, FEWEST_COLUMNS = 4.0, 2.0  # that share what is lost, or have it, else it may be noise along one
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Foretold:
    """How much a kernel regression on the rows trained on tells of what is lost of the others (*estimate*).

    Attributes:
        by_inputs: share of its variance that the inputs tell;
        by_coordinates: that the coordinates tell, which is how training ended; 0 where the inputs tell too little.
        target: which target alone is meant, in words; None: all of them.
    """

    least: ClassVar[float] = FORETOLD
    by_inputs: float
    by_coordinates: float
    target: str | None = None

    @property
    def more(self) -> float:
        """What a further dimension tells."""
        return self.by_inputs - max(self.by_coordinates, 0.0)

    @property
    def counts(self) -> bool:
        """Whether that is much."""
        return self.more > self.least

    @property
    def words(self) -> str:
        """What is told, by whom."""
        of = "" if self.target is None else f" of {self.target}"
        coordinates = max(self.by_coordinates, 0.0)
        return (
            f"The inputs tell {self.by_inputs:.0%} of what is lost{of} on held-out rows, these coordinates "
            f"{coordinates:.0%}"
        )

    @classmethod
    def of(cls, halves: Factorisation[FullyConnected], problem: Problem, *, exact: bool = False) -> "Foretold":
        """What the two halves of a network lose of the held-out rows of a problem, by those it was trained on.

        Of all targets; where these say nothing, of the one of which they say most, or of the principal component of
        what is lost: one of twenty that has a dimension of its own has little of all that is lost, and so has what two
        nearly equal ones differ by.

        Args:
            halves: encoder and decoder.
            problem: whose targets are of squared error.
            exact: whether training leaves nothing, as that of a linear map.
        """
        z, z_held, e, e_held = _lost(halves, problem)
        x, x_held, y, y_held = (
            part.double().numpy() for part in (problem.x, problem.x_held, problem.y, problem.y_held)
        )
        weights, targets = (_numbers(problem.weight), _numbers(problem.weight_held)), e.shape[1]
        found, (least, least_alone) = cls(0.0, 0.0), LEAST_OF_EXACT if exact else (FORETOLD_ERROR, FORETOLD_LEAST)
        if np.square(e_held).sum(axis=1).mean() > least:  # else it is how training ended
            by_inputs = foretold(x, e, x_held, e_held, *weights)
            found = cls(by_inputs, foretold(z, e, z_held, e_held, *weights) if by_inputs > FORETOLD else 0.0)
        if found.counts or not 1 < targets <= MOST_ALONE:
            return found
        components = np.linalg.svd(e - e.mean(axis=0), full_matrices=False)[2].T
        turned = np.hstack([np.eye(targets), components])
        spread, lost = (np.square(part @ turned).mean(axis=0) for part in (y_held - y.mean(axis=0), e_held))
        asked = np.flatnonzero((lost > FORETOLD_ERROR * spread) & (lost > least_alone))
        if not len(asked):
            return found
        e, e_held = e @ turned[:, asked], e_held @ turned[:, asked]
        by_inputs = shares_foretold(x, e, x_held, e_held, *weights)[1]
        if by_inputs.min(axis=0).max() <= FORETOLD:  # none counts
            return found
        by_coordinates = shares_foretold(z, e, z_held, e_held, *weights)[1]
        more = by_inputs - np.maximum(by_coordinates, 0.0)
        best = int(more.min(axis=0).argmax())
        row, column = int(more[:, best].argmin()), int(asked[best])
        names = problem.target_names or tuple(map(str, range(targets)))
        one = f"the target {quoted(names[column])}" if column < targets else "a combination of the targets"
        alone = cls(float(by_inputs[row, best]), float(by_coordinates[row, best]), one)
        return alone if alone.counts else found


@dataclass(frozen=True, slots=True)
class AlongOneDirection(Foretold):
    """How much of what is lost of data that are autoencoded lies along one direction of their columns (*estimate*).

    Noise lies along all of them, and how training ended is told by the coordinates.

    Attributes:
        by_inputs: share of its variance along the first principal component of that of the rows trained on;
        by_coordinates: share of this that the coordinates tell.
    """

    least: ClassVar[float] = ONE_WAY

    @property
    def more(self) -> float:
        """The share that they do not tell."""
        return self.by_inputs * (1 - max(self.by_coordinates, 0.0))

    @property
    def words(self) -> str:
        """The same as a sentence begins."""
        return (
            f"Of what is lost of held-out rows {self.by_inputs:.0%} lies along one direction, and these coordinates "
            f"tell {max(self.by_coordinates, 0.0):.0%} of that"
        )

    @classmethod
    def of(cls, halves: Factorisation[FullyConnected], problem: Problem, *, exact: bool = False) -> "AlongOneDirection":
        """That of a network in two halves; 0 where next to nothing is lost."""
        from scipy.sparse.linalg import svds  # slow to import, and only this needs it

        z, z_held, off, off_held = _lost(halves, problem)
        if np.square(off_held).sum(axis=1).mean() <= (NOTHING_LEFT if exact else FORETOLD_ERROR):
            return cls(0.0, 0.0)
        weights = _numbers(problem.weight), _numbers(problem.weight_held)
        mean, further = np.average(off, axis=0, weights=weights[0]), problem.most_in - z.shape[1]
        roots = [_roots(weight, len(part)) for part, weight in zip((off, off_held), weights, strict=True)]
        for part, root in zip((off, off_held), roots, strict=True):  # in place: of pictures they are large
            part -= mean
            part *= root
        start = np.random.default_rng(0).normal(size=min(off.shape))
        direction = np.asarray(svds(off, k=1, v0=start)[2])[0] if min(off.shape) > 1 else off[0]
        share = float(np.square(off_held @ direction).sum() / max(np.square(off_held).sum(), 1e-300))
        # along few directions noise, too, lies for the most part along one, and so it does where one column has more
        if not share * further > FEWEST_DIRECTIONS or np.square(np.square(direction)).sum() > 1 / FEWEST_COLUMNS:
            share = 0.0
        along, along_held = (
            (part @ direction)[:, None] / root for part, root in zip((off, off_held), roots, strict=True)
        )
        return cls(share, foretold(z, along, z_held, along_held, *weights) if share > cls.least else 0.0)


def held_against_leftovers(decision: Decision, left: Foretold | None, *, ridge: float, asked: bool = False) -> Decision:
    """A rank that is sure, in doubt where what it loses hangs on the inputs otherwise than through its coordinates.

    Five targets of two dimensions, and of a third of .2 to 1 % of their variance (a column, the product of two, a sine;
    1,000 rows), read 2 with confidence: a linear one of less than .19 % costs more than it saves at ridge 3e-4.
    """
    if left is None or not left.counts:
        return decision
    doubt = (
        f"{left.words}: there is a further dimension, too weak to pay for itself at ridge {ridge:g}. "
        f"More rows{'' if asked else ', or smaller ridges,'} may show it."
    )
    return decision.in_doubt(doubt)


def foretold(
    x: Array,
    residuals: Array,
    x_held: Array,
    residuals_held: Array,
    weight: Array | None = None,
    weight_held: Array | None = None,
) -> float:
    """Share of the variance of held-out residuals that kernel ridge regression on the others tells (*estimate*).

        1 - sum |e_held - K_held (K + a)^-1 e|^2 / sum |e_held - mean e|^2,   K_ij = exp(-w |x_i - x_j|^2 / d)

    with columns of variance 1, and w and a of the least leave-one-out error on the rows that are fitted. Where rows
    weigh r, in the mean 1, sums and means are weighted, and a is a / r.

    Args:
        x: inputs or coordinates (n, d) of the rows that are fitted.
        residuals: theirs (n, q).
        x_held: of the rows that are told.
        residuals_held: theirs.
        weight: of the rows that are fitted, at least 0 (n,); None: all the same.
        weight_held: of those that are told.

    Returns:
        At most 1; 0 or less where nothing is told.

    Test: discovery/evidence/test_foretold.
    """
    return shares_foretold(x, residuals, x_held, residuals_held, weight, weight_held)[0]


def shares_foretold(
    x: Array,
    residuals: Array,
    x_held: Array,
    residuals_held: Array,
    weight: Array | None = None,
    weight_held: Array | None = None,
) -> tuple[float, Array]:
    """The share of `foretold`, and those of each column by itself (2, q), with a kernel and a penalty of its own.

    First of the rows held out, then of those fitted, each by the others: of many columns one is told by chance.
    """
    at = np.linspace(0, len(x) - 1, min(len(x), KERNEL_ROWS)).astype(int)
    root, root_held = _roots(weight, len(x))[at], _roots(weight_held, len(x_held))
    centre, scale = x.mean(0), np.maximum(x.std(0), 1e-300)
    fitted, told = (x[at] - centre) / scale, (x_held - centre) / scale
    mean = np.average(residuals, axis=0, weights=weight)
    e, off = (residuals[at] - mean) * root, residuals_held - mean
    least, widths, duals = np.full(e.shape[1], np.inf), np.zeros(e.shape[1]), np.zeros_like(e)
    of_all, width_of_all, dual_of_all = np.inf, WIDTHS[0], duals
    for width in WIDTHS:
        values, vectors = np.linalg.eigh(np.exp(-width * _mean_squares(fitted, fitted)) * root * root.T)
        values, turned = np.maximum(values, 0.0), vectors.T @ e
        for penalty in PENALTIES:
            kept = values / (values + penalty)
            left = (e - vectors @ (kept[:, None] * turned)) / (1 - np.square(vectors) @ kept)[:, None]
            missed = np.square(left).sum(axis=0)
            dual = vectors @ (turned / (values + penalty)[:, None]) * root
            if missed.sum() < of_all:
                of_all, width_of_all, dual_of_all = float(missed.sum()), width, dual
            better = missed < least
            least, widths = np.where(better, missed, least), np.where(better, width, widths)
            duals = np.where(better, dual, duals)

    def left_of(width: float, dual: Array, columns: slice | NDArray[np.bool_]) -> Array:
        at_once = NUMBERS_AT_ONCE // KERNEL_ROWS
        parts = [told[start : start + at_once] for start in range(0, len(told), at_once)]
        found = np.concatenate([np.exp(-width * _mean_squares(part, fitted)) @ dual[:, columns] for part in parts])
        return np.square((off[:, columns] - found) * root_held).sum(axis=0)

    varied = np.square(off * root_held).sum(axis=0)
    of_held = np.zeros_like(varied)
    for width in WIDTHS:
        if (here := widths == width).any():
            of_held[here] = left_of(width, duals, here)
    by_others = least / np.maximum(np.square(e).sum(axis=0), 1e-300)
    total = left_of(width_of_all, dual_of_all, slice(None)).sum() / max(varied.sum(), 1e-300)
    return 1 - float(total), 1 - np.array([of_held / np.maximum(varied, 1e-300), by_others])


def _lost(halves: Factorisation[FullyConnected], problem: Problem) -> list[Array]:
    """Coordinates of the rows trained on and held out, and what is lost of them."""
    x, y, x_held, y_held = (part.double() for part in (problem.x, problem.y, problem.x_held, problem.y_held))
    with torch.no_grad():
        z, z_held = halves.encoder(x), halves.encoder(x_held)
        return [part.numpy() for part in (z, z_held, y - halves.decoder(z), y_held - halves.decoder(z_held))]


def _numbers(weight: Tensor | None) -> Array | None:
    return None if weight is None else weight.double().numpy()


def _roots(weight: Array | None, rows: int) -> Array:
    """Of weights of mean 1 (n, 1)."""
    return np.ones((rows, 1)) if weight is None else np.sqrt(weight / weight.mean())[:, None]


def _mean_squares(a: Array, b: Array) -> Array:
    """Squared distances between rows over the number of columns."""
    return np.maximum(np.square(a).sum(1)[:, None] + np.square(b).sum(1) - 2 * a @ b.T, 0.0) / a.shape[1]
