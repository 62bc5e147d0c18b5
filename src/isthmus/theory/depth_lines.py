"""Ranks read off objectives over depth: each rank a line, the rank that is best at each depth, and where they switch.

Pure functions of numbers; how the objectives are computed is in `discovery.depth.path`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from isthmus.theory.depth_ranges import switch_depth

STRAIGHT_FROM = 4  # linear middle layers from which the objective of a rank is fitted by a line
CLEARLY = 1.05  # factor by which a rank that may not hold has to be lower than one that does


@dataclass(frozen=True, slots=True)
class DepthLine:
    """The objective of one rank as a line in the number of middle layers (*estimate*).

    Attributes:
        rank: which.
        slope: rise of the objective for each middle layer; NaN with fewer than two depths of this rank.
        constant: where the line meets depth 0.
    """

    rank: int
    slope: float
    constant: float


@dataclass(frozen=True, slots=True)
class DepthReading:
    """What the objectives say over the depth (*estimate*).

    Attributes:
        lines: one for each rank.
        winners: the rank of least objective at each depth, among those that hold; 0 where none is left.
        flat_rank: the winner at the least depth.
        deep_rank: the winner at the largest depth.
        switch: depth at which the lines of the flat and the deep rank cross; NaN where the two are the same or a line
            is missing.
    """

    lines: tuple[DepthLine, ...]
    winners: tuple[int, ...]
    flat_rank: int
    deep_rank: int
    switch: float


def depth_reading(
    depths: Sequence[int],
    objectives: Sequence[Sequence[float]],
    holds: Sequence[Sequence[bool]],
    unsure: Sequence[Sequence[bool]] | None = None,
    *,
    ridge: float,
) -> DepthReading:
    """The line of each rank and the rank that wins at each depth.

        min_W objective = min_k [ ridge k L + min over f of rank k of (data loss + ridge R1(f)) ]

    The inner minimum does not depend on the depth L, so each rank is a line of slope ridge * k, for depths at which
    R(f; L) = k L + R1(f) is accurate; lines are fitted by least squares from 4 middle layers on.

    Args:
        depths: numbers of middle layers, ascending.
        objectives: by rank (from 1), then depth; NaN where no network has that rank.
        holds: whether that network may win, in the same order.
        unsure: whether that is not certain: it wins over one that is certain by 5 % only; None: all are certain.
        ridge: coefficient of the penalty, > 0.

    Raises:
        ValueError: no depth or no rank, or tables of another size.

    Source: Jacot 2023b, section 3.1 (FC-31). Test: theory/test_depth_lines.
    """
    unsure = [[False] * len(row) for row in objectives] if unsure is None else unsure
    if not depths or not objectives or any(len(row) != len(depths) for row in (*objectives, *holds, *unsure)):
        raise ValueError(f"depth_reading: needs one objective for each rank at each of the depths {list(depths)}.")
    lines = tuple(_line(rank, depths, row) for rank, row in enumerate(objectives, 1))
    cautious = [
        [value * (CLEARLY if doubt else 1) for value, doubt in zip(*rows, strict=True)]
        for rows in zip(objectives, unsure, strict=True)
    ]
    winners = tuple(_winner([row[i] for row in cautious], [row[i] for row in holds]) for i in range(len(depths)))
    flat, deep = winners[0], winners[-1]
    return DepthReading(lines, winners, flat, deep, _crossing(lines, flat, deep, ridge))


def _line(rank: int, depths: Sequence[int], objectives: Sequence[float]) -> DepthLine:
    straight = [i for i, depth in enumerate(depths) if depth >= STRAIGHT_FROM and math.isfinite(objectives[i])]
    if len(straight) < 2:
        return DepthLine(rank, math.nan, math.nan)
    slope, constant = np.polyfit([depths[i] for i in straight], [objectives[i] for i in straight], 1)
    return DepthLine(rank, float(slope), float(constant))


def _winner(objectives: Sequence[float], holds: Sequence[bool]) -> int:
    able = [rank for rank, value in enumerate(objectives, 1) if holds[rank - 1] and math.isfinite(value)]
    return min(able, key=lambda rank: objectives[rank - 1], default=0)


def _crossing(lines: Sequence[DepthLine], flat: int, deep: int, ridge: float) -> float:
    """Where the lines of slope ridge * rank cross, through the fitted constants."""
    if not 0 < deep < flat:
        return math.nan
    constants = (lines[deep - 1].constant, lines[flat - 1].constant)
    if not all(map(math.isfinite, constants)):
        return math.nan
    return switch_depth(loss=constants, constant=(0.0, 0.0), rank=(deep, flat), ridge=ridge)
