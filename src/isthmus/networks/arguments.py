"""What a caller hands over as a network, as samples or as a seed, checked once, at the public edge; and its answers.

What the numbers in it may be: `tasks.arrays`. Columns and classes of tables: `discovery.data.checking`.
"""

import math
import operator
from collections.abc import Iterable, Mapping
from numbers import Integral
from pathlib import PurePath
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.export import ExportedProgram
from torch.nn.parameter import is_lazy
from torch.utils import _pytree

from isthmus.errors import DataError

AnyModule: TypeAlias = nn.Module | ExportedProgram  # what is read layer by layer
LARGEST_SEED = 2**63 - 1
_WRAPPERS = (nn.DataParallel, nn.parallel.DistributedDataParallel)
_HOLDERS = ("model", "module", "network", "net")  # what trainers, pipelines and estimators call theirs
_COMPILED = "OptimizedModule"  # by its name: its class lies in a package that takes a second to import


def module_argument(value: object, where: str) -> nn.Module:
    """The network, if it can be read layer by layer; out of what `torch.compile` or several devices put around it.

    Of an exported program the module that it makes.

    Raises:
        TypeError: it is no module, or one of TorchScript, which hides its layers; says what to give instead.
        DataError: a layer without neurons, or parameters without numbers.
    """
    value = _unwrapped(value)
    parts = value.modules() if isinstance(value, nn.Module) else [value]
    if any(isinstance(part, torch.jit.ScriptModule | torch.jit.ScriptFunction) for part in parts):
        raise TypeError(
            f"{where}: a TorchScript module hides its layers. Give the module that was scripted or traced, or one of "
            "torch.export."
        )
    if not isinstance(value, nn.Module):
        kind = f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
        raise TypeError(f"{where}: needs a network, that is an nn.Module; got {kind}.{_instead(value)}")
    if hollow := [name for name, t in (*value.named_parameters(), *value.named_buffers()) if is_lazy(t) or t.is_meta]:
        raise DataError(
            f"{where}: {hollow[0]} has no numbers yet (a lazy layer, or one on the device meta). Load the weights, or "
            "run the module once."
        )
    if empty := [name for name, p in value.named_parameters() if p.ndim > 1 and not p.numel()]:
        raise DataError(
            f"{where}: {empty[0]} has no neurons, so the module computes a constant (a rank of 0). There is nothing to "
            "read in it, or to cut."
        )
    return value


def _instead(value: object) -> str:
    """What to give in the place of something that is no module, in a sentence; empty where nothing is known of it."""
    if isinstance(value, type):
        return f" Give a network of that class, {value.__name__}(..)." if issubclass(value, nn.Module) else ""
    if isinstance(getattr(value, "__self__", None), nn.Module):
        return " Give the module itself, of which this is a method."
    for name in _HOLDERS:
        if isinstance(getattr(value, name, None), nn.Module):
            return f" It holds one, its .{name}: give that."
    if isinstance(value, str | PurePath):
        return (
            " Load that file first: a module by torch.load and load_state_dict, or torch.export.load(file); or give "
            "it to the command isthmus, which reads files."
        )
    if isinstance(value, Mapping):
        return " Weights alone are no network: make the module, and give it after module.load_state_dict(..)."
    if isinstance(value, Tensor | np.ndarray):
        return " The network comes first, then its data."
    if isinstance(value, list | tuple):
        return " Several modules in a row are one as nn.Sequential(*modules)."
    if callable(value):
        return " Give a module whose forward does this, with its layers as attributes."
    return ""


def _unwrapped(value: object) -> object:
    value = value.module() if isinstance(value, ExportedProgram) else value
    while isinstance(value, _WRAPPERS) or (isinstance(value, nn.Module) and type(value).__name__ == _COMPILED):
        value = value.module if isinstance(value, _WRAPPERS) else value.get_submodule("_orig_mod")
    return value


def tensor_argument(value: object, where: str) -> Tensor:
    """The value as a tensor of real numbers that lies in memory, and that gradients may be taken through.

    Raises:
        DataError: it is no array of numbers, or a complex or sparse one, or has no data.
    """
    try:
        tensor = value if isinstance(value, Tensor) else torch.as_tensor(as_array(value))
    except (TypeError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:120].rstrip(".")
        raise DataError(f"{where}: needs an array of numbers, got {type(value).__name__} ({reason}).") from error
    if tensor.is_complex():
        raise DataError(f"{where}: needs real numbers, got {tensor.dtype}. Pass real and imaginary parts as columns.")
    if tensor.layout is not torch.strided:
        raise DataError(f"{where}: needs a dense tensor, got {tensor.layout}. Give x.to_dense().")
    if tensor.is_meta:
        raise DataError(f"{where}: is a tensor without data (on the device meta). Give one that holds numbers.")
    tensor = tensor.float() if tensor.is_floating_point() and tensor.itemsize == 1 else tensor  # 8 bits compute nothing
    return tensor.clone() if tensor.is_inference() and not torch.is_inference_mode_enabled() else tensor


def check_finite(x: Tensor, where: str, called: str = "x") -> None:
    """Refuse NaN and infinity.

    Raises:
        DataError: there are some; says how many.
    """
    if x.is_floating_point() and not bool(torch.isfinite(x).all()):
        count = int((~torch.isfinite(x)).sum())
        what = f"{count} entries of {called} are NaN or infinite, shape {tuple(x.shape)}"
        raise DataError(f"{where}: {what}. Remove them.")


def whole_numbers(tensors: Iterable[Tensor]) -> str:
    """Where a module failed: what to do if whole numbers were meant as features; empty without any."""
    kinds = {t.dtype for t in tensors if not t.is_floating_point()}
    return f" x holds {', '.join(map(str, kinds))}: features are x.float()." if kinds else ""


def as_array(value: object) -> object:
    """A table of pandas and the like, whose cells torch would ask for by their labels, as an array."""
    is_table = hasattr(value, "__array__") and not isinstance(value, np.ndarray)
    return np.array(value) if is_table else value  # what tables hand out may be read-only, which torch warns of


def check_fits(
    value: float, where: str, dtype: torch.dtype | None, *, squared: bool = False, chosen: bool = True
) -> None:
    """Refuse a number that is infinite, or 0 although it is none, in the precision in which it is computed with.

    Args:
        value: finite.
        where: the call with the argument, as it was given.
        dtype: of the network; None: torch's default. Halves are computed with as float32.
        squared: whether its square has to be finite too.
        chosen: whether the caller chooses the precision.

    Raises:
        DataError: says which numbers fit.
    """
    dtype = dtype or torch.get_default_dtype()
    limits = torch.finfo(torch.promote_types(dtype, torch.float32))
    most = math.sqrt(limits.max) if squared else limits.max
    if value and not limits.tiny <= abs(value) <= most:  # what is smaller is flushed to 0, see `without_denormals`
        remedy = ", or compute with dtype float64" if chosen and limits.dtype != "float64" else ""
        raise DataError(
            f"{where}: {str(dtype).removeprefix('torch.')} takes 0, or numbers from {limits.tiny:.1e} to {most:.1e}. "
            f"Give one of them{remedy}."
        )


def check_ridge(ridge: object, call: str, dtype: torch.dtype | None = None) -> None:
    """Refuse what is no finite number >= 0, and what does not fit the precision of a network, where one is trained.

    Gradients are measured by the squares of what the ridge gives to them, so its square has to fit, too.

    Raises:
        ValueError: it is none. DataError, which is one: it does not fit.
    """
    try:
        value = float(ridge)  # pyright: ignore[reportArgumentType] - numbers of numpy and torch too
    except (TypeError, ValueError, RuntimeError):
        value = float("nan")
    if not 0 <= value < float("inf"):
        raise ValueError(f"{call}(ridge={str(ridge)[:40]}): needs a finite number >= 0.")
    if dtype is not None:
        check_fits(value, f"{call}(ridge={value:g})", dtype, squared=True)


def positive_argument(value: object, where: str, why: str) -> float:
    """A finite number > 0, of numpy and torch too.

    Args:
        value: what came.
        where: the call with the argument, as it was given.
        why: what it is, in words.

    Raises:
        ValueError: it is none.
    """
    try:
        found = math.nan if isinstance(value, str | bytes) else float(value)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError, RuntimeError):
        found = math.nan
    if not 0 < found < math.inf:
        raise ValueError(f"{where}: needs {why}.")
    return found


def whole_argument(value: object, where: str) -> int:
    """A whole number, of numpy and torch too; none that is written with a point.

    Raises:
        ValueError: it is none.
    """
    try:
        return operator.index(value)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"{where}: needs a whole number, got {type(value).__name__} {str(value)[:40]}.") from None


def seed_argument(seed: object, where: str) -> int:
    """The seed itself.

    Raises:
        DataError: it is no whole number from 0 to 2^63 - 1, of which generators are made.
    """
    if not isinstance(seed, Integral) or not 0 <= int(seed) <= LARGEST_SEED:
        raise DataError(f"{where}: needs a whole number from 0 to 2^63 - 1 as a seed, got {str(seed)[:40]}.")
    return int(seed)


def answer_of(found: object, what: str) -> Tensor:
    """The first floating-point tensor in what a module returned, and that is more than one number (a loss).

    Args:
        found: what came back.
        what: what gave it, in words.

    Raises:
        DataError: there is none.
    """
    leaves = _leaves(found)
    kind = f"a tensor of {found.dtype}" if isinstance(found, Tensor) else type(found).__name__
    tensors = [t for t in leaves if isinstance(t, Tensor) and t.dtype.is_floating_point]
    tensors = [t for t in tensors if t.ndim] or tensors
    if not tensors:
        raise DataError(f"{what} returned no floating-point tensor but {kind}. Wrap it in a module that returns one.")
    return tensors[0]


def other_answers(found: object, what: str) -> str:
    """That a module returned more tensors than the one that is read, in a sentence; empty where it did not.

    Nothing is said of what has names of its own, as the outputs of transformers: their first is what they are for.

    Args:
        found: what came back.
        what: what gave it, in words.
    """
    if isinstance(found, Tensor) or hasattr(found, "to_tuple"):
        return ""
    tensors = _of_numbers(_leaves(found))
    if len(tensors) < 2:
        return ""
    shape = tuple(tensors[0].shape[1:])
    return (
        f"{what} returns {len(tensors)} tensors of numbers: the first, {shape} for every row, is read. For another "
        "wrap it in a module whose forward picks that tensor."
    )


def answers_by_row(found: object, rows: int) -> int:
    """How many tensors of numbers a module returned that have a row for each of so many samples.

    Of the outputs of transformers those that stand in them themselves: what keys and values they keep is no answer.
    """
    leaves = found.to_tuple() if hasattr(found, "to_tuple") else _leaves(found)  # pyright: ignore[reportAttributeAccessIssue]
    return sum(len(tensor) == rows for tensor in _of_numbers(leaves))


def _of_numbers(leaves: Iterable[object]) -> list[Tensor]:
    """The floating-point tensors among them, but for single numbers."""
    return [leaf for leaf in leaves if isinstance(leaf, Tensor) and leaf.dtype.is_floating_point and leaf.ndim]


def _leaves(found: object) -> list[object]:
    if hasattr(found, "to_tuple"):  # the outputs of transformers
        found = found.to_tuple()  # pyright: ignore[reportAttributeAccessIssue]
    return _pytree.tree_leaves(found)


class Answer(nn.Module):
    """The answer of a module that may give more than a tensor, as models of transformers do.

    Args:
        inner: the module.
    """

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        """The first tensor of floating-point numbers, (n, ..)."""
        return answer_of(self.inner(x), type(self.inner).__name__)
