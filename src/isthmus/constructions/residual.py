"""Residual networks that compute outer o inner through k coordinates at the cost of Theorem 3.3 (RES-13).

Depth-1 blocks (RES-14): `constructions.residual_shallow`. Their class: `networks.ResNet`. The bounds: `theory`.
"""

from dataclasses import dataclass
from math import expm1, inf, log

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.constructions.composition import Box, Layers, check_junction, non_negative_shift, shifted_pair
from isthmus.networks import FullyConnected, ResNet

Block = tuple[Tensor, Tensor, Tensor, Tensor]  # W_1, b_1, W_2, b_2


@dataclass(frozen=True, slots=True)
class ResidualComposition:
    """The composition outer o inner as a residual network, and what it costs.

    Attributes:
        network: the residual network; exact where inner + shift >= 0.
        inner_dimension: k, an *upper bound* on the bottleneck rank.
        shift: added to inner and taken back by outer.
        cost: the penalty by the formula of the construction (*exact*).
        scaling_cost: the part of it that k directions pay for being stretched; it dominates as lambda goes to 0.
        repeats: blocks that write each layer of inner and outer.

    >>> double = isthmus.FullyConnected.from_layers([torch.eye(2), 2 * torch.eye(2)])
    >>> made = constructions.residual_composition(double, double, depth=8, residual_weight=0.1, shift=torch.zeros(2))
    >>> made.inner_dimension
    2
    """

    network: ResNet
    inner_dimension: int
    shift: Tensor
    cost: float
    scaling_cost: float
    repeats: int


def residual_composition(
    inner: FullyConnected,
    outer: FullyConnected,
    *,
    depth: int,
    residual_weight: float,
    embedding_scale: float | None = None,
    x: Float[Tensor, "n d_in"] | None = None,
    box: Box | None = None,
    shift: Float[Tensor, " inner"] | None = None,
) -> ResidualComposition:
    """The composition outer o inner as a ResNet with depth-2 blocks (*exact* where inner + shift >= 0).

        embed s x  ->  s inner(x)  ->  tau s inner(x) = inner(x) / s  ->  outer(..) / s  ->  unembed,   tau = 1 / s^2
        cost = s^2/2 (d_in + d_out) + (lambda/2) sum |end blocks|^2 + lambda k L' ((1/s^2)^{1/L'} - 1)

    in L' scaling blocks sqrt(tau^{1/L'} - 1) I_k. Every ReLU layer of inner or outer takes one block, which writes the
    new state and cancels the old one: z + [V_2 | -I | I] relu([V_1; I; -I] z). Biases are free.

    Args:
        inner: a ReLU network.
        outer: a ReLU network with as many inputs as inner has outputs.
        depth: number of blocks L, more than the layers of inner and outer need.
        residual_weight: lambda, in (0, 1).
        embedding_scale: s in (0, 1); sqrt(lambda) as in the paper unless given. `best_embedding_scale` costs less.
        x: samples as rows over which inner + shift must be non-negative; or
        box: bounds (lower, upper) of the inputs; or
        shift: the shift itself.

    Raises:
        ShapeError: networks that do not fit.
        ValueError: a leaky network, lambda or s outside (0, 1), a depth that leaves no scaling block, or not exactly
            one of x, box and shift.

    Accuracy: each state has the rounding of the one that it cancels: inner values much smaller than the inputs, and
    outputs than inner values, lose digits, as they do not in `shallow_residual_composition`.
    Source: Boix-Adsera 2025, Theorem 3.3, with three misprints corrected (sqrt(tau^{1/L'} - 1), beta = sqrt(lambda),
    parenthesis of the cost). Test: RES-13.

    >>> double = isthmus.FullyConnected.from_layers([torch.eye(2), 2 * torch.eye(2)])
    >>> made = constructions.residual_composition(double, double, depth=8, residual_weight=0.1, shift=torch.zeros(2))
    >>> made.network(torch.tensor([[1.0, 2.0]], dtype=torch.float64)).round(decimals=6).tolist()
    [[4.0, 8.0]]
    """
    call = "residual_composition"
    s = check_residual(call, inner, outer, residual_weight=residual_weight, embedding_scale=embedding_scale)
    shift = non_negative_shift(call, inner, x=x, box=box, shift=shift)
    first, second = shifted_pair(inner, outer, shift)
    before, after = (
        _writing_blocks(activated_layers(inner, first), s),
        _writing_blocks(activated_layers(outer, second), 1 / s),
    )
    k, num_scaling = len(shift), depth - len(before) - len(after)
    growth = growth_per_block(call, s, depth=depth, num_scaling=num_scaling)
    stretch, still = growth**0.5 * torch.eye(k, dtype=torch.float64), torch.zeros(k, dtype=torch.float64)
    blocks = [*before, *[(stretch, still, stretch, still)] * num_scaling, *after]
    d_in, d_out = inner.dimensions[0], outer.dimensions[-1]
    network = _network_of_blocks(blocks, (d_in, d_out), s, residual_weight)
    ends = sum(float(b[0].square().sum() + b[2].square().sum()) for b in [*before, *after])
    scaling_cost = residual_weight * k * num_scaling * growth
    cost = s**2 / 2 * (d_in + d_out) + residual_weight / 2 * ends + scaling_cost
    return ResidualComposition(network, k, shift, cost, scaling_cost, repeats=1)


def best_embedding_scale(residual_weight: float, *, rank: int, d_in: int, d_out: int) -> float:
    """The s that minimises s^2/2 (d_in + d_out) + lambda k log(1/s^2): s^2 = 2 lambda k / (d_in + d_out), below 1.

    Raises:
        ValueError: lambda <= 0 or not finite, k < 1, or neither inputs nor outputs.

    Source: Boix-Adsera 2025, Theorem 3.3. Test: RES-13.

    >>> round(constructions.best_embedding_scale(0.5, rank=1, d_in=2, d_out=2), 3)
    0.5
    """
    if not 0 < residual_weight < inf or rank < 1 or d_in + d_out < 1:
        raise ValueError(
            f"best_embedding_scale(residual_weight={residual_weight}, rank={rank}, d_in={d_in}, d_out={d_out}): needs "
            "lambda > 0, rank >= 1 and a side that is not empty. At rank 0 no block is needed."
        )
    return min(2 * residual_weight * rank / (d_in + d_out), 0.99) ** 0.5


def _network_of_blocks(blocks: list[Block], ends: tuple[int, int], s: float, residual_weight: float) -> ResNet:
    d_in, d_out = ends
    width = max(d_in, d_out, *(max(b[0].shape[1], b[2].shape[0]) for b in blocks))
    inner_width = max(len(b[0]) for b in blocks)
    eye = torch.eye(width, dtype=torch.float64)
    weights, biases = [s * eye[:, :d_in]], [torch.zeros(width, dtype=torch.float64)]
    for inward, inward_bias, outward, outward_bias in blocks:
        weights += [padded(inward, inner_width, width), padded(outward, width, inner_width)]
        biases += [padded(inward_bias[:, None], inner_width, 1)[:, 0], padded(outward_bias[:, None], width, 1)[:, 0]]
    weights.append(s * eye[:d_out])
    biases.append(torch.zeros(d_out, dtype=torch.float64))
    return ResNet.from_layers(weights, biases, block_depth=2, residual_weight=residual_weight)


def _writing_blocks(layers: Layers, scale: float) -> list[Block]:
    """(W_1, b_1, W_2, b_2) per ReLU layer: z -> the next state, for a state `scale` times that of the network."""
    weights, biases = layers
    if len(weights) == 1:  # an affine map through t = relu(t) - relu(-t)
        size = weights[0].shape[1]
        doubled = torch.cat([torch.eye(size), -torch.eye(size)]).double()
        weights, biases = [doubled, weights[0] @ doubled.T], [torch.zeros(2 * size).double(), biases[0]]
    blocks: list[Block] = []
    for i, (v, a) in enumerate(zip(weights[:-1], biases[:-1], strict=True)):
        ends = i == len(weights) - 2
        out = weights[-1] if ends else torch.eye(len(v), dtype=torch.float64)
        out_bias = biases[-1] if ends else torch.zeros(len(v), dtype=torch.float64)
        held, eye = v.shape[1], torch.eye(v.shape[1], dtype=torch.float64)
        rows = max(held, len(out))
        inward = torch.cat([v, eye, -eye])
        outward = torch.cat([padded(out, rows, len(v)), padded(-eye, rows, held), padded(eye, rows, held)], 1)
        inward_bias = torch.cat([scale * a, torch.zeros(2 * held, dtype=torch.float64)])
        blocks.append((inward, inward_bias, outward, padded(scale * out_bias[:, None], rows, 1)[:, 0]))
    return blocks


def activated_layers(network: FullyConnected, layers: Layers) -> Layers:
    """The layers with each linear hidden layer multiplied into the next one."""
    weights, biases = [layers[0][0]], [layers[1][0]]
    for l, (w, b) in enumerate(zip(layers[0][1:], layers[1][1:], strict=True), 1):
        if network.is_activated(l):
            weights.append(w)
            biases.append(b)
        else:
            weights[-1], biases[-1] = w @ weights[-1], w @ biases[-1] + b
    return weights, biases


def growth_per_block(call: str, s: float, *, depth: int, num_scaling: int) -> float:
    """The factor tau^{1/L'} - 1 of a scaling block, with tau = 1/s^2."""
    if num_scaling < 1:
        raise ValueError(
            f"{call}(depth={depth}): needs more than {depth - num_scaling} blocks, which inner and outer take alone."
        )
    return expm1(-2 * log(s) / num_scaling)


def placed(block: Tensor, shape: tuple[int, int], *, at: tuple[int, int]) -> Tensor:
    """Zeros of a shape with the block at a row and column."""
    placed = torch.zeros(shape, dtype=torch.float64)
    row, column = at
    placed[row : row + block.shape[0], column : column + block.shape[1]] = block
    return placed


def padded(block: Tensor, rows: int, columns: int) -> Tensor:
    """The block in the upper left corner of zeros of shape (rows, columns)."""
    return placed(block, (rows, columns), at=(0, 0))


def check_residual(
    call: str, inner: FullyConnected, outer: FullyConnected, *, residual_weight: float, embedding_scale: float | None
) -> float:
    """The embedding scale, after checking everything that does not depend on the depth."""
    check_junction(call, inner, outer)
    if inner.negative_slope or outer.negative_slope:
        raise ValueError(f"{call}: needs ReLU networks; got slopes {inner.negative_slope} and {outer.negative_slope}.")
    if not 0 < residual_weight < 1:
        raise ValueError(
            f"{call}(residual_weight={residual_weight}): needs 0 < lambda < 1; from 1 on nothing is gained by blocks."
        )
    s = residual_weight**0.5 if embedding_scale is None else embedding_scale
    if not 0 < s < 1:
        raise ValueError(f"{call}(embedding_scale={s}): needs 0 < s < 1, so that the scaling blocks stretch by 1/s^2.")
    return s
