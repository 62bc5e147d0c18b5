"""Jacobians of any differentiable function of rows of tensors, in chunks, by automatic differentiation.

Of networks of ours in closed form: `networks.jacobians`, which calls this for everything else. What stays as it was
while a stranger's function is called: `undisturbed`.
"""

from collections.abc import Callable, Iterable
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.processes.shared_state import silenced
from isthmus.theory.inputs import check_tensor
from isthmus.theory.undisturbed import left_as_found

CHUNK = 1024  # rows that are differentiated at once
ALONE = 1e-3  # relative difference between a row among others and with fewer that is no rounding in any precision
WATCHED = 64  # rows whose derivatives of 0 are held against differences
AGREE = 0.1  # relative difference of four difference quotients of a smooth function, at most
Function = Callable[[Tensor], Tensor]


def in_precision_of(function: object, x: Tensor) -> Tensor:
    """The samples in the precision of the parameters of a module, where these have one; else as they are."""
    parameters = cast("Iterable[Tensor]", getattr(function, "parameters", list)())
    kinds = {p.dtype for p in parameters if p.dtype.is_floating_point}
    return x.to(kinds.pop()) if len(kinds) == 1 and x.dtype.is_floating_point else x


def function_values(function: Function, x: Float[Tensor, "n ..."]) -> Float[Tensor, "n d_out"]:
    """f(x), one row for each sample; neither x nor the function is changed.

    Raises:
        TypeError, ShapeError: as `function_jacobians`.
    """
    with left_as_found(function, x.device):
        return _values("jacobians", function, x)


def function_jacobians(function: Function, x: Float[Tensor, "n ..."]) -> Float[Tensor, "n d_out p"]:
    """Jf(x) at every sample of a function whose rows stand alone (*exact* up to rounding).

    Forward where there are fewer inputs than outputs, else backward: one pass for each of the fewer. At a kink it is
    torch's derivative, for the relu 0.

    Args:
        function: takes rows and gives rows; differentiated 1024 at a time. The modes, buffers and gradients of a module
            and what it draws from are left as they were, and x is not changed.
        x: samples as rows; what lies behind the first axis is flattened in the result.

    Raises:
        TypeError: no function, or one that gives something else than a tensor that can be differentiated: as far as
            differences of a few samples tell, it leaves torch or detaches.
        ShapeError: not one row of outputs for each row of inputs.
        ValueError: what comes out for a row depends on the others, or is random.

    Accuracy: rounding, of which nothing is proved. Test: networks/test_jacobians.
    """
    call = "jacobians"
    if not callable(function):
        raise TypeError(f"{call}: needs a network or a function of a tensor; got {type(function).__name__}.")
    check_tensor(call, "x", x, least_ndim=2)
    x = x.detach()
    with left_as_found(function, x.device):
        values = _values(call, function, x)
        _check_alone(call, function, x, values)
        num_inputs = x[:1].numel() if len(x) else x[0:].flatten(1).shape[1]
        by_columns = num_inputs < values.shape[1]
        parts = [_of_chunk(call, function, part, by_columns) for part in x.split(CHUNK)] if len(x) else []
        found = torch.cat(parts) if parts else values.new_zeros(0, values.shape[1], num_inputs)
        _check_zeros(call, function, x[:WATCHED], found[:WATCHED])
    return found


def _values(call: str, function: Function, x: Tensor) -> Tensor:
    with torch.no_grad():
        return _rows(call, function(x.clone()), len(x))  # of a copy: the function may overwrite it


def _rows(call: str, values: object, num: int) -> Tensor:
    if not isinstance(values, Tensor) or not values.dtype.is_floating_point:
        found = f"a tensor of {values.dtype}" if isinstance(values, Tensor) else type(values).__name__
        raise TypeError(f"{call}: needs a function that gives a tensor of real numbers; got {found}. Use torch in it.")
    if not values.ndim or len(values) != num:
        raise ShapeError(
            f"{call}: needs a function that gives one row for each of {num} samples; got shape {tuple(values.shape)}."
        )
    return values.reshape(num, -1) if num else values.flatten(1) if values.ndim > 1 else values[:, None]


def _check_alone(call: str, function: Function, x: Tensor, values: Tensor) -> None:
    """A third of the rows, drawn with the same luck each time, then the others: none keeps its place and neighbours."""
    if len(x) < 2:
        return
    allowed = ALONE * (1e-30 + values.nan_to_num(0, 0, 0).abs().max()) if values.numel() else 0.0
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0)).to(x.device)
    third = -(-len(x) // 3)
    for rows in (order[:third], order[third:]):
        fewer, wanted = _values(call, function, x[rows]), values[rows]
        same = (fewer == wanted) | (fewer.isnan() & wanted.isnan()) | ((fewer - wanted).abs() <= allowed)
        if not bool(same.all()):
            raise ValueError(
                f"{call}: needs a function whose rows stand alone; {len(rows)} of {len(x)} rows, shuffled, give "
                "something else without the others. Call .eval() on a module that normalises over batches or draws "
                "random numbers."
            )


def _of_chunk(call: str, function: Function, x: Tensor, by_columns: bool) -> Tensor:
    if by_columns:
        try:
            return _forward(function, x)
        except torch.OutOfMemoryError:
            raise
        except (RuntimeError, NotImplementedError):
            pass  # some operations have no rule for tangents, and leaving torch fails on them
    try:
        return _backward(call, function, x)
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise _undifferentiable(call, f"with gradients it fails: {line.rstrip('.')}") from error


def _undifferentiable(call: str, why: str) -> TypeError:
    return TypeError(f"{call}: needs a function that torch can differentiate; {why}. Use torch in it, without detach.")


def _backward(call: str, function: Function, x: Tensor) -> Tensor:
    with torch.enable_grad():
        leaf = x.detach().requires_grad_()
        values = function(leaf.clone()).reshape(len(x), -1)
        if not values.requires_grad:
            return _of_constant(call, function, x, values.detach())
        last = values.shape[1] - 1
        rows = [
            torch.autograd.grad(
                column.sum(), leaf, retain_graph=j < last, allow_unused=True, materialize_grads=True
            )[0].flatten(1)
            for j, column in enumerate(values.unbind(1))
        ]  # fmt: skip
    return torch.stack(rows, 1)


def _of_constant(call: str, function: Function, x: Tensor, values: Tensor) -> Tensor:
    """Zeros, of a function that gives the same everywhere."""
    moved = _values(call, function, x + _step(x)) if x.numel() else values
    if not (torch.equal(values, values[:1].expand_as(values)) and torch.equal(values, moved)):
        raise _undifferentiable(call, "its outputs vary, and hang on nothing that has gradients")
    return x.new_zeros(len(x), values.shape[1], x[0].numel())


def _step(x: Tensor) -> Tensor:
    """A short way from each sample, in all coordinates, with signs that differ."""
    flat = x.flatten(1)
    size = flat.abs().amax(1, keepdim=True)
    signs = torch.tensor([1.0, -1.0, 1.0, 1.0, -1.0]).to(x)[torch.arange(flat.shape[1], device=x.device) % 5]
    weights = 1 + torch.arange(flat.shape[1], device=x.device).to(x) / flat.shape[1]  # else sums may stay
    step = torch.finfo(x.dtype).eps ** (1 / 3) * torch.where(size > 0, size, 1.0) * signs * weights
    return step.reshape(x.shape)


def _check_zeros(call: str, function: Function, x: Tensor, found: Tensor) -> None:
    """Raise where a derivative is 0 and the function is smooth with another slope: it was detached on the way.

    Difference quotients of two lengths on two sides that agree are no kink and no flat point.
    """
    suspect = (found == 0).all(2)
    if not found.numel() or not bool(suspect.any()):
        return
    here, step = _values(call, function, x), _step(x)
    quotients = torch.stack([(_values(call, function, x + t * step) - here) / t for t in (1.0, -1.0, 0.25, -0.25)])
    low, high = quotients.amin(0), quotients.amax(0)
    rounding = 1e3 * torch.finfo(x.dtype).eps * here.abs()
    slope = quotients.abs().amin(0)
    if bool((suspect & (high - low <= AGREE * slope) & (slope > rounding)).any()):
        raise _undifferentiable(call, "some of its outputs vary where their derivatives are 0")


def _forward(function: Function, x: Tensor) -> Tensor:
    columns: list[Tensor] = []
    for j in range(x[0].numel()):
        tangent = torch.zeros_like(x).flatten(1)
        tangent[:, j] = 1
        with silenced(DeprecationWarning):  # torch compiles its own rules for tangents with a call that it deprecates
            moved = torch.func.jvp(lambda x: function(x.clone()), (x.detach(),), (tangent.reshape(x.shape),))[1]
        columns.append(moved.reshape(len(x), -1))
    return torch.stack(columns, 2).detach()
