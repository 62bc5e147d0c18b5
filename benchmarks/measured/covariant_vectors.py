"""Covariant Lyapunov vectors and the angles between their spans: how many dimensions the manifold of a flow has.

A trajectory that has forgotten its beginning lies in a manifold whose tangent space holds the first m covariant
vectors, those of the largest exponents, and all others decay without ever coming near it: the angle between the spans
of the first m and of the others stays away from zero. A splitting inside of the manifold is touched again and again.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Lead = Callable[[Array], Array]  # a state, the first row, and disturbances of it, to those a time later


@dataclass(frozen=True, eq=False)
class Covariant:
    """What a long trajectory says of its tangent spaces.

    Attributes:
        exponents: Lyapunov exponents per unit of time, falling, (m,).
        angles: between the spans of the first j and of the others, in radians, j = 1 ... m - 1, (moments, m - 1).
    """

    exponents: Array
    angles: Array


def covariant(  # noqa: PLR0913
    lead: Lead, state: Array, *, count: int, time: float, warm: int, moments: int, cool: int, seed: int = 0
) -> Covariant:
    """By Ginelli's method: QR decompositions forwards, triangular systems backwards.

    Args:
        lead: one interval of time; its rows are states as real numbers, (1 + count, d).
        state: to begin at, (d,).
        count: of the vectors, m <= d.
        time: of one interval.
        warm: intervals until the decompositions forget their beginning.
        moments: those that are kept after it.
        cool: those after them until the triangular systems forget theirs.
        seed: of the first vectors.

    Source: Ginelli et al. 2007; Kuptsov and Parlitz 2012.
    """
    rng = np.random.default_rng(seed)
    rows = np.concatenate([state[None], np.linalg.qr(rng.normal(size=(len(state), count)))[0].T])
    factors, growth = list[Array](), np.zeros(count)
    for step in range(warm + moments + cool):
        rows = lead(rows)
        q, r = np.linalg.qr(rows[1:].T)
        rows = np.concatenate([rows[:1], q.T])
        if step >= warm:
            factors.append(r)
            growth += np.log(np.abs(np.diag(r)))
    vectors, angles = np.triu(rng.normal(size=(count, count))), list[Array]()
    for step in range(len(factors) - 1, -1, -1):
        if step < moments:  # in the basis of the decomposition after interval `step`
            angles.append(angles_between(vectors))
        vectors = np.linalg.solve(factors[step], vectors)
        vectors /= np.linalg.norm(vectors, axis=0)
    return Covariant(growth / (len(factors) * time), np.array(angles))


def angles_between(vectors: Array) -> Array:
    """Of the spans of the first j columns and of the others, all of an upper triangular matrix.

    cos = largest singular value of the first j rows of an orthonormal basis of the others
    """
    count = vectors.shape[1]
    cosines = [np.linalg.norm(np.linalg.qr(vectors[:, j:])[0][:j], 2) for j in range(1, count)]
    return np.arccos(np.minimum(cosines, 1.0))
