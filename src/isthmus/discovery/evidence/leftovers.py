"""Whether what a rank leaves over still depends on other combinations of the inputs, or columns of it on each other.

A weak combination among many columns saves less on held-out rows than finding it costs, so that no error shows it; all
rows together still do. Who asks, and what is said of it: `answer_doubts`. By kernels of all inputs: `foretold`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from isthmus.discovery.choices import LEFT_BENT, LEFT_OVER, LEFT_OVER_SURE, TOLD
from isthmus.discovery.data.scaling import MOST_COMPARED

FLIPS = 60  # of the signs of all rows, which say what chance does
DEGREE = 3  # of the polynomials in the coordinates that a network may have bent too little
ROWS_FOR_EACH_COLUMN = 4  # below which everything depends on everything
MOST_PRODUCTS = 2e7  # rows times squared columns up to which squares of combinations are looked at too
FEW_VALUES = 12  # of a column, up to which waves of it are any function of it, also what rounding makes of a target
DEPENDENT = 1e-8  # relative singular value below which columns depend on each other
# waves over the spread of a column: of combinations at all frequencies that those of columns may come near
DENSE, COARSE_WAVES = np.arange(0.5, 8.5, 0.5), np.array([1.0, 2.0, 3.0, 4.5, 6.0])
Array = NDArray[np.float64]


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
    x: Array, rows: Array, residuals: Array, *, seed: int = 0, columns: Array | None = None, across: bool = False
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
        across: whether residuals of a linear map are those across its outputs, where no coordinate that is bent goes,
            so that less of them counts which is linear.

    Returns:
        The surest of these, of those that count if any does; None where rows are too few, or no direction is left.

    Source: principal Hessian directions (Li 1992) of residuals. Test: discovery/evidence/test_leftovers.
    """
    z = x @ rows.T
    held = _basis(np.column_stack([_polynomials(z), _waves(z, DENSE)]) if columns is not None else _polynomials(z))
    left, sizes, _ = np.linalg.svd(_less(x - x.mean(0), held), full_matrices=False)
    u = left[:, sizes > DEPENDENT * max(np.linalg.norm(x - x.mean(0), 2), 1e-300)] * len(x) ** 0.5
    e = _less(residuals, held)
    if not u.shape[1] or len(x) < ROWS_FOR_EACH_COLUMN * x.shape[1] or not e.any():
        return None
    bent = LEFT_OVER if columns is None else LEFT_BENT
    linear = LEFT_OVER if across else bent
    measures: list[tuple[Callable[[Array], float], float]] = [
        (lambda e: float(np.square(u.T @ e / len(u)).sum()), linear)
    ]
    if u.size * u.shape[1] <= MOST_PRODUCTS:
        measures.append((lambda e: max(_squared(u, column) for column in e.T), bent))
    many = [one[:, None] for one in columns.T if len(np.unique(one)) > FEW_VALUES] if columns is not None else []
    single = [_basis(_less(_waves(one, COARSE_WAVES), held)) for one in many]
    if single and max(one.shape[1] for one in single) <= len(x) / ROWS_FOR_EACH_COLUMN:
        measures.append((lambda e: max(float(np.square(one.T @ e).sum() / len(e)) for one in single), bent))
    rng = np.random.default_rng(seed)
    flipped = [e * rng.choice([-1.0, 1.0], size=(len(e), 1)) for _ in range(FLIPS)]
    # waves that are held leave what the combinations are off by, which is small beside all that is left over
    total = float(np.square(residuals - residuals.mean(0) if columns is not None else e).mean(0).sum())
    found = [replace(_against_chance(measure, e, flipped, total), least=least) for measure, least in measures]
    return max(found, key=lambda one: (one.counts, one.deviations))


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
