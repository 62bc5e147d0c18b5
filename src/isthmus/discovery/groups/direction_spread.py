"""How far resamples of directions scatter: angles of their spans, a cone for each direction, intervals for loadings.

What is drawn again is the business of `discovery`; exact exponents: `group_search`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from isthmus.discovery.groups.group_search import held
from isthmus.discovery.groups.varimax import orthonormal_rows

FEW = 40  # resamples below which an interval is their range: 2.5 % of fewer is less than one
_TAIL = 2.5


@dataclass(frozen=True, slots=True, eq=False)
class DirectionSpread:
    """How far resampled directions lie from those of all data.

    Attributes:
        angles: (resamples,) the largest principal angle of each span to the reference, radians.
        cones: (k,) for each direction the angle within which the aligned resamples lie, radians: all of them where they
            are few, else 95 %.
        low: (k, d) least loadings in the orthonormal basis, after alignment.
        high: (k, d) largest loadings there.
        held_low: (k, d) least exponents where those at the pivots are held; None without pivots. Infinite where the
            pivots do not determine the span of a resample.
        held_high: (k, d) largest exponents there.
        is_range: whether the intervals are the whole range, for few resamples, and not 2.5 to 97.5 %.
    """

    angles: Float64[np.ndarray, " resamples"]
    cones: Float64[np.ndarray, " k"]
    low: Float64[np.ndarray, "k d_in"]
    high: Float64[np.ndarray, "k d_in"]
    held_low: Float64[np.ndarray, "k d_in"] | None
    held_high: Float64[np.ndarray, "k d_in"] | None
    is_range: bool


def direction_spread(
    reference: Float64[np.ndarray, "k d_in"],
    resampled: Sequence[Float64[np.ndarray, "_ d_in"]],
    *,
    pivots: Sequence[int] | None = None,
    values: Float64[np.ndarray, "k k"] | None = None,
) -> DirectionSpread:
    """The scatter of spans, directions and loadings over resamples.

    Each resample is turned inside of its span to be nearest to the reference (orthogonal Procrustes, which settles
    signs and order as well): Q = U W^T for the singular vectors of V_0 V_i^T = U S W^T. What is left is error.

    Args:
        reference: the directions of all data, orthonormal as they are shown (`varimax`).
        resampled: rows of the same shape for each resample; only their spans count.
        pivots: columns whose exponents are held (`GroupFit.pivots`).
        values: what they are held at (`GroupFit.measured[:, pivots]`); default the identity, the echelon form.

    Raises:
        ValueError: no resample, another shape, or rows that depend on each other.
    """
    basis = orthonormal_rows(reference)
    if not len(resampled):
        raise ValueError("direction_spread: needs at least one resample.")
    wrong = next((rows for rows in resampled if np.shape(rows) != basis.shape), None)
    if wrong is not None:
        raise ValueError(f"direction_spread: needs resamples of shape {basis.shape}, got {np.shape(wrong)}.")
    spans = [orthonormal_rows(rows) for rows in resampled]
    turned = np.array([aligned(span, basis) for span in spans])
    is_range = len(spans) < FEW
    low, high = _interval(turned)
    cosines = np.einsum("rkd,kd->rk", turned, basis)
    sines = np.linalg.norm(turned - cosines[:, :, None] * basis, axis=2)
    cones = np.percentile(np.arctan2(sines, cosines), 100 if is_range else 100 - 2 * _TAIL, axis=0)
    angles = np.array([largest_angle(span, basis) for span in spans])
    bounds = (None, None)
    if pivots is not None:
        bounds = _interval(np.array([_held(span, pivots, values) for span in spans]))
    return DirectionSpread(angles, cones, low, high, *bounds, is_range)


def aligned(
    rows: Float64[np.ndarray, "k d_in"], reference: Float64[np.ndarray, "k d_in"]
) -> Float64[np.ndarray, "k d_in"]:
    """Orthonormal rows turned inside of their span to be nearest to the reference, in the sum of squares."""
    left, _, right = np.linalg.svd(reference @ rows.T)
    return left @ right @ rows


def largest_angle(some: Float64[np.ndarray, "k d_in"], others: Float64[np.ndarray, "k d_in"]) -> float:
    """The largest principal angle between the spans of orthonormal rows, radians; accurate for small ones too."""
    cosine = np.linalg.norm(some @ others.T, -2)
    sine = np.linalg.norm(some - some @ others.T @ others, 2)
    return float(np.arctan2(sine, cosine))


def _interval(
    found: Float64[np.ndarray, "resamples k d_in"],
) -> tuple[Float64[np.ndarray, "k d_in"], Float64[np.ndarray, "k d_in"]]:
    """2.5 to 97.5 %, outwards to the next resample: of few ones the whole range."""
    # an exponent that is not determined may be anything
    low = np.percentile(np.where(np.isnan(found), -np.inf, found), _TAIL, axis=0, method="lower")
    high = np.percentile(np.where(np.isnan(found), np.inf, found), 100 - _TAIL, axis=0, method="higher")
    return low, high


def _held(
    span: Float64[np.ndarray, "k d_in"], pivots: Sequence[int], values: Float64[np.ndarray, "k k"] | None
) -> Float64[np.ndarray, "k d_in"]:
    """Exponents with those at the pivots held; NaN where these do not determine the span."""
    head = span[:, list(pivots)]
    if np.linalg.norm(head, -2) <= len(head) * np.finfo(np.float64).eps * 10:
        return np.full(span.shape, np.nan)
    return held(span, pivots, values)
