"""What public functions take besides torch tensors: arrays and numbers of numpy, lists, several depths.

Applied once, to every public function of `theory` and of `constructions`. What they refuse: `annotated`, `inputs`.
Where they compute: `home`.
"""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from types import NoneType
from typing import Any, ParamSpec, TypeVar, get_args, get_origin

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from isthmus.theory.annotated import checked, is_tensor, members
from isthmus.theory.home import at_home

P = ParamSpec("P")
R = TypeVar("R")
_MAY_BE_NAN = ("balancedness_slope",)  # which has no slope to give where all biases vanish, and says so
Listed = list[Any] | tuple[Any, ...]


def bridged(function: Callable[P, R]) -> Callable[P, R]:
    """The function, with arrays and lists of numbers turned into float64 tensors (float32 arrays stay float32).

    What an argument is turned into stands in its annotation: tensors, lists and tuples of them, plain numbers. Several
    depths give the results one after the other: tensors and numbers stacked, all else as a list.
    """
    signature = inspect.signature(function)
    annotations = {name: parameter.annotation for name, parameter in signature.parameters.items()}

    def once(given: Mapping[str, Any]) -> Any:
        complaints: list[Exception] = []
        values = checked(function.__name__, given, annotations, complaints)
        try:
            found = function(**values)  # pyright: ignore[reportCallIssue]
        except (torch.linalg.LinAlgError, OverflowError) as error:
            raise _out_of_range(function.__name__, values) from error
        except (RuntimeError, IndexError, TypeError, ValueError) as error:
            if complaints and not any(words in str(error) for words in ("needs ", function.__name__)):
                raise complaints[0] from error
            raise
        if complaints:  # sizes that torch made fit
            raise complaints[0]
        return _without_nan(function.__name__, found, values)

    @at_home
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs).arguments
        except TypeError:
            return function(*args, **kwargs)  # which says what is missing, or too many
        given = {
            name: _as_annotated(f"{function.__name__}: needs {name}", value, annotations[name])
            for name, value in bound.items()
        }
        _refuse_matrices(function.__name__, bound, given)
        depths = _whole_numbers(given.get("depth"))
        if depths is None:
            return once(given)
        if not depths:
            raise ValueError(f"{function.__name__}: needs a depth; got none.")
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


def _whole_numbers(several: Any) -> list[Any] | None:
    """Several depths in a row, from a list, an array or a tensor of them; None for what is no such thing."""
    entries = several.tolist() if isinstance(several, Tensor) and several.ndim and not several.is_meta else several
    if isinstance(entries, range):
        return [*entries]
    if not _holds_numbers(entries):
        return None
    flat = [one for entry in entries for one in (_whole_numbers(entry) or [entry])]
    return [int(one) if isinstance(one, float) and one.is_integer() else one for one in flat if one != []]


def as_torch(value: Any) -> Any:
    """An array or a list of numbers as a tensor, as `bridged` functions take it; anything else as it is."""
    return _tensor_of("needs it", value)


def _as_annotated(needs: str, value: Any, annotation: Any) -> Any:
    """The value with its arrays and lists turned into what the annotation names; anything else as it is."""
    kinds = [kind for kind in members(annotation) if kind is not NoneType]
    if isinstance(value, np.generic):
        return value.item()
    if any(is_tensor(kind) for kind in kinds):
        return _tensor_of(needs, value)
    if {*kinds} <= {int, float, bool}:
        return _plain(value)
    value = [*_array_of(value)] if _is_array(value) and np.ndim(value) else value
    [kind] = kinds
    inner = get_args(kind)
    if not isinstance(value, list | tuple) or get_origin(kind) not in (Sequence, list, tuple):
        return value
    entries: Listed = value
    if get_origin(kind) is not tuple:
        return [_as_annotated(needs, entry, inner[0]) for entry in entries]
    if len(entries) != len(inner):
        return value
    return tuple(_as_annotated(needs, entry, one) for entry, one in zip(entries, inner, strict=True))


def _plain(value: Any) -> Any:
    """Numbers of Python for those of an array, whole ones whole; lists of them likewise."""
    if _is_array(value):
        return _array_of(value).tolist()
    return [_plain(entry) for entry in value] if isinstance(value, list | tuple) else value  # pyright: ignore[reportUnknownVariableType]


def _is_array(value: object) -> bool:
    return hasattr(value, "__array__") and not isinstance(value, Tensor)


def _array_of(value: Any) -> Any:
    """The array, with NaN where it is masked."""
    is_masked = isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value)  # pyright: ignore[reportUnknownMemberType]
    return np.ma.filled(value.astype(np.float64), np.nan) if is_masked else np.asarray(value)


def _tensor_of(needs: str, value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return _numbers(needs, np.array(value, dtype=object)) if _holds_numbers(value) else value
    if not _is_array(value):
        return value
    array = _array_of(value)
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


def _without_nan(call: str, found: R, given: Mapping[str, Any]) -> R:
    """What a function found, unless it ran out of the range of numbers on the way."""
    if call not in _MAY_BE_NAN and _has_nan(found):
        raise _out_of_range(call, given)
    return found


def _out_of_range(call: str, given: Mapping[str, Any]) -> ValueError:
    narrow = [leaf.dtype for leaf in tree_leaves(dict(given)) if isinstance(leaf, Tensor) and leaf.is_floating_point()]
    kind = next((dtype for dtype in narrow if dtype is not torch.float64), torch.float64)
    cure = "Rescale them" if kind is torch.float64 else "Give float64 (.double()), or rescale them"
    return ValueError(
        f"{call}: needs numbers that {str(kind).removeprefix('torch.')} can work with; these leave its range on the "
        f"way. {cure}."
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
