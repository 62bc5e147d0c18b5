"""Layers of a chain with their weights mixed: fewer inputs, fewer outputs, or two of them for one.

Which mixing to choose from data: `compression_moves`. All numbers are made in float64 and stored in the layer's type.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from isthmus.networks.chain import linear_layer
from isthmus.networks.copies import copied_module
from isthmus.networks.stage_kinds import BATCH_NORMS, ELEMENTWISE, Stage, inner_chains, is_weighted, with_inner_chain

Weighted = nn.Linear | nn.Conv1d | nn.Conv2d


def weighted(stage: Stage) -> Weighted:
    """The layer of a step that has weights."""
    module = stage.module
    assert isinstance(module, Weighted)
    return module


def numbers(layer: Weighted) -> tuple[Tensor, Tensor]:
    """Weight and bias (zeros where there is none), float64, on the processor."""
    weight = layer.weight.detach().double().cpu()
    return weight, torch.zeros(len(weight), dtype=torch.float64) if layer.bias is None else layer.bias.double().cpu()


def with_numbers(layer: Weighted, weight: Tensor, bias: Tensor) -> Weighted:
    """The layer with other numbers, of any width; it keeps the bias that it has, and gets one where it needs one."""
    weight = weight.to(layer.weight).contiguous()
    own = bias.to(layer.weight) if layer.bias is not None or bool(bias.any()) else None
    if isinstance(layer, nn.Linear):
        return linear_layer(weight, own)
    new = copied_module(layer)
    new.out_channels, new.in_channels = int(weight.shape[0]), int(weight.shape[1])
    new.weight = nn.Parameter(weight, requires_grad=False)
    new.bias = None if own is None else nn.Parameter(own, requires_grad=False)
    return new


def convolution(layer: Weighted, weight: Tensor, bias: Tensor, *, axes: Collection[int] = ()) -> Weighted:
    """A convolution of these numbers in the type of another, with its steps and padding along some axes of pixels."""
    assert not isinstance(layer, nn.Linear)
    d_out, d_in, *kernel = weight.shape

    def along(values: Sequence[int], other: int) -> tuple[int, ...]:
        return tuple(values[i] if i in axes else other for i in range(len(kernel)))

    padding = layer.padding if isinstance(layer.padding, str) and axes else along(_sides(layer), 0)
    stride, dilation = along(layer.stride, 1), along(layer.dilation, 1)
    make: Callable[..., nn.Conv1d | nn.Conv2d] = partial(type(layer))
    new = make(d_in, d_out, tuple(kernel), stride=stride, padding=padding, dilation=dilation, device="meta")
    new.weight = nn.Parameter(weight.to(layer.weight).contiguous(), requires_grad=False)
    new.bias = nn.Parameter(bias.to(layer.weight), requires_grad=False) if bool(bias.any()) else None
    return new


def pointwise(layer: Weighted, matrix: Tensor, bias: Tensor) -> Weighted:
    """The map of these numbers behind or before a layer: linear, or a convolution of one pixel."""
    if isinstance(layer, nn.Linear):
        return linear_layer(matrix.to(layer.weight), bias.to(layer.weight))
    return convolution(layer, matrix.reshape(*matrix.shape, *[1] * len(layer.kernel_size)), bias)


def is_unpadded(layer: Weighted) -> bool:
    """Whether every output sees as many inputs, so that a constant input is a constant output."""
    return isinstance(layer, nn.Linear) or set(layer.padding) == {0}


def _sides(layer: nn.Conv1d | nn.Conv2d) -> tuple[int, ...]:
    return tuple(0 for _ in layer.kernel_size) if isinstance(layer.padding, str) else layer.padding


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


def kept_features(stage: Stage, keep: Tensor, width: int) -> Stage:
    """A step between two layers for some of its features only: a batch norm loses the others'.

    Args:
        stage: the step.
        keep: places of the neurons that stay.
        width: number of all; of a flattened image each has several features, its pixels, side by side.
    """
    norm = stage.module
    if not isinstance(norm, BATCH_NORMS):
        return stage
    pixels = norm.num_features // width
    keep = (keep[:, None] * pixels + torch.arange(pixels)).flatten()
    new = copied_module(norm)
    new.num_features = len(keep)
    for name, tensor in [*norm.named_parameters(recurse=False), *norm.named_buffers(recurse=False)]:
        if tensor.ndim:
            kept = tensor.detach()[keep.to(tensor.device)].clone()
            setattr(new, name, nn.Parameter(kept, requires_grad=False) if name in ("weight", "bias") else kept)
    return Stage(stage.name, new, stage.reason)


def remultiplied(stages: Sequence[Stage], apart: Collection[str] = ()) -> tuple[list[Stage], list[str]]:
    """The steps with layers that follow each other multiplied into one where they can be, and the names of those.

    Args:
        stages: the steps.
        apart: names of layers that stay apart from the one behind.
    """
    kept: list[Stage] = []
    names: list[str] = []
    for stage in stages:
        before = kept[-1] if kept else None
        if chains := inner_chains(stage):
            for path, steps in chains.items():
                inner, found = remultiplied(steps, apart)
                stage = with_inner_chain(stage, path, inner)  # noqa: PLW2901
                names += found
            kept.append(stage)
        elif before is not None and before.name not in apart and (whole := _product(before, stage)) is not None:
            kept[-1] = Stage(stage.name, whole)
            names += [before.name, stage.name]
        else:
            kept.append(stage)
    return kept, list(dict.fromkeys(names))


def _product(before: Stage, stage: Stage) -> Weighted | None:
    """Two layers as one: linear ones, or a convolution and one of a single pixel before or behind it; else None."""
    if not (is_weighted(before.module) and is_weighted(stage.module)):
        return None
    first, last = weighted(before), weighted(stage)
    (inner, inner_bias), (outer, outer_bias) = numbers(first), numbers(last)
    if isinstance(first, nn.Linear) and isinstance(last, nn.Linear):
        return with_numbers(last, outer @ inner, outer @ inner_bias + outer_bias)
    if isinstance(first, nn.Linear) or isinstance(last, nn.Linear) or type(first) is not type(last):
        return None
    if _is_pointwise(last):
        matrix = outer.flatten(1)
        return with_numbers(first, torch.einsum("ok,k...->o...", matrix, inner), matrix @ inner_bias + outer_bias)
    if _is_pointwise(first) and (is_unpadded(last) or not bool(inner_bias.any())):
        return mixed_inputs(last, inner.flatten(1).T, inner_bias)
    return None


def _is_pointwise(layer: Weighted) -> bool:
    return not isinstance(layer, nn.Linear) and all(
        size == 1 and step == 1 and side == 0
        for size, step, side in zip(layer.kernel_size, layer.stride, layer.padding, strict=True)
    )


def folded(first: Weighted, scale: Tensor, shift: Tensor) -> Weighted:
    """The layer with its outputs scaled and shifted (*exact*)."""
    weight, bias = numbers(first)
    by_row = scale.reshape(-1, *[1] * (weight.ndim - 1))
    return with_numbers(first, weight * by_row, bias * scale + shift)


def is_activation(stage: Stage) -> bool:
    """Whether a step is one function of each feature."""
    return isinstance(stage.module, ELEMENTWISE)
