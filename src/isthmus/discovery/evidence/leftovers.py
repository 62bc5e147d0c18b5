"""Whether what an index rank leaves over still depends on the inputs otherwise than through its combinations.

A weak combination among many columns saves less on held-out rows than finding it costs, so that no error shows it; all
rows together still do. Who asks, and what is said of it: `answer_doubts`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from isthmus.discovery.choices import LEFT_OVER, LEFT_OVER_SURE

FLIPS = 60  # of the signs of all rows, which say what chance does
DEGREE = 3  # of the polynomials in the coordinates that a network may have bent too little
ROWS_FOR_EACH_COLUMN = 4  # below which everything depends on everything
MOST_PRODUCTS = 2e7  # rows times squared columns up to which squares of combinations are looked at too
DEPENDENT = 1e-8  # relative singular value below which columns depend on each other
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Leftover:
    """What other combinations explain of the residuals (*estimate*).

    Attributes:
        share: of their variance, beyond what chance explains.
        deviations: how many standard deviations that is above chance.
    """

    share: float
    deviations: float

    @property
    def counts(self) -> bool:
        """Whether it is surely there, and as large as what tells two ranks apart."""
        return self.share > LEFT_OVER and self.deviations > LEFT_OVER_SURE


def leftover(x: Array, rows: Array, residuals: Array, *, seed: int = 0) -> Leftover | None:
    """How far residuals depend on what of the inputs the combinations A x do not hold, linearly or by a square.

        u = the inputs less their regression on polynomials of A x, whitened;   e = the residuals, less theirs
        linear: sum_i |mean(e u_i)|^2 / mean |e|^2;   square: that of e on (v . u)^2, with v the eigenvector of
        mean(e u u^T) of the largest eigenvalue

    Chance is what is left where the signs of whole rows of e are drawn: rows may vary as unequally as they do.

    Args:
        x: inputs (n, d).
        rows: A (k, d).
        residuals: targets less predictions (n, q).
        seed: of the signs.

    Returns:
        The surer of the two; None where rows are too few, or no direction is left.

    Source: principal Hessian directions (Li 1992) of residuals. Test: discovery/evidence/test_leftovers.
    """
    held = np.linalg.qr(_polynomials(x @ rows.T))[0]
    left, sizes, _ = np.linalg.svd(_less(x - x.mean(0), held), full_matrices=False)
    u = left[:, sizes > DEPENDENT * max(np.linalg.norm(x - x.mean(0), 2), 1e-300)] * len(x) ** 0.5
    e = _less(residuals, held)
    if not u.shape[1] or len(x) < ROWS_FOR_EACH_COLUMN * x.shape[1] or not e.any():
        return None
    measures: list[Callable[[Array], float]] = [lambda e: float(np.square(u.T @ e / len(u)).sum())]
    if u.size * u.shape[1] <= MOST_PRODUCTS:
        measures.append(lambda e: max(_squared(u, column) for column in e.T))
    rng = np.random.default_rng(seed)
    flipped = [e * rng.choice([-1.0, 1.0], size=(len(e), 1)) for _ in range(FLIPS)]
    total = float(np.square(e).mean(0).sum())
    return max((_against_chance(measure, e, flipped, total) for measure in measures), key=lambda one: one.deviations)


def _against_chance(measure: Callable[[Array], float], e: Array, flipped: list[Array], total: float) -> Leftover:
    chance = np.array([measure(one) for one in flipped])
    beyond = measure(e) - chance.mean()
    return Leftover(float(beyond / total), float(beyond / max(chance.std(), 1e-300)))


def _squared(u: Array, e: Array) -> float:
    """What the square of one combination explains of residuals (n,)."""
    values, vectors = np.linalg.eigh((u * e[:, None]).T @ u / len(u))
    square = np.square(u @ vectors[:, np.abs(values).argmax()])
    return float(np.square((e * (square - square.mean())).mean()) / max(square.var(), 1e-300))


def _less(values: Array, held: Array) -> Array:
    return values - held @ (held.T @ values)


def _polynomials(z: Array) -> Array:
    """1, powers of each coordinate and products of pairs."""
    z = (z - z.mean(0)) / np.maximum(z.std(0), 1e-300)
    powers = [z**degree for degree in range(1, DEGREE + 1)]
    products = [z[:, i] * z[:, j] for i, j in combinations(range(z.shape[1]), 2)]
    return np.column_stack([np.ones(len(z)), *powers, *products])
