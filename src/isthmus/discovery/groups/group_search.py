"""The groups behind measured directions: the simplest exact exponents that the objective allows.

Candidates: `lattice_decoding`; text: `group_words`; how far resamples scatter: `direction_spread`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import scipy.linalg
from jaxtyping import Float64

from isthmus.discovery.choices import SLACK
from isthmus.discovery.groups.lattice_decoding import Candidate, candidate_spans, candidates_of
from isthmus.discovery.groups.rational_rows import (
    Rows,
    as_row,
    primitive,
    rational_rank,
    simplest_basis,
)
from isthmus.discovery.groups.varimax import orthonormal_rows

MOST_ANGLE = 0.1  # radians between the measured span and an accepted one; trained directions are off by up to .03
EVALUATIONS = 60
_SHARES = (0.5, 0.7, 0.85)  # of the evaluations, after which it is asked anew where the objective is least
Objective = Callable[[Float64[np.ndarray, "k d_in"]], float]


@dataclass(frozen=True, slots=True, eq=False)
class GroupFit:
    """Groups found behind measured directions.

    Attributes:
        columns: names of the columns, those with logarithms.
        exponents: (k, d) whole numbers, the simplest basis of the accepted span, *exact*; empty where there is none.
        measured: (k, d) the same basis before rounding: rows of the measured span that agree with `exponents` at the
            pivots; the echelon form at the pivots where nothing was accepted.
        pivots: k columns at which `measured` is held.
        angle: the largest principal angle between both spans, radians; 0 where nothing was accepted.
        rise: objective of the accepted span over the least one seen, less 1; infinite where nothing was accepted.
        num_evaluations: of the objective.
    """

    columns: tuple[str, ...]
    exponents: Rows
    measured: Float64[np.ndarray, "k d_in"]
    pivots: tuple[int, ...]
    angle: float
    rise: float
    num_evaluations: int

    @property
    def is_exact(self) -> bool:
        """Whether simple exponents were accepted."""
        return bool(self.exponents)

    @property
    def groups(self) -> list[dict[str, Fraction]]:
        """Column -> exponent for each group, without zeros; empty where none was accepted."""
        return [{name: entry for name, entry in zip(self.columns, row, strict=True) if entry} for row in self.exponents]


def simplest_groups(
    directions: Float64[np.ndarray, "k d_in"],
    objective: Objective,
    *,
    columns: Sequence[str],
    within: Rows | None = None,
    slack: float = SLACK,
    most_angle: float = MOST_ANGLE,
    evaluations: int = EVALUATIONS,
) -> GroupFit:
    """The groups with the simplest exponents whose objective is within the slack and whose span is near.

        simplest B : objective(D P_B) <= (1 + slack) min over all seen,  angle(B, D) <= most_angle

    P_B projects on the span of B. Half of the evaluations go to the spans that are likeliest by simplicity and angle,
    the rest to simpler ones than the best that is accepted, nearest first. When as many groups are asked as there are
    without dimensions, they are these, and nothing is rounded.

    Args:
        directions: rows over the logarithms of the columns, independent; only their span counts.
        objective: what the search makes small, for rows D' (k, d) in place of `directions`: each row of `directions`
            projected on the candidate, so that a decoder that fits the one fits the other. It is called at most
            `evaluations` times, for `directions` first.
        columns: their names.
        within: a basis of all exponents that are allowed (`DimensionlessSpace.basis`); default all.
        slack: relative rise of the objective that is allowed.
        most_angle: the largest angle to the measured span, radians.
        evaluations: the most calls of the objective, at least 2.

    Raises:
        ValueError: rows that do not fit the columns or depend on each other, more of them than `within` allows, bounds
            that are not positive, or an objective of `directions` that is not finite.

    Accuracy: the exponents are exact numbers and an *estimate* of the truth.
    """
    basis = orthonormal_rows(directions)
    allowed = _identity(len(columns)) if within is None else within
    if basis.shape[1] != len(columns) or any(len(row) != len(columns) for row in allowed):
        raise ValueError(f"simplest_groups: needs {len(columns)} columns, got directions of shape {basis.shape}.")
    if len(basis) > len(allowed):
        raise ValueError(f"simplest_groups: {len(basis)} directions, but only {len(allowed)} groups are possible.")
    if slack < 0 or most_angle <= 0 or evaluations < 2:
        raise ValueError("simplest_groups: needs slack >= 0, most_angle > 0 and at least 2 evaluations.")
    tried = _Tried(directions, objective, slack, evaluations)
    near = latest = _near(basis, basis, allowed, most_angle)
    for share in _SHARES:
        _ask_likeliest(tried, latest, int(share * evaluations))
        centre = tried.minimum(basis, allowed) if len(basis) < len(allowed) else None
        latest = [] if centre is None else _near(orthonormal_rows(centre), basis, allowed, most_angle)
        near = [*near, *latest]
    _ask_simpler(tried, near)
    if tried.simplest is None:
        pivots = _pivots(basis)
        return GroupFit(tuple(columns), (), held(basis, pivots), pivots, 0.0, math.inf, tried.count)
    chosen, value = tried.simplest
    exponents = simplest_basis(chosen.exact)
    whole = np.array(exponents, dtype=np.float64)
    pivots = _pivots(whole)
    measured = held(basis, pivots, whole[:, pivots])
    return GroupFit(
        tuple(columns), exponents, measured, pivots, chosen.angle,
        (value - tried.least) / abs(tried.least) if tried.least else 0.0, tried.count,
    )  # fmt: skip


def _near(
    centre: Float64[np.ndarray, "k d_in"], basis: Float64[np.ndarray, "k d_in"], allowed: Rows, most_angle: float
) -> list[list[Candidate]]:
    """Candidates near the rows `centre`, by lists, that are within the angle of `basis`."""
    rows = np.array([primitive(row) for row in allowed]).astype(np.int64)
    is_all = len(basis) == len(allowed)
    lists = [candidates_of(rows[None], basis)] if is_all else candidate_spans(centre, rows, basis)
    return [[candidate for candidate in listed if candidate.angle <= most_angle] for listed in lists]


class _Tried:
    """Candidates and their objectives, as many as may be asked for, and the simplest one within the slack."""

    def __init__(
        self, directions: Float64[np.ndarray, "k d_in"], objective: Objective, slack: float, most: int
    ) -> None:
        self.directions, self.objective, self.slack, self.most = directions, objective, slack, most
        self.asked: set[bytes] = set()
        self.found: list[tuple[Candidate, float]] = []
        self.least = self.first = float(objective(directions))
        if not math.isfinite(self.least):
            raise ValueError(f"simplest_groups: the objective of the directions is {self.least}.")

    @property
    def count(self) -> int:
        return len(self.found) + 1

    def ask(self, candidate: Candidate) -> None:
        if self.count >= self.most or candidate.key in self.asked:
            return
        rows = orthonormal_rows(candidate.rows.astype(np.float64))
        value = float(self.objective(self.directions @ rows.T @ rows))
        value = value if math.isfinite(value) else math.inf
        self.least = min(self.least, value)
        self.asked.add(candidate.key)
        self.found.append((candidate, value))

    @property
    def simplest(self) -> tuple[Candidate, float] | None:
        limit = self.least + self.slack * abs(self.least)  # a likelihood may be negative
        accepted = [(candidate, value) for candidate, value in self.found if value <= limit]
        return min(accepted, key=lambda pair: (pair[0].length, pair[0].angle), default=None)

    def minimum(self, basis: Float64[np.ndarray, "k d_in"], allowed: Rows) -> Float64[np.ndarray, "k d_in"] | None:
        """Where the objective would be least, were it a round bowl: a + b . X + c |X|^2, fitted to what was asked.

        X are the turns of the span away from `basis`, inside of what is allowed. None where too little was asked, or
        it bends the other way.
        """
        frame = orthonormal_rows(np.array(allowed, dtype=np.float64))
        normal = scipy.linalg.null_space(basis @ frame.T).T @ frame
        turns = [np.zeros(len(basis) * len(normal))]
        values = [self.first]
        for candidate, value in self.found:
            rows = candidate.rows.astype(np.float64)
            turns.append(np.linalg.solve(rows @ basis.T, rows @ normal.T).reshape(-1))
            values.append(value)
        points, heights = np.array(turns)[np.isfinite(values)], np.array(values)[np.isfinite(values)]
        system = np.column_stack([np.ones(len(points)), points, (points**2).sum(1)])
        if len(points) < system.shape[1]:
            return None
        fitted = np.linalg.lstsq(system, heights - self.first, rcond=None)[0]
        if fitted[-1] <= 0:
            return None
        return basis + (-fitted[1:-1] / (2 * fitted[-1])).reshape(len(basis), -1) @ normal


def _ask_likeliest(tried: _Tried, lists: Sequence[Sequence[Candidate]], most: int) -> None:
    """The first candidates of all lists in turn, until `most` evaluations are made."""
    for place in range(max(map(len, lists), default=0)):
        for listed in lists:
            if place < len(listed) and tried.count < most:
                tried.ask(listed[place])


def _ask_simpler(tried: _Tried, lists: Sequence[Sequence[Candidate]]) -> None:
    """Candidates that are simpler than the best that is accepted, nearest first."""
    every = {candidate.key: candidate for listed in lists for candidate in listed}
    for candidate in sorted(every.values(), key=lambda c: (c.angle, c.length)):
        best = tried.simplest
        if best is None or candidate.length < best[0].length:
            tried.ask(candidate)


def held(
    basis: Float64[np.ndarray, "k d_in"],
    pivots: Sequence[int],
    values: Float64[np.ndarray, "k k"] | None = None,
) -> Float64[np.ndarray, "k d_in"]:
    """The basis of the span with given values at the pivots: H V_P^-1 V; the echelon form for H = I.

    Raises:
        numpy.linalg.LinAlgError: the pivots do not determine the span.
    """
    head = np.eye(len(basis)) if values is None else values
    return head @ np.linalg.solve(basis[:, list(pivots)], basis)


def _pivots(basis: Float64[np.ndarray, "k d_in"]) -> tuple[int, ...]:
    """Columns that determine the span well, by pivoting of its QR factors."""
    order = scipy.linalg.qr(basis, mode="r", pivoting=True)[-1]
    return tuple(sorted(int(place) for place in order[: len(basis)]))


def _identity(size: int) -> Rows:
    return tuple(as_row(int(row == column) for column in range(size)) for row in range(size))


def exponent_rows(groups: Sequence[Mapping[str, int | Fraction]], columns: Sequence[str]) -> Rows:
    """Groups as `Discovery.groups` has them, column -> exponent, as rows over these columns.

    Raises:
        ValueError: a column that is none of them, or groups that are powers and products of each other.
    """
    known = set(columns)
    unknown = [name for group in groups for name in group if name not in known]
    if unknown:
        raise ValueError(f"groups: {unknown[0]!r} is none of the columns {', '.join(columns)}.")
    rows = tuple(as_row(group.get(name, 0) for name in columns) for group in groups)
    if rational_rank(rows) < len(rows):
        raise ValueError("groups: one of them is made of powers and products of the others.")
    return rows
