"""Whether what a rank leaves over still depends on the inputs otherwise than through its combinations or coordinates.

A weak combination among many columns saves less on held-out rows than finding it costs, so that no error shows it; all
rows together still do. A weak coordinate costs more than it saves, at any ridge that pays for noise. Who asks, and what
is said of it: `answer_doubts`, `search`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray

from isthmus.discovery.choices import FORETOLD, LEFT_BENT, LEFT_OVER, LEFT_OVER_SURE, TOLD
from isthmus.discovery.data.problem import Problem
from isthmus.discovery.data.scaling import MOST_COMPARED
from isthmus.discovery.factorisation import Factorisation
from isthmus.discovery.findings import Decision
from isthmus.networks import FullyConnected
from isthmus.tasks.arrays import NUMBERS_AT_ONCE
from isthmus.theory import Verdict

FLIPS = 60  # of the signs of all rows, which say what chance does
DEGREE = 3  # of the polynomials in the coordinates that a network may have bent too little
ROWS_FOR_EACH_COLUMN = 4  # below which everything depends on everything
MOST_PRODUCTS = 2e7  # rows times squared columns up to which squares of combinations are looked at too
FEW_VALUES = 12  # of a column, up to which waves of it are any function of it, also what rounding makes of a target
DEPENDENT = 1e-8  # relative singular value below which columns depend on each other
# waves over the spread of a column: of combinations at all frequencies that those of columns may come near
DENSE, COARSE_WAVES = np.arange(0.5, 8.5, 0.5), np.array([1.0, 2.0, 3.0, 4.5, 6.0])
KERNEL_ROWS = 600  # whose products are decomposed, a tenth of a second
WIDTHS, PENALTIES = (0.1, 0.5, 2.0), (0.01, 0.1, 1.0)  # of kernels over the mean squared distance, and of their sums
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Foretold:
    """How much a kernel regression on the rows trained on tells of what is lost of the others (*estimate*).

    Attributes:
        by_inputs: share of its variance that the inputs tell;
        by_coordinates: that the coordinates tell, which is how training ended; 0 where the inputs tell too little.
    """

    by_inputs: float
    by_coordinates: float

    @property
    def more(self) -> float:
        """What a further dimension tells."""
        return self.by_inputs - max(self.by_coordinates, 0.0)

    @property
    def counts(self) -> bool:
        """Whether that is much."""
        return self.more > FORETOLD

    @classmethod
    def of(cls, halves: Factorisation[FullyConnected], problem: Problem) -> "Foretold":
        """What the two halves of a network lose of the held-out rows of a problem, by those it was trained on."""
        x, y, x_held, y_held = (part.double() for part in (problem.x, problem.y, problem.x_held, problem.y_held))
        with torch.no_grad():
            z, z_held = halves.encoder(x), halves.encoder(x_held)
            e, e_held = y - halves.decoder(z), y_held - halves.decoder(z_held)
        arrays = [part.numpy() for part in (x, x_held, z, z_held, e, e_held)]
        x, x_held, z, z_held, e, e_held = arrays
        weights = [None if part is None else part.double().numpy() for part in (problem.weight, problem.weight_held)]
        by_inputs = foretold(x, e, x_held, e_held, *weights)
        by_coordinates = foretold(z, e, z_held, e_held, *weights) if by_inputs > FORETOLD else 0.0  # else none counts
        return cls(by_inputs, by_coordinates)


@dataclass(frozen=True, slots=True)
class Leftover:
    """What other combinations explain of the residuals (*estimate*).

    Attributes:
        share: of their variance, beyond what chance explains.
        deviations: how many standard deviations that is above chance.
        least: the share from which it counts.
    """

    share: float
    deviations: float
    least: float = LEFT_OVER

    @property
    def counts(self) -> bool:
        """Whether it is surely there, and as large as what tells two ranks apart."""
        return self.share > self.least and self.deviations > LEFT_OVER_SURE


def leftover(
    x: Array, rows: Array, residuals: Array, *, seed: int = 0, columns: Array | None = None
) -> Leftover | None:
    """How far residuals depend on what of the inputs the combinations A x do not hold, linearly or by a square.

    With `columns` also by powers and waves of single ones; of the combinations these are held too, which is right of
    residuals of a linear map: what a network leaves is how its training ended.

        u = the inputs less their regression on polynomials of A x, whitened;   e = the residuals, less theirs
        linear: sum_i |mean(e u_i)|^2 / mean |e|^2;   square: that of e on (v . u)^2, with v the eigenvector of
        mean(e u u^T) of the largest eigenvalue

    Chance is what is left where the signs of whole rows of e are drawn: rows may vary as unequally as they do.

    Args:
        x: inputs (n, d).
        rows: A (k, d).
        residuals: targets less predictions (n, q).
        seed: of the signs.
        columns: as they were measured (n, p); x may be turned.

    Returns:
        The surest of these; None where rows are too few, or no direction is left.

    Source: principal Hessian directions (Li 1992) of residuals. Test: discovery/evidence/test_leftovers.
    """
    z = x @ rows.T
    held = _basis(np.column_stack([_polynomials(z), _waves(z, DENSE)]) if columns is not None else _polynomials(z))
    left, sizes, _ = np.linalg.svd(_less(x - x.mean(0), held), full_matrices=False)
    u = left[:, sizes > DEPENDENT * max(np.linalg.norm(x - x.mean(0), 2), 1e-300)] * len(x) ** 0.5
    e = _less(residuals, held)
    if not u.shape[1] or len(x) < ROWS_FOR_EACH_COLUMN * x.shape[1] or not e.any():
        return None
    measures: list[Callable[[Array], float]] = [lambda e: float(np.square(u.T @ e / len(u)).sum())]
    if u.size * u.shape[1] <= MOST_PRODUCTS:
        measures.append(lambda e: max(_squared(u, column) for column in e.T))
    many = [one[:, None] for one in columns.T if len(np.unique(one)) > FEW_VALUES] if columns is not None else []
    single = [_basis(_less(_waves(one, COARSE_WAVES), held)) for one in many]
    if single and max(one.shape[1] for one in single) <= len(x) / ROWS_FOR_EACH_COLUMN:
        measures.append(lambda e: max(float(np.square(one.T @ e).sum() / len(e)) for one in single))
    rng = np.random.default_rng(seed)
    flipped = [e * rng.choice([-1.0, 1.0], size=(len(e), 1)) for _ in range(FLIPS)]
    # waves that are held leave what the combinations are off by, which is small beside all that is left over
    total = float(np.square(residuals - residuals.mean(0) if columns is not None else e).mean(0).sum())
    found = max((_against_chance(measure, e, flipped, total) for measure in measures), key=lambda one: one.deviations)
    return replace(found, least=LEFT_BENT) if columns is not None else found


def held_against_leftovers(decision: Decision, left: Foretold | None, *, ridge: float, asked: bool = False) -> Decision:
    """A rank that is sure, in doubt where what it loses hangs on the inputs otherwise than through its coordinates.

    Five targets of two dimensions, and of a third of .2 to 1 % of their variance (a column, the product of two, a sine;
    1,000 rows), read 2 with confidence: a linear one of less than .19 % costs more than it saves at ridge 3e-4.
    """
    if left is None or not left.counts:
        return decision
    doubt = (
        f"The inputs tell {left.by_inputs:.0%} of what is lost of held-out rows, these coordinates "
        f"{max(left.by_coordinates, 0.0):.0%}: there is a further dimension, too weak to pay for itself at ridge "
        f"{ridge:g}. More rows{'' if asked else ', or smaller ridges,'} may show it."
    )
    return replace(decision, verdict=Verdict.DOUBTFUL, reasons=(doubt, *decision.reasons))


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

    Test: discovery/evidence/test_leftovers.
    """
    at = np.linspace(0, len(x) - 1, min(len(x), KERNEL_ROWS)).astype(int)
    root, root_held = _roots(weight, len(x))[at], _roots(weight_held, len(x_held))
    centre, scale = x.mean(0), np.maximum(x.std(0), 1e-300)
    fitted, told = (x[at] - centre) / scale, (x_held - centre) / scale
    mean = np.average(residuals, axis=0, weights=weight)
    e = (residuals[at] - mean) * root
    best, chosen, dual = np.inf, WIDTHS[0], np.zeros_like(e)
    for width in WIDTHS:
        values, vectors = np.linalg.eigh(np.exp(-width * _mean_squares(fitted, fitted)) * root * root.T)
        turned = vectors.T @ e
        for penalty in PENALTIES:
            kept = np.maximum(values, 0.0) / (np.maximum(values, 0.0) + penalty)
            left = (e - vectors @ (kept[:, None] * turned)) / (1 - np.square(vectors) @ kept)[:, None]
            if (error := float(np.square(left).sum())) < best:
                best, chosen = error, width
                dual = vectors @ (turned / (np.maximum(values, 0.0) + penalty)[:, None]) * root
    off, at_once = residuals_held - mean, NUMBERS_AT_ONCE // KERNEL_ROWS
    parts = [told[start : start + at_once] for start in range(0, len(told), at_once)]
    predicted = np.concatenate([np.exp(-chosen * _mean_squares(part, fitted)) @ dual for part in parts])
    missed, varied = (float(np.square(part * root_held).sum()) for part in (off - predicted, off))
    return 1 - missed / max(varied, 1e-300)


def told_by_others(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which columns the others of these tell, linearly, by more than `TOLD` of their variance: noise is told by none.

        r_j = (z P)_j / P_jj,   told by 1 - sum r_j^2 / sum z_j^2

    z one half of the rows, standardised, P the inverse of the covariance of Ledoit and Wolf of the other half, which
    is regular for few rows too; both halves in turn, and by as much in both. Of more than `MOST_COMPARED` columns some
    that are spread evenly are compared, and the others are not told.

    Args:
        values: (n, columns), in an order in which neighbours may resemble each other.
    """
    from sklearn.covariance import ledoit_wolf  # slow to import, and only this needs it

    told, spread = np.zeros(values.shape[1], dtype=np.bool_), values.std(axis=0)
    varying = np.flatnonzero(spread > 0)
    compared = varying[:: max(1, math.ceil(len(varying) / MOST_COMPARED))]
    if len(compared) < 2:
        return told
    scaled = (values[:, compared] - values[:, compared].mean(axis=0)) / spread[compared]
    halves, told[compared] = np.array_split(scaled, 2), True
    for fitted, asked in (halves, halves[::-1]):
        inverse = np.linalg.inv(ledoit_wolf(fitted, assume_centered=True)[0])
        left = np.square(asked @ inverse / np.diag(inverse)).sum(axis=0)
        told[compared] &= left < (1 - TOLD) * np.square(asked).sum(axis=0)
    return told


def _roots(weight: Array | None, rows: int) -> Array:
    """Of weights of mean 1 (n, 1)."""
    return np.ones((rows, 1)) if weight is None else np.sqrt(weight / weight.mean())[:, None]


def _mean_squares(a: Array, b: Array) -> Array:
    """Squared distances between rows over the number of columns."""
    return np.maximum(np.square(a).sum(1)[:, None] + np.square(b).sum(1) - 2 * a @ b.T, 0.0) / a.shape[1]


def _against_chance(measure: Callable[[Array], float], e: Array, flipped: list[Array], total: float) -> Leftover:
    chance = np.array([measure(one) for one in flipped])
    beyond = measure(e) - chance.mean()
    return Leftover(float(beyond / total), float(beyond / max(chance.std(), 1e-300)))


def _squared(u: Array, e: Array) -> float:
    """What the square of one combination explains of residuals (n,)."""
    values, vectors = np.linalg.eigh((u * e[:, None]).T @ u / len(u))
    square = np.square(u @ vectors[:, np.abs(values).argmax()])
    return float(np.square((e * (square - square.mean())).mean()) / max(square.var(), 1e-300))


def _waves(z: Array, frequencies: Array) -> Array:
    """Powers and waves of each column, none of several."""
    z = (z - z.mean(0)) / np.maximum(z.std(0), 1e-300)
    phases = [z * frequency for frequency in frequencies]
    return np.column_stack([z**2, z**3, *map(np.sin, phases), *map(np.cos, phases)])


def _basis(columns: Array) -> Array:
    """Orthonormal columns of the same span."""
    left, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    return left[:, sizes > DEPENDENT * max(float(sizes.max(initial=0.0)), 1e-300)]


def _less(values: Array, held: Array) -> Array:
    return values - held @ (held.T @ values)


def _polynomials(z: Array) -> Array:
    """1, powers of each coordinate and products of pairs."""
    z = (z - z.mean(0)) / np.maximum(z.std(0), 1e-300)
    powers = [z**degree for degree in range(1, DEGREE + 1)]
    products = [z[:, i] * z[:, j] for i, j in combinations(range(z.shape[1]), 2)]
    return np.column_stack([np.ones(len(z)), *powers, *products])
