"""Columns of the table for networks with a residual stream: a leaky network's own, and those of any residual module.

The numbers come from `leaky`, `stream_costs` and `layer_sums`; here they find their rows: a block stands at its last
weight layer.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from isthmus.diagnostics.gaps import gap_integer
from isthmus.diagnostics.layer_sums import LayerSums, StreamSums
from isthmus.diagnostics.leaky import leaky_diagnosis
from isthmus.diagnostics.objective import LossOverData
from isthmus.diagnostics.session import DiagnosisSession
from isthmus.diagnostics.stream_costs import block_penalty, gate_derivatives, stream_costs
from isthmus.errors import NumericalWarning
from isthmus.networks import LeakyResNet, walk
from isthmus.processes.shared_state import heard
from isthmus.theory import features, layer_gamma, relaxed_norm
from isthmus.theory.inputs import Real
from isthmus.theory.spectra import energy_rank
from isthmus.theory.spread_rows import spread_rows

COST_SAMPLES = 256
SHARE = 0.99
_LEAKY = (
    "hamiltonian", "rank_from_hamiltonian", "cost_of_identity", "kinetic_energy", "momentum_norm", "stationarity"
)  # fmt: skip


def add_leaky_columns(
    table: xr.Dataset, network: LeakyResNet, x: Tensor, y: Tensor | None, ridge: Real | None
) -> list[str]:
    """Position and cost of identity of every layer; with y and ridge also energies, momenta and Hamiltonians.

    Args:
        table: gets the columns, NaN in the rows of the two maps.
        network: in float64.
        x: all samples.
        y: targets, or None.
        ridge: of the training, or None, or 0.

    Returns:
        Warnings as sentences.
    """
    _put(table, "position", network.steps.double().cumsum(0).cpu().numpy())
    if y is None or not ridge or not network.effective_depth:  # energies are those of a leak, divided by the ridge
        _put(table, "cost_of_identity", np.array(_identity_costs(network, x)))
        return []
    with heard() as told:
        energies = leaky_diagnosis(network, x, y, ridge=ridge)
    for name in _LEAKY:
        _put(table, name, energies[name].values)
    return [text for category, text in told if issubclass(category, NumericalWarning)]


def _identity_costs(network: LeakyResNet, x: Tensor) -> list[float]:
    with torch.no_grad():
        streams = [state.activation for state in walk(network, x)[:-2]]
    bias, smoothing = network.has_bias, float(network.smoothing)
    seen = [features(A, bias=bias, smoothing=smoothing) for A in streams]
    return [float(relaxed_norm(A, S, gamma=layer_gamma(S))) for A, S in zip(streams, seen, strict=True)]


def _put(table: xr.Dataset, name: str, values: np.ndarray) -> None:
    table[name] = (("layer",), np.concatenate([[math.nan], values, [math.nan]]))


def add_stream_spectra(table: xr.Dataset, layers: Sequence[LayerSums]) -> None:
    """Number and position of residual blocks, and the spectrum of the stream behind each; no derivatives are needed.

    Args:
        table: gets the columns, NaN outside of blocks; nothing if the module has no residual block.
        layers: its rows.
    """
    found = {place: layer.stream for place, layer in enumerate(layers) if layer.stream is not None}
    if not found:
        return
    spectra = {place: stream.left.factor().values.cpu() for place, stream in found.items()}
    numbers: dict[str, Callable[[StreamSums, Tensor], float]] = {
        "block": lambda stream, _: stream.block,
        "position": lambda stream, _: stream.position,
        "stream_dimension": lambda stream, s: gap_integer(s, rows=stream.rows, width=len(s)),
        "stream_rank_99": lambda _, s: int(energy_rank(s, share=SHARE)),
    }
    for name, number in numbers.items():
        column = np.full(len(layers), math.nan)
        for place, stream in found.items():
            column[place] = number(stream, spectra[place])
        table[name] = (("layer",), column)
    values = np.full((len(layers), max(map(len, spectra.values()))), math.nan)
    for place, spectrum in spectra.items():
        values[place, : len(spectrum)] = spectrum.numpy()
    table["stream_singular_values"] = (("layer", "along_stream"), values)


def add_stream_columns(
    table: xr.Dataset,
    session: DiagnosisSession,
    layers: Sequence[LayerSums],
    *,
    batch: int,
    loss: LossOverData | None,
    ridge: Real | None,
) -> None:
    """Cost of identity and kinetic energy of residual blocks; with a loss also Hamiltonians.

    Args:
        table: gets the columns, NaN outside of blocks; nothing if the module has no residual block.
        session: the module and the data.
        layers: sums over the data.
        batch: samples per pass with gradients.
        loss: of the targets, or None.
        ridge: coefficient of the sum of squares of the parameters; None or 0: there is no Hamiltonian without one.
    """
    blocks = session.structure.blocks()
    if not blocks:
        return
    rows = [max(block.layers) for block in blocks]
    few = spread_rows(session.samples.num, batch if session.fixed_size else min(COST_SAMPLES, batch))
    costs = stream_costs(session.exact, session.samples.at(few, session.exact.dtype, session.exact.device), blocks)
    columns: dict[str, Sequence[float]] = {
        "cost_of_identity": costs.cost_of_identity,
        "kinetic_energy": costs.kinetic_energy,
    }
    if loss is not None and ridge:
        # -(1/ridge) d(data loss + ridge |block|^2) / d(gate), and |B| with B = -(1/ridge) d(data loss)/dA
        by_gate, squares = gate_derivatives(session.streamed, session.batches(batch), blocks, loss)
        penalties = torch.tensor([block_penalty(block, layers) for block in blocks], dtype=torch.float64)
        columns["hamiltonian"] = (-by_gate / ridge - penalties).tolist()
        columns["momentum_norm"] = (squares.sqrt() / ridge).tolist()
    for name, values in columns.items():
        column = np.full(len(layers), math.nan)
        column[rows] = values
        table[name] = (("layer",), column)
