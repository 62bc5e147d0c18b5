"""What a diagnosis tells tools that compress or adapt: the error of every rank in every layer, and budgets of ranks.

The numbers by layer: `table`. Who compresses here: `discovery.chains`.
"""

import re

import numpy as np
import xarray as xr

from isthmus.diagnostics.diagnosis import Diagnosis
from isthmus.theory.inputs import Real

SHARE = 0.9  # of the energy of what a layer gives, which an adapter's rank holds
ALPHA = 2  # alpha over rank, as LoRA is usually scaled


def rank_errors(spectrum: np.ndarray) -> dict[str, float]:
    """Relative error of keeping the first k directions, k = 1, 2, 4, .. up to all of them (*exact*).

        sqrt(sum_{i > k} s_i^2 / sum s_i^2)

    Args:
        spectrum: singular values, falling; NaN at the end counts as nothing.

    Returns:
        Errors by k as a text, as JSON has keys; nothing for a zero spectrum.
    """
    energy = np.square(spectrum[np.isfinite(spectrum)])
    if not energy.size or not energy.sum():
        return {}
    left = np.append(np.cumsum(energy[::-1])[::-1], 0.0) / energy.sum()  # from the small end: nothing cancels
    ranks = sorted({2**i for i in range(energy.size.bit_length()) if 2**i < energy.size} | {energy.size})
    return {str(k): float(np.sqrt(left[k])) for k in ranks}


def rank_budgets(found: Diagnosis, *, share: Real = SHARE) -> dict[str, object]:
    """Ranks and errors of every layer as plain values, ready for JSON.

    Args:
        found: of `diagnose`.
        share: of the energy of what a layer gives on the data, in (0, 1]: as many directions as hold it are its rank.

    Returns:
        "rank", of the network, None where none stands out; "layers", name -> rank, data_error (of its outputs, by
        rank) and weight_error (of its matrix, by rank); "rank_pattern" and "alpha_pattern" for `peft.LoraConfig`, of
        the layers that are modules with one matrix used once and no groups, whose ranks peft wants to be multiples of
        their number. Keys are patterns from the beginning of a name to its end, for adapters of the module itself:
        peft takes "conv1" for layer1.conv1 too, "^conv1" for it alone. *Estimates* on the data of the diagnosis.

    Raises:
        ValueError: `share` is out of its range.
    """
    if not 0 < share <= 1:
        raise ValueError(f"rank_budgets(share={share}): needs a share of the energy in (0, 1].")
    rows = [found.layers.isel(layer=i) for i in range(found.layers.sizes["layer"])]
    layers = {str(row["name"].item()): _of_layer(row, share) for row in rows}
    grouped = {str(row["name"].item()) for row in rows if "groups" in row and float(row["groups"]) > 1}
    again = {name.partition("#")[0] for name in layers if "#" in name}
    modules = {
        f"^{re.escape(name)}": rank for name, (rank, _, _) in layers.items()
        if rank and "[" not in name and name.partition("#")[0] not in again and "weight_ih_l" not in name
        and name not in grouped
    }  # fmt: skip
    return {
        "rank": found.rank.estimate,
        "share": float(share),
        "layers": {n: {"rank": rank, "data_error": d, "weight_error": w} for n, (rank, d, w) in layers.items()},
        "rank_pattern": modules,
        "alpha_pattern": {name: ALPHA * rank for name, rank in modules.items()},
    }


def _of_layer(row: xr.Dataset, share: Real) -> tuple[int, dict[str, float], dict[str, float]]:
    """Rank, and errors by rank on data and of the matrix."""
    spectrum = np.asarray(row["preactivation_singular_values"].values, dtype=np.float64).ravel()
    weight = np.asarray(row["weight_singular_values"].values, dtype=np.float64).ravel()
    energy = np.square(spectrum[np.isfinite(spectrum)])
    held = np.cumsum(energy)
    rank = int(np.searchsorted(held, share * held[-1] * (1 - 1e-12)) + 1) if held.size and held[-1] else 0
    return rank, rank_errors(spectrum), rank_errors(weight)
