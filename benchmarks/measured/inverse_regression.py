"""Classical dimension reduction from moments of x given y, told the dimension: SIR, SAVE, directional regression, pHd.

Local linear fits: `local_regression`. Targets of several columns are sliced by k-means, Hessians summed over them.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from measured.spans import Array, Whitened

SLICES = 10


def sliced(y: Array) -> NDArray[np.int64]:
    """Number of the slice of each row: ten quantiles of one target, ten clusters (k-means) of several scaled ones."""
    if y.shape[1] == 1:
        return np.argsort(np.argsort(y[:, 0])) * SLICES // len(y)
    from sklearn.cluster import KMeans

    # scikit-learn's own types take a number of starts for a word
    starts: Any = 5
    return KMeans(SLICES, n_init=starts, random_state=0).fit_predict(y / y.std(0)).astype(np.int64)


def _moments(z: Array, y: Array) -> tuple[Array, Array, Array]:
    """Shares, means and second moments about 0 of the slices that hold more than one row."""
    label = sliced(y)
    groups = [z[label == h] for h in range(SLICES) if (label == h).sum() > 1]
    shares = np.array([len(g) for g in groups]) / len(z)
    return shares, np.stack([g.mean(0) for g in groups]), np.stack([g.T @ g / len(g) for g in groups])


def sir(x: Array, y: Array, k: int) -> Array:
    """Sliced inverse regression (Li 1991): the leading eigenvectors of cov E[z | y]."""
    white = Whitened.of(x)
    shares, means, _ = _moments(white.z, y)
    return white.leading((means.T * shares) @ means, k)


def save(x: Array, y: Array, k: int) -> Array:
    """Sliced average variance estimation (Cook and Weisberg 1991): of E (I - cov(z | y))^2."""
    white = Whitened.of(x)
    shares, means, seconds = _moments(white.z, y)
    left = np.eye(x.shape[1]) - (seconds - means[:, :, None] * means[:, None, :])
    return white.leading(np.einsum("h,hij,hjk->ik", shares, left, left), k)


def directional(x: Array, y: Array, k: int) -> Array:
    """Directional regression (Li and Wang 2007), by its five moments."""
    white = Whitened.of(x)
    shares, means, seconds = _moments(white.z, y)
    between = (means.T * shares) @ means
    squared = np.einsum("h,hij,hjk->ik", shares, seconds, seconds)
    length = float((shares * (means**2).sum(1)).sum())
    return white.leading(2 * squared + 2 * between @ between + 2 * length * between - 2 * np.eye(x.shape[1]), k)


def hessian(x: Array, y: Array, k: int) -> Array:
    """Principal Hessian directions (Li 1992; residuals of a linear fit, Cook 1998): E r z z^T squared."""
    white = Whitened.of(x)
    design = np.column_stack([np.ones(len(x)), white.z])
    residuals = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    hessians = np.einsum("nq,ni,nj->qij", residuals / y.std(0), white.z, white.z, optimize=True) / len(x)
    return white.leading(np.einsum("qij,qjk->ik", hessians, hessians), k)
