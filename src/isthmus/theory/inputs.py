"""What the functions of this room accept: each check raises before any work, in four parts (call, need, found, remedy).

No mathematics here. Shapes of networks and batches are checked by `networks`; tables and files by the rooms that read.
"""

import math

import torch
from torch import Tensor

from isthmus.errors import ShapeError

Real = float | int
"""A real number: PEP 484 lets an int stand for a float, run-time type checkers do not."""


def check_tensor(call: str, name: str, tensor: object, *, least_ndim: int = 0, ndim: int | None = None) -> Tensor:
    """The argument itself, if it is a finite real floating-point tensor of enough dimensions."""
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"{call}: needs {name} as a torch tensor; got {type(tensor).__name__}. Use torch.as_tensor({name})."
        )
    if not tensor.dtype.is_floating_point:
        remedy = f"take {name}.real" if tensor.dtype.is_complex else f"convert with {name}.double()"
        raise TypeError(
            f"{call}: needs {name} of real floating-point numbers; got {tensor.dtype}, shape {tuple(tensor.shape)}: "
            f"{remedy}."
        )
    if tensor.ndim < least_ndim or (ndim is not None and tensor.ndim != ndim):
        need = f"{ndim} dimensions" if ndim is not None else f"at least {least_ndim} dimensions"
        raise ShapeError(
            f"{call}: needs {name} with {need}; got shape {tuple(tensor.shape)}. Add axes with {name}[None]."
        )
    # a finite sum proves that all entries are finite; only then is the slow look at each of them needed
    if not math.isfinite(float(tensor.detach().sum())) and not bool(torch.isfinite(tensor).all()):
        count = int((~torch.isfinite(tensor)).sum())
        raise ValueError(
            f"{call}: needs finite {name}; got {count} NaN or infinite entries, shape {tuple(tensor.shape)}. "
            "Remove these rows first."
        )
    return tensor


def check_singular_values(call: str, values: object) -> Tensor:
    """The argument itself, if it holds finite numbers >= 0, in several rows only if each of them falls.

    A tensor whose rows fall is a batch of spectra: a matrix that happens to look so cannot be told from one.
    """
    values = check_tensor(call, "singular_values", values, least_ndim=1)
    if values.numel() and float(values.detach().min()) < 0:
        raise ValueError(
            f"{call}: needs singular_values >= 0; got {float(values.min()):.3g}, shape {tuple(values.shape)}. "
            "For a matrix pass torch.linalg.svdvals(matrix)."
        )
    if values.ndim > 1 and values.numel():
        rises = (values.detach().diff(dim=-1) > 1e-9 * values.detach().amax(-1, keepdim=True)).any()
        if bool(rises):  # the rows of a matrix would be summed without a word
            raise ValueError(
                f"{call}: needs singular_values that fall along the last axis where there are several rows; got shape "
                f"{tuple(values.shape)}. For a matrix pass torch.linalg.svdvals(matrix)."
            )
    return values


def check_depth(call: str, depth: object, *, least: int = 1) -> None:
    """Raise unless `depth` is a whole number of at least `least` layers."""
    if isinstance(depth, bool) or not isinstance(depth, int):
        raise TypeError(f"{call}: needs depth as an int; got {depth!r}. Depth counts weight matrices.")
    if depth < least:
        raise ValueError(f"{call}: needs depth >= {least}; got depth={depth}. Depth counts weight matrices.")


def check_block_depth(call: str, block_depth: object) -> None:
    """Raise unless residual blocks have one or two weight matrices."""
    if block_depth not in (1, 2):
        raise ValueError(
            f"{call}: needs block_depth 1 or 2; got {block_depth!r}. For another convex block cost use block_cost."
        )


def check_positive(call: str, name: str, value: object) -> None:
    """Raise unless `value` is a finite real number > 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{call}: needs {name} as a real number; got {value!r}. Convert with float({name}).")
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{call}: needs finite {name} > 0; got {name}={value!r}. Pass a positive number.")


def check_finite(call: str, name: str, value: object, *, least: float = -math.inf) -> None:
    """Raise unless `value` is a finite real number >= least."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{call}: needs {name} as a real number; got {value!r}. Convert with float({name}).")
    if not (value >= least and math.isfinite(value)):
        need = f"finite {name}" if least == -math.inf else f"finite {name} >= {least:g}"
        raise ValueError(f"{call}: needs {need}; got {name}={value!r}. Pass a finite number.")


def check_fraction(call: str, name: str, value: object) -> None:
    """Raise unless 0 < value < 1."""
    check_positive(call, name, value)
    assert isinstance(value, (int, float))
    if value >= 1:
        raise ValueError(f"{call}: needs 0 < {name} < 1; got {name}={value!r}. Pass a fraction such as 0.5.")


def check_rank(call: str, rank: object, *, largest: int, least: int = 0) -> None:
    """Raise unless `rank` is a whole number between `least` and the largest rank the matrix can have."""
    if isinstance(rank, bool) or not isinstance(rank, int):
        raise TypeError(f"{call}: needs rank as an int; got {rank!r}. A rank counts singular values.")
    if not least <= rank <= largest:
        raise ValueError(
            f"{call}: needs {least} <= rank <= {largest}, the smaller side of the matrix; got rank={rank}. "
            "Pass a smaller rank."
        )


def check_same_length(call: str, **lists: object) -> int:
    """The common length of several lists of layers."""
    lengths = {name: len(value) for name, value in lists.items()}  # pyright: ignore[reportArgumentType]
    if len(set(lengths.values())) != 1:
        raise ShapeError(f"{call}: needs lists of one length; got {lengths}. Give one entry per layer.")
    return next(iter(lengths.values()))
