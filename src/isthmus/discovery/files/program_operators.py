"""What the graph of an exported program may call: pure operators of aten by name, and arithmetic of shapes.

A list of what is known to touch nothing but tensors; whatever is not on it is refused, also what a later torch adds.
The graph itself: `files.program_graphs`.
"""

import math
import operator
import re
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import torch
from torch._ops import OpOverload

from isthmus.discovery.files.program_kernels import CHECKED, UNCHECKED

_ATEN = re.compile(r"torch\.ops\.aten\.(\w+)\.(\w+)", re.ASCII)
_LARGEST = 2**63 - 1

# An operator that changes its input (relu_) counts as the one it is named after. Not here although they compute:
# operators that take sizes on trust and read past the end of a tensor (native_batch_norm, native_group_norm, the
# kernels behind attention), read or write files (save, from_file), or exchange storages (set, resize, as_strided).
_PURE = frozenset(
    """
    abs acos acosh adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
    adaptive_max_pool2d adaptive_max_pool3d add addcdiv addcmul addmm addmv affine_grid_generator alias all
    alpha_dropout amax amin aminmax any arange argmax argmin argsort asin asinh atan atan2 atanh avg_pool1d
    avg_pool2d avg_pool3d baddbmm batch_norm bernoulli bilinear bitwise_and bitwise_left_shift bitwise_not
    bitwise_or bitwise_right_shift bitwise_xor bmm broadcast_tensors broadcast_to bucketize cat cdist ceil celu
    channel_shuffle chunk clamp clamp_max clamp_min clip clone col2im concat concatenate constant_pad_nd contiguous
    conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution copy copysign cos cosh
    cosine_similarity count_nonzero cross cumprod cumsum deg2rad detach diag diag_embed diagonal diff digamma dist
    div divide dot dropout einsum elu embedding empty empty_like eq erf erfc erfinv exp exp2 expand expand_as expm1
    eye feature_alpha_dropout feature_dropout fill flatten flip fliplr flipud float_power floor floor_divide fmax
    fmin fmod frac full full_like gather ge gelu ger glu greater greater_equal grid_sampler group_norm gru gt
    hardshrink hardsigmoid hardswish hardtanh heaviside hstack hypot i0 im2col index index_add index_copy index_fill
    index_put index_select inner instance_norm isclose isfinite isinf isnan item kron layer_norm ldexp le leaky_relu
    lerp less less_equal lgamma lift_fresh lift_fresh_copy linalg_matrix_norm linalg_norm linalg_vector_norm linear
    linspace log log10 log1p log2 log_sigmoid log_softmax logaddexp logaddexp2 logcumsumexp logical_and logical_not
    logical_or logical_xor logit logsumexp lstm lt masked_fill masked_scatter masked_select matmul matrix_H max
    max_pool1d max_pool2d max_pool2d_with_indices max_pool3d maximum mean median meshgrid mH min minimum mish mm
    moveaxis movedim mT mul multiply mv nan_to_num nanmean nansum narrow native_dropout native_layer_norm ne neg
    negative new_empty new_full new_ones new_zeros nonzero norm not_equal numpy_T one_hot ones ones_like outer pad
    pairwise_distance permute pixel_shuffle pixel_unshuffle polar positive pow prelu prod rad2deg rand rand_like
    randn randn_like ravel reciprocal reflection_pad1d reflection_pad2d reflection_pad3d relu relu6 remainder repeat
    repeat_interleave replication_pad1d replication_pad2d replication_pad3d reshape reshape_as rms_norm rnn_relu
    rnn_tanh roll rot90 round rrelu rsqrt rsub scalar_tensor scaled_dot_product_attention scatter scatter_add
    scatter_reduce select select_scatter selu sgn sigmoid sign signbit silu sin sinc sinh slice slice_scatter
    softmax softplus softshrink sort split split_with_sizes sqrt square squeeze stack std std_mean sub subtract sum
    swapaxes swapdims sym_numel sym_size sym_storage_offset sym_stride t take take_along_dim tan tanh tensor_split
    tensordot threshold tile to topk transpose trapezoid tril tril_indices triu triu_indices true_divide trunc
    type_as unbind unflatten unfold unsqueeze upsample_bicubic2d upsample_bilinear2d upsample_linear1d
    upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_trilinear3d var var_mean view view_as vstack
    where xlogy zero zeros zeros_like _adaptive_avg_pool2d _log_softmax _softmax _to_copy _unsafe_view _weight_norm
    """.split()  # noqa: SIM905 - a page of quoted words is no easier to read
)
# conditions on shapes and types that torch checks while a program runs; the program computes the same without them
CHECKS = re.compile(
    r"torch\.ops\.aten\.(_assert_async|_assert_scalar|_assert_tensor_metadata|sym_constrain_range"
    r"|sym_constrain_range_for_size)\.\w+",
    re.ASCII,
)


def pure_operator(target: str) -> tuple[Callable[..., Any], OpOverload] | None:
    """What a graph calls `target`: a function that computes it and the operator of aten behind that.

    None unless it is a known operator that only computes.
    """
    named = _ATEN.fullmatch(target)
    if named is None:
        return None
    name, overload = named[1], named[2]
    if name not in _PURE and name.removesuffix("_") not in _PURE:
        return None
    packet = getattr(torch.ops.aten, name, None)
    if packet is None or overload not in packet.overloads() or not _has_kernel(name, overload):
        return None
    found = getattr(packet, overload)
    # what writes elsewhere than into its own first argument ("out") has no place in a graph
    written = [a for a in arguments_of(found) if a.alias_info is not None and a.alias_info.is_write]
    if any(argument.kwarg_only for argument in written) or f"{name}.{overload}" in UNCHECKED:
        return None
    check = CHECKED.get(f"{name.removesuffix('_')}.{overload}")
    return (found if check is None else _after(check, found)), found


def _has_kernel(name: str, overload: str) -> bool:
    """Whether an overload computes on tensors; the others are steps of TorchScript, which divide by 0 unasked."""
    try:
        torch._C._dispatch_find_schema_or_throw(f"aten::{name}", overload.replace("default", ""))  # pyright: ignore[reportPrivateUsage]
    except RuntimeError:
        return False
    return True


def _after(check: Callable[..., None], found: OpOverload) -> Callable[..., Any]:
    """An operator that is called once the shapes of its arguments are known to fit."""

    def checked(*args: Any, **kwargs: Any) -> Any:
        check(*args, **kwargs)
        return found(*args, **kwargs)

    # by which a graph names it
    checked.__name__ = str(found.overloadpacket.__name__)
    checked.__qualname__ = f"pure_operator.{checked.__name__}"
    return checked


def arguments_of(found: OpOverload) -> list[Any]:
    """The arguments of an operator, each with its name; torch has no public way to them."""
    return list(found._schema.arguments)  # pyright: ignore[reportPrivateUsage]


def _within_64_bits(name: str, compute: Callable[..., Any]) -> Callable[..., Any]:
    """`compute`, whose result is a number of at most 64 bits: a chain of products could take all memory there is."""

    def checked(*values: Any) -> Any:
        if any(isinstance(value, str | list | tuple | dict) for value in values) and name != "sym_sum":
            raise TypeError(f"{name}: needs numbers")  # a list times 2**33 is a large list
        result = compute(*values)
        if type(result) is int and abs(result) > _LARGEST:
            raise OverflowError(f"{name}: a shape of more than 64 bits")
        return result

    checked.__name__, checked.__qualname__ = name, f"SHAPE_ARITHMETIC.{name}"
    return checked


def _power(base: Any, exponent: Any) -> Any:
    """Powers of whole numbers in steps, so that 9 ** 9 ** 9 is refused before it is computed."""
    if type(base) is int and type(exponent) is int and abs(base) > 1 and exponent > 64:
        raise OverflowError("pow: a shape of more than 64 bits")
    return base**exponent


SHAPE_ARITHMETIC = MappingProxyType(
    {
        f"{room}.{name}": _within_64_bits(name, compute)
        for room, table in {
            "_operator": {
                "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
                "floordiv": operator.floordiv, "mod": operator.mod, "pow": _power, "neg": operator.neg,
                "pos": operator.pos, "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
                "gt": operator.gt, "ge": operator.ge, "and_": operator.and_, "or_": operator.or_,
                "not_": operator.not_,
            },
            "torch": {
                "sym_max": torch.sym_max, "sym_min": torch.sym_min, "sym_int": torch.sym_int,
                "sym_float": torch.sym_float, "sym_not": torch.sym_not, "sym_ite": torch.sym_ite,
                "sym_sum": torch.sym_sum,
            },
            "math": {"ceil": math.ceil, "floor": math.floor, "trunc": math.trunc, "sqrt": math.sqrt},
        }.items()
        for name, compute in table.items()
    }
)  # fmt: skip
