"""Numbers and spectra by layer through the interface that TensorBoard's SummaryWriter set: add_scalar, add_histogram.

What is written during training: `monitor`. Nothing of TensorBoard is imported: any object with the two methods will do.
"""

from collections.abc import Iterator, Mapping
from typing import Protocol, runtime_checkable

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from isthmus.diagnostics.diagnosis import Diagnosis

_FLOOR = 1e-12


@runtime_checkable
class LoggingWriter(Protocol):
    """Where numbers of a training run go; `torch.utils.tensorboard.SummaryWriter` is one."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int, /) -> None:
        """Note one number of one step."""

    def add_histogram(self, tag: str, values: Tensor, global_step: int, /) -> None:
        """Note many numbers of one step."""


def log_diagnosis(writer: LoggingWriter, found: Diagnosis, step: int) -> None:
    """Write every number of every layer and lookup table, the spectra as histograms, and the rank, if there is one.

    Tags are "isthmus/rank" and "isthmus/LAYER/VARIABLE"; what a layer has of every head or gate has its label behind,
    "isthmus/LAYER/qk_rank/head_1". A spectrum is written as log10 of its values over the largest.

    Args:
        writer: anything with `add_scalar` and `add_histogram`.
        found: of `diagnose`.
        step: the number under which it is written.
    """
    if found.rank.estimate is not None:
        writer.add_scalar("isthmus/rank", float(found.rank.estimate), step)
    for part, names in (("layer", "name"), ("embedding", "embedding")):
        own = found.layers[[key for key, column in found.layers.data_vars.items() if part in column.dims]]
        for i in range(own.sizes.get(part, 0)):
            numbers, spectra = dict[str, float](), dict[str, Tensor]()
            for key, column in own.isel({part: i}).data_vars.items():
                for tag, values in _by_label(str(key), column):
                    if values.ndim:
                        spectra[tag] = torch.from_numpy(np.array(values.values, dtype=np.float64))
                    else:
                        numbers[tag] = float(values)
            log_layer(writer, str(own[names].values[i]), numbers, spectra, step)


def _by_label(tag: str, column: xr.DataArray) -> Iterator[tuple[str, xr.DataArray]]:
    """The parts of a column along axes that have labels, heads and gates, with their tags; spectra stay whole."""
    axis = next((str(axis) for axis in column.dims if axis in column.coords), None)
    if axis is None:
        yield tag, column
        return
    for i, label in enumerate(column[axis].values):
        yield from _by_label(f"{tag}/{axis}_{label}", column.isel({axis: i}))


def log_layer(
    writer: LoggingWriter, name: str, numbers: Mapping[str, float], spectra: Mapping[str, Tensor], step: int
) -> None:
    """Write the numbers that are finite, and spectra that are not zero, of one layer."""
    for key, value in numbers.items():
        if np.isfinite(value):
            writer.add_scalar(f"isthmus/{name}/{key}", value, step)
    for key, spectrum in spectra.items():
        values = spectrum[torch.isfinite(spectrum)]
        if len(values) and float(values.max()) > 0:
            writer.add_histogram(f"isthmus/{name}/{key}", (values / values.max()).clamp_min(_FLOOR).log10(), step)
