"""Spectra of lookup tables: how many directions the vectors of tokens, positions and classes span.

A dimension of its own in the table of a diagnosis, since they multiply nothing. What follows them: `stream_columns`.
"""

from collections.abc import Collection

import numpy as np
import torch
import xarray as xr
from torch import nn

from isthmus.diagnostics.moments import moments_for
from isthmus.diagnostics.table import SHARES
from isthmus.theory.spectra import energy_rank, entropy_rank, participation_ratio

ROWS = 4096  # entries that are looked at together
LOOKUPS = (nn.Embedding, nn.EmbeddingBag)


def add_embedding_columns(table: xr.Dataset, module: nn.Module, called: Collection[str]) -> None:
    """Spectrum and ranks of every lookup table that was used, centred over its entries, which count alike.

    Args:
        table: gets the variables, by "embedding"; nothing without a lookup table of two entries.
        module: that was evaluated.
        called: names of the modules that ran.
    """
    found = {
        name: part
        for name, part in module.named_modules()
        if isinstance(part, LOOKUPS) and name in called and part.num_embeddings > 1 and part.weight.is_floating_point()
    }
    if not found:
        return
    spectra = [_spectrum(part) for part in found.values()]
    values = np.full((len(found), max(map(len, spectra))), np.nan)
    for place, spectrum in enumerate(spectra):
        values[place, : len(spectrum)] = spectrum.numpy()
    table.coords["embedding"] = [*found]
    table["embedding_entries"] = ("embedding", [part.num_embeddings for part in found.values()])
    table["embedding_width"] = ("embedding", [part.embedding_dim for part in found.values()])
    table["embedding_singular_values"] = (("embedding", "along_embedding"), values)
    for name, share in SHARES.items():
        table[f"embedding_{name}"] = ("embedding", [int(energy_rank(s, share=share)) for s in spectra])
    table["embedding_participation"] = ("embedding", [float(participation_ratio(s)) for s in spectra])
    table["embedding_rank_entropy"] = ("embedding", [float(entropy_rank(s)) for s in spectra])


def _spectrum(part: nn.Embedding | nn.EmbeddingBag) -> torch.Tensor:
    """Singular values of the centred entries over the root of their number; what stands for padding is left out."""
    weight = part.weight.detach()
    parts = [weight] if part.padding_idx is None else [weight[: part.padding_idx], weight[part.padding_idx + 1 :]]
    count = sum(map(len, parts))
    moments = moments_for(count, weight.shape[1])
    for rows in (rows for whole in parts for rows in whole.split(ROWS) if len(rows)):  # never a copy of all of them
        moments.add(rows)
    return moments.factor().values.cpu()[: min(count, weight.shape[1])]
