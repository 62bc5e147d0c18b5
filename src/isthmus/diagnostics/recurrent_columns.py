"""Columns of the table for recurrences: spectra of hidden states, and the matrices of input and states gate by gate.

How they are seen: `recurrences`. What is summed over the data: `layer_sums`. Attention by heads: `attention_heads`.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from isthmus.diagnostics.gaps import gap_integer
from isthmus.diagnostics.layer_sums import LayerSums, StateSums
from isthmus.theory.spectra import energy_rank, numerical_rank

SIDES = ("input", "hidden")
SHARE = 0.99


def add_recurrent_columns(table: xr.Dataset, layers: Sequence[LayerSums]) -> None:
    """Spectra and ranks of hidden states, and ranks and spectra of both matrices by gate, in rows of input matrices.

    Args:
        table: gets the columns, NaN in other rows; nothing without a recurrence.
        layers: its rows.
    """
    found = {
        place: _readings(layer.weight, layer.recurrent)
        for place, layer in enumerate(layers)
        if layer.recurrent is not None
    }
    if not found:
        return
    for name, dimensions in _DIMENSIONS.items():
        shape = np.max([np.shape(values[name]) for values in found.values()], axis=0).astype(int)
        column = np.full((len(layers), *shape), math.nan)
        for place, values in found.items():
            column[(place, *map(slice, np.shape(values[name])))] = values[name]
        table[name] = (("layer", *dimensions), column)
    table.coords["side"] = [*SIDES]
    table.coords["gate"] = np.arange(1, table.sizes["gate"] + 1)


_DIMENSIONS: dict[str, tuple[str, ...]] = {
    "state_dimension": (),
    "state_rank_99": (),
    "state_singular_values": ("state",),
    "gate_rank": ("side", "gate"),
    "gate_rank_99": ("side", "gate"),
    "gate_singular_values": ("side", "gate", "along"),
}


def _readings(weight: Tensor, found: StateSums) -> dict[str, np.ndarray]:
    """What one row says."""
    values = found.states.factor().values.cpu()
    gates = [[part.cpu() for part in matrix.chunk(found.gates)] for matrix in (weight, found.hidden)]
    longest = max(min(part.shape) for side in gates for part in side)
    spectra = torch.full((len(SIDES), found.gates, longest), math.nan, dtype=torch.float64)
    ranks, most = (torch.zeros(len(SIDES), found.gates) for _ in range(2))
    for i, side in enumerate(gates):
        for j, part in enumerate(side):
            spectra[i, j, : min(part.shape)] = own = torch.linalg.svdvals(part)
            ranks[i, j] = numerical_rank(part.float())  # weights are rounded to that at the best
            most[i, j] = energy_rank(own, share=SHARE)
    numbers = {"state_dimension": gap_integer(values, rows=found.rows, width=len(values)),
               "state_rank_99": int(energy_rank(values, share=SHARE))}  # fmt: skip
    columns = {"state_singular_values": values, "gate_rank": ranks, "gate_rank_99": most,
               "gate_singular_values": spectra}  # fmt: skip
    return {name: np.array(n) for name, n in numbers.items()} | {name: t.numpy() for name, t in columns.items()}
