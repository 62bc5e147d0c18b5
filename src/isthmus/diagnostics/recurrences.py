"""`nn.LSTM`, `nn.GRU` and `nn.RNN` taken apart, so that their input matrices are seen as layers, and hidden states too.

Their own code multiplies inside one function. Here the input is projected first, the same function then runs with
identity matrices in place of its input matrices, layer by layer: the same numbers. Attention likewise: `attention`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor
from torch.nn import functional

from isthmus.diagnostics.attention import Linear, Saw

NAMES = frozenset({"lstm", "gru", "rnn_tanh", "rnn_relu"})


@dataclass(frozen=True, slots=True, eq=False)
class Recurrence:
    """What one layer of a recurrence did in one direction of time.

    Attributes:
        states: the hidden states, (samples, steps, width), or (steps of all samples, width).
        hidden: the matrix that takes states back, (gates * width, size of a state).
        gates: how many parts its matrices have: 4 of an LSTM, 3 of a GRU, else 1.
    """

    states: Tensor
    hidden: Tensor
    gates: int


Heard = tuple[Linear, Saw, Callable[[Sequence[Recurrence], int], None]]


@dataclass(frozen=True, slots=True)
class _Call:
    """The arguments of a recurrence by what they are."""

    x: Tensor
    between: tuple[object, ...]  # sizes of batches, where sequences are packed
    first: tuple[Tensor, ...]  # hidden states, and cells of an LSTM
    weights: list[Tensor]
    has_biases: bool
    layers: int
    is_training: bool
    is_bidirectional: bool
    last: tuple[object, ...]  # whether samples come first, unless packed

    @classmethod
    def of(cls, args: Sequence[object]) -> "_Call":
        place = 2 if isinstance(args[3], bool) else 3
        x, first, weights = args[0], args[place - 1], args[place]
        assert isinstance(x, Tensor)
        states = (first,) if isinstance(first, Tensor) else tuple(cast(Sequence[Tensor], first))
        has_biases, layers, _, training, both = args[place + 1 : place + 6]
        return cls(
            x, tuple(args[1 : place - 1]), states, [*cast(Sequence[Tensor], weights)], bool(has_biases),
            int(str(layers)), bool(training), bool(both), tuple(args[place + 6 :]),
        )  # fmt: skip

    @property
    def directions(self) -> int:
        return 2 if self.is_bidirectional else 1

    def weights_of(self, layer: int) -> list[list[Tensor]]:
        """By direction: input and hidden matrix, their biases, the projection of the states, as far as there."""
        each = len(self.weights) // (self.layers * self.directions)
        parts = [self.weights[i : i + each] for i in range(0, len(self.weights), each)]
        return parts[layer * self.directions : (layer + 1) * self.directions]


def by_layers(func: Callable[..., object], name: str, args: Sequence[object], heard: Heard) -> object:
    """A recurrence with every product by an input matrix handed on, and its hidden states told of.

    Args:
        func: the function itself.
        name: of the function.
        args: its arguments.
        heard: linear, called as linear(functional.linear, (x, weight, bias)), what hears of the steps between, and what
            hears of the layer's directions, and of how many gates were computed inside.

    Returns:
        What the function returns; dropout between the layers left out.
    """
    call = _Call.of(args)
    x, ends = call.x, list[tuple[Tensor, ...]]()
    for layer in range(call.layers):
        own = slice(layer * call.directions, (layer + 1) * call.directions)
        x, *end = _layer(func, name, call, (x, tuple(state[own] for state in call.first), layer), heard)
        ends.append(tuple(end))
    return (x, *(torch.cat(parts) for parts in zip(*ends, strict=True)))


def _layer(
    func: Callable[..., object], name: str, call: _Call, at: tuple[Tensor, tuple[Tensor, ...], int], heard: Heard
) -> tuple[Tensor, ...]:
    (x, first, layer), (linear, saw, recurred) = at, heard
    weights = call.weights_of(layer)
    projected = [linear(functional.linear, (x, own[0], own[2] if call.has_biases else None)) for own in weights]
    flat = [t for i, own in enumerate(weights) for t in _without_input(own, i, len(weights), call.has_biases)]
    z = projected[0] if len(projected) == 1 else torch.cat(projected, -1)
    state = first if name == "lstm" else first[0]
    out = func(
        z, *call.between, state, flat, call.has_biases, 1, 0.0, call.is_training, call.is_bidirectional, *call.last
    )
    assert isinstance(out, tuple)
    found = cast(tuple[Tensor, ...], out)
    saw([*projected, *first], [*found], None)
    is_turned = found[0].ndim == 3 and call.last and not call.last[0]
    states = (found[0].transpose(0, 1) if is_turned else found[0]).chunk(len(weights), -1)
    parts = {"lstm": 4, "gru": 3}.get(name, 1)
    recurred([Recurrence(s, own[1], parts) for s, own in zip(states, weights, strict=True)], z.numel())
    return found


def _without_input(weights: Sequence[Tensor], place: int, directions: int, has_biases: bool) -> list[Tensor]:
    """The weights of one direction, which takes its own part of the projected inputs as it is."""
    size = len(weights[0])
    one = torch.zeros(size, directions * size, dtype=weights[0].dtype, device=weights[0].device)
    one[:, place * size : (place + 1) * size].fill_diagonal_(1)
    own = [one, *weights[1:]]
    if has_biases:
        own[2] = torch.zeros_like(own[2])
    return own
