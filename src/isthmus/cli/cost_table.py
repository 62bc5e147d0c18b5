"""The answer of `isthmus cost`: numbers of `theory` side by side, as a table or as JSON."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import Tensor

from isthmus.cli.terminal import labelled, terminal
from isthmus.errors import DataError
from isthmus.theory import diagonal_linear_cost, linear_cost, linear_cost_expansion, resnet_cost

_MOST_SHOWN = 6


@dataclass(frozen=True, slots=True)
class CostReading:
    """What a matrix costs.

    Attributes:
        kind: connected, diagonal, resnet1 or resnet2.
        depth: weight matrices, or residual blocks.
        residual_weight: lam of a resnet, else None.
        shape: of the matrix.
        rank: singular values (entries, when diagonal) that count.
        above_rounding: how many of them are not zero up to rounding.
        cost: least norm with which a network of this kind computes the matrix of that rank.
        cost_per_layer: divided by the depth.
        expansion: R0, R1, R2 of L R0 + R1 + R2 / L; None for a resnet.
        truncated: the value of that series, an estimate; None for a resnet.
        infinite_depth: the limit of the cost of a resnet; None for the others, whose cost per layer tends to R0.
        last_kept: the smallest value that counts, or None.
        dropped: the values that do not, largest first.
        cost_one_fewer: the cost without the smallest one, or None.
        cost_one_more: the cost with the largest dropped one, or None.
    """

    kind: str
    depth: int
    residual_weight: float | None
    shape: tuple[int, int]
    rank: int
    above_rounding: int
    cost: float
    cost_per_layer: float
    expansion: tuple[float, float, float] | None
    truncated: float | None
    infinite_depth: float | None
    last_kept: float | None
    dropped: tuple[float, ...]
    cost_one_fewer: float | None
    cost_one_more: float | None


def cost_reading(
    matrix: np.ndarray, *, name: str, depth: int, kind: str, residual_weight: float | None, rank: int | None
) -> CostReading:
    """The reading of one matrix.

    Raises:
        DataError: `rank` larger than the matrix, or a matrix that is not diagonal where it must be.
    """
    values, num = _values(torch.from_numpy(matrix), name, kind)
    if rank is not None and rank > len(values):
        raise DataError(f"--rank {rank}: {name} has {len(values)} singular values. Give at most {len(values)}.")
    above, num = num, num if rank is None else rank
    price = _price(kind, depth, residual_weight)
    expansion = truncated = limit = None
    if residual_weight is None:
        R0, R1, R2 = (float(term) for term in linear_cost_expansion(torch.diag(values), rank=num))
        expansion, truncated = (R0, R1, R2), depth * R0 + R1 + R2 / depth
    else:
        limit = _price(kind, None, residual_weight)(values[:num])
    cost = price(values[:num])
    return CostReading(
        kind=kind, depth=depth, residual_weight=residual_weight, shape=(matrix.shape[0], matrix.shape[1]), rank=num,
        above_rounding=min(num, above), cost=cost,
        cost_per_layer=cost / depth, expansion=expansion, truncated=truncated, infinite_depth=limit,
        last_kept=float(values[num - 1]) if num else None, dropped=tuple(values[num:].tolist()),
        cost_one_fewer=price(values[: num - 1]) if num else None,
        cost_one_more=price(values[: num + 1]) if num < len(values) else None,
    )  # fmt: skip


def facts_of(reading: CostReading) -> dict[str, object]:
    """The reading by the names of its numbers."""
    return asdict(reading)


def print_reading(reading: CostReading) -> None:
    """The reading as a small table on the terminal."""
    terminal().print(labelled(_lines(reading)))


def _lines(found: CostReading) -> list[tuple[str, str]]:
    what = "entries" if found.kind == "diagonal" else "singular values"
    network = f"{found.kind}, depth {found.depth}"
    extra = found.rank - found.above_rounding
    is_or_are = "is" if extra == 1 else "are"
    rounding = f"; of the {found.rank} {what} that were asked for {extra} {is_or_are} rounding" if extra else ""
    if found.residual_weight is not None:
        network += f", residual weight {found.residual_weight:g}"
    lines = [
        ("matrix", f"{found.shape[0]} x {found.shape[1]}, rank {found.above_rounding}{rounding}"),
        ("network", network),
        ("cost", f"{found.cost:.12g}"),
        ("cost / depth", f"{found.cost_per_layer:.12g}"),
    ]
    if found.expansion is not None and not all(map(math.isfinite, found.expansion)):
        lines.append(("L R0 + R1 + R2/L", f"none, as some of the {what} that count are 0"))
    elif found.expansion is not None:
        R0, R1, R2 = found.expansion
        lines.append(("R0, R1, R2", f"{R0:g}, {R1:.12g}, {R2:.12g}"))
        lines.append(("L R0 + R1 + R2/L", f"{found.truncated:.12g} (an estimate, good at large depth)"))
    if found.infinite_depth is not None:
        lines.append(("infinite depth", f"{found.infinite_depth:.12g}"))
    shown = ", ".join(f"{value:.3g}" for value in found.dropped[:_MOST_SHOWN])
    more = f" and {len(found.dropped) - _MOST_SHOWN} more" if len(found.dropped) > _MOST_SHOWN else ""
    lines.append(("dropped", f"{shown}{more}" if found.dropped else f"none of the {what}"))
    if found.cost_one_fewer is not None:
        lines.append(
            ("without the last", f"{found.cost_one_fewer:.12g} (the last of the {what} is {found.last_kept:.3g})")
        )
    if found.cost_one_more is not None:
        lines.append(
            ("with one more", f"{found.cost_one_more:.12g} (the next of the {what} is {found.dropped[0]:.3g})")
        )
    return lines


def _values(matrix: Tensor, name: str, kind: str) -> tuple[Tensor, int]:
    """Singular values, or sizes of the diagonal entries, falling; and how many of them are above rounding."""
    if kind != "diagonal":
        values = torch.linalg.svdvals(matrix)
        # the rule of `linear_cost`; strict: a zero matrix keeps none
        return values, int((values > max(matrix.shape) * torch.finfo(values.dtype).eps * values[0]).sum())
    if min(matrix.shape) == 1:
        entries = matrix.flatten()
    elif matrix.shape[0] == matrix.shape[1] and torch.equal(matrix, torch.diag(matrix.diagonal())):
        entries = matrix.diagonal()
    else:
        raise DataError(f"{name}: is not diagonal. Give one row, one column or a diagonal matrix, or another --kind.")
    values = entries.abs().sort(descending=True).values
    return values, int((values > 0).sum())


def _price(kind: str, depth: int | None, residual_weight: float | None) -> Callable[[Tensor], float]:
    """The cost of a list of values at a depth, None being infinite depth."""

    def price(values: Tensor) -> float:
        if residual_weight is not None:
            block_depth = 1 if kind == "resnet1" else 2
            return float(resnet_cost(values, residual_weight=residual_weight, depth=depth, block_depth=block_depth))
        assert depth is not None
        if kind == "diagonal":
            return float(diagonal_linear_cost(values, depth=depth))
        return float(linear_cost(torch.diag(values), depth=depth, rank=len(values)))

    return price
