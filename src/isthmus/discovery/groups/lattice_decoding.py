"""Spans of simple fractions near a span that was measured: a list of candidates, without an objective.

Which of them is taken: `group_search`. Exact rows: `rational_rows`.
"""

import math
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np
from jaxtyping import Float64, Int64

from isthmus.discovery.groups.rational_rows import Rows, as_row

NOISES = (0.001, 0.003, 0.01, 0.03)  # angles of error that are supposed, one after the other
_FIRST_NOISE = 0.01  # at which pivots are compared
MOST_DENOMINATOR = 6
_MOST_PIVOTS = 3000  # sets of pivots that are looked at
_BEST_PIVOTS = 40  # that are decoded in full
_BEAM, _KEPT = 48, 8
_LEAST_PIVOT = 0.02  # singular value of the pivot columns below which noise is blown up fiftyfold


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A span of whole numbers near the measured one.

    Attributes:
        rows: a basis of it.
        key: the projector on it, rounded, by which two candidates are compared.
        length: description length of the rows.
        angle: the largest principal angle to the measured span, radians.
    """

    rows: Int64[np.ndarray, "k d_in"]
    key: bytes
    length: float
    angle: float

    @property
    def exact(self) -> Rows:
        """The rows as exact numbers."""
        return tuple(as_row(row) for row in self.rows.tolist())


def candidates_of(rows: Int64[np.ndarray, "m k d_in"], measured: Float64[np.ndarray, "k d_in"]) -> list[Candidate]:
    """Spans of whole numbers, m of them at once, beside the measured one (orthonormal rows)."""
    rows = rows // np.gcd.reduce(rows, axis=2)[:, :, None]
    lengths = (np.log2(np.maximum(np.abs(rows), 1)) * 2 + 2 * (rows != 0)).sum((1, 2))
    bases = np.linalg.qr(np.swapaxes(rows, 1, 2).astype(np.float64))[0]
    beside = bases - measured.T @ (measured @ bases)
    angles = np.arcsin(np.minimum(np.linalg.norm(beside, 2, axis=(1, 2)), 1.0))
    keys = np.round(bases @ np.swapaxes(bases, 1, 2), 9) + 0.0  # without a negative zero
    return [
        Candidate(row, key.tobytes(), length, angle)
        for row, key, length, angle in zip(rows, keys, lengths.tolist(), angles.tolist(), strict=True)
    ]


def candidate_spans(
    centre: Float64[np.ndarray, "k d_in"],
    within: Int64[np.ndarray, "groups d_in"],
    measured: Float64[np.ndarray, "k d_in"],
    *,
    denominator: int = MOST_DENOMINATOR,
) -> list[list[Candidate]]:
    """Spans of rows with simple fractions near a given one, best first, a list for each of `NOISES`.

    Rows of the span are C Z, with Z the exact basis `within`. For pivots P the echelon form of C is [I F], and a change
    dF of F turns the span by

        angle^2 (sum of squares over principal angles) = |(R G R^T)^(-1/2) dF S^(1/2)|_F^2,  R = [I F], G = Z Z^T,

    S the block of G - G R^T (R G R^T)^-1 R G beside the pivots. Entries of F are replaced by fractions one after the
    other, each where those before it have moved the optimum (Babai 1986, as a beam that keeps several), by
    angle^2 / 2 noise^2 + bits log 2: errors of a normal distribution, and a prior that halves with every bit.

    Args:
        centre: rows near which to look, inside of the span of `within` up to noise.
        within: whole numbers, all exponents that are allowed; more rows than `centre` has.
        measured: orthonormal rows, to which the angles of the candidates are taken.
        denominator: the largest of the fractions in F.

    Accuracy: *heuristic*: pivots and partial fractions are cut off by their score.
    """
    frame = within.astype(np.float64)
    graphs = _graphs(centre @ np.linalg.pinv(frame), frame @ frame.T)
    graphs = sorted(graphs, key=lambda graph: graph.decode(_FIRST_NOISE, denominator, beam=1)[0][0])[:_BEST_PIVOTS]
    found: list[dict[bytes, tuple[float, Candidate]]] = []
    shortest: dict[bytes, Candidate] = {}
    for noise in NOISES:
        decoded = [graph.decode(noise, denominator, beam=_BEAM) for graph in graphs]
        scores = np.concatenate([scores for scores, _ in decoded]) if decoded else np.zeros(0)
        rows = np.concatenate([factors @ within for _, factors in decoded]) if decoded else np.zeros((0, 1, 1), int)
        best: dict[bytes, tuple[float, Candidate]] = {}
        for score, candidate in zip(scores.tolist(), candidates_of(rows, measured) if decoded else [], strict=True):
            if score < best.get(candidate.key, (math.inf, candidate))[0]:
                best[candidate.key] = score, candidate
            if candidate.length < shortest.setdefault(candidate.key, candidate).length:
                shortest[candidate.key] = candidate
        found.append(best)
    return [[shortest[key] for key in sorted(best, key=lambda key: best[key][0])] for best in found]


@dataclass(frozen=True, slots=True, eq=False)
class _Graph:
    """The measured span in echelon form for one set of pivots, F beside them, with the metric of its angles."""

    pivots: tuple[int, ...]
    others: tuple[int, ...]
    entries: Float64[np.ndarray, "k rest"]  # F
    rise: Float64[np.ndarray, "k k"]  # upper triangular: angle^2 = |rise dF fall^T|_F^2
    fall: Float64[np.ndarray, "rest rest"]

    def decode(
        self, noise: float, denominator: int, *, beam: int
    ) -> tuple[Float64[np.ndarray, " m"], Int64[np.ndarray, "m k groups"]]:
        """The best few matrices of fractions near F: their scores, best first, and the rows [I F] as whole numbers."""
        k, rest = self.entries.shape
        moves, scores = np.zeros((1, k, rest)), np.zeros(1)
        tops, bottoms = np.zeros((1, k, rest), dtype=np.int64), np.ones((1, k, rest), dtype=np.int64)
        below = np.arange(1, denominator + 1)
        for i, j in ((i, j) for i in reversed(range(k)) for j in reversed(range(rest))):
            # what entries that are fixed already contribute to this term
            fixed = np.einsum("a,sab,b->s", self.rise[i], moves, self.fall[j])
            size = self.rise[i, i] * self.fall[j, j]
            aim = self.entries[i, j] - fixed / size
            above = np.rint(aim[:, None] * below).astype(np.int64)
            above = np.concatenate([above, np.zeros((len(aim), 1), dtype=np.int64)], axis=1)
            under = np.broadcast_to(np.append(below, 1), above.shape)
            errors = size * (above / under - aim[:, None])
            largest = np.maximum(np.abs(above), under)
            bits = np.where(above == 0, 0.0, 2 + 2 * np.log2(largest))
            cost = scores[:, None] + errors**2 / (2 * noise**2) + bits * math.log(2)
            # 2/4 is 1/2, and 0/2 is the 0 that stands last
            cost[(np.gcd(above, under) != 1) | ((above == 0) & (np.arange(len(below) + 1) < len(below)))] = np.inf
            order = np.argsort(cost, axis=None, kind="stable")[:beam]
            order = order[np.isfinite(cost.reshape(-1)[order])]
            state, choice = np.unravel_index(order, cost.shape)
            moves, tops, bottoms = moves[state].copy(), tops[state].copy(), bottoms[state].copy()
            tops[:, i, j], bottoms[:, i, j] = above[state, choice], under[state, choice]
            moves[:, i, j] = tops[:, i, j] / bottoms[:, i, j] - self.entries[i, j]
            scores = cost[state, choice]
        scores, tops, bottoms = (found[:_KEPT] for found in (scores, tops, bottoms))
        common = np.lcm.reduce(bottoms, axis=2)
        factors = np.zeros((len(scores), k, k + rest), dtype=np.int64)
        factors[:, range(k), self.pivots] = common
        factors[:, :, self.others] = tops * (common[:, :, None] // bottoms)
        return scores, factors


def _graphs(coefficients: Float64[np.ndarray, "k groups"], gram: Float64[np.ndarray, "groups groups"]) -> list[_Graph]:
    """The span for every set of pivots that determines it well."""
    k, width = coefficients.shape
    scaled = coefficients / np.linalg.norm(coefficients, axis=1).max()
    found: list[_Graph] = []
    for pivots in islice(combinations(_by_weight(scaled), k), _MOST_PIVOTS):
        pivots = tuple(sorted(pivots))
        head = scaled[:, pivots]
        if np.linalg.svd(head, compute_uv=False)[-1] < _LEAST_PIVOT:
            continue
        rows = np.linalg.solve(head, scaled)
        others = tuple(place for place in range(width) if place not in pivots)
        inverse = np.linalg.inv(rows @ gram @ rows.T)
        image = gram @ rows.T
        normal = (gram - image @ inverse @ image.T)[np.ix_(others, others)]
        found.append(
            _Graph(pivots, others, rows[:, others], np.linalg.cholesky(inverse).T, np.linalg.cholesky(normal).T)
        )
    return found


def _by_weight(coefficients: Float64[np.ndarray, "k groups"]) -> list[int]:
    """Columns by their norm, largest first, so that a cut leaves out weak pivots."""
    return [int(place) for place in np.argsort(-np.linalg.norm(coefficients, axis=0), kind="stable")]
