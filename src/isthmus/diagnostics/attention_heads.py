"""The heads of attention layers: what the products of their matrices show.

Which rows make a head: `attention_splits` and `attention_probe`. Formulas: `theory.factor_products`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from isthmus.diagnostics.attention_probe import Evaluate, FoundSplit, true_splits
from isthmus.diagnostics.attention_splits import HeadRows, HeadSplit, candidates, is_within
from isthmus.diagnostics.listener import Reading
from isthmus.theory.factor_products import factor_gap, product_rank, product_singular_values
from isthmus.theory.spectra import energy_rank

SHARE = 0.99
UNTOLD = "its heads are in no column: no split of its matrices gives what it computes"


@dataclass(frozen=True, slots=True)
class HeadWeights:
    """The matrices of one attention layer, head by head.

    Attributes:
        query: (heads, size, d).
        key: (heads, size, d); a key that several heads share stands for each of them.
        value: (heads, size, d).
        out: (heads, d_out, size), which takes the values of one head.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    out: Tensor

    @classmethod
    def of(cls, split: HeadSplit, matrices: Mapping[int, Tensor]) -> "HeadWeights":
        """Those of the matrices of its calls, float64."""

        def part(rows: HeadRows) -> Tensor:
            matrix = matrices[rows.call].detach()
            return matrix[rows.numbers.to(matrix.device)].cpu().double()

        out = matrices[split.out.call].detach()
        columns = out.mT[split.out.numbers.to(out.device)].cpu().double()
        return cls(part(split.query), part(split.key), part(split.value), columns.mT)


def heads_of(
    module: nn.Module, readings: Sequence[Reading], evaluate: Evaluate, *, is_dear: bool = False
) -> tuple[dict[int, FoundSplit], list[tuple[str, str]]]:
    """The heads of every attention layer, by the call of its output projection, and modules whose heads are not told.

    Args:
        module: whose layers these are.
        readings: the calls of its matrices, in their order.
        evaluate: passes some samples through the module while a listener hears.
        is_dear: whether it takes all samples at once, so that little is tried.

    Returns:
        The heads; name and reason of attention that says how many heads it has, and computes with none that were tried.
    """
    tried = candidates(module, readings)
    found = true_splits(tried, evaluate, is_dear=is_dear)
    told = [readings[call].name for split, _ in found.values() for call in split.calls]
    owners = dict.fromkeys(t.owner for t in tried.values() if t.owner is not None)
    untold = [owner for owner in owners if not any(is_within(name, owner) for name in told)]
    return found, [(name or type(module).__name__, UNTOLD) for name in untold]


def add_head_columns(table: xr.Dataset, heads: Mapping[int, FoundSplit], dtype: torch.dtype) -> None:
    """Ranks, spectra and balance of the products of every head, in the row of its output projection.

    Args:
        table: gets the columns, NaN in other rows; nothing without heads.
        heads: by the row.
        dtype: in which their weights are stored.
    """
    if not heads:
        return
    read = {place: _readings(HeadWeights.of(*found), torch.finfo(dtype).eps) for place, found in heads.items()}
    for name in next(iter(read.values())):
        column = _padded({place: values[name] for place, values in read.items()}, table.sizes["layer"])
        table[name] = (("layer", "head", "direction")[: column.ndim], column)
    table.coords["head"] = np.arange(1, table.sizes["head"] + 1)


def _readings(heads: HeadWeights, eps: float) -> dict[str, Tensor]:
    """By head: what its two products show."""
    query, key, value, out = heads.query, heads.key, heads.value, heads.out
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
