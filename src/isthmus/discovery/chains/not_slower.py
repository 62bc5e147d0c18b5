"""Which of the networks that were proved within a tolerance is not slower than the one that came, measured in turn.

What is proved: `proofs`. How passes are timed: `running_cost`. The public function: `compression`.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from torch import Tensor, nn

from isthmus.discovery.chains.compression_search import Change, parameters
from isthmus.discovery.chains.proofs import Proved
from isthmus.discovery.chains.running_cost import TimedPasses, num_parameters, race
from isthmus.discovery.chains.weighted_layers import numbers, remultiplied
from isthmus.networks import FullyConnected
from isthmus.networks.chain import as_module
from isthmus.networks.stage_kinds import Stage
from isthmus.networks.unfolded import refolded

REMULTIPLIED = "map in two factors written as one again: it is faster"


class Timed(NamedTuple):
    """What was proved, as a module that was measured beside the old one."""

    module: nn.Module
    proved: Proved
    race: TimedPasses


def not_slower(old: nn.Module, kept: Sequence[Proved], x: Tensor, *, allow_slower: bool) -> Timed | None:
    """The smallest network that is not measured to be slower; where the turns do not tell, by their median.

    Args:
        old: the module that came.
        kept: what was proved, one move more each time.
        x: samples of a pass.
        allow_slower: take the smallest however long it takes.
    """
    for form in _forms(old, kept):
        new = _module_of(form.stages, old)
        found = race(old, new, x)
        slower = found.times_as_fast[0] < 1 if found.is_slower is None else found.is_slower
        if allow_slower or not slower:
            return Timed(new, form, found)
    return None


def _forms(old: nn.Module, kept: Sequence[Proved]) -> Iterator[Proved]:
    """After all moves, half of them, ..: as it is, then with its maps in two factors as one."""
    number = len(kept)
    while number:
        form = kept[number - 1]
        yield form
        whole, joined = remultiplied(form.stages)
        if joined and parameters(whole) < num_parameters(old):
            saved = parameters(form.stages) - parameters(whole)
            back = Change(REMULTIPLIED, (joined[0], joined[-1]), saved, form.errors.relative_error)
            yield Proved(whole, (*form.changes, back), form.errors)
        number //= 2


def _module_of(stages: Sequence[Stage], old: nn.Module) -> nn.Module:
    new = refolded(as_module(stages))
    return _as_network(new, old) if isinstance(old, FullyConnected) else new


def _as_network(module: nn.Module, old: FullyConnected) -> FullyConnected:
    """A chain of linear layers and the activation of `old` as a network of ours."""
    parts = list(module.children())
    layers = [part for part in parts if isinstance(part, nn.Linear)]
    pairs = [numbers(layer) for layer in layers]
    biases = [b.to(layer.weight) for (_, b), layer in zip(pairs, layers, strict=True)]
    has_bias = old.has_bias or any("bias" in dict(layer.named_parameters()) for layer in layers)
    ends = [i for i, part in enumerate(parts) if isinstance(part, nn.Linear)]
    linear = [number for number, i in enumerate(ends[:-1], 1) if isinstance(parts[i + 1], nn.Linear)]
    network = old.rewritten([layer.weight for layer in layers], biases if has_bias else None, linear=linear)
    return network.eval().requires_grad_(False)
