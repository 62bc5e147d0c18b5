"""`torch.nn.MultiheadAttention` taken apart, so that its four weight matrices are seen as layers.

Its own code multiplies inside one function. Here query, key and value are projected first, the same function then runs
with identity matrices in place of its weights, and the output projection comes last: the same numbers up to rounding.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional

Linear = Callable[[Callable[..., object], tuple[object, ...]], Tensor]
Saw = Callable[[Sequence[Tensor], Sequence[Tensor], None], None]
_SIGNATURE = inspect.signature(functional.multi_head_attention_forward)


def by_products(
    func: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object], heard: tuple[Linear, Saw]
) -> object:
    """`multi_head_attention_forward` with every product by a weight matrix handed on.

    Args:
        func: the function itself.
        args: its positional arguments.
        kwargs: its named arguments.
        heard: linear, called as linear(functional.linear, (x, weight, bias)), and what hears of the attention between.

    Returns:
        What the function returns.
    """
    linear, saw = heard
    bound = _SIGNATURE.bind(*args, **kwargs)
    bound.apply_defaults()
    given = bound.arguments
    weights = _projections(given)
    biases = given["in_proj_bias"].chunk(3) if given["in_proj_bias"] is not None else (None, None, None)
    for name, weight, bias in zip(("query", "key", "value"), weights, biases, strict=True):
        given[name] = linear(functional.linear, (given[name], weight, bias))
    out_weight, out_bias = given["out_proj_weight"], given["out_proj_bias"]
    one = torch.eye(given["embed_dim_to_check"], dtype=out_weight.dtype, device=out_weight.device)
    given |= {
        "use_separate_proj_weight": True, "q_proj_weight": one, "k_proj_weight": one, "v_proj_weight": one,
        "in_proj_weight": None, "in_proj_bias": None, "out_proj_weight": one, "out_proj_bias": None,
    }  # fmt: skip
    attended, attention = func(**given)  # pyright: ignore[reportGeneralTypeIssues]
    saw([given[name] for name in ("query", "key", "value")], [attended], None)
    return linear(functional.linear, (attended, out_weight, out_bias)), attention


def _projections(given: Mapping[str, object]) -> tuple[Tensor, ...]:
    if given["use_separate_proj_weight"]:
        weights = tuple(given[f"{letter}_proj_weight"] for letter in "qkv")
    else:
        packed = given["in_proj_weight"]
        assert isinstance(packed, Tensor)
        weights = packed.chunk(3)
    return tuple(w for w in weights if isinstance(w, Tensor))
