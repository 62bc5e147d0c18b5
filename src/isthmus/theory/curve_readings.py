"""Ranks read off curves over the rank: the objective curve and the scree curve, each with its sharpness.

Pure functions of numbers; how the curves are computed is in `discovery.curves`, how readings combine in
`discovery.decision`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

OBJECTIVE_SLACK = 1.01  # a rank is enough if its objective is within 1 % of the one through all dimensions


@dataclass(frozen=True, slots=True)
class CurveReading:
    """A rank read off a curve (*estimate*).

    Attributes:
        rank: the reading.
        sharpness: how far the curve rises one rank below, as a difference of logarithms (objective curve), or the
            margin over the second candidate (scree curve); infinite where there is nothing below.
    """

    rank: int
    sharpness: float


def running_minimum(objectives: Sequence[float]) -> list[float]:
    """F(r) = min over r' <= r of f(r'): functions of rank at most r contain those of smaller rank."""
    out: list[float] = []
    for value in objectives:
        out.append(min(value, out[-1]) if out else value)
    return out


def objective_reading(objectives: Sequence[float], *, slack: float = OBJECTIVE_SLACK) -> CurveReading:
    """Least rank whose objective is within `slack` of the one through all dimensions.

        rank = least r with F(r) <= 1.01 F(K),   sharpness = log F(r - 1) / F(r)

    Args:
        objectives: f(0), f(1), ..., f(K) > 0: the least objective reached through exactly r dimensions; f(0) is that of
            the best constant.
        slack: factor allowed.

    Raises:
        ValueError: fewer than two values, or values that are not positive.
    """
    if len(objectives) < 2 or not all(v > 0 for v in objectives):
        raise ValueError(f"objective_reading: needs at least two positive objectives, got {list(objectives)}.")
    best = running_minimum(objectives)
    rank = next(r for r, value in enumerate(best) if value <= slack * best[-1])
    return CurveReading(rank, math.log(best[rank - 1] / best[rank]) if rank else math.inf)


def scree_reading(errors: Sequence[float], *, complete: bool = False) -> CurveReading:
    """The rank after which the error stops falling: largest logarithmic drop minus the next one.

        argmax_r [ log e(r-1)/e(r) - max(log e(r)/e(r+1), 0) ],   sharpness = this maximum minus the second largest

    Args:
        errors: e(0), e(1), ..., e(K) >= 0: relative errors through r dimensions; e(0) is that of the best constant.
        complete: no map needs more than K dimensions, so that the fall ends there; else r = K is no answer.

    Raises:
        ValueError: fewer than two values.
    """
    if len(errors) < 2:
        raise ValueError(f"scree_reading: needs at least two errors, got {list(errors)}.")
    logs = [math.log(max(e, 1e-300)) for e in errors]
    drops = [a - b for a, b in zip(logs[:-1], logs[1:], strict=True)]
    # a curve that was cut has nothing after its last drop, which cannot be called the end of the fall
    after = [*drops[1:], 0.0] if complete else drops[1:]
    bends = [drop - max(next_drop, 0.0) for drop, next_drop in zip(drops, after, strict=False)] or drops
    order = sorted(range(len(bends)), key=lambda i: -bends[i])
    margin = bends[order[0]] - bends[order[1]] if len(order) > 1 else bends[order[0]]
    return CurveReading(order[0] + 1, margin)
