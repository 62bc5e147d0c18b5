"""What the annotations of the public functions of this room promise, asked of every argument before any work.

Tensors: real, finite, dense, of the number of axes that is written, and of one size wherever one letter is written;
numbers: numbers that float64 holds. Applied by `bridge`, which made tensors of arrays and lists. What one function asks
for besides: its own file, by `inputs`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import torch
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.theory.inputs import check_tensor

LARGEST_INTEGER = 2**53  # the largest up to which float64 has them all
TOO_SHORT = (torch.float16, torch.bfloat16)  # torch has no singular values of them
Sizes = dict[str, tuple[int, str]]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a call: what it is called in messages, and the sizes that letters had in the arguments before.

    Attributes:
        call: name of the function.
        name: of the argument, with its place in a list.
        sizes: by letter, the size and the argument that set it.
        complaints: what is wrong with shapes, and NaN: not raised at once, for most functions say more of these.
    """

    call: str
    name: str
    sizes: Sizes = field(default_factory=dict[str, tuple[int, str]])
    complaints: list[Exception] = field(default_factory=list[Exception])

    def refuse(self, need: str, value: object) -> TypeError:
        """A refusal of the type of a value."""
        return TypeError(f"{self.call}: needs {self.name} as {need}; got {shown(value)}.")

    def at(self, place: int) -> "Argument":
        """An entry of a list."""
        return Argument(self.call, f"{self.name}[{place}]", self.sizes, self.complaints)

    def checked(self, value: Any, annotation: Any) -> Any:
        """The value, if it is what the annotation says."""
        kinds = members(annotation)
        if value is None and NoneType in kinds:
            return None
        tensors = [kind for kind in kinds if is_tensor(kind)]
        if tensors and (isinstance(value, Tensor) or not {float, int} & {*kinds}):
            return self._tensor(value, tensors)
        if {float, int, bool} & {*kinds}:
            return self._number(value, kinds)
        [kind] = [kind for kind in kinds if kind is not NoneType]
        origin = get_origin(kind)
        if origin in (Sequence, list) or kind is list:
            return self._list(value, get_args(kind)[0])
        if origin is tuple:
            return self._tuple(value, get_args(kind))
        if origin is Callable and not callable(value):
            raise self.refuse("a function", value)
        if isinstance(kind, type) and origin is None and not isinstance(value, kind):
            raise self.refuse(f"a {kind.__name__}", value)
        return value

    def _tensor(self, value: Any, kinds: list[Any]) -> Tensor:
        if isinstance(value, Tensor) and (value.layout is not torch.strided or value.is_meta or value.is_quantized):
            found = "one without data" if value.is_meta else f"{value.layout}"
            raise TypeError(
                f"{self.call}: needs {self.name} as a dense tensor; got {found}. Use {self.name}.to_dense()."
            )
        is_whole = isinstance(value, Tensor) and not value.dtype.is_floating_point and not value.dtype.is_complex
        if is_whole and any("int64" in getattr(kind, "dtypes", ()) for kind in kinds):
            return value
        words = [kind.dim_str.split() for kind in kinds if kind is not Tensor]
        if not words:
            return check_tensor(self.call, self.name, value)
        axes = words[0]
        is_open = any(axis.startswith(("*", "...")) for axis in axes)
        least = len(axes) - is_open
        value = check_tensor(self.call, self.name, value)
        try:
            check_tensor(self.call, self.name, value, least_ndim=least, ndim=None if is_open else least)
            self._bind(value, axes[-least:] if least else [], is_open=is_open)
        except ShapeError as error:
            self.complaints.append(error)
        return value

    def _bind(self, value: Tensor, axes: list[str], *, is_open: bool) -> None:
        """Hold the last sizes of a tensor to those that the same letters had."""
        for axis, size in zip(axes, value.shape[value.ndim - len(axes) :], strict=True):
            if axis == "_":
                continue
            known, where = (
                (int(axis), "its kind") if axis.isdecimal() else self.sizes.setdefault(axis, (size, self.name))
            )
            if size != known:
                shape = ", ".join((["..."] if is_open else []) + axes)
                raise ShapeError(
                    f"{self.call}: needs {self.name} of shape ({shape}) with {axis} = {known} as {where} has it; got "
                    f"{tuple(value.shape)}."
                )

    def _number(self, value: Any, kinds: Sequence[Any]) -> Any:
        """A number: an int for an int, an int or a float for a float, True and False for neither."""
        if isinstance(value, Tensor) and not value.ndim and value.layout is torch.strided and not value.is_meta:
            value = value.item()
        if bool in kinds:
            if not isinstance(value, bool):
                raise self.refuse("True or False", value)
            return value
        if isinstance(value, bool) or not isinstance(value, int | float if float in kinds else int):
            raise self.refuse("a real number" if float in kinds else "an int", value)
        if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
            raise ValueError(f"{self.call}: needs {self.name} of at most 2^53 in size; got {shown(value)}.")
        if value != value:
            self.complaints.append(ValueError(f"{self.call}: needs {self.name} as a finite number; got nan."))
        return value

    def _list(self, value: Any, kind: Any) -> list[Any]:
        entries = [*value] if isinstance(value, Tensor) and value.ndim and not value.is_meta else value
        if not isinstance(entries, list | tuple):
            raise self.refuse("a list", value)
        return [self.at(place).checked(entry, kind) for place, entry in enumerate(entries)]

    def _tuple(self, value: Any, kinds: tuple[Any, ...]) -> tuple[Any, ...]:
        entries = [*value] if isinstance(value, Tensor) and value.ndim and not value.is_meta else value
        if not isinstance(entries, list | tuple) or len(entries) != len(kinds):
            raise self.refuse(f"{len(kinds)} entries", value)
        return tuple(
            self.at(i).checked(entry, kind) for i, (entry, kind) in enumerate(zip(entries, kinds, strict=True))
        )


def checked(
    call: str, given: Mapping[str, Any], annotations: Mapping[str, Any], complaints: list[Exception]
) -> Mapping[str, Any]:
    """The arguments of a call, in one precision, if each is what its annotation says; shapes and NaN go to the list.

    Raises:
        TypeError: what is no number, tensor or list where one is needed.
        ValueError: tensors that are not finite, and whole numbers that float64 does not hold.
    """
    sizes: Sizes = {}
    found = {
        name: Argument(call, name, sizes, complaints).checked(value, annotations[name]) for name, value in given.items()
    }
    kinds = {tensor.dtype for tensor in _tensors(found) if tensor.dtype.is_floating_point}
    widest = torch.float32 if kinds & {*TOO_SHORT} else None
    for kind in kinds:
        widest = kind if widest is None else torch.promote_types(widest, kind)
    return found if len(kinds) == 1 and not kinds & {*TOO_SHORT} else {k: _in(v, widest) for k, v in found.items()}


def shown(value: object) -> str:
    """A value in few words: numbers as they are, tensors by their shape, lists by their length, else by type."""
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        return "a larger one"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__} of {len(value)} entries"  # pyright: ignore[reportUnknownArgumentType]
    return repr(value) if isinstance(value, int | float | complex | str | NoneType) else type(value).__name__


def members(annotation: Any) -> tuple[Any, ...]:
    """The kinds that an annotation leaves open: those of a union, or itself."""
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def is_tensor(kind: Any) -> bool:
    """Whether an annotation is that of a tensor, with a shape or without."""
    return kind is Tensor or hasattr(kind, "dim_str")


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    inner = [*value.values()] if isinstance(value, dict) else value if isinstance(value, list | tuple) else []
    return [tensor for entry in inner for tensor in _tensors(entry)]


def _in(value: Any, kind: torch.dtype | None) -> Any:
    """Tensors of floating-point numbers in one precision, in lists too."""
    if isinstance(value, list | tuple):
        return type(value)(_in(entry, kind) for entry in value)
    return value.to(kind) if isinstance(value, Tensor) and value.dtype.is_floating_point else value
