"""Certified bounds on the rank of decoder o encoder, with the numbers that prove them.

Every claim made here has passed `isthmus.recheck`, which knows nothing of this file. The formulas: `theory`.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.linalg
import torch
from numpy.typing import NDArray
from torch import Tensor

from isthmus.discovery.data.problem import Problem
from isthmus.networks import FullyConnected, jacobians
from isthmus.recheck import check
from isthmus.tasks.arrays import counted
from isthmus.theory import RankEstimate

CERTIFIED = 1e-9  # relative size of a Jacobian singular value, in float64, that is beyond rounding
POINTS = 64  # rows at which Jacobians are taken
WITNESSES = 4  # rows that are tried before a smaller rank is claimed
Array = NDArray[np.float64]
Certificate = dict[str, object]


def certified_interval(halves: tuple[FullyConnected, FullyConnected], problem: Problem, rank: int) -> RankEstimate:
    """Bounds on the bottleneck rank of decoder o encoder, both in the user's units.

        lower: a minor of the Jacobian at one row that no rounding can make singular
        upper: the two halves themselves, which meet in `rank` coordinates

    Args:
        halves: encoder and decoder in the user's units.
        problem: the data; Jacobians are taken at up to 64 training rows, spread over them.
        rank: number of coordinates.

    Returns:
        The interval, with the certificates as plain numbers in its evidence; `isthmus verify` checks them.
    """
    encoder, decoder = halves
    chosen = torch.linspace(0, len(problem.x) - 1, min(POINTS, len(problem.x))).long()
    points = problem.inputs.restore(problem.x[chosen].double().numpy())
    found = _standardised(halves, torch.from_numpy(points), problem)
    s = torch.linalg.svdvals(torch.from_numpy(found)).numpy()
    networks = {"encoder": _written(encoder), "decoder": _written(decoder)}
    lower, best = _largest_minor(found, s, points, problem, networks)
    certificates: list[Certificate] = [{"kind": "factorisation", "claim": rank}]
    evidence: dict[str, object] = {"certificates": certificates}
    reason = "no minor of a Jacobian was proved regular" if rank else "a constant has rank 0"
    if lower is not None:
        certificates.append(lower)
        row = problem.rows[int(chosen[best])]
        reason = (
            f"a {lower['claim']} x {lower['claim']} minor of the Jacobian of decoder o encoder at row {row} is regular "
            f"beyond rounding (singular values from {s[best, 0]:.2g} to {s[best, int(str(lower['claim'])) - 1]:.2g})"
        )
        evidence |= {"witness_row": row, "witness": points[best].tolist(), "witness_singular_values": s[best].tolist()}
    return RankEstimate(
        estimate=rank,
        lower=0 if lower is None else int(str(lower["claim"])),
        upper=rank,
        lower_reason=reason,
        upper_reason=f"decoder o encoder is an explicit factorisation through {counted(rank, 'coordinate')}",
        tolerance=CERTIFIED,
        evidence=evidence,
    )


def _standardised(halves: tuple[FullyConnected, FullyConnected], points: Tensor, problem: Problem) -> Array:
    """Jacobians at the points with every column and row in standardised units; rows and columns that vary only."""
    encoder, decoder = halves
    with torch.no_grad():
        found = (jacobians(decoder, encoder(points)) @ jacobians(encoder, points)).numpy()
    found = found[:, :, problem.inputs.kept] * problem.inputs.scale
    if problem.targets is None:
        return found
    return found[:, problem.targets.kept, :] / problem.targets.scale[:, None]


def _largest_minor(
    found: Array, s: Array, points: Array, problem: Problem, networks: Mapping[str, object]
) -> tuple[Certificate | None, int]:
    """The largest regular minor that the independent check accepts, and the number of its point."""
    columns = problem.inputs.kept
    rows = np.arange(found.shape[1]) if problem.targets is None else problem.targets.kept
    numerical = int(((s > CERTIFIED * s[:, :1]) & (s > 0)).sum(1).max(initial=0))
    for k in range(numerical, 0, -1):
        # the points where the k-th direction is furthest from rounding first
        order = np.argsort(-s[:, k - 1] / np.where(s[:, 0] > 0, s[:, 0], 1.0))
        for i in order[:WITNESSES]:
            chosen_rows, chosen_columns = _pivots(found[i], k)
            witness: Certificate = {
                "kind": "jacobian_rank",
                "claim": k,
                "x": points[i].tolist(),
                "rows": rows[chosen_rows].tolist(),
                "columns": columns[chosen_columns].tolist(),
            }
            if check({**witness, **networks}).refusal is None:
                return witness, int(i)
    return None, 0


def _pivots(jacobian: Array, k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns of a well-conditioned k x k minor, by two pivoted QR factorisations."""
    columns = _pivot_order(jacobian)[:k]
    rows = _pivot_order(jacobian[:, columns].T)[:k]
    return np.sort(rows), np.sort(columns)


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
