"""A module that is no chain of steps, opened: parts of it that take and give one tensor become chains in their places.

So attention, gates and models of transformers are rewritten inside. Chains themselves: `networks.chain`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, fx, nn

from isthmus.networks.arguments import Answer
from isthmus.networks.chain import UnreadableModule, in_chains, linear_layer, read_chain, run
from isthmus.networks.copies import copied_module, on_copy, plain_copy
from isthmus.networks.layers import relative_error
from isthmus.networks.stage_kinds import (
    BATCH_NORMS,
    InnerChain,
    ResidualSum,
    Stage,
    Tied,
    inner_chains,
    is_weighted,
    with_part,
)
from isthmus.networks.unfolded import UnfoldedEncoderLayer

_PROBE = 8
_TIED = "its weights serve in other places too: made smaller in one, they would have to be kept twice"
# classes of transformers that compute what a layer of torch does
_GELUS = {"NewGELUActivation": "tanh", "GELUTanh": "tanh", "PytorchGELUTanh": "tanh", "GELUActivation": "none"}


@dataclass(slots=True)
class _Calls:
    """How often a part was called, and what entered when it took and gave one tensor."""

    count: int = 0
    x: Tensor | None = None


def chain_or_parts(module: nn.Module, x: Tensor) -> list[Stage]:
    """The steps of a module, opened; a single one, the module with chains inside, where that leaves more to rewrite.

    Args:
        module: as `read_chain` takes it, or one that cannot be read.
        x: samples.
    """
    try:
        chain = opened(_with_ties(read_chain(module, x)), x)
    except UnreadableModule as error:
        return whole(module, x, f"left as it is: {error}")
    if not any(stage.reason for stage in chain):
        return chain
    parts = whole(module, x, "its parts are looked at one by one")
    return parts if movable_parameters(parts) > movable_parameters(chain) else chain


def opened(stages: Sequence[Stage], x: Tensor) -> list[Stage]:
    """The steps, with chains inside of those through which nothing is moved, wherever a part of one can be read.

    Args:
        stages: of a chain; the modules of steps that are opened are copied.
        x: samples, a few of which are looked at.

    Returns:
        As many steps, which compute the same (checked on 8 samples); one that cannot be opened stays as it is.
    """
    with torch.no_grad():
        return _all_opened(stages, x[:_PROBE], _tied(stages))


def _all_opened(stages: Sequence[Stage], x: Tensor, tied: Mapping[int, Tensor]) -> list[Stage]:
    found: list[Stage] = []
    for stage in stages:
        here, is_closed = x, stage.reason and any(stage.module.children()) and not isinstance(stage.module, Tied)
        if isinstance(stage.module, ResidualSum):
            found.append(in_chains(stage, lambda steps, here=here: _all_opened(steps, here, tied)))
        else:
            found.append(_opened(stage, here, tied) if is_closed else stage)
        x = on_copy(stage.module, x)
    return found


def _tied(stages: Sequence[Stage]) -> dict[int, Tensor]:
    """The parameters by their ids that stand in several places of these steps."""
    held = [p for stage in stages for _, p in stage.module.named_parameters(remove_duplicate=False)]
    times = Counter(map(id, held))
    return {id(p): p for p in held if times[id(p)] > 1}


def _with_ties(stages: Sequence[Stage]) -> list[Stage]:
    """The steps, those marked whose weights serve in others too."""
    tied = _tied(stages)

    def marked(steps: Sequence[Stage]) -> list[Stage]:
        return [in_chains(step, marked) if inner_chains(step) else _marked(step, tied) for step in steps]

    return marked(stages)


def _marked(stage: Stage, tied: Mapping[int, Tensor]) -> Stage:
    if stage.reason or not any(id(p) in tied for p in stage.module.parameters()):
        return stage
    if is_weighted(stage.module):
        return Stage(stage.name, Tied(stage.module), _TIED)
    return Stage(stage.name, stage.module, _TIED if isinstance(stage.module, BATCH_NORMS) else "")


def whole(module: nn.Module, x: Tensor, reason: str) -> list[Stage]:
    """A module that cannot be read as one step that is opened; nothing inside of it where that cannot be either."""
    return opened([Stage("", Answer(plain_copy(module)), reason)], x)


def movable_parameters(stages: Sequence[Stage]) -> int:
    """Parameters of the layers that can be rewritten, in chains inside too."""
    own = sum(p.numel() for stage in stages if is_weighted(stage.module) for p in stage.module.parameters())
    return own + sum(movable_parameters(steps) for stage in stages for steps in inner_chains(stage).values())


def _opened(stage: Stage, x: Tensor, tied: Mapping[int, Tensor]) -> Stage:
    own = _translated(copied_module(stage.module, but=tied.values()))
    calls, start = _calls(own, x), "inner" if isinstance(own, Answer) else ""
    chains = _chains(own.get_submodule(start), start, calls, {*tied})
    if not chains:
        return stage
    outer = "" if isinstance(own, fx.GraphModule) else stage.name  # whose parts have their names from the whole
    named = {path: _named(steps, _joined(outer, path[len(start) :].strip("."))) for path, steps in chains}
    wanted = on_copy(stage.module, x)
    whole = probed = own
    for path, steps in named.items():
        whole, probed = with_part(whole, path, InnerChain(steps)), with_part(probed, path, _Unread(steps))
    if _computes(probed, x, wanted):
        return Stage(stage.name, whole, stage.reason)
    for path, steps in named.items():  # one of them is more to its owner than a function of one tensor
        if _computes(with_part(own, path, _Unread(steps)), x, wanted):
            own = with_part(own, path, InnerChain(steps))
    return Stage(stage.name, own, stage.reason)


class _Unread(InnerChain):
    """A chain off which the numbers of weights cannot be read, as their owner may: h @ self.layer.weight."""

    def __getattr__(self, name: str) -> Tensor | nn.Module:
        """NaN in the place of a tensor, of its type, device and shape."""
        found = super().__getattr__(name)
        return torch.full_like(found, torch.nan) if isinstance(found, Tensor) else found


def _computes(module: nn.Module, x: Tensor, wanted: Tensor) -> bool:
    """Whether a module with chains inside runs, and gives what it gave before."""
    try:
        found = on_copy(module, x)
    except Exception:  # noqa: BLE001 - whatever the module of a stranger does with a part that is another now
        return False
    return found.shape == wanted.shape and relative_error(found, wanted) <= torch.finfo(wanted.dtype).eps ** 0.5


def _named(steps: Sequence[Stage], prefix: str) -> list[Stage]:
    """The steps by their names in a larger module."""
    return [
        in_chains(Stage(_joined(prefix, step.name), step.module, step.reason), lambda inner: _named(inner, prefix))
        for step in steps
    ]


def _joined(*names: str) -> str:
    return ".".join(name for name in names if name)


def _calls(module: nn.Module, x: Tensor) -> dict[str, _Calls]:
    """What every part of a module was called with, in one evaluation."""
    found = {path: _Calls() for path, _ in module.named_modules(remove_duplicate=False)}

    def entered(path: str, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        x = args[0] if len(args) == 1 and not kwargs else None
        if isinstance(x, Tensor) and x.is_floating_point() and x.ndim > 1:
            found[path].x = x.clone()  # which may be overwritten in place

    def left(path: str, output: object) -> None:
        calls = found[path]
        calls.count, calls.x = calls.count + 1, calls.x if isinstance(output, Tensor) else None

    handles = [
        handle for path, part in module.named_modules(remove_duplicate=False) for handle in (
            part.register_forward_pre_hook(
                lambda _, args, kwargs, path=path: entered(path, args, kwargs), with_kwargs=True
            ),
            part.register_forward_hook(lambda _, _args, out, path=path: left(path, out)),
        )
    ]  # fmt: skip
    try:
        on_copy(module, x)
    finally:
        for handle in handles:
            handle.remove()
    return found


def _chains(module: nn.Module, path: str, calls: dict[str, _Calls], shared: set[int]) -> list[tuple[str, list[Stage]]]:
    """(path, steps) of the largest parts within `module` that can be read and hold something to rewrite."""
    found: list[tuple[str, list[Stage]]] = []
    for name, child in module.named_children():
        place = f"{path}.{name}" if path else name
        steps = _steps(child, calls[place], shared)
        found += [(place, steps)] if steps else _chains(child, place, calls, shared)
    return found


def _steps(part: nn.Module, calls: _Calls, shared: set[int]) -> list[Stage] | None:
    if calls.count != 1 or calls.x is None or any(id(p) in shared for p in part.parameters()):
        return None
    if is_weighted(part):
        return [Stage("", part)]
    try:
        steps = read_chain(part, calls.x, export=False)
        if sum(is_weighted(m) for m in part.modules()) > sum(is_weighted(s.module) for s in steps):
            steps = opened(steps, calls.x)
        return steps if movable_parameters(steps) and run(steps, calls.x).shape else None
    except UnreadableModule:
        return None


def _translated(module: nn.Module) -> nn.Module:
    """The module with layers of transformers as those of torch, and fused layers of torch written out."""
    for part in [*module.modules()]:
        for name, child in part.named_children():
            if (new := _translation(child)) is not None:
                setattr(part, name, new)
        if isinstance(part, nn.TransformerEncoder):
            part.use_nested_tensor = False
    new = _translation(module)
    return module if new is None else new


def _translation(child: nn.Module) -> nn.Module | None:
    kind = type(child).__name__
    if kind in _GELUS:
        return nn.GELU(_GELUS[kind])
    if kind == "Conv1D" and hasattr(child, "nf"):
        return linear_layer(child.get_parameter("weight").mT.contiguous(), child.get_parameter("bias"))
    if isinstance(child, nn.TransformerEncoderLayer) and UnfoldedEncoderLayer.unfolds(child):
        return UnfoldedEncoderLayer(child)
    return None
