"""Jacobians of any differentiable function of rows of tensors, in chunks, by automatic differentiation.

Of networks of ours in closed form: `networks.jacobians`, which calls this for everything else.
"""

import warnings
from collections.abc import Callable, Iterable
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.theory.inputs import check_tensor

CHUNK = 1024  # rows that are differentiated at once
ALONE = 1e-3  # relative difference between a row among others and with fewer that is no rounding in any precision
Function = Callable[[Tensor], Tensor]


def in_precision_of(function: object, x: Tensor) -> Tensor:
    """The samples in the precision of the parameters of a module, where these have one; else as they are."""
    parameters = cast("Iterable[Tensor]", getattr(function, "parameters", list)())
    kinds = {p.dtype for p in parameters if p.dtype.is_floating_point}
    return x.to(kinds.pop()) if len(kinds) == 1 and x.dtype.is_floating_point else x


def function_jacobians(function: Function, x: Float[Tensor, "n ..."]) -> Float[Tensor, "n d_out p"]:
    """Jf(x) at every sample of a function whose rows stand alone (*exact* up to rounding).

    Forward where there are fewer inputs than outputs, else backward: one pass for each of the fewer. At a kink it is
    torch's derivative, for the relu 0.

    Args:
        function: takes rows and gives rows; evaluated on 1024 at a time.
        x: samples as rows; what lies behind the first axis is flattened in the result.

    Raises:
        TypeError: no function, or one that gives something else than a tensor that can be differentiated.
        ShapeError: not one row of outputs for each row of inputs.
        ValueError: what comes out for a row depends on the others, or is random.

    Accuracy: rounding, of which nothing is proved. Test: networks/test_jacobians.
    """
    call = "jacobians"
    if not callable(function):
        raise TypeError(f"{call}: needs a network or a function of a tensor; got {type(function).__name__}.")
    check_tensor(call, "x", x, least_ndim=2)
    with torch.no_grad():
        values = _rows(call, function(x), len(x))
    _check_alone(call, function, x, values)
    num_inputs = x[:1].numel() if len(x) else x[0:].flatten(1).shape[1]
    by_columns = num_inputs < values.shape[1]
    parts = [(_forward if by_columns else _backward)(function, part) for part in x.split(CHUNK)] if len(x) else []
    return torch.cat(parts) if parts else values.new_zeros(0, values.shape[1], num_inputs)


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
    if len(x) < 2:
        return
    half = (len(x) + 1) // 2
    with torch.no_grad():
        fewer = _rows(call, function(x[:half]), half)
    if bool(((fewer - values[:half]).abs() > ALONE * (1e-30 + values.abs().max())).any()):
        raise ValueError(
            f"{call}: needs a function whose rows stand alone; the first {half} rows give something else without the "
            "others. Call .eval() on a module that normalises over batches or draws random numbers."
        )


def _backward(function: Function, x: Tensor) -> Tensor:
    with torch.enable_grad():
        leaf = x.detach().requires_grad_()
        values = function(leaf).reshape(len(x), -1)
        if not values.requires_grad:
            return x.new_zeros(len(x), values.shape[1], x[0].numel())  # a constant, as far as torch can see
        last = values.shape[1] - 1
        rows = [
            torch.autograd.grad(column.sum(), leaf, retain_graph=j < last, materialize_grads=True)[0].flatten(1)
            for j, column in enumerate(values.unbind(1))
        ]
    return torch.stack(rows, 1)


def _forward(function: Function, x: Tensor) -> Tensor:
    columns: list[Tensor] = []
    for j in range(x[0].numel()):
        tangent = torch.zeros_like(x).flatten(1)
        tangent[:, j] = 1
        with warnings.catch_warnings():  # torch compiles its own rules for tangents with a call that it deprecates
            warnings.simplefilter("ignore", DeprecationWarning)
            moved = torch.func.jvp(function, (x.detach(),), (tangent.reshape(x.shape),))[1]
        columns.append(moved.reshape(len(x), -1))
    return torch.stack(columns, 2).detach()
