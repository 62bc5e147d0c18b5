"""Layers of a chain with their weights mixed: fewer inputs, fewer outputs, or two of them for one.

Which mixing to choose from data: `compression_moves`. All numbers are made in float64 and stored in the layer's type.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from isthmus.networks.chain import linear_layer
from isthmus.networks.export_noise import copied_module
from isthmus.networks.stage_kinds import ELEMENTWISE, Stage, branch_of, with_branch

Weighted = nn.Linear | nn.Conv2d


def weighted(stage: Stage) -> Weighted:
    """The layer of a step that has weights."""
    module = stage.module
    assert isinstance(module, nn.Linear | nn.Conv2d)
    return module


def numbers(layer: Weighted) -> tuple[Tensor, Tensor]:
    """Weight and bias (zeros where there is none), float64, on the processor."""
    weight = layer.weight.detach().double().cpu()
    return weight, torch.zeros(len(weight), dtype=torch.float64) if layer.bias is None else layer.bias.double().cpu()


def with_numbers(layer: Weighted, weight: Tensor, bias: Tensor) -> Weighted:
    """The layer with other numbers, of any width; it keeps the bias that it has, and gets one where it needs one."""
    weight = weight.to(layer.weight)
    own = bias.to(layer.weight) if layer.bias is not None or bool(bias.any()) else None
    if isinstance(layer, nn.Linear):
        return linear_layer(weight, own)
    new = copied_module(layer)
    new.out_channels, new.in_channels = int(weight.shape[0]), int(weight.shape[1])
    new.weight = nn.Parameter(weight, requires_grad=False)
    new.bias = None if own is None else nn.Parameter(own, requires_grad=False)
    return new


def by_input(layer: Weighted, channels: int) -> Tensor:
    """The weight as (d_out, channels, rest): of a flattened image the rest are pixels, of a convolution the kernel."""
    return numbers(layer)[0].reshape(len(layer.weight), channels, -1)


def kept_outputs(layer: Weighted, keep: Tensor) -> Weighted:
    """The layer with some of its outputs only."""
    weight, bias = numbers(layer)
    return with_numbers(layer, weight[keep], bias[keep])


def mixed_inputs(layer: Weighted, mixing: Tensor, offset: Tensor) -> Weighted:
    """The layer behind features that are made of fewer: a = mixing^T a' + offset, mixing (k, channels)."""
    weight = by_input(layer, mixing.shape[1])
    bias = numbers(layer)[1] + torch.einsum("ocr,c->o", weight, offset)
    mixed = torch.einsum("ocr,kc->okr", weight, mixing)
    shape = (len(mixed), -1) if isinstance(layer, nn.Linear) else (*mixed.shape[:2], *layer.weight.shape[2:])
    return with_numbers(layer, mixed.reshape(shape), bias)


def remultiplied(stages: Sequence[Stage]) -> tuple[list[Stage], list[str]]:
    """The steps with linear layers that follow each other multiplied into one, and the names of those that were."""
    kept: list[Stage] = []
    names: list[str] = []
    for stage in stages:
        before = kept[-1] if kept else None
        if (steps := branch_of(stage)) is not None:
            inner, found = remultiplied(steps)
            kept.append(with_branch(stage, inner))
            names += found
        elif before is not None and all(isinstance(s.module, nn.Linear) for s in (before, stage)):
            (inner, inner_bias), (outer, outer_bias) = numbers(weighted(before)), numbers(weighted(stage))
            whole = with_numbers(weighted(stage), outer @ inner, outer @ inner_bias + outer_bias)
            kept[-1] = Stage(stage.name, whole)
            names += [before.name, stage.name]
        else:
            kept.append(stage)
    return kept, list(dict.fromkeys(names))


def folded(first: Weighted, scale: Tensor, shift: Tensor) -> Weighted:
    """The layer with its outputs scaled and shifted (*exact*)."""
    weight, bias = numbers(first)
    by_row = scale.reshape(-1, *[1] * (weight.ndim - 1))
    return with_numbers(first, weight * by_row, bias * scale + shift)


def is_activation(stage: Stage) -> bool:
    """Whether a step is one function of each feature."""
    return isinstance(stage.module, ELEMENTWISE)
