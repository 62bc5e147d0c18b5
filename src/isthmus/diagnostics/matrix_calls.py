"""What counts as a layer of a foreign network, and as its activation: weight products, and functions by their names.

A product of a weight matrix with activations is one call, however it was written: linear, addmm, matmul, convolution.
Rule for the activation: from z on, follow functions of z alone. The first known activation function among them makes
the last such tensor the activation; a sum with anything else, a product with another tensor, or a matrix ends the
search. *Heuristic* only in the lists below: a function that stands in none of them ends the search too.

Who watches a module and finds these calls: `recording`. What is read off them: `layer_sums` and `derivatives`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

import torch
from torch import Tensor

_PRODUCTS = ("matmul", "mm", "__matmul__")
_CONVOLUTIONS = {"conv1d": 1, "conv2d": 2, "conv3d": 3}
_TRANSPOSED = {"conv_transpose1d": 1, "conv_transpose2d": 2, "conv_transpose3d": 3}


@dataclass(frozen=True, slots=True)
class Convolution:
    """Geometry of a convolution: one entry per spatial axis.

    A transposed one is written as a plain one, its kernel turned round, of an image with `spread` - 1 zeros between
    neighbouring pixels; padding below 0 cuts off.
    """

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    dilation: tuple[int, ...]
    groups: int
    spread: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MatrixCall:
    """A call z = x W^T + b.

    Attributes:
        x: what enters: features last, or (n, channels, *pixels) for a convolution.
        weight: the tensor that the caller passed: a parameter, a view of one, or computed from some.
        bias: b, or None.
        matrix: W as (d_out, d_in); d_in = channels * kernel size for a convolution, groups written out as zero blocks.
        convolution: geometry, or None for a plain product.
    """

    x: Tensor
    weight: Tensor
    bias: Tensor | None
    matrix: Tensor
    convolution: Convolution | None = None

    def rows_in(self) -> Tensor:
        """Inputs as rows (m, d_in): every token, or every patch of pixels, is a row."""
        if self.convolution is None:
            return self.x.reshape(-1, self.x.shape[-1])
        return _windows(self.x, self.convolution).reshape(-1, self.matrix.shape[1])

    def some_rows_in(self, indices: Tensor) -> Tensor:
        """Some of `rows_in`, without building the others."""
        if self.convolution is None:
            return self.rows_in()[indices]
        windows = _windows(self.x, self.convolution)
        positions = windows.shape[: len(self.convolution.kernel) + 1]
        return windows[torch.unravel_index(indices, positions)].reshape(len(indices), -1)

    def rows_out(self, z: Tensor) -> Tensor:
        """Outputs as rows (m, d_out): every token or pixel is a row."""
        if self.convolution is None:
            return z.reshape(-1, z.shape[-1])
        channels = z.ndim - len(self.convolution.kernel) - 1
        return z.movedim(channels, -1).reshape(-1, z.shape[channels])


def function_name(func: Callable[..., object]) -> str:
    """The bare name of a torch function, method or operator: `torch.ops.aten.relu.default` is "relu"."""
    name: str = getattr(func, "__name__", "")
    return name.split(".")[0]


def matrix_call(
    name: str, args: Sequence[object], kwargs: Mapping[str, object], is_parameter: Callable[[Tensor], bool]
) -> MatrixCall | None:
    """The matrix product that a torch function stands for, or None if it is none.

    Args:
        name: as `function_name` says.
        args: its positional arguments.
        kwargs: its named arguments.
        is_parameter: whether a tensor is a parameter or a view of one; plain products count only with these.
    """
    if name == "linear":
        x, weight, bias = _arguments(args, kwargs, ("input", "weight", "bias"))
        if isinstance(x, Tensor) and isinstance(weight, Tensor) and weight.ndim == 2 and _is_bias(bias):
            return MatrixCall(x, weight, _tensor(bias), weight)
    if name == "addmm":
        bias, x, weight = _arguments(args, kwargs, ("input", "mat1", "mat2"))
        is_plain = kwargs.get("alpha", 1) == 1 == kwargs.get("beta", 1) and _is_bias(bias)
        if is_plain and isinstance(x, Tensor) and _is_matrix(weight, x, is_parameter):
            return MatrixCall(x, weight, _tensor(bias), weight.mT)
    if name in _PRODUCTS:
        x, weight = _arguments(args, kwargs, ("input", "mat2" if name == "mm" else "other"))
        if isinstance(x, Tensor) and _is_matrix(weight, x, is_parameter):
            return MatrixCall(x, weight, None, weight.mT)
    if name in _CONVOLUTIONS:
        return _convolution_call(args, kwargs, _CONVOLUTIONS[name])
    if name in _TRANSPOSED:
        return _transposed_call(args, kwargs, _TRANSPOSED[name])
    return None


def _is_bias(value: object) -> bool:
    """Whether it is added to all rows alike; a matrix would be another input."""
    return not isinstance(value, Tensor) or value.ndim < 2


def _is_matrix(weight: object, x: Tensor, is_parameter: Callable[[Tensor], bool]) -> TypeGuard[Tensor]:
    """Whether it is a parameter that multiplies activations: a product of two parameters has no samples as rows."""
    return isinstance(weight, Tensor) and weight.ndim == 2 and is_parameter(weight) and not is_parameter(x)


def _convolution_call(args: Sequence[object], kwargs: Mapping[str, object], axes: int) -> MatrixCall | None:
    names = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
    x, weight, bias, stride, padding, dilation, groups = _arguments(args, kwargs, names)
    if not isinstance(x, Tensor) or not isinstance(weight, Tensor):
        return None
    kernel = tuple(weight.shape[2:])
    steps, gaps = _per_axis(stride, axes, 1), _per_axis(dilation, axes, 1)
    num_groups = groups if isinstance(groups, int) else 1
    geometry = Convolution(kernel, steps, _padding(padding, kernel, gaps), gaps, num_groups)
    return MatrixCall(x, weight, _tensor(bias), _full_matrix(weight, num_groups), geometry)


def _transposed_call(args: Sequence[object], kwargs: Mapping[str, object], axes: int) -> MatrixCall | None:
    names = ("input", "weight", "bias", "stride", "padding", "output_padding", "groups", "dilation")
    x, weight, bias, stride, padding, more, groups, dilation = _arguments(args, kwargs, names)
    if not isinstance(x, Tensor) or not isinstance(weight, Tensor):
        return None
    num_groups = groups if isinstance(groups, int) else 1
    apart = weight.reshape(num_groups, -1, *weight.shape[1:]).transpose(1, 2)
    turned = apart.flip([*range(3, 3 + axes)]).flatten(0, 1)  # (d_out, channels of the group, *kernel)
    kernel, gaps = tuple(turned.shape[2:]), _per_axis(dilation, axes, 1)
    cut, last = _per_axis(padding, axes, 0), _per_axis(more, axes, 0)
    left = [gap * (size - 1) - side for gap, size, side in zip(gaps, kernel, cut, strict=True)]
    sides = tuple((a, a + b) for a, b in zip(left, last, strict=True))
    geometry = Convolution(kernel, (1,) * axes, sides, gaps, num_groups, _per_axis(stride, axes, 1))
    return MatrixCall(x, weight, _tensor(bias), _full_matrix(turned, num_groups), geometry)


def _full_matrix(weight: Tensor, groups: int) -> Tensor:
    """(d_out, channels * kernel size), with zeros between the groups."""
    if groups == 1:
        return weight.reshape(len(weight), -1)
    blocks = weight.reshape(groups, len(weight) // groups, -1)
    return torch.block_diag(*blocks)


def _windows(x: Tensor, convolution: Convolution) -> Tensor:
    axes = len(convolution.kernel)
    x = x[None] if x.ndim == axes + 1 else x
    for axis, step in enumerate(convolution.spread, 2):
        shape = [*x.shape[:axis], (x.shape[axis] - 1) * step + 1, *x.shape[axis + 1 :]]
        x = x.new_zeros(shape).index_copy(axis, torch.arange(0, shape[axis], step, device=x.device), x)
    sides = [side for pair in reversed(convolution.padding) for side in pair]
    x = torch.nn.functional.pad(x, sides)
    for i, (size, step, gap) in enumerate(
        zip(convolution.kernel, convolution.stride, convolution.dilation, strict=True)
    ):
        x = x.unfold(2 + i, (size - 1) * gap + 1, step)[..., ::gap]
    return x.movedim(1, 1 + axes)  # (n, *positions, channels, *kernel)


def _padding(padding: object, kernel: tuple[int, ...], dilation: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    if padding == "same":
        totals = [gap * (size - 1) for size, gap in zip(kernel, dilation, strict=True)]
        return tuple((total // 2, total - total // 2) for total in totals)
    sizes = (0,) * len(kernel) if padding == "valid" else _per_axis(padding, len(kernel), 0)
    return tuple((size, size) for size in sizes)


def _per_axis(value: object, axes: int, default: int) -> tuple[int, ...]:
    if value is None:
        return (default,) * axes
    if isinstance(value, int):
        return (value,) * axes
    assert isinstance(value, Sequence)
    entries = tuple(int(v) for v in value)
    return entries * axes if len(entries) == 1 else entries


def _arguments(args: Sequence[object], kwargs: Mapping[str, object], names: tuple[str, ...]) -> list[object]:
    return [args[i] if i < len(args) else kwargs.get(name) for i, name in enumerate(names)]


def _tensor(value: object) -> Tensor | None:
    return value if isinstance(value, Tensor) else None


_BENDING = (
    "relu, leaky_relu, relu6, rrelu, prelu, _prelu_kernel, elu, selu, celu, gelu, silu, mish, tanh, sigmoid, "
    "logsigmoid, log_sigmoid, softplus, softsign, hardtanh, hardswish, hardsigmoid, threshold, tanhshrink, "
    "softshrink, hardshrink, erf, expit, sin, cos, clamp, clamp_min"
)
_OPERATIONS = "mul, add, sub, div, pow, square, exp, abs, sqrt, neg, rsub, multiply, true_divide, reciprocal"
_COPIES = "clone, detach, to, float, double, type_as, contiguous, identity, dropout, feature_dropout, alpha_dropout"
_OPERATORS = "mul, rmul, imul, add, radd, iadd, sub, rsub, isub, truediv, rtruediv, itruediv, pow, neg, abs"


def _names(listed: str) -> frozenset[str]:
    return frozenset(listed.split(", "))


def _with_in_place(listed: str) -> frozenset[str]:
    return _names(listed) | {f"{name}_" for name in _names(listed)}


ACTIVATIONS = _with_in_place(_BENDING)
HOMOGENEOUS = _with_in_place("relu, leaky_relu")
COPIES = _names(_COPIES)
ARITHMETIC = _with_in_place(_OPERATIONS) | COPIES | {f"__{name}__" for name in _names(_OPERATORS)}
SCALINGS = _with_in_place("mul, div, multiply, true_divide, neg") | _names(
    "__mul__, __rmul__, __imul__, __truediv__, __itruediv__, __neg__"
)
NORMALISATIONS = _names(
    "batch_norm, layer_norm, group_norm, instance_norm, rms_norm, local_response_norm, native_layer_norm, "
    "native_batch_norm, _native_batch_norm_legit_no_training"
)
REGROUPINGS = _names("view, reshape, flatten, unflatten, squeeze, unsqueeze, _unsafe_view, view_as, reshape_as")
SUMS = _names("add, add_, __add__, __radd__, __iadd__")


def overwritten(name: str, args: Sequence[object], kwargs: Mapping[str, object]) -> list[Tensor]:
    """The tensors into which a torch function writes, as its name says; what shares memory with them changes too."""
    if kwargs.get("out") is not None:
        return [*tensors_in([kwargs["out"]])]
    if name.startswith("__"):
        is_in_place = name in ("__setitem__", "__set__") or (
            name.startswith("__i") and name not in ("__index__", "__int__", "__invert__")
        )
        is_in_place = is_in_place and (name != "__set__" or isinstance(args[-1], Tensor))  # x.data = other
    else:
        is_in_place = name.endswith("_") or kwargs.get("inplace") is True
    if not is_in_place:
        return []
    # of a list of tensors all are written into: torch._foreach_add_
    return [*tensors_in(args[:1])] or [*tensors_in(kwargs)][:1]


def tensors_in(values: Sequence[object] | Mapping[str, object]) -> Iterator[Tensor]:
    """All tensors among arguments, lists and tuples of them included."""
    for value in values.values() if isinstance(values, Mapping) else values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from tensors_in(value)


def memory_of(tensor: Tensor) -> int:
    """Where its numbers lie, the same for all views of them; 0 where that is not known."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError):  # sparse tensors, and wrappers around others
        return 0


def memories_of(tensors: Sequence[Tensor]) -> set[int]:
    """The places in memory of some tensors, as far as they are known."""
    return {memory_of(t) for t in tensors} - {0}
