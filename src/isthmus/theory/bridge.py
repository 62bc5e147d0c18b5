"""What the functions of this room take besides torch tensors: arrays and numbers of numpy, lists, several depths.

Applied once, to every public function, in `isthmus.theory`. What they refuse: `annotated`, `inputs`.
"""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, ParamSpec, TypeVar, get_origin

import numpy as np
import torch
from torch import Tensor

from isthmus.theory.annotated import checked

P = ParamSpec("P")
R = TypeVar("R")
_LISTS = (Sequence, tuple, list)
_MAY_BE_NAN = ("balancedness_slope",)  # which has no slope to give where all biases vanish, and says so
Listed = list[Any] | tuple[Any, ...]


def bridged(function: Callable[P, R]) -> Callable[P, R]:
    """The function, with arrays and lists of numbers turned into float64 tensors (float32 arrays stay float32).

    Several depths give the results one after the other: tensors and numbers stacked, all else as a list.
    """
    signature = inspect.signature(function)
    annotations = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    lists = {name for name, kind in annotations.items() if get_origin(kind) in _LISTS}

    def once(given: Mapping[str, Any]) -> Any:
        complaints: list[Exception] = []
        values = checked(function.__name__, given, annotations, complaints)
        try:
            found = function(**values)  # pyright: ignore[reportCallIssue]
        except torch.linalg.LinAlgError as error:
            raise _out_of_range(function.__name__) from error
        except (RuntimeError, IndexError, TypeError, ValueError) as error:
            if complaints and not any(words in str(error) for words in ("needs ", function.__name__)):
                raise complaints[0] from error
            raise
        if complaints:  # sizes that torch made fit
            raise complaints[0]
        return _without_nan(function.__name__, found)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs).arguments
        except TypeError:
            return function(*args, **kwargs)  # which says what is missing, or too many
        given = {
            name: _as_torch(f"{function.__name__}: needs {name}", value, listed=name in lists)
            for name, value in bound.items()
        }
        _refuse_matrices(function.__name__, bound, given)
        depth = given.get("depth")
        if not isinstance(depth, Tensor) or not depth.ndim:
            return once(given)
        depths = [int(one) if float(one).is_integer() else float(one) for one in depth.flatten().tolist()]
        if not depths:
            raise ValueError(f"{function.__name__}: needs a depth; got none, shape {tuple(depth.shape)}.")
        return _stacked([once({**given, "depth": one}) for one in depths])

    return call


def _refuse_matrices(call: str, came: Mapping[str, object], given: Mapping[str, object]) -> None:
    """An array of two axes is a matrix to whoever passes it, even one whose rows could be spectra."""
    values = given.get("singular_values")
    if isinstance(values, Tensor) and values.ndim == 2 and not isinstance(came["singular_values"], Tensor):
        raise ValueError(
            f"{call}: needs the singular_values of one map; got a matrix of shape {tuple(values.shape)}. For its own "
            "pass numpy.linalg.svd(matrix, compute_uv=False), for several spectra a torch tensor of them."
        )


def as_torch(value: Any) -> Any:
    """An array or a list of numbers as a tensor, as `bridged` functions take it; anything else as it is."""
    return _as_torch("needs it", value, listed=False)


def _as_torch(needs: str, value: Any, *, listed: bool) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        entries: Listed = value
        if listed:
            return type(entries)(_as_torch(needs, entry, listed=not _holds_numbers(entry)) for entry in entries)
        return _numbers(needs, np.array(entries, dtype=object)) if _holds_numbers(entries) else value
    if isinstance(value, Tensor) or not hasattr(value, "__array__"):
        return value
    array = (
        np.ma.filled(value.astype(np.float64), np.nan) if isinstance(value, np.ma.MaskedArray) else np.asarray(value)
    )
    return array.item() if not array.ndim else _numbers(needs, array)


def _numbers(needs: str, array: Any) -> Tensor:
    """An array of numbers as a tensor: float32 and complex numbers as they are, all others in float64."""
    if array.dtype.kind == "O" and not all(isinstance(entry, int | float | np.number) for entry in array.flat):
        raise TypeError(f"{needs} as numbers; got an array of objects, shape {array.shape}. Use array.astype(float).")
    if array.dtype.kind not in "fciubO":
        raise TypeError(f"{needs} as numbers; got an array of {array.dtype}, shape {array.shape}. Convert it first.")
    try:
        kept = array.dtype.kind in "fc" and array.dtype.itemsize <= (8 if array.dtype.kind == "f" else 16)
        return torch.tensor(array.astype(array.dtype.newbyteorder("=") if kept else np.float64))
    except OverflowError:
        raise ValueError(f"{needs} as numbers that float64 holds; got larger ones, shape {array.shape}.") from None


def _holds_numbers(value: object) -> bool:
    """Whether this is a list of numbers, or of such lists."""
    if not isinstance(value, list | tuple):
        return False
    entries: Listed = value
    return all(isinstance(entry, int | float | np.number) or _holds_numbers(entry) for entry in entries)


def _without_nan(call: str, found: R) -> R:
    """What a function found, unless it ran out of the range of numbers on the way."""
    if call not in _MAY_BE_NAN and _has_nan(found):
        raise _out_of_range(call)
    return found


def _out_of_range(call: str) -> ValueError:
    return ValueError(
        f"{call}: needs numbers that float64 can work with; these leave its range on the way. Rescale them."
    )


def _has_nan(found: Any) -> bool:
    if isinstance(found, Tensor):
        return found.dtype.is_floating_point and bool(torch.isnan(found.detach()).any())
    if isinstance(found, float):
        return found != found
    if is_dataclass(found):
        return any(_has_nan(getattr(found, part.name)) for part in fields(found))
    return isinstance(found, list | tuple) and any(_has_nan(entry) for entry in found)


def _stacked(results: list[Any]) -> Any:
    if results and all(isinstance(result, float | int) for result in results):
        return torch.tensor(results, dtype=torch.float64)
    if results and all(isinstance(result, Tensor) for result in results):
        return torch.stack(results)
    return results
