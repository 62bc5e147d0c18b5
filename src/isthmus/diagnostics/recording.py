"""Watches one evaluation of any module: every product with a weight matrix, and the activation that follows it.

Works on torch functions, not on module classes, so that functional code, attention and exported programs are seen too.
What a listener does with a reading: `layer_sums`, `derivatives`, `stream_costs`. Lists of functions: `matrix_calls`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from torch import Tensor
from torch.overrides import TorchFunctionMode

from isthmus.diagnostics.attention import by_products
from isthmus.diagnostics.matrix_calls import (
    ACTIVATIONS,
    ARITHMETIC,
    HOMOGENEOUS,
    NORMALISATIONS,
    REGROUPINGS,
    SUMS,
    MatrixCall,
    function_name,
    is_in_place,
    matrix_call,
)
from isthmus.diagnostics.module_names import Names
from isthmus.diagnostics.recurrences import NAMES as RECURRENCES
from isthmus.diagnostics.recurrences import Recurrence, by_layers

_LEAST_OF_RECURRENCE = 7  # arguments: input, states, weights, biases or not, layers, dropout, training, directions
OPEN = 4  # readings whose activation is still looked for: query, key and value, or a gate beside its value


@dataclass(slots=True, eq=False)
class Reading:
    """What one call of a weight matrix saw and did on a batch.

    Attributes:
        index: number of the call in this evaluation, from 0.
        name: where the weight sits in the module; "#2" for its second call, and so on.
        call: input, matrix, bias.
        enters: the tensor with respect to which Jacobians are taken: the input of the call.
        z: the output of the call.
        source: index of the reading whose activation enters here, None if something else does.
        twin: index of the first reading with the very same input, None if there is none.
        before: what the activation function was applied to: z, or z normalised.
        after: the last tensor that is a function of z alone, once an activation function was among these functions.
        functions: the activation functions in between.
        is_normalised: whether a normalisation stands between z and the activation function.
        is_consumed: whether another layer took a function of z, so that the activation is settled.
        is_told: whether the listener has heard that it is closed; later layers may still be linked to it.
        followed: the functions of z seen so far, kept alive.
        stream: what counts as the activation in place of `after`: the stream of a leaky network.
    """

    index: int
    name: str
    call: MatrixCall
    enters: Tensor
    z: Tensor
    source: int | None = None
    twin: int | None = None
    before: Tensor | None = None
    after: Tensor | None = None
    functions: list[str] = field(default_factory=list[str])
    is_normalised: bool = False
    is_consumed: bool = False
    is_told: bool = False
    followed: list[Tensor] = field(default_factory=list[Tensor])
    stream: Tensor | None = None

    @property
    def is_bent(self) -> bool:
        """Whether an activation function follows."""
        return bool(self.functions)

    @property
    def activation(self) -> Tensor:
        """A = sigma(z); z itself where no activation function follows."""
        if self.stream is not None:
            return self.stream
        return self.after if self.is_bent and self.after is not None else self.z

    @property
    def is_homogeneous(self) -> bool:
        """Whether scaling z by a positive number scales the activation by it."""
        return not self.functions or (not self.is_normalised and set(self.functions) <= HOMOGENEOUS)


class Listener:
    """Hears what a `Recorder` sees; every method does nothing unless overridden."""

    def entering(self, call: MatrixCall) -> Tensor | None:
        """Before a call: another tensor to use in place of its input, or None."""

    def produced(self, z: Tensor) -> Tensor | None:
        """After a call: another tensor to go on with in place of z, or None."""

    def called(self, reading: Reading) -> None:
        """Right after a call: its input and z are as they were, also where they are overwritten later."""

    def closed(self, reading: Reading) -> None:
        """When the activation of a reading is known."""

    def summed(self, ordinal: int, terms: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor] | None:
        """Before sum number `ordinal` of two tensors of one shape: other terms, or None."""

    def recurred(self, found: Mapping[int, Recurrence], hidden: int) -> None:
        """After a layer of a recurrence: its directions by the index of their readings, and how many gates it made."""

    def embedded(self, output: Tensor) -> Tensor:
        """After a lookup in a table: what to go on with."""
        return output

    def saw(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], reading: Reading | None) -> None:
        """After any function that returns tensors; `reading` if it was a call of a weight matrix."""


class Recorder(TorchFunctionMode):
    """Tells a listener about every torch function that runs while it is active."""

    def __init__(self, names: Names, listener: Listener) -> None:
        super().__init__()
        self.names, self.listener = names, listener
        self._index, self._sums = 0, 0
        self._open: list[Reading] = []
        self._pure: dict[int, Reading] = {}  # by id of a tensor that a reading keeps alive
        self._counts: dict[str, int] = {}

    def __torch_function__(  # noqa: D105
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        del types
        kwargs = kwargs or {}
        name = function_name(func)
        if name == "__get__":
            return func(*args, **kwargs)
        if name == "multi_head_attention_forward":
            return by_products(func, args, kwargs, (self._linear, self.listener.saw))
        if name in RECURRENCES and not kwargs and len(args) > _LEAST_OF_RECURRENCE:
            return by_layers(func, name, args, (self._linear, self.listener.saw, self._recurred))
        call = matrix_call(name, args, kwargs, self.names.is_parameter)
        if call is not None:
            return self._called(func, call, args, kwargs)
        return self._other(func, name, args, kwargs)

    def finish(self) -> None:
        """Close what is still open, at the end of the evaluation."""
        while self._open:
            self._close(self._open[0])

    def _linear(self, func: Callable[..., object], args: tuple[object, ...]) -> Tensor:
        call = matrix_call("linear", args, {}, self.names.is_parameter)
        assert call is not None
        out = self._called(func, call, args, {})
        assert isinstance(out, Tensor)
        return out

    def _recurred(self, found: Sequence[Recurrence], hidden: int) -> None:
        self.listener.recurred(dict(enumerate(found, self._index - len(found))), hidden)

    def _called(
        self, func: Callable[..., object], call: MatrixCall, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> object:
        other = self.listener.entering(call)
        if other is not None:
            args = tuple(other if a is call.x else a for a in args)
            call = MatrixCall(other, call.weight, call.bias, call.matrix, call.convolution)
        out = func(*args, **kwargs)
        assert isinstance(out, Tensor)
        changed = self.listener.produced(out)
        out = out if changed is None else changed
        name = self.names.of(call.weight)
        self._counts[name] = self._counts.get(name, 0) + 1
        name = name if self._counts[name] == 1 else f"{name}#{self._counts[name]}"
        reading = Reading(self._index, name, call, call.x, out)
        self._index += 1
        self._link(reading)
        if len(self._open) == OPEN:
            self._close(self._open[0])
        self._open.append(reading)
        self._follow(reading, out)
        self.listener.called(reading)
        self.listener.saw([call.x], [out], reading)
        return out

    def _link(self, reading: Reading) -> None:
        x = reading.call.x
        for other in self._open:
            if other.call.x is x and other.call.convolution == reading.call.convolution and reading.twin is None:
                reading.twin = other.index if other.twin is None else other.twin
        source = self._pure.get(id(x))
        if source is None:
            return
        source.is_consumed = True
        self._tell_settled()
        if x is source.activation or (not source.is_bent and not source.is_normalised):
            reading.source = source.index

    def _other(
        self, func: Callable[..., object], name: str, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> object:
        tensors = list(_tensors([*args, *kwargs.values()]))
        if name in SUMS and len(tensors) == 2 and tensors[0].shape == tensors[1].shape:
            changed = self.listener.summed(self._sums, (tensors[0], tensors[1]))
            self._sums += 1
            if changed is not None:
                if is_in_place(name, kwargs):  # the caller may drop what is returned and keep the tensor itself
                    changed = (tensors[0].copy_(changed[0]), changed[1])
                new = dict(zip(map(id, tensors), changed, strict=True))
                args = tuple(new.get(id(a), a) if isinstance(a, Tensor) else a for a in args)
        reading = self._continued(name, args, tensors)
        if is_in_place(name, kwargs) and tensors:
            self._save(tensors[0], keep=reading is not None)
        out = func(*args, **kwargs)
        if name == "embedding" and isinstance(out, Tensor):
            out = self.listener.embedded(out)
        if reading is not None and isinstance(out, Tensor):
            self._continue(reading, name, out)
        self.listener.saw(tensors, list(_tensors([out])), None)
        return out

    def _continued(self, name: str, args: tuple[object, ...], tensors: list[Tensor]) -> Reading | None:
        """The reading of which this function takes nothing but functions of z."""
        first = next((a for a in args if isinstance(a, Tensor)), None)
        reading = self._pure.get(id(first)) if first is not None else None
        if reading is None or reading.is_consumed:
            return None
        if name in ACTIVATIONS or (name in NORMALISATIONS and reading.after is None):
            return reading
        if name in REGROUPINGS or name in ARITHMETIC:
            return reading if all(self._pure.get(id(t)) is reading or t.numel() == 1 for t in tensors) else None
        return None

    def _continue(self, reading: Reading, name: str, out: Tensor) -> None:
        if out.numel() != reading.z.numel() or (
            out.shape != reading.z.shape
            and (reading.call.convolution is not None or out.shape[-1:] != reading.z.shape[-1:])
        ):
            return
        if name in NORMALISATIONS:
            reading.is_normalised, reading.before = True, out
        if name in ACTIVATIONS:
            reading.functions.append(name)
            self.names.note_activation(reading.name)
        if reading.functions:
            reading.after = out
        self._follow(reading, out)

    def _follow(self, reading: Reading, tensor: Tensor) -> None:
        reading.followed.append(tensor)
        self._pure[id(tensor)] = reading

    def _save(self, target: Tensor, *, keep: bool) -> None:
        """Before `target` is overwritten: copy what is still needed of it, or close its reading."""
        reading = self._pure.get(id(target))
        if reading is None:
            return
        if not keep:
            self._close(reading)
            return
        copy = target.detach().clone()
        reading.z = copy if reading.z is target else reading.z
        reading.before = copy if reading.before is target else reading.before

    def _close(self, reading: Reading) -> None:
        self._open.remove(reading)
        for tensor in reading.followed:
            if self._pure.get(id(tensor)) is reading:
                del self._pure[id(tensor)]
        self._tell(reading)
        reading.followed.clear()

    def _tell_settled(self) -> None:
        """Tell of what is settled, in order and at once: z and the activation are still in the caches."""
        for reading in self._open:
            if not reading.is_consumed:
                return
            self._tell(reading)

    def _tell(self, reading: Reading) -> None:
        if not reading.is_told:
            reading.is_told = True
            reading.before = reading.z if reading.before is None else reading.before
            self.listener.closed(reading)


def _tensors(values: Sequence[object] | Mapping[str, object]) -> Iterator[Tensor]:
    """All tensors among arguments, lists and tuples of them included."""
    for value in values.values() if isinstance(values, Mapping) else values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)
