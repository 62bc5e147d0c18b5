"""What the functions of this room take besides torch tensors: arrays and numbers of numpy, lists, several depths.

Applied once, to every public function, in `isthmus.theory`. What they refuse: `inputs`.
"""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar, get_origin

import numpy as np
import torch
from torch import Tensor

P = ParamSpec("P")
R = TypeVar("R")
_LISTS = (Sequence, tuple, list)
Listed = list[Any] | tuple[Any, ...]


def bridged(function: Callable[P, R]) -> Callable[P, R]:
    """The function, with arrays and lists of numbers turned into float64 tensors (float32 arrays stay float32).

    Several depths give the results one after the other: tensors and numbers stacked, all else as a list.
    """
    signature = inspect.signature(function)
    has_list = {
        name: get_origin(parameter.annotation) in _LISTS or "Layers" in str(parameter.annotation)
        for name, parameter in signature.parameters.items()
    }

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        _refuse_matrices(function.__name__, dict(zip(has_list, args, strict=False)) | kwargs)
        given: list[Any] = [_as_torch(v, listed=has_list.get(n, False)) for n, v in zip(has_list, args, strict=False)]
        named = {name: _as_torch(value, listed=has_list.get(name, False)) for name, value in kwargs.items()}
        depth = named.get("depth")
        if not isinstance(depth, Tensor) or "depth" not in has_list:
            return function(*given, *args[len(given) :], **named)
        depths = [int(one) if float(one).is_integer() else float(one) for one in depth.flatten().tolist()]
        return _stacked([function(*given, **(named | {"depth": one})) for one in depths])  # pyright: ignore[reportCallIssue]

    return call


def _refuse_matrices(call: str, given: Mapping[str, object]) -> None:
    """An array of two axes is a matrix to whoever passes it, even one whose rows could be spectra."""
    values: Any = given.get("singular_values")
    if not isinstance(values, Tensor | None) and np.ndim(values) == 2:
        raise ValueError(
            f"{call}: needs the singular_values of one map; got a matrix of shape {np.shape(values)}. For its own pass "
            "numpy.linalg.svd(matrix, compute_uv=False), for several spectra a torch tensor of them."
        )


def as_torch(value: Any) -> Any:
    """An array or a list of numbers as a tensor, as `bridged` functions take it; anything else as it is."""
    return _as_torch(value, listed=False)


def _as_torch(value: Any, *, listed: bool) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray) and not value.ndim:
        return value.item()
    if isinstance(value, np.ndarray):
        return torch.tensor(value if value.dtype.kind in "fc" else value.astype(np.float64))
    if isinstance(value, list | tuple):
        entries: Listed = value
        if listed:
            return type(entries)(_as_torch(entry, listed=not _holds_numbers(entry)) for entry in entries)
        if _holds_numbers(entries):
            return torch.tensor(np.asarray(entries, dtype=np.float64))
    return value


def _holds_numbers(value: object) -> bool:
    """Whether this is a list of numbers, or of such lists."""
    if not isinstance(value, list | tuple):
        return False
    entries: Listed = value
    return all(isinstance(entry, int | float | np.number) or _holds_numbers(entry) for entry in entries)


def _stacked(results: list[Any]) -> Any:
    if results and all(isinstance(result, float | int) for result in results):
        return torch.tensor(results, dtype=torch.float64)
    if results and all(isinstance(result, Tensor) for result in results):
        return torch.stack(results)
    return results
