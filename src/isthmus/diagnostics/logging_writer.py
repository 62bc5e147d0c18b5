"""Numbers and spectra by layer through the interface that TensorBoard's SummaryWriter set: add_scalar, add_histogram.

What is written during training: `monitor`. Nothing of TensorBoard is imported: any object with the two methods will do.
"""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import numpy as np
import torch
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
    """Write every number of every layer, the spectra as histograms, and the rank of a diagnosis, if it has one.

    Tags are "isthmus/rank" and "isthmus/LAYER/VARIABLE"; a spectrum is written as log10 of its values over the largest.

    Args:
        writer: anything with `add_scalar` and `add_histogram`.
        found: of `diagnose`.
        step: the number under which it is written.
    """
    if found.rank.estimate is not None:
        writer.add_scalar("isthmus/rank", float(found.rank.estimate), step)
    table = found.layers
    for i, name in enumerate(table["name"].values):
        row = table.isel(layer=i)
        numbers = {str(key): float(v) for key, v in row.data_vars.items() if not v.dims}
        spectra = {str(key): torch.from_numpy(v.values.copy()) for key, v in row.data_vars.items() if v.dims}
        log_layer(writer, str(name), numbers, spectra, step)


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
