"""A device that is none: tensors "on" it compute on the CPU, and refuse the company of those that lie there, as a GPU.

    with PretendedDevice():
        network.to(AWAY)

It is called "meta", which every torch knows. What a GPU takes from the CPU, it takes: single numbers, `copy_`, indices.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map_only

AWAY = torch.device("meta")
aten = torch.ops.aten
TAKEN_FROM_ANYWHERE = {
    aten.copy_.default, aten._to_copy.default, aten.index.Tensor, aten.index_put_.default, aten.index_put.default
}  # fmt: skip


class Away(Tensor):
    """A tensor on the pretended device; its numbers lie in `numbers`."""

    numbers: Tensor

    @classmethod
    def of(cls, inner: Tensor) -> "Away":
        """On the device, a tensor that shares its numbers with this one."""
        made = Tensor._make_wrapper_subclass(  # pyright: ignore[reportAttributeAccessIssue]
            cls, inner.shape, strides=inner.stride(), storage_offset=inner.storage_offset(), dtype=inner.dtype,
            device=AWAY, requires_grad=inner.requires_grad,
        )  # fmt: skip
        made.numbers = inner
        return made

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return carried_out(func, args, kwargs or {})

    @property
    def data(self) -> Tensor:
        """As that of any tensor."""
        return self.detach()

    @data.setter
    def data(self, other: "Away") -> None:
        Tensor.data.__set__(self, other)  # pyright: ignore[reportAttributeAccessIssue] - a property made in C
        self.numbers = other.numbers

    @property
    def is_meta(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride] - a property made in C
        """It holds numbers, whatever its device is called."""
        return False

    def untyped_storage(self) -> torch.UntypedStorage:
        """Where its numbers lie, by which views of a weight are known."""
        return self.numbers.untyped_storage()

    def tolist(self) -> Any:
        """Its numbers, which a GPU gives too."""
        return self.numbers.tolist()

    def item(self) -> Any:
        """Its number."""
        return self.numbers.item()

    def __repr__(self, **_: object) -> str:
        return f"Away({tuple(self.shape)})"


class _FromNumbers(TorchFunctionMode):
    """What is made there of numbers of Python, of which a `TorchDispatchMode` does not hear."""

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = kwargs or {}
        if func in {torch.tensor, torch.as_tensor} and given.get("device") == AWAY:
            return func(*args, **{**given, "device": "cpu"}).to(AWAY)
        if func is Tensor.new_tensor and isinstance(args[0], Away):
            return args[0].numbers.new_tensor(*args[1:], **given).to(AWAY)
        if func is torch.unravel_index and isinstance(args[0], Away):
            return tuple(part.to(AWAY) for part in func(args[0].numbers, *args[1:], **given))
        if func in {Tensor.__getitem__, Tensor.__setitem__}:
            places = args[1] if isinstance(args[1], tuple) else (args[1],)
            args = (
                args[0],
                tuple(torch.tensor(p, dtype=None if p else torch.long) if isinstance(p, list) else p for p in places),
                *args[2:],
            )
        return func(*args, **given)


class PretendedDevice(TorchDispatchMode):
    """While it is entered, what is made on `AWAY` has numbers."""

    def __enter__(self) -> "PretendedDevice":
        self._from_numbers = _FromNumbers()
        self._from_numbers.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._from_numbers.__exit__(*error)

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return carried_out(func, args, kwargs or {})


def carried_out(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What a function of torch gives, where it would give something on a GPU."""
    leaves, _ = tree_flatten((list(args), dict(kwargs)))
    away = [leaf for leaf in leaves if isinstance(leaf, Away)]
    here = [leaf for leaf in leaves if isinstance(leaf, Tensor) and not isinstance(leaf, Away) and leaf.ndim]
    asked = kwargs.get("device")
    if not away and (asked is None or asked != AWAY):
        return func(*args, **kwargs)
    if away and here and func not in TAKEN_FROM_ANYWHERE:
        raise RuntimeError(f"{func}: expected all tensors to be on the same device")
    plain = {**kwargs, "device": torch.device("cpu")} if "device" in kwargs and asked is not None else dict(kwargs)
    inner_args, inner_kwargs = tree_map_only(Away, lambda tensor: tensor.numbers, (list(args), plain))
    found = func(*inner_args, **inner_kwargs)
    if asked is not None and asked != AWAY:  # it comes home
        return found
    same = {id(leaf.numbers): leaf for leaf in away}  # what was written in place stays itself
    if func is aten.copy_.default and not isinstance(args[0], Away):
        return args[0]
    return tree_map_only(Tensor, lambda tensor: same[id(tensor)] if id(tensor) in same else Away.of(tensor), found)
