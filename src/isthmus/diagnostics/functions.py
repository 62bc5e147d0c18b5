"""Which torch functions act entry by entry, which only normalise or regroup: how the activation of a layer is found.

Rule: from z on, follow functions of z alone. The first known activation function among them makes the last such tensor
the activation; a sum with anything else, a product with another tensor, or a matrix ends the search. *Heuristic* only
in the lists below: a function that stands in none of them ends the search too.
"""

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
ARITHMETIC = _with_in_place(_OPERATIONS) | _names(_COPIES) | {f"__{name}__" for name in _names(_OPERATORS)}
NORMALISATIONS = _names(
    "batch_norm, layer_norm, group_norm, instance_norm, rms_norm, local_response_norm, native_layer_norm, "
    "native_batch_norm, _native_batch_norm_legit_no_training"
)
REGROUPINGS = _names("view, reshape, flatten, unflatten, squeeze, unsqueeze, _unsafe_view, view_as, reshape_as")
SUMS = _names("add, add_, __add__, __radd__, __iadd__")


def is_in_place(name: str, kwargs: dict[str, object]) -> bool:
    """Whether a torch function overwrites its first argument."""
    if name.startswith("__"):
        return name == "__setitem__" or (name.startswith("__i") and name not in ("__index__", "__int__", "__invert__"))
    return name.endswith("_") or kwargs.get("inplace") is True or kwargs.get("out") is not None
