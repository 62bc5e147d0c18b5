"""The ranks that a trained network shows, as numbers and as a table by layer.

The tables: `diagnostics`. How a rank is read off a spectrum: `theory.spectra`. Training: `execution`.
"""

import math
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor, nn

from isthmus.diagnostics import diagnose, leaky_diagnosis
from isthmus.diagnostics.leaky import FAR
from isthmus.discovery.halves import INDEX, MODE, RANK
from isthmus.errors import NumericalWarning, outside
from isthmus.networks import FullyConnected, LeakyResNet
from isthmus.networks.kinds import of_class
from isthmus.processes.shared_state import heard
from isthmus.sweeps.run_table import MISSING, READINGS
from isthmus.sweeps.setup import Prepared
from isthmus.theory.spectra import spectral_gap_rank
from isthmus.theory.spread_rows import spread_rows

POINTS = 64  # data points at which Jacobians are taken
Numbers = dict[str, object]


def rank_readings(network: nn.Module, start: Prepared, *, ridge: float) -> tuple[Numbers, xr.Dataset]:
    """Readings of the rank of a trained network on its data, None where a reading does not apply.

    Args:
        network: not changed.
        start: the data and the loss.
        ridge: of the training.

    Returns:
        rank_estimate, rank_lower, rank_upper (fully connected: those of `diagnose`), rank_jacobian (gap of the median
        singular values of Df over 64 points), rank_hamiltonian (leaky, squared loss: mean over the layers); rank_index
        where the first hidden layer is linear, rank_mode where the last is (gap of the Jacobians at 64 points as rows,
        as columns); rank_missing, why rank_estimate is None, where it could be some; and the table by layer, empty
        where there is none. All *estimates* but for the two bounds.

    Warns:
        NumericalWarning: the Hamiltonian is no estimate, and is left out.
    """
    found, layers = of_class(_READ, network, _of_outputs)(network, start, ridge)
    return {name: None for name in READINGS} | found, layers


def _of_outputs(network: nn.Module, start: Prepared, _ridge: float) -> tuple[Numbers, xr.Dataset]:
    return {"rank_jacobian": int(spectral_gap_rank(RANK.spectrum(_slopes(network, start.x))))}, xr.Dataset()


def _slopes(network: nn.Module, x: Tensor) -> Tensor:
    points = spread_rows(len(x), POINTS)
    return output_jacobians(network, x[points])


def _of_layers(network: FullyConnected, start: Prepared, _ridge: float) -> tuple[Numbers, xr.Dataset]:
    found = diagnose(network, start.x)
    numbers: Numbers = {"rank_estimate": found.rank.estimate, "rank_lower": found.rank.lower}
    numbers |= {"rank_upper": found.rank.upper, "rank_jacobian": found.rank.evidence["jacobian_gap"]}
    numbers[MISSING] = found.rank.missing or None
    straight = {"rank_index": (INDEX, 1), "rank_mode": (MODE, network.depth - 1)}
    linear = {name: kind for name, (kind, layer) in straight.items() if layer in network.linear}
    spectra = {name: kind.spectrum(_slopes(network, start.x)) for name, kind in linear.items()}
    return numbers | {name: int(spectral_gap_rank(of)) for name, of in spectra.items()}, found.layers


def _of_energies(network: LeakyResNet, start: Prepared, ridge: float) -> tuple[Numbers, xr.Dataset]:
    numbers, layers = _of_outputs(network, start, ridge)
    if start.loss.is_quadratic and ridge > 0:
        layers = leaky_diagnosis(network, start.x.double(), start.y.double(), ridge=ridge)
        numbers["rank_hamiltonian"] = hamiltonian_rank(layers)
    return numbers, layers


def hamiltonian_rank(layers: xr.Dataset) -> float | None:
    """-2 H / Lt at the mean over the layers, None where it is no estimate.

    Away from a critical point the energies are amplified by 1 / ridge (`leaky_diagnosis` warns of it), and a rank below
    0 is none: at small effective depths the kinetic energy outweighs the cost of identity.
    """
    if not layers.attrs["stationarity"] <= FAR:
        return None
    mean = float(layers["rank_from_hamiltonian"].mean())
    if math.isfinite(mean) and mean >= 0:
        return mean
    warnings.warn(
        f"The Hamiltonian reads {mean:.3g}, which is no rank, and rank_hamiltonian is left out: it estimates one where "
        "the effective depth is large. Give a larger effective_depth.",
        NumericalWarning,
        stacklevel=outside(),
    )
    return None


Read = Callable[[Any, Prepared, float], tuple[Numbers, xr.Dataset]]
_READ: dict[type[nn.Module], Read] = {FullyConnected: _of_layers, LeakyResNet: _of_energies}


def output_jacobians(network: nn.Module, x: Float[Tensor, "n d_in"]) -> Float[Tensor, "n d_out d_in"]:
    """Df at every sample of any network that treats samples apart, one backward pass per output."""
    with torch.enable_grad():
        points = x.detach().to(next(network.parameters()).dtype).requires_grad_()
        outputs = network(points)
        columns = range(outputs.shape[1])
        rows = [torch.autograd.grad(outputs[:, j].sum(), points, retain_graph=True)[0] for j in columns]
    return torch.stack(rows, 1).double()


@contextmanager
def heard_warnings() -> Generator[list[str]]:
    """A list that holds, after the block, its warnings as sentences, each once; they reach nobody else."""
    sentences: list[str] = []
    with heard() as told:
        yield sentences
    sentences.extend(dict.fromkeys(" ".join(text.split()) for _, text in told))
