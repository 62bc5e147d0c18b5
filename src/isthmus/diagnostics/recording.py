"""Watches one evaluation of any module: every product with a weight matrix, and the activation that follows it.

Works on torch functions, not on module classes, so that functional code, attention and exported programs are seen too.
What is told: `listener`. Which activation follows: `lineage`. Lists of functions: `matrix_calls`.
"""

from collections.abc import Callable, Sequence

from torch import Tensor
from torch.overrides import TorchFunctionMode

from isthmus.diagnostics.attention import by_products
from isthmus.diagnostics.lineage import Derived, Lineage
from isthmus.diagnostics.listener import Listener, Reading
from isthmus.diagnostics.matrix_calls import SUMS, MatrixCall, function_name, matrix_call, overwritten, tensors_in
from isthmus.diagnostics.module_names import Names
from isthmus.diagnostics.recurrences import NAMES as RECURRENCES
from isthmus.diagnostics.recurrences import Recurrence, by_layers
from isthmus.errors import DataError

_LEAST_OF_RECURRENCE = 7  # arguments: input, states, weights, biases or not, layers, dropout, training, directions


class OtherCalls(DataError):
    """Some rows call other matrices than the first ones."""


class Recorder(TorchFunctionMode):
    """Tells a listener about every torch function that runs while it is active.

    Args:
        names: of the module that is evaluated.
        listener: hears what is seen.
        expected: names of the calls that there must be, in order; empty: any.
    """

    def __init__(self, names: Names, listener: Listener, expected: Sequence[str] = ()) -> None:
        super().__init__()
        self.names, self.listener, self._expected = names, listener, expected
        self._index, self._sums = 0, 0
        self._lineage = Lineage(names, listener)
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
            return self._got(func, args, kwargs)
        if name == "multi_head_attention_forward":
            return by_products(func, args, kwargs, (self._linear, self.listener.saw))
        if name in RECURRENCES and not kwargs and len(args) > _LEAST_OF_RECURRENCE:
            return by_layers(func, name, args, (self._linear, self.listener.saw, self._recurred))
        call = matrix_call(name, args, kwargs, self.names.is_parameter)
        if call is not None:
            return self._called(func, call, args, kwargs)
        return self._other(func, name, args, kwargs)

    def finish(self) -> None:
        """Close what is still open, at the end of the evaluation.

        Raises:
            OtherCalls: there were fewer calls than there must be.
        """
        if self._index < len(self._expected):
            self._refuse(f"did not call {self._expected[self._index]!r}")
        self._lineage.end()

    def _got(self, func: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        """A property; x.T and the like are functions of x."""
        out = func(*args, **kwargs)
        if isinstance(out, Tensor) and isinstance(args[0], Tensor) and out is not args[0]:
            self.listener.saw([args[0]], [out], None)
        return out

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
        name = self._name_of(call)
        other = self.listener.entering(call)
        if other is not None:
            args = tuple(other if a is call.x else a for a in args)
            kwargs = {key: other if a is call.x else a for key, a in kwargs.items()}
            call = MatrixCall(other, call.weight, call.bias, call.matrix, call.convolution)
        entering = [call.x, call.weight, *([] if call.bias is None else [call.bias])]
        if targets := overwritten("", args, kwargs):
            self._overwrite(targets, entering, None)
        out = func(*args, **kwargs)
        assert isinstance(out, Tensor)
        changed = self.listener.produced(out)
        out = out if changed is None else changed
        reading = Reading(self._index, name, call, call.x, out)
        self._index += 1
        self._lineage.begin(reading)
        self.listener.called(reading)
        self.listener.saw(entering, [out], reading)
        return out

    def _name_of(self, call: MatrixCall) -> str:
        """The name of the call that comes next.

        Raises:
            OtherCalls: another one must come.
        """
        name = self.names.of(call.weight)
        self._counts[name] = self._counts.get(name, 0) + 1
        name = name if self._counts[name] == 1 else f"{name}#{self._counts[name]}"
        if self._expected and [name] != [*self._expected[self._index : self._index + 1]]:
            self._refuse(f"called {name!r}")
        return name

    def _refuse(self, what: str) -> None:
        raise OtherCalls(
            f"diagnose(module, x): which layers of {type(self.names.module).__name__} run depends on the data: some "
            f"rows {what}, and the first rows did otherwise. Diagnose rows that take one way each on their own, or let "
            "the module call every layer for all rows (on none of them, where no row takes it)."
        )

    def _other(
        self, func: Callable[..., object], name: str, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> object:
        tensors = list(tensors_in([*args, *kwargs.values()]))
        targets = overwritten(name, args, kwargs)
        if name in SUMS and len(tensors) == 2 and tensors[0].shape == tensors[1].shape:
            changed = self.listener.summed(self._sums, (tensors[0], tensors[1]))
            self._sums += 1
            if changed is not None:
                if targets:  # the caller may drop what is returned and keep the tensor itself
                    changed = (tensors[0].copy_(changed[0]), changed[1])
                new = dict(zip(map(id, tensors), changed, strict=True))
                args = tuple(new.get(id(a), a) if isinstance(a, Tensor) else a for a in args)
        step = self._lineage.next_step(name, args, tensors)
        if targets:
            self._overwrite(targets, tensors, step)
        before = [_version(t) for t in tensors]
        out = func(*args, **kwargs)
        # functions of others write without a name that says so
        if hidden := [t for t, v in zip(tensors, before, strict=True) if not targets and _version(t) != v]:
            self._overwrite(hidden, tensors, None)
        if name == "embedding" and isinstance(out, Tensor):
            out = self.listener.embedded(out)
        outputs = list(tensors_in([out]))
        if step is not None and isinstance(out, Tensor):
            self._lineage.went_on(step, name, tensors[0], out)
        else:
            self._lineage.combined(tensors, outputs)
        self.listener.saw(tensors, outputs, None)
        return out

    def _overwrite(self, targets: Sequence[Tensor], inputs: Sequence[Tensor], step: Derived | None) -> None:
        self.listener.overwriting(targets, inputs)
        self._lineage.overwriting(targets, step)


def _version(tensor: Tensor) -> int:
    """How often it was written into; tensors of inference mode do not count that."""
    return 0 if tensor.is_inference() else tensor._version  # noqa: SLF001
