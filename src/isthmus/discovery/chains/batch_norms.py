"""Batch norms in eval mode are affine: folded into the layer before or behind them, exactly.

Layer norm and its relatives depend on the sample and stay where they are: `networks.stage_kinds`.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from isthmus.discovery.chains.weighted_layers import folded, is_unpadded, mixed_inputs, weighted
from isthmus.networks.stage_kinds import BATCH_NORMS, Stage, inner_chains, is_flatten, is_weighted, with_inner_chain

_LEFT = "normalisation by the statistics of each batch couples its samples"


def without_batch_norms(stages: Sequence[Stage]) -> tuple[list[Stage], list[str]]:
    """The steps with every batch norm next to a layer folded into it (*exact*), and the names of those folded.

    One that folds into neither neighbour (behind a ReLU, before a convolution that pads with zeros) stays, feature by
    feature; one through which nothing is moved (its features are tokens, it has a forward of its own) stays as it is;
    one that uses the statistics of the batch is marked with the reason. Those in chains inside of a step
    are folded within their chain.
    """
    kept = list(stages)
    names: list[str] = []
    for place, stage in enumerate(kept):
        for path, steps in inner_chains(stage).items():
            inner, found = without_batch_norms(steps)
            kept[place] = with_inner_chain(kept[place], path, inner)
            names += found
    for stage in stages:
        if not isinstance(stage.module, BATCH_NORMS):
            continue
        place = kept.index(stage)
        if not stage.reason and _fold(kept, place, stage.module):
            del kept[place]
            names.append(stage.name)
        else:
            kept[place] = Stage(stage.name, stage.module, stage.reason or ("" if _is_fixed(stage.module) else _LEFT))
    return kept, names


def _fold(stages: list[Stage], place: int, norm: nn.BatchNorm1d | nn.BatchNorm2d) -> bool:
    """Write the norm at `place` into a neighbour, in place; whether that could be done."""
    if not _is_fixed(norm):
        return False
    scale, shift = _affine(norm)
    if place and _has_outputs(stages[place - 1], len(scale)):
        before = stages[place - 1]
        stages[place - 1] = Stage(before.name, folded(weighted(before), scale, shift))
        return True
    behind = place + 1 + (place + 1 < len(stages) and is_flatten(stages[place + 1].module))
    if behind < len(stages) and is_weighted(stages[behind].module):
        layer = weighted(stages[behind])
        if is_unpadded(layer) or not bool(shift.any()):
            stages[behind] = Stage(stages[behind].name, mixed_inputs(layer, torch.diag(scale), shift))
            return True
    return False


def _is_fixed(norm: nn.BatchNorm1d | nn.BatchNorm2d) -> bool:
    """Whether it is one affine map of each feature."""
    return norm.running_mean is not None and norm.running_var is not None


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
