"""A few numbers of every layer, recorded every so many steps of any training loop, cheap enough to leave on.

The whole table by layer, with Jacobians and kernels: `diagnose`. Callbacks of training frameworks: `callbacks`. Writers
such as TensorBoard's: `logging_writer`.
"""

import math
from dataclasses import dataclass
from itertools import chain
from numbers import Integral

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from isthmus.diagnostics.evaluation import evaluate
from isthmus.diagnostics.gaps import gap_integer
from isthmus.diagnostics.layer_sums import rows_of_tokens
from isthmus.diagnostics.listener import Listener, Reading
from isthmus.diagnostics.logging_writer import LoggingWriter, log_layer
from isthmus.diagnostics.module_names import Names
from isthmus.diagnostics.replica import lent
from isthmus.diagnostics.samples import Inputs, Samples
from isthmus.errors import DataError, IsthmusError
from isthmus.networks.arguments import AnyModule, module_argument
from isthmus.networks.devices import device_of
from isthmus.theory.inputs import Real
from isthmus.theory.spectra import participation_ratio
from isthmus.theory.undisturbed import chance_kept

MOST_ROWS = 1024  # tokens and pixels of the samples kept, spread evenly
NUMBERS = ("dimension_activation", "dimension_participation", "nonlinearity_impact")


@dataclass(frozen=True, slots=True)
class LayerRecord:
    """What was read off one layer at one step; the numbers are those of `diagnose`.

    NaN where the activations are not finite, as in a training that diverges, or no sample came by.
    """

    name: str
    dimension_activation: Real
    dimension_participation: float
    nonlinearity_impact: float
    spectrum: Tensor


class Monitor:
    """Dimensions of the centred activations of every layer, and what its activation function takes away, over training.

    Call `step()` after every step of the optimiser; every `every`-th call the module is evaluated on a few samples in
    evaluation mode and its own precision, without gradients. Modes, buffers, gradients, hooks, attributes and the state
    of random numbers are left as they were; forward hooks of your own run with every record.

    Args:
        module: the one that is trained, or an exported program.
        x: samples as for `diagnose`, of which the first `num_samples` are used.
        every: steps between two records, at least 1.
        num_samples: at least 2; the gap of a layer cannot be more than one less.
        writer: anything with `add_scalar` and `add_histogram`, as TensorBoard's SummaryWriter.

    Raises:
        DataError: x cannot be used. ValueError: `every` < 1 or `num_samples` < 2.

    Accuracy: spectra of float32 activations, decomposed in float64: values below 1e-7 of the largest are rounding.

    >>> monitor = isthmus.Monitor(module, x, every=2)
    >>> stepped = [monitor.step() for _ in range(4)]  # after each step of the optimiser
    >>> monitor.history["step"].values.tolist()
    [2, 4]
    """

    def __init__(
        self,
        module: AnyModule,
        x: Inputs,
        *,
        every: int = 100,
        num_samples: int = 128,
        writer: LoggingWriter | None = None,
    ) -> None:
        if not _is_whole(every, 1) or not _is_whole(num_samples, 2):
            asked = f"Monitor(every={str(every)[:40]}, num_samples={str(num_samples)[:40]})"
            raise ValueError(f"{asked}: needs every >= 1, num_samples >= 2, whole numbers.")
        self.module, self.every, self.writer = module, every, writer
        samples = Samples.of(x)
        self._samples = samples.at(slice(0, min(num_samples, samples.num)), None, torch.device("cpu"))
        self._count = 0
        self._records: dict[int, list[LayerRecord]] = {}

    def step(self, number: int | None = None) -> bool:
        """Note a step of the optimiser; whether a record was made.

        Args:
            number: of the step, where the loop counts itself; a number that was recorded is not recorded again.
        """
        self._count = self._count + 1 if number is None else number
        if self._count % self.every or self._count in self._records:
            return False
        self.record(self._count)
        return True

    def record(self, number: int) -> list[LayerRecord]:
        """Read every layer now, under this number; also of use before the first step.

        Raises:
            DataError: the module fails on the samples, or has no numbers yet. TypeError: it is none.
        """
        listener = _Readings(self._samples.real_tokens)
        # what torch.compile makes of a module would compile what listens, too
        plain = module_argument(self.module, f"Monitor.record({number})")
        try:
            with chance_kept(device_of(plain)), lent(plain) as replica, torch.no_grad():
                given = self._samples.at(slice(None), replica.dtype, replica.device)
                evaluate(replica, Names(plain), given, listener)
        except IsthmusError:
            raise
        except Exception as error:
            detail = " ".join(str(error).split())[:200]
            raise DataError(
                f"Monitor.record({number}): running {type(self.module).__name__} on its samples failed "
                f"({type(error).__name__}: {detail}). Give samples as the module takes them."
            ) from error
        records = [kept.record() for kept in listener.kept]
        self._records[number] = records
        if self.writer is not None:
            for layer in records:
                numbers = {name: float(getattr(layer, name)) for name in NUMBERS}
                log_layer(self.writer, layer.name, numbers, {"activation_singular_values": layer.spectrum}, number)
        return records

    @property
    def history(self) -> xr.Dataset:
        """All records: NUMBERS by "step" and "layer" (its name), NaN where a layer was not seen, or not finite.

        dimension_activation also where no gap stands out, as in the table of `diagnose`.
        """
        names = list(dict.fromkeys(layer.name for layer in chain.from_iterable(self._records.values())))
        shape = (len(self._records), len(names))
        columns = {name: np.full(shape, math.nan) for name in NUMBERS}
        for i, layers in enumerate(self._records.values()):
            for layer in layers:
                for name, column in columns.items():
                    column[i, names.index(layer.name)] = getattr(layer, name)
        return xr.Dataset(
            {name: (("step", "layer"), column) for name, column in columns.items()},
            coords={"step": list(self._records), "layer": names},
        )


@dataclass(frozen=True, slots=True)
class _Kept:
    """Rows of the activation of one layer, in a copy of their own, and what the activation function took away."""

    name: str
    rows: Tensor
    impact: float

    def record(self) -> LayerRecord:
        if not len(self.rows) or not bool(torch.isfinite(self.rows).all()):
            nothing = torch.full((min(self.rows.shape),), math.nan, dtype=torch.float64)
            return LayerRecord(self.name, math.nan, math.nan, math.nan, nothing)
        s = _spectrum(self.rows)
        gap = gap_integer(s, rows=len(self.rows), width=self.rows.shape[1])
        return LayerRecord(self.name, gap, float(participation_ratio(s)), self.impact, s.cpu())


class _Readings(Listener):
    """Keeps some rows of every layer: what is computed while a module is watched is watched too, and slow."""

    def __init__(self, real: Tensor | None) -> None:
        self.kept: list[_Kept] = []
        self._real = real

    def closed(self, reading: Reading) -> None:
        """Keep the rows of one layer, without padding; the module may overwrite its own later."""
        rows = self._rows(reading, reading.activation)
        some = rows[:: max(1, -(-rows.shape[0] // MOST_ROWS))].to(torch.float64, copy=True)
        self.kept.append(_Kept(reading.name, some, self._impact(reading)))

    def _rows(self, reading: Reading, tensor: Tensor) -> Tensor:
        z = tensor.detach().reshape(reading.z.shape)
        is_pixels = reading.call.convolution is not None
        return reading.call.rows_out(z) if is_pixels or z.ndim < 2 else rows_of_tokens(z, self._real)

    def _impact(self, reading: Reading) -> float:
        if not reading.is_bent or reading.before is None or reading.after is None:
            return 0.0
        if self._real is None:  # rows would be a copy of a convolution's pixels
            before, after = reading.before.detach(), reading.after.detach().reshape(reading.before.shape)
        else:
            before, after = self._rows(reading, reading.before), self._rows(reading, reading.after)
        size = float(before.norm())
        return float((before - after).norm()) / size if size else 0.0


def _spectrum(rows: Tensor) -> Tensor:
    """Singular values of the centred rows over sqrt(n), falling, from the smaller of the two Gram matrices."""
    centred = (rows - rows.mean(0)) / max(len(rows), 1) ** 0.5
    gram = centred.mT @ centred if len(rows) >= rows.shape[1] else centred @ centred.mT
    return torch.linalg.eigvalsh(gram).clamp_min(0).sqrt().flip(0)


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, Integral) and int(value) >= least
