"""Operators of torch whose kernels take shapes on trust, and what is asked before an exported program calls one.

Called with the wrong shapes alone, each of these read or wrote outside of its tensors, or ended the process (torch 2.13
on a CPU). The list of operators that may be called at all: `files.program_operators`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from isthmus.errors import ShapeError

_MOST_REPEATS = 2**40


def _attention_fits(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> None:
    """The kernel of the CPU takes the shapes of key and value on trust, and reads beyond them."""
    heads = query.shape[-3:-2], key.shape[-3:-2]
    grouped = enable_gqa and len(heads[1]) == 1 and heads[1][0] > 0 and heads[0][0] % heads[1][0] == 0
    fits = (
        query.ndim == key.ndim == value.ndim >= 2
        and key.shape[:-1] == value.shape[:-1]
        and query.shape[:-3] == key.shape[:-3]
        and (heads[0] == heads[1] or grouped)
        and query.shape[-1] == key.shape[-1]
    )
    scores = (*query.shape[:-1], key.shape[-2])
    if attn_mask is not None:
        sides = zip(reversed(attn_mask.shape), reversed(scores), strict=False)
        fits = fits and attn_mask.ndim <= len(scores) and all(mask in {1, score} for mask, score in sides)
    if not fits:
        shapes = [tuple(t.shape) for t in (query, key, value, *([] if attn_mask is None else [attn_mask]))]
        raise ShapeError(f"scaled_dot_product_attention: shapes {shapes} do not fit.")


def _weight_norm_fits(v: Tensor, g: Tensor, dim: int = 0) -> None:
    """Its kernel takes the number of norms on trust, and divides by that of weights."""
    expected = [1] * v.ndim
    if dim != -1:
        expected[dim] = v.shape[dim]
    if not v.numel() or (list(g.shape) != expected and not (dim == -1 and g.ndim == 0)):
        raise ShapeError(f"_weight_norm: norms of shape {tuple(g.shape)} do not fit weights {tuple(v.shape)}.")


def _recurrence_fits(gates: int) -> Callable[..., None]:
    """A check of the shapes of weights and states, which the kernels take on trust."""

    def check(
        input: Tensor,
        hx: Any,
        params: Sequence[Tensor],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> None:
        if num_layers * (1 + bool(bidirectional)) * (2 + 2 * bool(has_biases)) != len(params) or num_layers < 1:
            raise ShapeError("a recurrent layer of the program: its weights do not fit the number of its layers.")
        states = list(hx) if gates == 4 else [hx]
        ways, width = 1 + bool(bidirectional), states[0].shape[-1]
        batch = input.shape[0 if batch_first else 1]
        needed: list[tuple[int, ...]] = []
        for layer in range(num_layers):
            entering = input.shape[-1] if layer == 0 else ways * width
            weights = [(gates * width, entering), (gates * width, width)] + [(gates * width,)] * (2 * has_biases)
            needed += weights * ways
        fits = input.ndim == 3 and len(states) == 1 + (gates == 4)
        fits = fits and all(tuple(s.shape) == (ways * num_layers, batch, width) for s in states)
        if not fits or [tuple(p.shape) for p in params] != needed:
            raise ShapeError("a recurrent layer of the program: its weights, states and inputs do not fit each other.")

    return check


def _repeats_fit(repeats: Tensor, *, output_size: int | None = None) -> None:
    """Its kernel trusts a sum that may have gone round 64 bits, and writes on behind its result."""
    if torch.compiler.is_compiling():  # traced, not run
        return
    if repeats.is_floating_point() or bool((repeats < 0).any()) or float(repeats.double().sum()) > _MOST_REPEATS:
        raise ShapeError(f"repeat_interleave: needs whole numbers >= 0 of sum at most {_MOST_REPEATS}.")


def _rows_repeat_fit(self: Tensor, repeats: Tensor, dim: int | None = None, *, output_size: int | None = None) -> None:
    _repeats_fit(repeats, output_size=output_size)


def _division_fits(self: Tensor, other: Tensor | float, *, rounding_mode: str | None) -> None:
    """The least integer divided by -1 has no value, and ends the process: no kernel looks."""
    if rounding_mode is None or self.is_floating_point() or self.dtype is torch.bool or torch.compiler.is_compiling():
        return
    if bool((torch.as_tensor(other) == -1).any()) and bool((self == torch.iinfo(self.dtype).min).any()):
        raise ShapeError("div: the least integer divided by -1 is larger than the largest.")


# kernels that read or write outside of tensors whose shapes do not fit, with what is asked first (torch 2.13, CPU)
CHECKED: dict[str, Callable[..., None]] = {
    "scaled_dot_product_attention.default": _attention_fits,
    "_weight_norm.default": _weight_norm_fits,
    "repeat_interleave.Tensor": _repeats_fit,
    "repeat_interleave.self_Tensor": _rows_repeat_fit,
    "div.Tensor_mode": _division_fits,
    "div.Scalar_mode": _division_fits,
    "divide.Tensor_mode": _division_fits,
    "divide.Scalar_mode": _division_fits,
    "lstm.input": _recurrence_fits(4),
    "gru.input": _recurrence_fits(3),
    "rnn_tanh.input": _recurrence_fits(1),
    "rnn_relu.input": _recurrence_fits(1),
}
# packed sequences
UNCHECKED = {"lstm.data", "gru.data", "rnn_tanh.data", "rnn_relu.data"}
