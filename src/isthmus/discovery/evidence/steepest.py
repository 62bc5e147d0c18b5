"""Directions in which a map changes most, of the gradients of the map that was found: the active subspace.

The combinations of an index rank are the ones that lose least; these are an order within, and of, their span. Loadings
and their scatter: `combinations`. The covariance of a formula, not of a network: `tasks.gradient_covariance`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from isthmus.discovery.evidence.interpretation import drawn_rows
from isthmus.discovery.factors import Factorisation
from isthmus.discovery.groups.direction_spread import largest_angle
from isthmus.discovery.groups.varimax import signed
from isthmus.networks import FullyConnected, jacobians

MOST_ENTRIES = 2_000_000  # of Jacobians that are held at once
DEPENDENT = 1e-10  # relative singular value of rows below which they depend on each other


@dataclass(frozen=True, slots=True, eq=False)
class Steepest:
    """The eigenvectors of a gradient covariance.

    Attributes:
        directions: (k, d) orthonormal rows, the one of the largest eigenvalue first, each with its largest entry
            positive.
        shares: (k,) of the squared slopes along each; they add up to 1, or are all 0.
    """

    directions: Float64[np.ndarray, "k d_in"]
    shares: Float64[np.ndarray, " k"]

    @classmethod
    def of(cls, covariance: Float64[np.ndarray, "k k"], rows: Float64[np.ndarray, "k d_in"]) -> "Steepest":
        """Of f = h o A, from the gradient covariance of h over its coordinates and the rows of A (*exact* to rounding).

        A^T C A = V diag(s) V^T,   C = 1/n sum_i H_i^T H_i,   H_i the Jacobians of h
        """
        basis, turn = np.linalg.qr(rows.T)  # so that what is decomposed is k by k, however many columns there are
        values, vectors = np.linalg.eigh(turn @ covariance @ turn.T)
        values, total = values[::-1].clip(0.0), values.clip(0.0).sum()
        shares = values / total if total > 0 else np.zeros_like(values)
        return cls(signed((basis @ vectors[:, ::-1]).T), shares)

    def leading(self, count: int) -> Float64[np.ndarray, "_ d_in"]:
        """The first so many."""
        return self.directions[:count]

    def apart(self, rows: Float64[np.ndarray, "j d_in"]) -> float:
        """The largest angle between the span of j rows and that of the first j, radians; NaN of dependent rows.

        Through few combinations alone least may be lost along others than those in which a map changes most: of 3 a +
        sin(12 b) / 2 along a, where the mean square slope is 9, of b it is 18.
        """
        _, values, basis = np.linalg.svd(rows, full_matrices=False)
        if not values[-1] > DEPENDENT * values[0]:
            return np.nan
        return largest_angle(basis, self.leading(len(rows)))

    def angles(self, others: Sequence["Steepest"]) -> Float64[np.ndarray, " k"]:
        """For j = 1, 2, ...: the largest angle between the spans of the first j and of the first j of any other.

        Radians, 0 to pi/2. Directions of equal eigenvalues are any basis of their span: an angle stands for the j up to
        which there is a gap.
        """
        counts = range(1, len(self.directions) + 1)
        return np.array([max(largest_angle(o.leading(j), self.leading(j)) for o in others) for j in counts])


def steepest(
    halves: Factorisation[FullyConnected], x: Tensor, rows: Float64[np.ndarray, "k d_in"], *, common: bool
) -> Steepest:
    """Those of a network with a linear encoder, over at most 1000 rows (seeded choice).

    Args:
        halves: in the units of `x`.
        x: samples as the encoder takes them.
        rows: of the encoder over the columns in which directions are wanted.
        common: whether a common shift of the outputs counts for nothing, as of the scores of classes.
    """
    points = x[torch.from_numpy(drawn_rows(len(x)))].double()
    encoder, decoder = halves.encoder.double(), halves.decoder.double()
    k, covariance = len(rows), np.zeros((len(rows), len(rows)))
    with torch.no_grad():  # Jacobians of many outputs are large, their sum is not
        for part in points.split(max(1, MOST_ENTRIES // (k * decoder.dimensions[-1]))):
            slopes = jacobians(decoder, encoder(part)).numpy()
            if common:
                slopes = slopes - slopes.mean(1, keepdims=True)
            covariance += np.einsum("nqi,nqj->ij", slopes, slopes) / len(points)
    return Steepest.of(covariance, rows)
