"""Residual networks with depth-1 blocks that compute outer o inner through k coordinates (RES-14).

Depth-2 blocks (RES-13): `constructions.residual`. Their class: `networks.ResNet`. The bounds: `theory`.
"""

from itertools import accumulate
from math import expm1, log

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.constructions.composition import Box, non_negative_shift, shifted_pair
from isthmus.constructions.residual import (
    ResidualComposition,
    activated_layers,
    check_residual,
    growth_per_block,
    placed,
)
from isthmus.networks import FullyConnected, ResNet


def shallow_residual_composition(
    inner: FullyConnected,
    outer: FullyConnected,
    *,
    depth: int,
    residual_weight: float,
    embedding_scale: float | None = None,
    repeats: int | None = None,
    x: Float[Tensor, "n d_in"] | None = None,
    box: Box | None = None,
    shift: Float[Tensor, " inner"] | None = None,
) -> ResidualComposition:
    """The composition outer o inner as a ResNet with depth-1 blocks (*exact* where inner + shift >= 0).

        layer i in m blocks, each adding relu(V_i z / m + s a_i / m) to fresh coordinates S_i
        cost = s^2/2 (d_in + |V_u|^2) + lambda L ( sum |V_i|^2 / m + L' k ((1/s^2)^{1/L'} - 1)^2 )

    Depth-1 branches only add, so each layer gets coordinates of its own; L' blocks (tau^{1/L'} - 1) I_k stretch those
    of inner(x) by tau = 1/s^2 in between. Biases are free.

    Args:
        inner: a ReLU network.
        outer: a ReLU network with as many inputs as inner has outputs.
        depth: number of blocks L.
        residual_weight: lambda, in (0, 1).
        embedding_scale: s in (0, 1); sqrt(lambda) unless given.
        repeats: m, blocks per layer; the cheapest one unless given.
        x: samples as rows over which inner + shift must be non-negative; or
        box: bounds (lower, upper) of the inputs; or
        shift: the shift itself.

    Raises:
        ShapeError: networks that do not fit.
        ValueError: a leaky network, lambda or s outside (0, 1), a depth that leaves no scaling block, repeats < 1, or
            not exactly one of x, box and shift.

    Source: Boix-Adsera 2025, Theorem 3.3, with the factor 1/m of the biases that the paper forgets; RES-14.
    Test: RES-14.

    >>> double = isthmus.FullyConnected.from_layers([torch.eye(2), 2 * torch.eye(2)])
    >>> free = {"depth": 8, "residual_weight": 0.1, "shift": torch.zeros(2)}
    >>> made = constructions.shallow_residual_composition(double, double, **free)
    >>> made.network(torch.tensor([[1.0, 2.0]], dtype=torch.float64)).round(decimals=6).tolist()
    [[4.0, 8.0]]
    """
    call = "shallow_residual_composition"
    if repeats is not None and repeats < 1:
        raise ValueError(f"{call}(repeats={repeats}): needs repeats >= 1, blocks per layer; None finds the cheapest.")
    s = check_residual(call, inner, outer, residual_weight=residual_weight, embedding_scale=embedding_scale)
    shift = non_negative_shift(call, inner, x=x, box=box, shift=shift)
    first, second = shifted_pair(inner, outer, shift)
    before, after = activated_layers(inner, first), activated_layers(outer, second)
    last, last_bias = after[0].pop(), after[1].pop()
    written = [*before[0], *after[0]]
    squares, k = sum(float(v.square().sum()) for v in written), len(shift)
    m = _cheapest_repeats(depth, len(written), s=s, k=k, squares=squares) if repeats is None else repeats
    num_scaling = depth - m * len(written)
    growth = growth_per_block(call, s, depth=depth, num_scaling=num_scaling)
    d_in, d_out = inner.dimensions[0], len(last)
    starts = list(accumulate([d_in, *(len(v) for v in written)], initial=0))
    offsets = [*(s * a for a in before[1]), *(a / s for a in after[1])]
    blocks = _adding_blocks(written, offsets, starts, m)
    held, width = starts[len(before[0])], starts[-1]
    stretch = placed(growth * torch.eye(k, dtype=torch.float64), (width, width), at=(held, held))
    still = torch.zeros(width, dtype=torch.float64)
    blocks[m * len(before[0]) : m * len(before[0])] = [(stretch, still)] * num_scaling
    ends = s * torch.eye(width, d_in, dtype=torch.float64), placed(s * last, (d_out, width), at=(0, starts[-2]))
    weights, biases = zip((ends[0], still), *blocks, (ends[1], last_bias), strict=True)
    network = ResNet.from_layers(weights, biases, block_depth=1, residual_weight=residual_weight)
    scaling_cost = residual_weight * depth * num_scaling * k * growth**2
    ends_cost = s**2 / 2 * (d_in + float(last.square().sum()))
    cost = ends_cost + residual_weight * depth * squares / m + scaling_cost
    return ResidualComposition(network, k, shift, cost, scaling_cost, m)


def _adding_blocks(
    written: list[Tensor], offsets: list[Tensor], starts: list[int], repeats: int
) -> list[tuple[Tensor, Tensor]]:
    """(W, b) of each block: layer i adds relu(V_i z + a_i) / m to coordinates of its own, m times over."""
    width, blocks = starts[-1], list[tuple[Tensor, Tensor]]()
    for i, (v, a) in enumerate(zip(written, offsets, strict=True), 1):
        weight = placed(v / repeats, (width, width), at=(starts[i], starts[i - 1]))
        blocks += [(weight, placed(a[:, None] / repeats, (width, 1), at=(starts[i], 0))[:, 0])] * repeats
    return blocks


def _cheapest_repeats(depth: int, num_layers: int, *, s: float, k: int, squares: float) -> int:
    def cost(m: int) -> float:
        num_scaling = depth - m * num_layers
        return squares / m + num_scaling * k * expm1(-2 * log(s) / num_scaling) ** 2

    # a stretch per block beyond e^50 is never the cheapest and would overflow
    candidates = [m for m in range(1, (depth - 1) // num_layers + 1) if -2 * log(s) < 50 * (depth - m * num_layers)]
    return min(candidates, key=cost, default=1)
