"""Batch norms in eval mode are affine: folded into the layer before or behind them, exactly.

Layer norm and its relatives depend on the sample and stay where they are: `networks.stage_kinds`.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from isthmus.discovery.chains.weighted_layers import folded, mixed_inputs, weighted
from isthmus.networks.stage_kinds import BATCH_NORMS, Stage, branch_of, is_flatten, is_weighted, with_branch

_LEFT = "normalisation between the layers that folds into neither of them"


def without_batch_norms(stages: Sequence[Stage]) -> tuple[list[Stage], list[str]]:
    """The steps with every batch norm next to a layer folded into it (*exact*), and the names of those folded.

    One that folds into neither neighbour (a convolution behind it pads with zeros, or it uses the statistics of the
    batch) stays and is marked with the reason. Those in the branches of residual sums are folded within their branch.
    """
    kept = list(stages)
    names: list[str] = []
    for place, stage in enumerate(kept):
        if (steps := branch_of(stage)) is not None:
            inner, found = without_batch_norms(steps)
            kept[place] = with_branch(stage, inner)
            names += found
    for stage in stages:
        if not isinstance(stage.module, BATCH_NORMS):
            continue
        place = kept.index(stage)
        if _fold(kept, place, stage.module):
            del kept[place]
            names.append(stage.name)
        else:
            kept[place] = Stage(stage.name, stage.module, _LEFT)
    return kept, names


def _fold(stages: list[Stage], place: int, norm: nn.BatchNorm1d | nn.BatchNorm2d) -> bool:
    """Write the norm at `place` into a neighbour, in place; whether that could be done."""
    if norm.running_mean is None or norm.running_var is None:
        return False
    scale, shift = _affine(norm)
    if place and _has_outputs(stages[place - 1], len(scale)):
        before = stages[place - 1]
        stages[place - 1] = Stage(before.name, folded(weighted(before), scale, shift))
        return True
    behind = place + 1 + (place + 1 < len(stages) and is_flatten(stages[place + 1].module))
    if behind < len(stages) and is_weighted(stages[behind].module):
        layer = weighted(stages[behind])
        if isinstance(layer, nn.Linear) or not bool(shift.any()) or set(layer.padding) == {0}:
            stages[behind] = Stage(stages[behind].name, mixed_inputs(layer, torch.diag(scale), shift))
            return True
    return False


def _has_outputs(stage: Stage, count: int) -> bool:
    return is_weighted(stage.module) and len(weighted(stage).weight) == count


def _affine(norm: nn.BatchNorm1d | nn.BatchNorm2d) -> tuple[Tensor, Tensor]:
    """The scale and shift of a batch norm in eval mode."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    scale = (norm.running_var.double().cpu() + norm.eps).rsqrt()
    if norm.affine:
        scale = scale * norm.weight.detach().double().cpu()
    shift = -norm.running_mean.double().cpu() * scale
    return scale, shift + norm.bias.detach().double().cpu() if norm.affine else shift
