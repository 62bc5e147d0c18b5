"""Classical dimension reduction from local linear fits, told the dimension: OPG and MAVE, refined (Xia et al. 2002).

Moments given y: `inverse_regression`. Targets of several columns are scaled, and their outer products or squared errors
summed. All fits of a sweep are made at once: sums over neighbours are products of the n x n kernel with moments.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from measured.spans import Array, Whitened

# Of the bandwidth c n^(-1 / (k + 4)), for columns of variance 1; cross-validation chooses. The 2.34 of Xia et al.
# belongs to another kernel: with this one it gave spans up to ten times as far from the truth as .7 or 1.06.
CONSTANTS = (1.6, 1.06, 0.7)
SHRINK = 0.8  # of the bandwidth per sweep, at most: that of Xia et al. takes some twenty sweeps in 40 columns
RIDGE = 1e-6  # of local designs, relative to the mean of their diagonal
SWEEPS, SETTLED = 8, 1e-3  # at one bandwidth, and the distance of spans below which they end
Step = Callable[[Array, Array, Array, float], Array]
RUN = 500  # points whose fits are made side by side
NEIGHBOURS = 2.0  # effective ones per unknown of a local fit, at least, at the first sweep


@dataclass(frozen=True, slots=True)
class Sums:
    """Weighted sums about each of some points: of the squares, of differences times targets, and the local fits.

    Attributes:
        squares: sum_j w_ij (z_j - z_i) (z_j - z_i)^T, (points, d, d), with weights of sum 1.
        first: sum_j w_ij (z_j - z_i), (points, d).
        products: sum_j w_ij (z_j - z_i) y_j, (points, d, q).
        values: sum_j w_ij y_j, (points, q).
    """

    squares: Array
    first: Array
    products: Array
    values: Array

    def fits(self, basis: Array) -> tuple[Array, Array]:
        """Intercepts (points, q) and slopes (points, k, q) of local linear fits in the columns of a basis (d, k)."""
        square = basis.T @ self.squares @ basis
        first, products = self.first @ basis, basis.T @ self.products
        square = square - first[:, :, None] * first[:, None, :]
        products = products - first[:, :, None] * self.values[:, None, :]
        k = basis.shape[1]
        ridge = RIDGE * np.trace(square, axis1=1, axis2=2)[:, None, None] / k + np.finfo(float).tiny
        slopes = np.linalg.solve(square + ridge * np.eye(k), products)
        return self.values - np.einsum("pk,pkq->pq", first, slopes), slopes


def local_sums(z: Array, y: Array, basis: Array, width: float, *, others: bool = False) -> Iterator[Sums]:
    """The sums about all points, run by run, with a Gaussian kernel of distances in the columns of a basis.

    With `others` a point itself has no weight.
    """
    n, d = z.shape
    near = z @ basis / width
    lengths = (near**2).sum(1)
    upper = np.triu_indices(d)
    pairs = z[:, upper[0]] * z[:, upper[1]]
    crossed = (z[:, :, None] * y[:, None, :]).reshape(n, -1)
    for start in range(0, n, RUN):
        here = slice(start, min(start + RUN, n))
        exponent = near[here] @ near.T - lengths / 2
        if others:
            exponent[np.arange(len(exponent)), np.arange(n)[here]] = -np.inf
        weights = np.exp(exponent - exponent.max(1, keepdims=True))
        weights /= weights.sum(1, keepdims=True)
        mean, values, point = weights @ z, weights @ y, z[here]
        squares = np.empty((len(point), d, d))
        squares[:, upper[0], upper[1]] = weights @ pairs
        squares[:, upper[1], upper[0]] = squares[:, upper[0], upper[1]]
        mixed = mean[:, :, None] * point[:, None, :]
        squares += point[:, :, None] * point[:, None, :] - mixed - mixed.transpose(0, 2, 1)
        products = (weights @ crossed).reshape(len(point), d, -1) - point[:, :, None] * values[:, None, :]
        yield Sums(squares, mean - point, products, values)


def first_width(z: Array) -> float:
    """Bandwidth for all columns at which the median local fit has two effective neighbours per unknown.

    *Heuristic*: in 20 columns and more published rules leave most points with no neighbour at all.
    """
    n, d = z.shape
    some = z[:: max(1, n // 200)]
    gaps = (some**2).sum(1)[:, None] + (z**2).sum(1) - 2 * some @ z.T
    width = 1.0
    while width < 100:
        weights = np.exp(-(gaps - gaps.min(1, keepdims=True)) / (2 * width**2))
        if np.median(weights.sum(1) ** 2 / (weights**2).sum(1)) >= NEIGHBOURS * (d + 1):
            break
        width *= 1.15
    return width


def local_linear(x: Array, y: Array, k: int) -> dict[str, Array]:
    """Directions of refined OPG and refined MAVE, each at its best bandwidth by leave-one-out error.

    OPG: slopes of local fits in all columns, neighbours by the last directions, the bandwidth falling from sweep to
    sweep. MAVE, started there, by turns in (a, b) and in B:

        min over B, a, b of sum_ij w_ij |y_j - a_i - b_i^T B^T (z_j - z_i)|^2,   w by distances in B^T z
    """
    white, y = Whitened.of(x), (y - y.mean(0)) / y.std(0)
    z, n = white.z, len(x)
    rate = n ** (-1 / (k + 4))
    width, basis = first_width(z), np.eye(x.shape[1])
    while width > CONSTANTS[0] * rate:
        basis, width = outer_step(z, y, basis, width, k=k), SHRINK * width
    found: dict[str, list[tuple[float, Array]]] = {"opg": [], "mave": []}
    for constant in CONSTANTS:
        width = constant * rate
        basis = settled(partial(outer_step, k=k), z, y, basis, width=width)
        better = settled(mave_step, z, y, basis, width=width)
        for name, one in (("opg", basis), ("mave", better)):
            found[name].append((left_out_error(z, y, one, width), one))
    return {name: white.back(min(pairs, key=lambda pair: pair[0])[1].T) for name, pairs in found.items()}


def settled(step: Step, z: Array, y: Array, basis: Array, *, width: float) -> Array:
    """A basis after so many steps that the next would hardly turn it, or after the most that are made."""
    for _ in range(SWEEPS):
        last, basis = basis, step(z, y, basis, width)
        if last.shape == basis.shape and np.linalg.norm(last @ last.T - basis @ basis.T, 2) < SETTLED:
            break
    return basis


def left_out_error(z: Array, y: Array, basis: Array, width: float) -> float:
    """Mean squared error of local linear fits at the points that they leave out."""
    fitted = np.concatenate([sums.fits(basis)[0] for sums in local_sums(z, y, basis, width, others=True)])
    return float(((fitted - y) ** 2).mean())


def outer_step(z: Array, y: Array, basis: Array, width: float, *, k: int) -> Array:
    """The leading eigenvectors of the summed outer products of slopes in all columns."""
    every, total = np.eye(z.shape[1]), np.zeros((z.shape[1], z.shape[1]))
    for sums in local_sums(z, y, basis, width):
        slopes = sums.fits(every)[1]
        total += np.einsum("piq,pjq->ij", slopes, slopes, optimize=True)
    return np.linalg.eigh(total)[1][:, -k:]


def mave_step(z: Array, y: Array, basis: Array, width: float) -> Array:
    """The basis that is best for the local fits in the last one: a least squares problem in its d k entries."""
    d, k = basis.shape
    normal, right = np.zeros((k, k, d, d)), np.zeros((d, k))
    for sums in local_sums(z, y, basis, width):
        intercepts, slopes = sums.fits(basis)
        pairs = np.einsum("pkq,plq->pkl", slopes, slopes).reshape(len(slopes), -1)
        normal += (pairs.T @ sums.squares.reshape(len(slopes), -1)).reshape(k, k, d, d)
        left = sums.products - sums.first[:, :, None] * intercepts[:, None, :]
        right += np.einsum("pdq,pkq->dk", left, slopes)
    matrix = normal.transpose(2, 0, 3, 1).reshape(d * k, d * k)
    ridge = RIDGE * np.trace(matrix) / (d * k)
    found = np.linalg.solve(matrix + ridge * np.eye(d * k), right.reshape(-1)).reshape(d, k)
    return np.linalg.qr(found)[0]
