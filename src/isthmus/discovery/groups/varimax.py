"""Orthonormal rows of a span, rotated so that each uses few columns. Rows of exact fractions: `group_search`."""

from itertools import combinations

import numpy as np
from jaxtyping import Float64

_SWEEPS = 500
_LEAST_ANGLE = 1e-12


def orthonormal_rows(directions: Float64[np.ndarray, "k d_in"]) -> Float64[np.ndarray, "k d_in"]:
    """An orthonormal basis of the span of independent rows, the nearest one to them (their polar factor).

    Raises:
        ValueError: not finite, no rows, or rows that depend on each other up to rounding.
    """
    rows = np.asarray(directions, dtype=np.float64)
    if rows.ndim != 2 or not 0 < len(rows) <= rows.shape[1] or not np.isfinite(rows).all():
        raise ValueError(f"directions: need 1 to d finite rows of d numbers, got shape {rows.shape}.")
    left, values, right = np.linalg.svd(rows, full_matrices=False)
    if values[-1] <= rows.shape[1] * np.finfo(np.float64).eps * values[0]:
        raise ValueError(f"directions: {len(rows)} rows depend on each other. Pass a basis of their span.")
    return left @ right


def varimax(directions: Float64[np.ndarray, "k d_in"]) -> Float64[np.ndarray, "k d_in"]:
    """Orthonormal rows of the same span in which the squares vary most from column to column.

        max over rotations Q of sum_ij (Q V)_ij^4,  V an orthonormal basis

    For orthonormal rows Kaiser's varimax is this sum of fourth powers: its second term, sum_i (sum_j v_ij^2)^2 / d, is
    the same for every rotation. Each step turns one pair of rows u, v by the angle at which the sum is largest in their
    plane, in closed form, so that no step lowers it:

        4 angle = atan2(2 sum a b, sum a^2 - b^2),  a = u^2 - v^2,  b = 2 u v

    The span is what data determine; this basis of it is a choice. A *local* maximum.

    Returns:
        Rows as they came, in order, each with its largest loading positive.

    Raises:
        ValueError: rows that are not finite or not independent.

    Source: Kaiser 1958.
    """
    rows = orthonormal_rows(directions).copy()
    for _ in range(_SWEEPS):
        largest = 0.0
        for i, j in combinations(range(len(rows)), 2):
            turned, angle = _best_turn(rows[i], rows[j])
            if abs(angle) > _LEAST_ANGLE:
                rows[i], rows[j] = turned
                largest = max(largest, abs(angle))
        if largest == 0:
            break
    return signed(rows)


def _best_turn(
    u: Float64[np.ndarray, " d_in"], v: Float64[np.ndarray, " d_in"]
) -> tuple[tuple[Float64[np.ndarray, " d_in"], Float64[np.ndarray, " d_in"]], float]:
    """Two rows, turned in their plane so that the sum of fourth powers is largest, and the angle."""
    a, b = u * u - v * v, 2 * u * v
    angle = float(np.arctan2(2 * (a * b).sum(), (a * a - b * b).sum()) / 4)
    return (np.cos(angle) * u + np.sin(angle) * v, np.cos(angle) * v - np.sin(angle) * u), angle


def fourth_powers(rows: Float64[np.ndarray, "k d_in"]) -> float:
    """What `varimax` makes large."""
    return float((rows**4).sum())


def signed(rows: Float64[np.ndarray, "k d_in"]) -> Float64[np.ndarray, "k d_in"]:
    """The rows, each with its largest loading positive."""
    largest = np.take_along_axis(rows, np.abs(rows).argmax(1)[:, None], axis=1)
    return rows * np.where(largest < 0, -1.0, 1.0)
