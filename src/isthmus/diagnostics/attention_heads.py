"""The heads of attention layers: which matrices make them, by the kinds of modules, and what their products show.

One class per way in which modules keep their weights, in `LAYOUTS`. Formulas: `theory.factor_products`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from isthmus.theory.factor_products import factor_gap, product_rank, product_singular_values
from isthmus.theory.spectra import energy_rank

_NUMBERS = ("num_heads", "num_attention_heads", "n_heads", "n_head", "heads")
_SIZES = ("head_dim", "attention_head_size", "head_size", "key_value_proj_dim")
SHARE = 0.99


@dataclass(frozen=True, slots=True)
class HeadWeights:
    """The matrices of one attention layer, head by head.

    Attributes:
        query: (heads, size, d).
        key: (heads, size, d); a key that several heads share stands for each of them.
        value: (heads, size, d).
        out: (heads, d_out, size), which takes the values of one head.
        out_name: of the module that holds `out`, within the attention layer.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    out: Tensor
    out_name: str

    @classmethod
    def of(cls, parts: tuple[Tensor, Tensor, Tensor, Tensor], count: int, out_name: str) -> "HeadWeights | None":
        """From W_Q, W_K, W_V (rows are features of heads) and W_O; None where they do not fit so many heads."""
        query, key, value, out = parts
        size = len(query) // max(count, 1)
        if not size or len(query) != count * size or len(key) % size or out.shape[1] % count:
            return None
        shared = len(key) // size
        own = out.shape[1] // count  # a head of values may be of a size of its own
        if not shared or count % shared or len(value) != shared * own:
            return None
        keys, values = (m.reshape(shared, -1, m.shape[1]).repeat_interleave(count // shared, 0) for m in (key, value))
        heads_out = out.reshape(len(out), count, own).movedim(1, 0)
        return cls(query.reshape(count, size, -1), keys, values, heads_out, out_name)


class Layout(Protocol):
    """A way in which attention layers keep their weights."""

    def heads_of(self, module: nn.Module) -> HeadWeights | None:
        """The heads of a module, None where it keeps them in another way or is no attention."""
        ...


@dataclass(frozen=True, slots=True)
class TorchAttention:
    """`torch.nn.MultiheadAttention`: packed, or one matrix each where keys or values have another width."""

    def heads_of(self, module: nn.Module) -> HeadWeights | None:
        """The heads of a module."""
        if not isinstance(module, nn.MultiheadAttention):
            return None
        held = dict(module.named_parameters(recurse=False))
        packed = held.get("in_proj_weight")
        apart = [held.get(f"{letter}_proj_weight") for letter in "qkv"]
        query, key, value = apart if packed is None else packed.chunk(3)
        if query is None or key is None or value is None:
            return None  # parametrised
        return HeadWeights.of((query, key, value, module.out_proj.weight), module.num_heads, "out_proj")


@dataclass(frozen=True, slots=True)
class Separate:
    """A layer for each of query, key, value and output, by their names.

    Attributes:
        names: of the four layers, within the attention layer.
    """

    names: tuple[str, str, str, str]

    def heads_of(self, module: nn.Module) -> HeadWeights | None:
        """The heads of a module."""
        found = [_matrix(module, name) for name in self.names]
        query, key, value, out = found
        if query is None or key is None or value is None or out is None:
            return None
        return HeadWeights.of((query, key, value, out), _count(module, len(query)), self.names[3])


@dataclass(frozen=True, slots=True)
class Packed:
    """One layer for query, key and value, one for the output.

    Attributes:
        names: of the two layers.
        by_head: whether query, key and value of the first head come before those of the second.
    """

    names: tuple[str, str]
    by_head: bool = False

    def heads_of(self, module: nn.Module) -> HeadWeights | None:
        """The heads of a module."""
        packed, out = (_matrix(module, name) for name in self.names)
        if packed is None or out is None or getattr(module, "new_decoder_architecture", False):
            return None  # groups of heads that share a key (Falcon)
        shares = getattr(module, "multi_query", None)  # GPTBigCode and Falcon: one key and value for all,
        if shares:
            width, size = out.shape[1], (len(packed) - out.shape[1]) // 2
            query, key, value = packed[:width], packed[width : width + size], packed[width + size :]
            return HeadWeights.of((query, key, value, out), _count(module, width), self.names[1])
        if len(packed) % 3:
            return None
        width = len(packed) // 3
        count = _count(module, width)
        if (self.by_head or shares is False) and count and not width % count:
            packed = packed.reshape(count, 3, -1, packed.shape[1]).movedim(1, 0).reshape(len(packed), -1)
        query, key, value = packed.chunk(3)
        return HeadWeights.of((query, key, value, out), count, self.names[1])


LAYOUTS: tuple[Layout, ...] = (
    TorchAttention(),
    Packed(("c_attn", "c_proj")),  # GPT-2
    Packed(("qkv", "proj")),  # timm
    Packed(("query_key_value", "dense"), by_head=True),  # GPT-NeoX
    Separate(("q_proj", "k_proj", "v_proj", "o_proj")),  # Llama, ViT
    Separate(("q_proj", "k_proj", "v_proj", "out_proj")),  # CLIP, BART, OPT
    Separate(("self.query", "self.key", "self.value", "output.dense")),  # BERT
    Separate(("attention.query", "attention.key", "attention.value", "output.dense")),  # ViT until transformers 4
    Separate(("q_lin", "k_lin", "v_lin", "out_lin")),  # DistilBERT
    Separate(("q", "k", "v", "o")),  # T5
    Separate(("wq", "wk", "wv", "wo")),
    Separate(("to_q", "to_k", "to_v", "to_out.0")),  # diffusers
)


def heads_of(module: nn.Module) -> dict[str, HeadWeights]:
    """The heads of every attention layer of a module, by the name of its output projection."""
    found: dict[str, HeadWeights] = {}
    for name, part in module.named_modules():
        heads = next((h for layout in LAYOUTS if (h := layout.heads_of(part)) is not None), None)
        if heads is not None:
            found[f"{name}.{heads.out_name}" if name else heads.out_name] = heads
    return found


def add_head_columns(table: xr.Dataset, module: nn.Module) -> None:
    """Ranks, spectra and balance of the products of every head, in the row of its output projection.

    Args:
        table: gets the columns, NaN in other rows; nothing if no attention layer has a row.
        module: whose weights are read, as they are stored.
    """
    rows = {str(name): place for place, name in enumerate(table["name"].values)}
    heads = {rows[name]: weights for name, weights in heads_of(module).items() if name in rows}
    if not heads:
        return
    read = {place: _readings(weights) for place, weights in heads.items()}
    for name in next(iter(read.values())):
        column = _padded({place: values[name] for place, values in read.items()}, table.sizes["layer"])
        table[name] = (("layer", "head", "direction")[: column.ndim], column)
    table.coords["head"] = np.arange(1, table.sizes["head"] + 1)


def _readings(heads: HeadWeights) -> dict[str, Tensor]:
    """By head: what its two products show."""
    eps = torch.finfo(heads.query.dtype).eps
    query, key, value, out = (m.detach().double().cpu() for m in (heads.query, heads.key, heads.value, heads.out))
    pairs = {"qk": (query.mT, key), "ov": (out, value)}
    found: dict[str, Tensor] = {}
    for name, (outer, inner) in pairs.items():
        values = product_singular_values(outer, inner)
        found[f"{name}_rank"] = product_rank(outer, inner, eps=eps)
        found[f"{name}_rank_99"] = energy_rank(values, share=SHARE)
        found[f"{name}_singular_values"] = values
    found["balance_gap"] = sum((factor_gap(*pair) for pair in pairs.values()), torch.zeros(len(query)))
    weights = [m.square().sum((1, 2)) for m in (query, key, value, out)]
    found["balance_gap_share"] = found["balance_gap"] / (sum(weights[1:], weights[0]) / 2).clamp_min(1e-300)
    return found


def _padded(values: dict[int, Tensor], num_layers: int) -> np.ndarray:
    shape = np.max([v.shape for v in values.values()], axis=0)
    out = np.full((num_layers, *shape), np.nan)
    for place, v in values.items():
        out[(place, *map(slice, v.shape))] = v.numpy()
    return out


def _matrix(module: nn.Module, name: str) -> Tensor | None:
    """W of a layer, (d_out, d_in); None where there is none of this name."""
    part: object = module
    for step in name.split("."):
        part = getattr(part, "_modules", {}).get(step)
    weight = getattr(part, "weight", None)
    if not isinstance(part, nn.Module) or not isinstance(weight, Tensor) or weight.ndim != 2:
        return None
    return weight.mT if type(part).__name__ == "Conv1D" else weight  # transformers keep it the other way round


def _count(module: nn.Module, width: int) -> int:
    """Number of heads whose queries together are so wide; 0 where the module does not say."""
    places = [module, *module.children()]
    settings = [config for place in places if (config := getattr(place, "config", None)) is not None]
    sizes = _whole_numbers(places, _SIZES)
    if sizes:
        return width // sizes[0]
    return next(iter(_whole_numbers([*places, *settings], _NUMBERS)), 0)


def _whole_numbers(places: Sequence[object], names: Sequence[str]) -> list[int]:
    found = [getattr(place, name, None) for place in places for name in names]
    return [number for number in found if isinstance(number, int) and number > 0]
