"""The result of `diagnose`: a per-layer table, a rank with its interval, and what was skipped and why."""

from dataclasses import dataclass

import xarray as xr

from isthmus.theory import RankEstimate


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a network does layer by layer.

    Attributes:
        layers: table with dimension "layer" (one entry per weight layer, in order; coordinate "name") and, for spectra,
            dimension "component" (padded with NaN).
        rank: the rank that the spectra suggest, with its certified interval.
        skipped: (module name, reason) of each leaf module that was not analysed.
        warnings: what may mislead, in sentences.
    """

    layers: xr.Dataset
    rank: RankEstimate
    skipped: list[tuple[str, str]]
    warnings: tuple[str, ...] = ()
