"""Certified bounds on the rank of decoder o encoder, with the numbers that prove them.

Every claim made here has passed `isthmus.recheck`, which knows nothing of this file. The formulas: `theory`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import torch
from numpy.typing import NDArray
from torch import Tensor

from isthmus.discovery.data.problem import Problem
from isthmus.discovery.evidence.beyond_jacobians import topological_certificates
from isthmus.discovery.factorisation import joined
from isthmus.discovery.halves import RANK, RankKind, Side
from isthmus.networks import FullyConnected, jacobians, reduced_jacobians
from isthmus.networks.jacobians import WIDE
from isthmus.recheck import check
from isthmus.tasks.arrays import counted
from isthmus.theory import RankEstimate
from isthmus.theory.spread_rows import spread_rows

CERTIFIED = 1e-9  # relative size of a Jacobian singular value, in float64, that is beyond rounding
POINTS = 64  # rows at which Jacobians are taken
WITNESSES = 4  # rows that are tried before a smaller rank is claimed
Array = NDArray[np.float64]
Certificate = dict[str, object]


def certified_interval(
    halves: tuple[FullyConnected, FullyConnected], problem: Problem, rank: int, *, kind: RankKind = RANK
) -> RankEstimate:
    """Bounds on the rank of decoder o encoder, both in the user's units.

        lower: a minor that no rounding can make singular: of the Jacobian at one row; for the index rank, of gradients
               at several rows; for the mode rank, of tangents at several rows
        upper: the two halves themselves, which meet in `rank` coordinates

    Args:
        halves: encoder and decoder in the user's units.
        problem: the data; Jacobians are taken at up to 64 training rows, spread over them.
        rank: number of coordinates.
        kind: which rank is bounded.

    Returns:
        The interval, with the certificates as plain numbers in its evidence; `isthmus verify` checks them.
    """
    encoder, decoder = halves
    chosen = spread_rows(len(problem.x), POINTS)
    points = problem.inputs.restore(problem.x[chosen].double().numpy())
    slopes = Slopes(
        *_standardised(halves, torch.from_numpy(points), problem),
        points,
        [problem.rows[int(i)] for i in chosen],
        np.arange(decoder.dimensions[-1]) if problem.outputs is None else problem.outputs.kept,
        problem.inputs.kept,
    )
    networks = {"encoder": _written(encoder), "decoder": _written(decoder)}
    proofs = {"index": slopes.gradients, "mode": slopes.tangents}.get(kind.name, slopes.at_points)(rank)
    lower = next((proof for proof in proofs if check({**proof.certificate, **networks}).refusal is None), None)
    if (proved := lower.claim if lower else 0) < rank and rank >= 2:
        others = topological_certificates(
            halves, points, slopes.numbers, rank=rank, above=proved, classes=problem.classes
        )
        better = (Proof(int(str(found["claim"])), found, text, {}) for found, text in others)
        lower = next((proof for proof in better if check({**proof.certificate, **networks}).refusal is None), lower)
    upper: Certificate = {"kind": "factorisation", "claim": rank}
    if linear := [half for half in ("encoder", "decoder") if getattr(kind, half) is Side.LINEAR]:
        upper["linear"] = linear
    return RankEstimate(
        estimate=rank,
        lower=lower.claim if lower else 0,
        upper=rank,
        lower_reason=lower.reason
        if lower
        else "no minor of a Jacobian was proved regular"
        if rank
        else "a constant has rank 0",
        upper_reason=f"decoder o encoder is an explicit factorisation through {counted(rank, 'coordinate')}",
        tolerance=CERTIFIED,
        evidence={"certificates": [upper, lower.certificate], **lower.evidence} if lower else {"certificates": [upper]},
    )


@dataclass(frozen=True, slots=True)
class Proof:
    """A lower bound with what proves it, in words and numbers."""

    claim: int
    certificate: Certificate
    reason: str
    evidence: Mapping[str, object]


@dataclass(frozen=True, slots=True, eq=False)
class Slopes:
    """Jacobians J = U M V^T (n, d_out, d_in) in standardised units, and where in the user's data their entries stand.

    Attributes:
        found: M, with the singular values of J, single and stacked.
        outputs: U with orthonormal columns; None for the identity.
        inputs: V, likewise.
        points: where, in the user's units (n, columns of x).
        numbers: of these rows in the user's data.
        rows: numbers of the outputs.
        columns: numbers of the inputs.
    """

    found: Array
    outputs: Array | None
    inputs: Array | None
    points: Array
    numbers: Sequence[int]
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]

    def at_points(self, rank: int) -> Iterator[Proof]:  # noqa: ARG002 - one row may show more
        """Minors of the Jacobian at one row, the largest first."""
        s = _spectra(self.found)
        for k in range(_numerical_rank(s), 0, -1):
            # the points where the k-th direction is furthest from rounding first
            order = np.argsort(-s[:, k - 1] / np.where(s[:, 0] > 0, s[:, 0], 1.0))
            for i in order[:WITNESSES]:
                columns = _pivot_order(self._columns(self.found[i]))[:k]
                rows = _pivot_order(self._rows(self._columns(self.found[i], columns)).T)[:k]
                rows, columns = np.sort(rows), np.sort(columns)
                where = {"x": self.points[i].tolist(), **self._entries(rows, columns)}
                text = f"of the Jacobian of decoder o encoder at row {self.numbers[i]}"
                evidence = {"witness_row": self.numbers[i], "witness": self.points[i].tolist()}
                yield _proof("jacobian_rank", k, where, s[i], text, evidence)

    def gradients(self, rank: int) -> Iterator[Proof]:
        """Minors of gradients at several rows."""
        stacked = self.found.reshape(-1, self.found.shape[2])
        s = _spectra(stacked)
        order = _pivot_order(self._columns(stacked if self.inputs is None else np.linalg.qr(stacked)[1]))
        for k in range(min(_numerical_rank(s), rank), 0, -1):
            minor = self._rows(self._columns(self.found, order[:k])).reshape(-1, k)
            rows, columns = np.sort(_pivot_order(minor.T)[:k]), np.sort(order[:k])
            at, outputs = np.divmod(rows, len(self.rows))
            where = {"points": self.points[at].tolist(), **self._entries(outputs, columns)}
            yield _proof("gradient_span", k, where, s, "of gradients of decoder o encoder", {})

    def tangents(self, rank: int) -> Iterator[Proof]:
        """Minors of columns of the Jacobians at several rows."""
        s = _spectra(_beside(self.found))
        beside = _beside(self._columns(self.found))
        order = _pivot_order(beside)
        for k in range(min(_numerical_rank(s), rank), 0, -1):
            rows, columns = np.sort(_pivot_order(self._rows(beside[:, order[:k]]).T)[:k]), np.sort(order[:k])
            at, inputs = np.divmod(columns, len(self.columns))
            where = {"points": self.points[at].tolist(), **self._entries(rows, inputs)}
            yield _proof("tangent_span", k, where, s, "of tangents of decoder o encoder", {})

    def _columns(self, matrices: Array, chosen: NDArray[np.int64] | slice = slice(None)) -> Array:
        """M V^T, some columns of it."""
        return matrices[..., chosen] if self.inputs is None else matrices @ self.inputs[chosen].T

    def _rows(self, matrices: Array) -> Array:
        """U M."""
        return matrices if self.outputs is None else self.outputs @ matrices

    def _entries(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Certificate:
        return {"rows": self.rows[rows].tolist(), "columns": self.columns[columns].tolist()}


def _proof(kind: str, k: int, where: Certificate, spectrum: Array, text: str, evidence: Mapping[str, object]) -> Proof:
    reason = (
        f"a {k} x {k} minor {text} is regular beyond rounding (singular values from {spectrum[0]:.3g} to "
        f"{spectrum[k - 1]:.3g})"
    )
    spread = {"witness_singular_values": spectrum.tolist()}
    return Proof(k, {"kind": kind, "claim": k, **where}, reason, {**evidence, **spread})


def _spectra(matrices: Array) -> Array:
    return torch.linalg.svdvals(torch.from_numpy(matrices)).numpy()


def _numerical_rank(s: Array) -> int:
    return int(((s > CERTIFIED * s[..., :1]) & (s > 0)).sum(-1).max(initial=0))


def _beside(matrices: Array) -> Array:
    """(n, p, q) as p rows."""
    return matrices.transpose(1, 0, 2).reshape(matrices.shape[1], -1)


def _standardised(
    halves: tuple[FullyConnected, FullyConnected], points: Tensor, problem: Problem
) -> tuple[Array, Array | None, Array | None]:
    """M, U, V of the Jacobians at the points in standardised units; rows and columns that vary only."""
    encoder, decoder = halves
    if not encoder.dimensions[-1]:  # a constant
        return np.zeros((1, 1, 1)), None, None
    outputs = problem.outputs
    with torch.no_grad():
        first = encoder.weights[0][:, problem.inputs.kept] * torch.from_numpy(problem.inputs.scale)
        last = decoder.weights[-1].detach()
        last = last if outputs is None else last[outputs.kept] / torch.from_numpy(outputs.scale)[:, None]
        if max(first.shape[1] / len(first), len(last) / last.shape[1]) >= WIDE:
            of = reduced_jacobians(joined(encoder, decoder), points, first=first, last=last)
            U, V = (None if matrix is None else matrix.numpy() for matrix in (of.outputs, of.inputs))
            return of.values.numpy(), U, V
        found = (jacobians(decoder, encoder(points)) @ jacobians(encoder, points)).numpy()
    found = found[:, :, problem.inputs.kept] * problem.inputs.scale
    return found if outputs is None else found[:, outputs.kept, :] / outputs.scale[:, None], None, None


def _pivot_order(matrix: Array) -> NDArray[np.int64]:
    found: Any = scipy.linalg.qr(matrix, mode="r", pivoting=True)  # its stubs know of no pivots
    return found[1].astype(np.int64)


def _written(network: FullyConnected) -> dict[str, object]:
    weights, biases = network.written_layers()
    return {
        "weights": [w.numpy() for w in weights],
        "biases": [np.zeros(len(w)) for w in weights] if biases is None else [b.numpy() for b in biases],
        "negative_slope": network.negative_slope,
        "linear": sorted(network.linear),
    }
