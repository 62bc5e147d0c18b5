"""Any module of one tensor in and one out as a chain of steps, each a module of its own, that can be rewritten.

Rewriting the chain: `discovery.chains`. Reading activations only: `networks.layers`.
"""

import copy
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, fx, nn

from isthmus.networks.arguments import Answer
from isthmus.networks.copies import copied_module, on_copy, plain_copy
from isthmus.networks.departures import departure
from isthmus.networks.fully_connected import FullyConnected
from isthmus.networks.graph_stages import exported, graph_stages, overwrites, traced
from isthmus.networks.layers import relative_error
from isthmus.networks.stage_kinds import (
    BATCH_NORMS,
    NOTHING,
    ResidualSum,
    Stage,
    inner_chains,
    is_convolution,
    is_flatten,
    is_weighted,
    with_inner_chain,
)

_PROBE = 8
_ACROSS = "it normalises tokens or pixels one by one, not the features that the layers beside it multiply"


class UnreadableModule(ValueError):
    """A module that is no chain of steps: says why."""


def read_chain(module: nn.Module, x: Tensor, *, export: bool = True) -> list[Stage]:
    """The steps of a module, in eval mode: f = last o .. o first (*exact* on `x`, checked).

    Nested `Sequential` modules and submodules whose forward is a plain composition are opened; steps around which
    something is passed by (skip connections) or that couple features are one step each, with the reason; x + branch(x)
    is a `ResidualSum` with the steps of its branch. Dropout goes.

    Args:
        module: any module that takes one tensor and gives one; it is not changed, and nothing of it is shared.
        x: samples; a few of them are used to check the chain.
        export: whether what cannot be traced is exported, which takes seconds.

    Returns:
        One `Stage` per step, in the order in which they are called.

    Raises:
        UnreadableModule: the module can be neither traced nor exported, has several inputs or outputs, or its steps do
            not run, or do not compute what the module does.

    Accuracy: the same operations in the same order; checked on 8 samples to 1e-4 relative in float32.
    """
    try:
        own = plain_copy(module)
    except Exception as error:
        raise UnreadableModule(f"it cannot be copied ({type(error).__name__}: {_line(error)})") from error
    probe = x[:_PROBE]
    stages = _plain([Stage("", own)] if _is_ours(own) else _graph_steps(own, probe, export))
    with torch.no_grad():
        wanted, found = on_copy(own, probe), _answer(stages, probe)
        answers: list[object] = [wanted, found]
        if not all(isinstance(answer, Tensor) for answer in answers):
            raise UnreadableModule(f"it gives a {type(wanted).__name__}; a single tensor is needed")
        if not _is_same(found, wanted):
            why = _why_another(own, probe, wanted, export)
            raise UnreadableModule(f"its graph does not compute what it does: {why}")
        return _with_norms_across(stages, probe)


def run(stages: Sequence[Stage], x: Tensor) -> Tensor:
    """The output of steps one after the other; x stays as it is where one of them works in place."""
    x = x.clone() if stages else x
    for stage in stages:
        x = stage.module(x)
    return x


def _answer(stages: Sequence[Stage], x: Tensor) -> Tensor:
    """What steps that were read off a graph give, where they run at all."""
    try:
        return run(stages, x)
    except Exception as error:  # whatever a step of a stranger raises where something else enters
        raise UnreadableModule(f"its steps do not run one after the other ({_line(error)})") from error


def as_module(stages: Sequence[Stage]) -> nn.Module:
    """The steps as one `Sequential`, in eval mode, tied as they are; a module that was opened as a whole as itself."""
    if len(stages) == 1 and isinstance(stages[0].module, Answer):
        return copied_module(stages[0].module.inner).eval()
    return copied_module(nn.Sequential(*(stage.module for stage in stages))).eval()


def _is_same(found: Tensor, wanted: Tensor) -> bool:
    allowed = torch.finfo(wanted.dtype).eps ** 0.5 if wanted.is_floating_point() else 0.0
    return found.shape == wanted.shape and relative_error(found, wanted) <= allowed


def _why_another(module: nn.Module, x: Tensor, wanted: Tensor, export: bool) -> str:
    """Why steps compute something else than the module that they were read from."""
    if not _is_same(on_copy(module, x), wanted):
        return "it draws random numbers"
    graph = _graph(module, x, export)
    if not _is_same(on_copy(graph, x), wanted):
        return "the forward depends on the data"
    return "a step overwrites in place what others read" if overwrites(graph) else "a step takes more than its input"


def _graph_steps(module: nn.Module, x: Tensor, export: bool) -> list[Stage]:
    try:
        return graph_stages(_graph(module, x, export))
    except ValueError as error:
        raise UnreadableModule(str(error)) from error


def _graph(module: nn.Module, x: Tensor, export: bool) -> fx.GraphModule:
    try:
        return module if isinstance(module, fx.GraphModule) else traced(module)
    except Exception as first:  # the forward of a stranger raises what it likes
        if not export:
            raise UnreadableModule(f"it cannot be traced ({_line(first)})") from first
        try:
            return exported(module, x)
        except Exception as second:
            raise UnreadableModule(
                f"it can be neither traced ({_line(first)}) nor exported ({_line(second)})"
            ) from second


def _plain(stages: Sequence[Stage], known: dict[nn.Module, list[Stage]] | None = None) -> list[Stage]:
    """Networks of ours opened and steps that do nothing left out, in the branches of residual sums too.

    Args:
        stages: of a graph.
        known: the layers of networks that were opened before: one that is called twice has the same ones twice.
    """
    known = {} if known is None else known
    opened = [part for stage in stages for part in _opened(stage, known) if not isinstance(part.module, NOTHING)]
    return [in_chains(stage, lambda steps: _plain(steps, known)) for stage in _padded(opened)]


def in_chains(stage: Stage, change: Callable[[list[Stage]], Sequence[Stage]]) -> Stage:
    """A step with every chain inside of it changed."""
    for path, steps in inner_chains(stage).items():
        stage = with_inner_chain(stage, path, change(steps))
    return stage


def _with_norms_across(stages: Sequence[Stage], x: Tensor) -> list[Stage]:
    """The steps, those batch norms marked whose features, the second axis of what enters, are no others' features.

    Only numbers tell: a batch norm of 5 takes (n, 5) as well as 5 tokens of any number of features.

    Args:
        stages: of a chain.
        x: samples that enter it.
    """
    found: list[Stage] = []
    for place, stage in enumerate(stages):
        here, new = x, stage
        if isinstance(stage.module, ResidualSum):
            new = in_chains(stage, lambda steps, here=here: _with_norms_across(steps, here))
        elif isinstance(stage.module, BATCH_NORMS) and not stage.reason and here.ndim > 2 and _is_across(stages, place):
            new = Stage(stage.name, stage.module, f"{type(stage.module).__name__}: {_ACROSS}")
        found.append(new)
        x = on_copy(stage.module, x)
    return found


def _is_across(stages: Sequence[Stage], place: int) -> bool:
    """Whether a step that works along the second of several axes stands beside a layer that works along the last."""
    before = _next_weighted(stages[:place][::-1])
    if before and is_convolution(before[-1].module):
        if len(before) == 1:
            return False
        before = []
    behind = _next_weighted(stages[place + 1 :])
    is_apart = any(is_flatten(stage.module) for stage in behind)
    return bool(before) or (bool(behind) and not is_apart and isinstance(behind[-1].module, nn.Linear))


def _next_weighted(stages: Sequence[Stage]) -> list[Stage]:
    """The steps up to the first that has weights; none where nothing may be moved through one of them."""
    for number, stage in enumerate(stages):
        if stage.reason:
            return []
        if is_weighted(stage.module):
            return [*stages[: number + 1]]
    return []


def _padded(stages: Sequence[Stage]) -> list[Stage]:
    """Zeros written around an image before a convolution as its own padding, where both sides get as many."""
    found: list[Stage] = []
    for stage in stages:
        pad, layer = found[-1].module if found else None, stage.module
        if isinstance(pad, nn.ZeroPad1d | nn.ZeroPad2d) and is_weighted(layer) and is_convolution(layer):
            assert isinstance(layer, nn.Conv1d | nn.Conv2d)
            pairs = [*zip(pad.padding[::2], pad.padding[1::2], strict=True)][::-1]  # the last axis comes first
            if len(pairs) == len(layer.kernel_size) and all(a == b >= 0 for a, b in pairs) and layer.padding != "same":
                own = (0,) * len(pairs) if isinstance(layer.padding, str) else layer.padding
                layer = copy.copy(layer)  # which may stand elsewhere too; the weights are the same
                layer.padding = tuple(a + side for (a, _), side in zip(pairs, own, strict=True))
                found.pop()
        found.append(Stage(stage.name, layer, stage.reason))
    return found


def _is_ours(module: nn.Module) -> bool:
    return not departure(module, FullyConnected)


def _opened(stage: Stage, known: dict[nn.Module, list[Stage]]) -> list[Stage]:
    """The layers of a network of ours as steps of torch, those that are known where it is."""
    network = stage.module
    if not isinstance(network, FullyConnected) or not _is_ours(network):
        return [stage]
    if network in known:
        return known[network]
    steps: list[Stage] = []
    prefix = f"{stage.name}." if stage.name else ""
    for l, weight in enumerate(network.weights, 1):
        bias = network.bias_of(l)
        steps.append(
            Stage(f"{prefix}layer {l}", linear_layer(weight.detach(), None if bias is None else bias.detach()))
        )
        if network.is_activated(l):
            slope = network.negative_slope
            steps.append(Stage(f"{prefix}activation {l}", nn.LeakyReLU(slope) if slope else nn.ReLU()))
    known[network] = steps
    return steps


def linear_layer(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    """The linear layer of these numbers, which are copied; gradients are off."""
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, device="meta")
    layer.weight = nn.Parameter(_own(weight), requires_grad=False)
    if bias is not None:
        layer.bias = nn.Parameter(_own(bias), requires_grad=False)
    return layer


def _own(numbers: Tensor) -> Tensor:
    return numbers.detach().clone(memory_format=torch.contiguous_format)  # optimisers look at them as one row


def _line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:160]
