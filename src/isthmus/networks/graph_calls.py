"""Calls of functions in a traced graph (F.relu, x.flatten(1), aten.linear) as the modules that compute the same.

What a module then is to a chain: `networks.stage_kinds`. Cutting a graph into steps: `networks.graph_stages`.
"""

from collections.abc import Callable, Mapping
from types import FunctionType

import torch
from torch import Tensor, fx, nn

from isthmus.networks.stage_kinds import is_flatten

Attribute = Callable[[str], object]

# functional form -> its module and the names of the arguments after the input
_FUNCTIONS: Mapping[str, tuple[type[nn.Module], tuple[str, ...]]] = {
    "relu": (nn.ReLU, ()),
    "leaky_relu": (nn.LeakyReLU, ("negative_slope",)),
    "gelu": (nn.GELU, ("approximate",)),
    "silu": (nn.SiLU, ()),
    "tanh": (nn.Tanh, ()),
    "sigmoid": (nn.Sigmoid, ()),
    "elu": (nn.ELU, ("alpha",)),
    "selu": (nn.SELU, ()),
    "softplus": (nn.Softplus, ("beta", "threshold")),
    "mish": (nn.Mish, ()),
    "relu6": (nn.ReLU6, ()),
    "hardtanh": (nn.Hardtanh, ("min_val", "max_val")),
    "hardswish": (nn.Hardswish, ()),
    "flatten": (nn.Flatten, ("start_dim", "end_dim")),
    "max_pool2d": (nn.MaxPool2d, ("kernel_size", "stride", "padding", "dilation", "ceil_mode")),
    "avg_pool2d": (
        nn.AvgPool2d,
        ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override"),
    ),
    "adaptive_avg_pool2d": (nn.AdaptiveAvgPool2d, ("output_size",)),
    "max_pool1d": (nn.MaxPool1d, ("kernel_size", "stride", "padding", "dilation", "ceil_mode")),
    "avg_pool1d": (nn.AvgPool1d, ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad")),
    "adaptive_avg_pool1d": (nn.AdaptiveAvgPool1d, ("output_size",)),
}
# arguments that change no number where they have these values, whatever the function
_WITHOUT_EFFECT: Mapping[str, tuple[object, ...]] = {"inplace": (True, False), "return_indices": (False,)}
_WRITING = {
    f"i{name}" for name in ("add", "sub", "mul", "truediv", "floordiv", "pow", "mod", "and", "or", "xor", "matmul")
}
_VOID = ("dropout", "feature_dropout", "alpha_dropout", "contiguous", "detach", "clone")
_WEIGHTED: Mapping[str, tuple[str, ...]] = {
    "linear": ("weight", "bias"),
    "conv1d": ("weight", "bias", "stride", "padding", "dilation", "groups"),
    "conv2d": ("weight", "bias", "stride", "padding", "dilation", "groups"),
    "batch_norm": ("weight", "bias", "running_mean", "running_var", "training", "momentum", "eps", "cudnn_enabled"),
}


def module_of_call(node: fx.Node, attribute: Attribute) -> nn.Module | None:
    """The module that computes a call of a function or method; None where there is no such module.

    None also where an argument is no setting of that module, and would be lost.

    Args:
        node: of a graph; its tensors other than the input are attributes of the graph.
        attribute: the tensor of a dotted name.
    """
    name = function_name(node)
    if isinstance(node.target, FunctionType) and not node.target.__module__.startswith("torch."):
        return None  # a function of the caller's that is called as one of torch is
    if name in _VOID:
        return nn.Identity()
    if _is_flattening(node):
        return nn.Flatten()
    if name in {"pad", "constant_pad_nd"}:
        return _padding(node)
    if name in _WEIGHTED:
        return _with_weights(name, node, attribute)
    if name not in _FUNCTIONS:
        return None
    kind, names = _FUNCTIONS[name]
    given = _given(node, names)
    if given is None or any(isinstance(value, fx.Node) for value in given.values()):
        return None
    if not given.get("stride", True):
        del given["stride"]
    if kind is nn.Flatten:  # the function begins with the samples, the module behind them
        given.setdefault("start_dim", 0)
    module = kind(**given)  # pyright: ignore[reportArgumentType]
    return None if kind is nn.Flatten and not is_flatten(module) else module


def function_name(node: fx.Node) -> str:
    """The bare name of what a node calls: "relu" for torch.relu, F.relu, x.relu() and aten.relu.default."""
    return _full_name(node).rstrip("_")


def is_in_place(node: fx.Node) -> bool:
    """Whether a node calls what writes into its first argument: x.relu_(), x += y, x[0] = y."""
    name = _full_name(node)
    return name.endswith("_") or name == "setitem" or name in _WRITING


def _full_name(node: fx.Node) -> str:
    schema = getattr(node.target, "_schema", None)
    return str(schema.name.split("::")[-1] if schema is not None else getattr(node.target, "__name__", node.target))


def is_batch_size(node: fx.Node) -> bool:
    """Whether a node is len(x), asked for only to flatten something into rows."""
    asks = function_name(node) in {"size", "sym_size"} and node.args[1:] == (0,)
    return asks and all(_is_flattening(user) for user in node.users)


def _is_flattening(node: fx.Node) -> bool:
    """Whether a node is x.view(len(x), -1) in one of its spellings."""
    if function_name(node) not in {"view", "reshape"}:
        return False
    shape = node.args[1] if isinstance(node.args[1], list | tuple) else node.args[1:]
    return len(shape) == 2 and isinstance(shape[0], fx.Node) and isinstance(shape[1], int)


def _padding(node: fx.Node) -> nn.Module | None:
    """Zeros around the pixels of one or two axes; None for another padding."""
    given = _given(node, ("pad", "value") if function_name(node) != "pad" else ("pad", "mode", "value"))
    if given is None:
        return None
    sides, is_zero = given.get("pad"), given.get("mode", "constant") == "constant" and not given.get("value")
    if not is_zero or not isinstance(sides, tuple) or not all(isinstance(side, int) for side in sides):
        return None
    kind = {2: nn.ZeroPad1d, 4: nn.ZeroPad2d}.get(len(sides))
    return None if kind is None else kind(sides)


def _given(node: fx.Node, names: tuple[str, ...]) -> dict[str, object] | None:
    """What a call gives besides its input, by these names; None where it gives anything else that has an effect."""
    others = node.args[1 + len(names) :]
    if any(other is not None for other in others):
        return None
    given = dict(zip(names, node.args[1:], strict=False))
    for name, value in node.kwargs.items():
        if name in names:
            given[name] = value
        elif value is not None and value not in _WITHOUT_EFFECT.get(name, ()):
            return None
    return {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}


def _with_weights(name: str, node: fx.Node, attribute: Attribute) -> nn.Module | None:
    """A layer from the attributes that its functional form is called with."""
    if name == "batch_norm" and not isinstance(node.target, torch._ops.OpOverload):  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        return None  # F.batch_norm has another order of arguments
    given = _given(node, _WEIGHTED[name])
    if given is None:
        return None
    tensors: dict[str, Tensor] = {}
    for key in ("weight", "bias", "running_mean", "running_var"):
        value = given.pop(key, None)
        if value is None:
            continue
        found = attribute(str(value.target)) if isinstance(value, fx.Node) and value.op == "get_attr" else None
        if not isinstance(found, Tensor):
            return None
        tensors[key] = found
    if "weight" not in tensors or any(isinstance(value, fx.Node) for value in given.values()):
        return None
    return _layer(name, tensors, given, node)


def _layer(name: str, tensors: dict[str, Tensor], given: dict[str, object], node: fx.Node) -> nn.Module | None:
    weight = tensors["weight"]
    if name == "linear":
        layer: nn.Module = nn.Linear(weight.shape[1], weight.shape[0], bias="bias" in tensors)
    elif name in {"conv1d", "conv2d"}:
        groups = given.pop("groups", 1)
        size = tuple(weight.shape[2:])
        shape = {"in_channels": weight.shape[1], "out_channels": weight.shape[0], "kernel_size": size}
        if groups != 1:
            return None
        layer = (nn.Conv1d if name == "conv1d" else nn.Conv2d)(**shape, bias="bias" in tensors, **given)  # pyright: ignore[reportArgumentType]
    else:
        value = node.meta.get("val")
        kind = nn.BatchNorm2d if isinstance(value, Tensor) and value.ndim == 4 else nn.BatchNorm1d
        if given.get("training") or "running_mean" not in tensors:
            return None
        layer = kind(len(weight), eps=float(str(given.get("eps", 1e-5))))
    for key, tensor in tensors.items():
        if key in dict(layer.named_parameters(recurse=False)):
            own = tensor if isinstance(tensor, nn.Parameter) else nn.Parameter(tensor, requires_grad=False)
            setattr(layer, key, own)  # itself: what is tied stays tied
        else:
            setattr(layer, key, tensor)
    return layer.eval()
