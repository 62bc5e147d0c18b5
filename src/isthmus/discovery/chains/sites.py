"""The places of a chain where something could be saved, and the reasons why others are left alone.

What can be saved there: `chains.compression_moves`. What a step is: `networks.stage_kinds`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from torch import nn

from isthmus.discovery.chains.weighted_layers import is_activation, weighted
from isthmus.networks.stage_kinds import (
    BATCH_NORMS,
    CHANNELWISE,
    ELEMENTWISE,
    Stage,
    inner_chains,
    is_convolution,
    is_flatten,
    is_weighted,
)


class SiteKind(Enum):
    """What is done at a site; the value is how the report says it."""

    PRUNE = "neurons dropped, the next layer refitted"
    NARROW = "linear map through its principal subspace"
    MERGE = "near-linear layer merged into the next"
    BEHIND = "convolution through the principal channels of what it gives"
    BEFORE = "convolution through the principal channels of what it takes"
    BY_AXIS = "convolution along one axis after the other"


_SPLITS = (SiteKind.BEHIND, SiteKind.BEFORE, SiteKind.BY_AXIS)


@dataclass(frozen=True, slots=True)
class Site:
    """Steps `first` .. `last` of a chain at which something could be saved; both have weights."""

    kind: SiteKind
    first: int
    last: int


@dataclass(frozen=True, slots=True, eq=False)
class MovePlan:
    """The ways of saving at a site.

    Attributes:
        sizes: numbers of neurons or coordinates that would save something, rising; empty where nothing would.
        build: a size -> the steps that replace those of the site.
    """

    sizes: Sequence[int]
    build: Callable[[int], list[Stage]]


def no_move() -> MovePlan:
    """Nothing that would save something."""
    return MovePlan((), lambda _: [])


def sites(stages: Sequence[Stage]) -> list[Site]:
    """Every place where something could be saved, from the input on."""
    found = [Site(SiteKind.NARROW, i, j) for i, j in _linear_runs(stages)]
    for i, j in _hidden_layers(stages):
        between = stages[i + 1 : j]
        if not between:
            continue
        found.append(Site(SiteKind.PRUNE, i, j))
        linear = all(isinstance(stages[l].module, nn.Linear) for l in (i, j))
        if linear and len(between) == 1 and is_activation(between[0]):
            found.append(Site(SiteKind.MERGE, i, j))
    convolutions = [i for i, stage in enumerate(stages) if is_weighted(stage.module) and is_convolution(stage.module)]
    return [*found, *(Site(kind, i, i) for i in convolutions for kind in _SPLITS)]


def refusals(stages: Sequence[Stage]) -> list[tuple[str, str]]:
    """(name, reason) of every step that nothing is moved through, and of layers whose neurons meet one.

    What is particular to one place stands in brackets at the end of its reason.
    """
    found = [(stage.name, stage.reason) for stage in stages if stage.reason]
    weights = [i for i, stage in enumerate(stages) if is_weighted(stage.module)]
    hidden = dict(_hidden_layers(stages))
    for i in weights:
        barrier = next((s for s in stages[i + 1 :] if s.reason or is_weighted(s.module)), None)
        if i not in hidden and barrier is not None:
            reason = f"what follows ({barrier.name!r})" if barrier.reason else "their shapes"
            found.append((stages[i].name, f"its neurons are fixed by {reason}"))
    return found + [entry for steps in branches(stages) for entry in refusals(steps)]


def branches(stages: Sequence[Stage]) -> list[list[Stage]]:
    """The chains inside of these steps: branches of residual sums, parts of modules that were opened."""
    return [steps for stage in stages for steps in inner_chains(stage).values()]


def has_sites(stages: Sequence[Stage]) -> bool:
    """Whether something could be saved anywhere, in branches too."""
    return bool(sites(stages)) or any(map(has_sites, branches(stages)))


def _linear_runs(stages: Sequence[Stage]) -> list[tuple[int, int]]:
    """(first, last) of every longest run of linear layers with nothing between them."""
    runs: list[tuple[int, int]] = []
    for i, stage in enumerate(stages):
        if not isinstance(stage.module, nn.Linear):
            continue
        if runs and runs[-1][1] == i - 1:
            runs[-1] = (runs[-1][0], i)
        else:
            runs.append((i, i))
    return runs


def _hidden_layers(stages: Sequence[Stage]) -> list[tuple[int, int]]:
    """(i, j): the features of layer i reach layer j one by one, through functions of single features."""
    found: list[tuple[int, int]] = []
    weights = [i for i, stage in enumerate(stages) if is_weighted(stage.module)]
    for i, j in zip(weights, weights[1:], strict=False):
        between = stages[i + 1 : j]
        from_images = is_convolution(stages[i].module)
        passes = [
            isinstance(s.module, (*ELEMENTWISE, *BATCH_NORMS))
            or (from_images and (isinstance(s.module, CHANNELWISE) or is_flatten(s.module)))
            for s in between
        ]
        if all(passes) and not any(s.reason for s in between) and _fits(stages, i, j):
            found.append((i, j))
    return found


def _fits(stages: Sequence[Stage], i: int, j: int) -> bool:
    """Whether the inputs of layer j are the outputs of layer i: one each, or all pixels of each channel."""
    first, last = weighted(stages[i]), weighted(stages[j])
    is_flat = any(is_flatten(s.module) for s in stages[i + 1 : j])
    width, taken = len(first.weight), int(last.weight.shape[1])
    if is_convolution(first):
        return taken % width == 0 if isinstance(last, nn.Linear) and is_flat else type(last) is type(first)
    return isinstance(last, nn.Linear) and taken == width
