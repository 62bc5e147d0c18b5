"""Subspaces of inputs: how they are compared, and the whitening that classical methods start with."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
FLOOR = 1e-10  # of the correlations, relative to their largest eigenvalue: what lies below is left out


def distance(found: Array, truth: Array) -> float:
    """|P - P_hat|_2 of the spans of two sets of rows: the sine of the largest angle, 1 where dimensions differ."""
    p, q = (np.linalg.qr(np.asarray(rows, dtype=np.float64).T)[0] for rows in (found, truth))
    if p.shape[1] != q.shape[1]:
        return 1.0
    return float(np.linalg.norm(p @ p.T - q @ q.T, 2))


@dataclass(frozen=True, slots=True)
class Whitened:
    """Rows of covariance I, and the matrix that made them."""

    z: Array
    root: Array

    @classmethod
    def of(cls, x: Array) -> "Whitened":
        """(x - mean) D^-1 R^(-1/2), with D the standard deviations and R the correlations of the columns."""
        centred = x - x.mean(0)
        spread = np.maximum(centred.std(0), np.finfo(float).tiny)
        scaled = centred / spread
        values, vectors = np.linalg.eigh(scaled.T @ scaled / len(x))
        kept = np.where(values > FLOOR * values[-1], values, np.inf) ** -0.5
        root = (vectors * kept) @ vectors.T
        return cls(scaled @ root, root / spread[:, None])

    def leading(self, matrix: Array, k: int) -> Array:
        """Eigenvectors of the k largest eigenvalues as rows in the units of x."""
        return self.back(np.linalg.eigh((matrix + matrix.T) / 2)[1][:, ::-1][:, :k].T)

    def back(self, rows: Array) -> Array:
        """Directions of whitened columns in the units of x."""
        return rows @ self.root.T


def distance_correlation(a: Array, b: Array) -> float:
    """Distance correlation of two samples of points as rows (Szekely, Rizzo and Bakirov 2007), 0 to 1.

        dCor^2 = <A, B> / sqrt(<A, A> <B, B>)

    with A and B the matrices of distances, centred by rows and columns.
    """
    first, second = _centred(a), _centred(b)
    sizes = np.sqrt((first**2).mean() * (second**2).mean())
    if sizes == 0:  # one of them is constant
        return 0.0
    return float(np.sqrt(max(0.0, (first * second).mean() / sizes)))


def _centred(points: Array) -> Array:
    squares = (points**2).sum(1)
    gaps = np.sqrt(np.maximum(squares[:, None] + squares - 2 * points @ points.T, 0))
    return gaps - gaps.mean(0) - gaps.mean(1)[:, None] + gaps.mean()
