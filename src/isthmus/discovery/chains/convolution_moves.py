"""A convolution as two that are cheaper together: through fewer channels behind or before it, or one axis at a time.

Neurons dropped and linear maps narrowed: `compression_moves`. All numbers are made in float64.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from isthmus.discovery.chains.row_factor import row_factor
from isthmus.discovery.chains.rows import row_batches
from isthmus.discovery.chains.sites import MovePlan, Site, no_move
from isthmus.discovery.chains.weighted_layers import (
    by_input,
    convolution,
    is_unpadded,
    mixed_inputs,
    numbers,
    pointwise,
    weighted,
)
from isthmus.networks.stage_kinds import Stage


def behind(site: Site, stages: Sequence[Stage], x: Tensor) -> MovePlan:
    """A convolution to k principal channels of what it gives, and a pointwise one from them.

    u = W * a:   u ~ mean + Q Q^T (u - mean),   Q the k principal axes over all pixels of the data
    """
    layer, name = weighted(stages[site.first]), stages[site.first].name
    weight, bias = numbers(layer)
    width, per_channel = len(weight), weight[0].numel()
    sizes = _cheaper(min(width, per_channel), per_channel + width, weight.numel())
    if not sizes:
        return no_move()
    factor = row_factor(row_batches(stages[: site.first + 1], x, width, channels_first=True))
    axes = torch.linalg.svd(factor.centred, full_matrices=False).Vh.T
    moved = factor.mean - bias

    def build(size: int) -> list[Stage]:
        q = axes[:, :size]
        inner = convolution(
            layer, torch.einsum("ok,o...->k...", q, weight), torch.zeros(size), axes=range(weight.ndim - 2)
        )
        outer = pointwise(layer, q, bias + moved - q @ (q.T @ moved))
        return [Stage(name, inner), Stage(name, outer)]

    return MovePlan([k for k in sizes if k <= axes.shape[1]], build)


def before(site: Site, stages: Sequence[Stage], x: Tensor) -> MovePlan:
    """A pointwise convolution to k channels, and the convolution from them.

    With G^2 = sum over outputs and kernel of W W^T:   G (a - mean) ~ V V^T G (a - mean),   V of the rows R G
    Behind zero padding a mean cannot be moved into the bias, and the fit goes through the origin.
    """
    layer, name = weighted(stages[site.first]), stages[site.first].name
    width, outputs = int(layer.weight.shape[1]), layer.weight[:, 0].numel()
    sizes = _cheaper(min(width, outputs), width + outputs, layer.weight.numel())
    if not sizes:
        return no_move()
    factor = row_factor(row_batches(stages[: site.first], x, width, channels_first=True))
    has_offset = is_unpadded(layer)
    mean = factor.mean if has_offset else torch.zeros_like(factor.mean)
    seen = by_input(layer, width).movedim(1, 0).flatten(1)
    root, inverse = _roots(seen @ seen.T)
    axes = torch.linalg.svd((factor.centred if has_offset else factor.raw) @ root, full_matrices=False).Vh

    def build(size: int) -> list[Stage]:
        down = axes[:size] @ root
        inner = pointwise(layer, down, -down @ mean)
        return [Stage(name, inner), Stage(name, mixed_inputs(layer, axes[:size] @ inverse, mean))]

    return MovePlan([k for k in sizes if k <= len(axes)], build)


def by_axis(site: Site, stages: Sequence[Stage], x: Tensor) -> MovePlan:
    """A convolution along one axis to k channels, and along the other from them, by the singular values of the kernel.

    W[o, i, y, x] ~ sum_k U[i y, k] S_k V[k, o x]
    """
    layer, name = weighted(stages[site.first]), stages[site.first].name
    del x  # the kernel alone says which k
    weight, bias = numbers(layer)
    if weight.ndim != 4 or 1 in weight.shape[2:]:
        return no_move()
    d_out, d_in, high, wide = weight.shape
    u, s, vh = torch.linalg.svd(weight.permute(1, 2, 0, 3).reshape(d_in * high, d_out * wide), full_matrices=False)
    root = s.sqrt()

    def build(size: int) -> list[Stage]:
        down = (u[:, :size] * root[:size]).reshape(d_in, high, 1, size).permute(3, 0, 1, 2)
        across = (root[:size, None] * vh[:size]).reshape(size, d_out, 1, wide).permute(1, 0, 2, 3)
        first = convolution(layer, down, torch.zeros(size, dtype=torch.float64), axes=(0,))
        return [Stage(name, first), Stage(name, convolution(layer, across, bias, axes=(1,)))]

    return MovePlan(_cheaper(len(s), d_in * high + d_out * wide, weight.numel()), build)


def _cheaper(most: int, each: int, present: int) -> Sequence[int]:
    """Numbers of channels up to `most` that take fewer weights, at `each` per channel, than there are."""
    return [k for k in range(1, most + 1) if k * each < present]


def _roots(gram: Tensor) -> tuple[Tensor, Tensor]:
    """The square root of a Gram matrix, and its inverse on what the matrix reaches."""
    values, vectors = torch.linalg.eigh(gram)
    values = torch.where(values > values[-1] * len(gram) * torch.finfo(gram.dtype).eps, values, 0.0)
    root = values.sqrt()
    inverse = torch.where(root > 0, 1 / torch.where(root > 0, root, 1.0), 0.0)
    return (vectors * root) @ vectors.T, (vectors * inverse) @ vectors.T
