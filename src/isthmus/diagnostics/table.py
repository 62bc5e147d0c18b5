"""Per-layer numbers and spectra as one labelled table."""

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from torch import Tensor

from isthmus.diagnostics.budget import give_back
from isthmus.diagnostics.covariance_factor import weight_values
from isthmus.diagnostics.derivatives import Derivatives
from isthmus.diagnostics.gaps import NO_GAP, gap_integer
from isthmus.diagnostics.layer_sums import LayerSums
from isthmus.diagnostics.module_names import block_of
from isthmus.diagnostics.readings import balance_residuals, factors_of, identity_defect, nonlinearity, spectrum
from isthmus.theory.inputs import Real
from isthmus.theory.spectra import energy_rank, entropy_rank, participation_ratio
from isthmus.theory.spread_rows import median_over_rows

SHARES = {"rank_90": 0.9, "rank_99": 0.99, "rank_999": 0.999}


def spectra_of(layers: Sequence[LayerSums]) -> tuple[dict[str, list[Tensor]], dict[str, list[Real]]]:
    """What needs no derivatives: spectra of weights and activations, and the numbers read from them."""
    defects, before, activation = list[Real](), list[Tensor](), list[Tensor]()
    for layer, factors in zip(layers, factors_of(layers), strict=True):
        give_back(64 * layer.matrix.numel())
        defects.append(identity_defect(layer, factors.entering))  # first: it needs axes, and values come along
        activation.append(spectrum(factors.after, layer))
        before.append(spectrum(factors.before, layer))
    spectra = {
        "weight_singular_values": [weight_values(layer.matrix) for layer in layers],
        "preactivation_singular_values": before,
        "activation_singular_values": activation,
    }
    numbers: dict[str, list[Real]] = {
        "dimension_activation": [
            gap_integer(s, rows=layer.rows, width=len(layer.matrix))
            for s, layer in zip(activation, layers, strict=True)
        ],
        "dimension_participation": [float(participation_ratio(s)) for s in activation],
        "rank_entropy": [float(entropy_rank(s)) for s in activation],
        **{name: [int(energy_rank(s, share=share)) for s in activation] for name, share in SHARES.items()},
        "rows": [layer.rows for layer in layers],
        "nonlinearity_impact": [nonlinearity(layer) for layer in layers],
        "identity_defect": defects,
        "balance_residual": [*balance_residuals(layers)],
    }
    return spectra, numbers


def table_of(layers: Sequence[LayerSums], derivatives: Derivatives | None) -> xr.Dataset:
    """The variables that every module has; what they mean: `diagnose`. None: without those of derivatives."""
    spectra, numbers = spectra_of(layers)
    if derivatives is not None:
        spectra["jacobian_singular_values"] = [median_over_rows(s) for s in derivatives.spectra]
        numbers["tangent_kernel_trace"] = [float(t.mean()) for t in derivatives.traces]
    if derivatives is not None and derivatives.num_projections:
        spectra["jacobian_singular_value_errors"] = [median_over_rows(s) for s in derivatives.spectra_errors]
        numbers["tangent_kernel_trace_error"] = [*derivatives.trace_errors]
    table = labelled([layer.name for layer in layers], spectra, numbers)
    if any(blocks := [block_of(layer.name) for layer in layers]):
        table.coords["within"] = ("layer", blocks)
    if bool(table["dimension_activation"].isnull().any()):
        table["dimension_activation"].attrs["missing"] = NO_GAP
    return table


def labelled(
    names: Sequence[str], spectra: Mapping[str, Sequence[Tensor]], numbers: Mapping[str, Sequence[Real]]
) -> xr.Dataset:
    """Spectra padded with NaN to one length, numbers by layer, names beside them."""
    longest = max(len(row) for rows in spectra.values() for row in rows)
    variables = {name: (("layer", "component"), _padded(rows, longest)) for name, rows in spectra.items()}
    variables |= {name: (("layer",), np.array(values)) for name, values in numbers.items()}
    return xr.Dataset(variables, coords={"layer": np.arange(1, len(names) + 1), "name": ("layer", list(names))})


def _padded(rows: Sequence[Tensor], width: int) -> np.ndarray:
    out = np.full((len(rows), width), np.nan)
    for i, row in enumerate(rows):
        out[i, : len(row)] = row.cpu().numpy()
    return out
