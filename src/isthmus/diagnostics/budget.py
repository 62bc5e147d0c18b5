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

from torch import float64, nn

from isthmus.diagnostics.covariance_factor import EXACT_WORK, PRODUCT_ROWS
from isthmus.diagnostics.data_flow import ResidualBlock
from isthmus.diagnostics.derivatives import EXACT_OUTPUTS, PROJECTIONS
from isthmus.diagnostics.listener import Reading
from isthmus.diagnostics.moments import SOME_ROWS, WIDEST
from isthmus.errors import DataError
from isthmus.tasks.arrays import counted

DEFAULT_MEMORY = 2 * 2**30
STREAMING_MEMORY = 4 * 2**30
ROW_COPIES = 5
SMALL, EIGEN_COPIES = 512, 7  # of a covariance while it is decomposed: where it is small, the rows take more
OWN_COPIES = 3  # of a layer's input or output, in its own type
PATCH_COPIES = 4  # of what is kept of the input of a convolution: side by side, shifted, divided, decomposed
SCATTER = 1.25  # blocks of many sizes come and go in convolutions, and leave holes
OWN, OWN_SHARE = 12 * 2**20, 16  # of what streams: the copy of a batch and blocks torch keeps; 1/16 of few bytes
WORTH_IT = 32 * 2**20
HOLES = 16 * 2**20  # of rows in float64 and unfolded columns, after which what they left free is given back
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
        allowed: bytes in all that whoever asked allows.
        closing: bytes of the decompositions behind the last batch, when nothing of it is left.
    """

    batch: int
    points: int
    fixed: int
    per_sample: int
    per_point: int
    allowed: int
    closing: int = 0

    def with_batches_of(self, size: int) -> "Budget":
        """The same for a module that takes batches of one size only."""
        return replace(self, batch=size, points=size)

    def with_batches_up_to(self, samples: int, points: int) -> "Budget":
        """The same for data of so many samples, derivatives at so many points."""
        return replace(self, batch=min(self.batch, samples), points=min(self.points, points))

    @property
    def peak(self) -> int:
        """Bytes of working memory beyond the data and the module, at most."""
        return self.fixed + max(self.batch * self.per_sample, self.points * self.per_point, self.closing)


def budget_for(
    module: nn.Module,
    readings: Sequence[Reading],
    *,
    per_sample: int,
    num_outputs: int,
    memory: int | None,
    samples_seen: int,
    num_samples: int,
    blocks: Sequence[ResidualBlock] = (),
) -> Budget:
    """Batches that keep within `memory`.

    Args:
        module: whose parameters may be copied.
        readings: of an evaluation of a few samples.
        per_sample: bytes of all tensors of that evaluation, in float64, by sample.
        num_outputs: outputs per sample.
        memory: bytes, None for 2 GiB.
        samples_seen: how many samples that evaluation had.
        num_samples: how many there are.
        blocks: residual blocks, behind which moments of the stream are taken.

    Raises:
        DataError: not even one sample fits.
    """
    allowed = DEFAULT_MEMORY if memory is None else memory
    times = num_samples / samples_seen
    fixed = 8 * sum(p.numel() for p in module.parameters()) + sum(_bytes_of(r, times) for r in readings)
    fixed += sum(8 * _moments(block.features) for block in blocks)
    fixed += max((8 * PATCH_COPIES * _patches_kept(r, times) for r in readings), default=0)
    fixed += min(HOLES, allowed // 16, int(sum(unfolded_bytes(r) for r in readings) * times))
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
    return Budget(batch, max(1, min(64, free // max(per_point, 1))), fixed, forward, per_point, allowed)


def streaming_budget(
    readings: Sequence[Reading],
    *,
    live: tuple[int, int],
    memory: int | None,
    samples_seen: int,
    total: int | None,
    blocks: Sequence[ResidualBlock] = (),
    is_masked: bool = False,
) -> Budget:
    """Batches for forward passes alone: no copy of the module, no points; one covariance is decomposed at a time.

    Sums are taken of what enters a matrix and of what an activation function makes of z: the logits of a language model
    are never copied, nor is a product with the matrix that makes them held whole.

    Args:
        readings: of an evaluation of a few samples.
        live: bytes of tensors that a forward pass was seen to hold at once, of any samples and for each.
        memory: bytes, None for 4 GiB.
        samples_seen: how many samples that evaluation had.
        total: how many will come; None where nobody knows.
        blocks: residual blocks, behind which moments of the stream are taken.
        is_masked: whether some tokens are padding, which rows leave out.

    Raises:
        DataError: not even one sample fits.
    """
    allowed = STREAMING_MEMORY if memory is None else memory
    times = None if total is None else total / samples_seen
    fixed = live[0] + sum(_kept_bytes(r, times) for r in readings)
    own = readings[0].z.element_size()
    fixed += sum(_sums_bytes(block.features, own) for block in blocks)
    decomposed = [_decomposed(r, times, samples_seen) for r in readings]
    closing = int(SCATTER * 8 * max(*decomposed, 0, *(EIGEN_COPIES * min(b.features, WIDEST) ** 2 for b in blocks)))
    beside = max(
        *(_beside_layer(r, times, is_masked=is_masked) for r in readings), 0,
        *(_copies(block.shape.numel(), block.features, own, times) for block in blocks),
    )  # fmt: skip
    forward = int(SCATTER * (live[1] + beside / samples_seen))
    least = fixed + max(forward, closing)
    if least > allowed:
        raise DataError(
            f"diagnose(limits=Limits(memory={allowed})): needs at least {_mebibytes(least)} of working "
            f"memory without derivatives; got {_mebibytes(allowed)}. Raise limits.memory (--memory, in MiB)."
        )
    own = min(OWN, allowed // OWN_SHARE, allowed - least)
    batch = max(1, min(LARGEST_BATCH, (allowed - fixed - own) // max(forward, 1)))
    return Budget(batch, 0, fixed + own, forward, 0, allowed, closing)


def _kept_bytes(reading: Reading, times: float | None) -> int:
    """Of what enters and what the activation makes of z: the sums, or rows; of convolutions z, and W by groups."""
    (height, width), own = reading.call.matrix.shape, reading.z.element_size()
    left = _sums_bytes(height, own)
    if reading.call.convolution is not None:
        return own * (_patches_kept(reading, times) + height * width) + 2 * left
    is_new = reading.source is None and reading.twin is None
    return is_new * _sums_bytes(width, own) + reading.is_bent * left


def _sums_bytes(width: int, own: int) -> int:
    """Of the moments of rows so wide, or of some of these rows."""
    return 8 * width**2 if width <= WIDEST else own * SOME_ROWS * width


def _beside_layer(reading: Reading, times: float | None, *, is_masked: bool) -> int:
    """Copies of what enters and leaves while its sums are taken, in the module's own type or as a QR takes them."""
    (height, width), own = reading.call.matrix.shape, reading.z.element_size()
    if reading.call.convolution is not None:  # whose columns torch unfolds
        return own * _patch_numbers(reading) + _copies(reading.z.numel(), height, own, times)
    is_taken = reading.is_bent or reading.is_normalised
    left = _copies(reading.z.numel(), height, own, times) if is_taken else own * reading.z.numel() * is_masked
    return max(_copies(reading.enters.numel(), width, own, times), left)


def _copies(numbers: int, width: int, own: int, times: float | None) -> int:
    """Bytes beside so many numbers while moments are taken of them: float64 rows stacked and decomposed, or tiles."""
    is_exact = times is not None and times * numbers * width <= EXACT_WORK
    return OWN_COPIES * own * numbers + 8 * ROW_COPIES * numbers * is_exact


def _decomposed(reading: Reading, times: float | None, samples_seen: int) -> int:
    """Numbers of one covariance with what its eigenvectors take, the matrix and its products, or patches."""
    height, width = reading.call.matrix.shape
    has_own_rows = reading.is_bent or reading.call.convolution is not None  # z follows from what enters otherwise
    widest = min(max(width, height if has_own_rows else 0), WIDEST)
    found = max(EIGEN_COPIES * widest**2, PATCH_COPIES * _patches_kept(reading, times))
    is_cut = reading.z.ndim == 2 and len(reading.z) == samples_seen  # its numerical rank may bound that of the network
    is_exact = times is not None and times * reading.z.numel() // max(height, 1) * width**2 <= EXACT_WORK
    if is_cut or is_exact or reading.call.matrix.dtype is float64 or reading.call.convolution is not None:
        return max(found, 3 * min(width, WIDEST) * max(height, width))
    return max(found, 3 * min(height, PRODUCT_ROWS) * max(width, min(height, width)))


def _patches_kept(reading: Reading, times: float | None) -> int:
    """Numbers in the patches that are kept of what enters a convolution, of `times` as many samples as were seen."""
    if reading.call.convolution is None:
        return 0
    height, width = reading.call.matrix.shape
    rows = 2 * SOME_ROWS if times is None else min(SOME_ROWS, int(times * reading.z.numel()) // max(height, 1))
    return rows * width


def _patch_numbers(reading: Reading) -> int:
    height, width = reading.call.matrix.shape
    return reading.z.numel() // max(height, 1) * width


def unfolded_bytes(reading: Reading) -> int:
    """Of the columns that torch unfolds for a convolution in float64, and lets go."""
    return 0 if reading.call.convolution is None else 8 * _patch_numbers(reading)


def _inside_convolution(reading: Reading) -> int:
    """Columns that torch unfolds for a whole batch in float64, and z as rows: moved, shifted, stacked, decomposed."""
    if reading.call.convolution is None:
        return 8 * ROW_COPIES * reading.z.numel() if reading.is_normalised or reading.z.ndim > 2 else 0
    return unfolded_bytes(reading) + 8 * ROW_COPIES * reading.z.numel()


def _weight_gradients(reading: Reading) -> int:
    """Of one point by the matrix of a convolution: itself, masked by groups, squared."""
    return 0 if reading.call.convolution is None else 3 * 8 * reading.call.matrix.numel()


def _bytes_of(reading: Reading, times: float) -> int:
    """Weights in float64, and accumulators with their temporaries."""
    height, width = reading.call.matrix.shape
    return 8 * (height * width + max(_moments(width), _patches_kept(reading, times)) + _moments(height))


def _moments(width: int) -> int:
    """Numbers in an accumulator of rows so wide, with its temporaries."""
    copies = 3 if width <= SMALL else EIGEN_COPIES
    return copies * width * width if width <= WIDEST else 2 * SOME_ROWS * width


def give_back(size: int | None = None) -> None:
    """Hand what C's allocator keeps for later back to the system: it kept up to twice what was in use (Linux only).

    Args:
        size: bytes that were in use; below 32 MiB nothing is done. None: whatever they were.
    """
    if sys.platform == "linux" and (size is None or size >= WORTH_IT):
        with suppress(AttributeError, OSError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"


def announcement(budget: Budget, *, cuts: int, num_samples: int, num_points: int, num_outputs: int, layers: int) -> str:
    """What will be done, in one sentence; `cuts`: bytes that these need."""
    most = max(budget.peak, budget.fixed + cuts)
    mixed = num_outputs > EXACT_OUTPUTS
    passes = (
        f"{PROJECTIONS} random combinations of {num_outputs:,} outputs" if mixed else counted(num_outputs, "output")
    )
    return (
        f"diagnose: {counted(layers, 'layer')} on {num_samples:,} samples in batches of {budget.batch:,}, "
        f"derivatives of {passes} "
        f"at {counted(num_points, 'point')}, {budget.points} at a time; at most {_mebibytes(most)} of working memory."
    )
