"""How much memory a diagnosis will take, from one small evaluation, and how large its batches may be.

Bounds are upper ones: every tensor of a forward pass counts as alive until its end. What functions of torch take
inside, which no tensor shows, is counted where it was measured to matter: the columns of convolutions, the gates of
recurrences. Law: benchmarks/networks.py (memory), tests/diagnostics/test_memory.
"""

import ctypes
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from torch import nn

from isthmus.diagnostics.derivatives import EXACT_OUTPUTS, PROJECTIONS
from isthmus.diagnostics.moments import SOME_ROWS, WIDEST
from isthmus.diagnostics.recording import Reading
from isthmus.errors import DataError

DEFAULT_MEMORY = 2 * 2**30
STREAMING_MEMORY = 4 * 2**30
ROW_COPIES = 5
SMALL, EIGEN_COPIES = 512, 7  # of a covariance while it is decomposed: where it is small, the rows take more
SCATTER = 1.25  # blocks of many sizes come and go in convolutions, and leave holes
LARGEST_BATCH = 4096  # larger batches leave the caches and gain nothing


@dataclass(frozen=True, slots=True)
class Budget:
    """How a diagnosis will be cut in batches.

    Attributes:
        batch: samples per forward pass.
        points: points per derivative pass.
        fixed: bytes that do not depend on the batch: a copy of the parameters, moments, weights in float64.
        per_sample: bytes per sample of a forward pass.
        per_point: bytes per point of a derivative pass.
    """

    batch: int
    points: int
    fixed: int
    per_sample: int
    per_point: int

    def with_batches_of(self, size: int) -> "Budget":
        """The same for a module that takes batches of one size only."""
        return replace(self, batch=size, points=size)

    def with_batches_up_to(self, samples: int, points: int) -> "Budget":
        """The same for data of so many samples, derivatives at so many points."""
        return replace(self, batch=min(self.batch, samples), points=min(self.points, points))

    @property
    def peak(self) -> int:
        """Bytes of working memory beyond the data and the module, at most."""
        return self.fixed + max(self.batch * self.per_sample, self.points * self.per_point)


def budget_for(
    module: nn.Module,
    readings: Sequence[Reading],
    *,
    per_sample: int,
    num_outputs: int,
    memory: int | None,
    samples_seen: int,
) -> Budget:
    """Batches that keep within `memory`.

    Args:
        module: whose parameters may be copied.
        readings: of an evaluation of a few samples.
        per_sample: bytes of all tensors of that evaluation, in float64, by sample.
        num_outputs: outputs per sample.
        memory: bytes, None for 2 GiB.
        samples_seen: how many samples that evaluation had.

    Raises:
        DataError: not even one sample fits.
    """
    allowed = DEFAULT_MEMORY if memory is None else memory
    fixed = 8 * sum(p.numel() for p in module.parameters()) + sum(_bytes_of(r) for r in readings)
    rows = PROJECTIONS if num_outputs > EXACT_OUTPUTS else num_outputs
    stored = 8 * sum(r.enters.numel() + r.z.numel() for r in readings) // samples_seen
    patches = [8 * _patch_numbers(r) // samples_seen for r in readings]
    inside = max((_inside_convolution(r) for r in readings), default=0) // samples_seen
    # the graph with its gradients, the rows of all Jacobians twice (stacked, and decomposed), inputs regrouped
    per_point = 3 * per_sample + 2 * rows * stored + 3 * max(patches, default=0) + sum(patches)
    per_point += 2 * inside + max((_weight_gradients(r) for r in readings), default=0)
    forward = 2 * per_sample + inside
    if inside:
        per_point, forward = int(SCATTER * per_point), int(SCATTER * forward)
    least = max(forward, per_point)
    if fixed + least > allowed:
        raise DataError(
            f"diagnose(limits=Limits(memory={allowed})): needs at least {_mebibytes(fixed + least)} of working memory "
            f"for one sample of this module; got {_mebibytes(allowed)}. Raise limits.memory (--memory, in MiB)."
        )
    free = allowed - fixed
    batch = max(1, min(LARGEST_BATCH, free // max(forward, 1)))
    return Budget(batch, max(1, min(64, free // max(per_point, 1))), fixed, forward, per_point)


def streaming_budget(readings: Sequence[Reading], *, per_sample: int, memory: int | None, samples_seen: int) -> Budget:
    """Batches for forward passes alone: no copy of the module, no points; one covariance is decomposed at a time.

    Raises:
        DataError: not even one sample fits.
    """
    allowed = STREAMING_MEMORY if memory is None else memory
    fixed = 8 * (sum(map(_kept_numbers, readings)) + max(map(_decomposed_numbers, readings)))
    inside = max((_inside_convolution(r) for r in readings), default=0) // samples_seen
    forward = int(SCATTER * (2 * per_sample + inside))
    if fixed + forward > allowed:
        raise DataError(
            f"diagnose(limits=Limits(memory={allowed})): needs at least {_mebibytes(fixed + forward)} of working "
            f"memory without derivatives; got {_mebibytes(allowed)}. Raise limits.memory (--memory, in MiB)."
        )
    return Budget(max(1, min(LARGEST_BATCH, (allowed - fixed) // max(forward, 1))), 0, fixed, forward, 0)


def _kept_numbers(reading: Reading) -> int:
    """The weight, and of what enters and what the activation makes of z: the sums, and axes or rows from them."""
    height, width = reading.call.matrix.shape
    is_new = reading.source is None and reading.twin is None
    own = reading.is_bent or reading.call.convolution is not None
    return height * width + sum(2 * min(n, SOME_ROWS) * n for n, is_kept in ((width, is_new), (height, own)) if is_kept)


def _decomposed_numbers(reading: Reading) -> int:
    """One covariance with what its eigenvectors take, or the product with the weight and its copies."""
    height, width = reading.call.matrix.shape
    return max(EIGEN_COPIES * min(width, WIDEST) ** 2, 3 * min(width, WIDEST) * max(height, width))


def _patch_numbers(reading: Reading) -> int:
    height, width = reading.call.matrix.shape
    return reading.z.numel() // max(height, 1) * width


def _inside_convolution(reading: Reading) -> int:
    """Columns that torch unfolds for a whole batch in float64, and z as rows: moved, shifted, stacked, decomposed."""
    if reading.call.convolution is None:
        return 8 * ROW_COPIES * reading.z.numel() if reading.is_normalised else 0
    return 8 * (_patch_numbers(reading) + ROW_COPIES * reading.z.numel())


def _weight_gradients(reading: Reading) -> int:
    """Of one point by the matrix of a convolution: itself, masked by groups, squared."""
    return 0 if reading.call.convolution is None else 3 * 8 * reading.call.matrix.numel()


def _bytes_of(reading: Reading) -> int:
    """Weights in float64, and accumulators with their temporaries."""
    height, width = reading.call.matrix.shape

    def moments(size: int) -> int:
        copies = 3 if size <= SMALL else EIGEN_COPIES
        return copies * size * size if size <= WIDEST else 2 * SOME_ROWS * size

    return 8 * (height * width + moments(width) + moments(height))


def give_back() -> None:
    """Hand what C's allocator keeps for later back to the system: it kept up to twice what was in use (Linux only)."""
    if sys.platform == "linux":
        with suppress(AttributeError, OSError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"


def announcement(budget: Budget, *, num_samples: int, num_points: int, num_outputs: int, layers: int) -> str:
    """What will be done, in one sentence."""
    mixed = num_outputs > EXACT_OUTPUTS
    passes = f"{PROJECTIONS} random combinations of {num_outputs:,} outputs" if mixed else f"{num_outputs} outputs"
    return (
        f"diagnose: {layers} layers on {num_samples:,} samples in batches of {budget.batch:,}, derivatives of {passes} "
        f"at {num_points} points, {budget.points} at a time; at most {_mebibytes(budget.peak)} of working memory."
    )
