"""Which of the networks that were proved within a tolerance is not slower than the one that came, measured in turn.

What is proved: `proofs`. How passes are timed: `running_cost`. The public function: `compression`.
"""

from collections.abc import Sequence
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

    @property
    def is_slower(self) -> bool:
        """Whether it was measured to be; where the turns do not tell, by their median."""
        return self.race.times_as_fast[0] < 1 if self.race.is_slower is None else self.race.is_slower


def not_slower(old: nn.Module, kept: Sequence[Proved], x: Tensor, *, allow_slower: bool) -> Timed | None:
    """The smallest network that is not measured to be slower; where the turns do not tell, by their median.

    Args:
        old: the module that came.
        kept: what was proved, one move more each time.
        x: samples of a pass.
        allow_slower: take the smallest however long it takes.
    """
    number = len(kept)
    while number:  # after all moves, half of them, ..
        form = kept[number - 1]
        found = _timed(old, form, x)
        if allow_slower or not found.is_slower:
            return found
        if (joined := _fewest_joined(old, form, x)) is not None:
            return joined
        number //= 2
    return None


def _fewest_joined(old: nn.Module, form: Proved, x: Tensor) -> Timed | None:
    """As few maps in two factors written as one again as make it no slower, those first that save least as two.

    By bisection, as if each of them made it faster. None where not even all do, as far as it stays smaller than `old`.
    """
    saved = {name: parameters(_joined(form, [name])) - parameters(form.stages) for name in _pairs(form)}
    order = sorted((name for name, saving in saved.items() if saving > 0), key=saved.__getitem__)
    while order and parameters(_joined(form, order)) >= num_parameters(old):
        order.pop()
    if not order or (best := _timed(old, _with_joined(form, order), x)).is_slower:
        return None
    few, enough = 0, len(order)
    while enough - few > 1:
        middle = (few + enough) // 2
        if (found := _timed(old, _with_joined(form, order[:middle]), x)).is_slower:
            few = middle
        else:
            best, enough = found, middle
    return best


def _pairs(form: Proved) -> list[str]:
    """Names of layers that could be one with the layer behind."""
    return remultiplied(form.stages)[1]


def _joined(form: Proved, names: Sequence[str]) -> list[Stage]:
    return remultiplied(form.stages, apart=[name for name in _pairs(form) if name not in names])[0]


def _with_joined(form: Proved, names: Sequence[str]) -> Proved:
    stages = _joined(form, names)
    saved = parameters(form.stages) - parameters(stages)
    back = Change(REMULTIPLIED, (names[0], names[-1]), saved, form.errors.relative_error)
    return Proved(stages, (*form.changes, back), form.errors)


def _timed(old: nn.Module, form: Proved, x: Tensor) -> Timed:
    new = _module_of(form.stages, old)
    return Timed(new, form, race(old, new, x))


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
