"""What `diagnose` returns, and the sentences that warn of it."""

from collections.abc import Sequence
from dataclasses import dataclass

import xarray as xr

from isthmus.diagnostics.layer_sums import LayerSums
from isthmus.theory import RankEstimate
from isthmus.writing.shown import Shown


@dataclass(frozen=True, slots=True, repr=False)
class Diagnosis(Shown):
    """What a network does layer by layer.

    Attributes:
        layers: table with dimension "layer" (one entry per weight layer, in order; coordinate "name") and, for spectra,
            dimension "component" (padded with NaN).
        rank: what spectra suggest and a cut confirms, or a Jacobian proves, with its certified interval; no estimate
            elsewhere (`judged_rank`).
        skipped: (name, reason) of each leaf module that was not analysed, and of each other parameter in no row.
        warnings: what may mislead, in sentences.
        cuts: how many directions carry the output, as cuts behind a matrix have judged on held-out rows (see
            `narrow_places`); None where no layer cuts the module, or, with a warning, rows or memory do not allow it
            or a limit ended the passes.

    >>> isthmus.diagnose(module, x).layers.sizes["layer"]
    2
    """

    layers: xr.Dataset
    rank: RankEstimate
    skipped: list[tuple[str, str]]
    warnings: tuple[str, ...] = ()
    cuts: xr.Dataset | None = None


def warnings_of(layers: Sequence[LayerSums], num_samples: int) -> tuple[str, ...]:
    """What may mislead in sums over so many samples, in sentences."""
    found: list[str] = []
    if all(not bool(layer.matrix.any()) for layer in layers):
        found.append("All weights are zero: the network computes a constant, its rank is 0.")
    many = [layer.name for layer in layers if layer.rows > num_samples]
    if many:
        found.append(
            f"Tokens, patches or pixels are treated as samples in {len(many)} of {len(layers)} layers: their spectra "
            "mix what varies within a sample with what varies between samples."
        )
    return tuple(found)
