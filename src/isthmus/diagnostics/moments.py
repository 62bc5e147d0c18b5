"""Second moments of activations that come batch by batch, never all at once; their spectra at the end.

Every accumulator gives a `Factor` of the centred covariance (`covariance_factor`). What is read off them: `readings`.
"""

from collections.abc import Callable, Iterable
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from isthmus.diagnostics import covariance_factor
from isthmus.diagnostics.covariance_factor import Factor, add_square
from isthmus.training.checkpoint import State

WIDEST = 2048  # widths above are read from some rows only
SOME_ROWS = 2048
TILE = 2**16  # numbers in float64 that stay in half of a cache of 1 MiB while their product is taken


@runtime_checkable
class Moments(Protocol):
    """Something that takes rows and knows the factor of their centred covariance."""

    def add(self, rows: Tensor) -> None:
        """Take a batch of rows (m, width)."""

    def factor(self) -> Factor:
        """F, (k, width) with k <= width or the number of rows, float64."""
        ...


class TriangularFactor:
    """R of a QR decomposition of [1, rows], updated batch by batch (*exact* to rounding, also for tiny values)."""

    def __init__(self) -> None:
        self.count = 0
        self._shift: Tensor | None = None
        self._factor: Tensor | None = None

    def add(self, rows: Tensor) -> None:
        """Take a batch of rows."""
        rows = rows.double()
        if self._shift is None:
            self._shift = rows.mean(0)  # the mean of [1, rows - shift] is small, so R loses nothing to it
        lifted = torch.cat([rows.new_ones(len(rows), 1), rows - self._shift], 1)
        stacked = lifted if self._factor is None else torch.cat([self._factor, lifted])
        self._factor = torch.linalg.qr(stacked, mode="r").R
        self.count += len(rows)

    def factor(self) -> Factor:
        """The block of R below the row of the mean: the factor of the centred rows."""
        assert self._factor is not None
        return Factor(self._factor[1:, 1:] / self.count**0.5)


class Covariance:
    """Sums and second moments in float64 about the mean of the first rows, tile by tile.

    Columns that equal their shift in all rows of a batch, as neurons that never fire do, add exactly nothing: where
    they are many they are left out.

    Accuracy: singular values below some 1e-8 of the largest, the root of rounding, are lost; where the rows drift, as
    sorted ones do, below 1e-8 sqrt(rows / rows of the first tile).
    """

    def __init__(self) -> None:
        self.count = 0
        self._shift: Tensor | None = None
        self._sum: Tensor | None = None
        self._scatter: Tensor | None = None  # on a CPU only one triangle of it

    def add(self, rows: Tensor) -> None:
        """Take a batch of rows."""
        size = max(1, TILE // max(rows.shape[1], 1))
        if self._shift is None or self._scatter is None or self._sum is None:
            self._shift = rows[:size].mean(0, dtype=torch.float64)
            self._sum = torch.zeros_like(self._shift)
            self._scatter = self._shift.new_zeros(len(self._shift), len(self._shift))
        columns = _moving_columns(rows, self._shift, size)
        if columns is None:
            _add_tiles(rows.split(size), self._shift, self._sum, self._scatter)
        elif columns.numel():
            parts = (part.index_select(1, columns) for part in rows.split(size))
            pairs = (columns[:, None], columns)  # rising, so that the lower triangle stays the lower one
            total, scatter = self._sum[columns], self._scatter[pairs]
            _add_tiles(parts, self._shift[columns], total, scatter)
            self._sum[columns], self._scatter[pairs] = total, scatter
        self.count += rows.shape[0]

    def factor(self) -> Factor:
        """The symmetric square root's right half, sqrt(eigenvalues) times eigenvectors, largest first."""
        assert self._scatter is not None
        assert self._sum is not None
        mean = self._sum / self.count
        lower = torch.addr(self._scatter / self.count, mean, mean, alpha=-1)
        moving = lower.diagonal().nonzero()[:, 0]  # the others are constant, as neurons that never fire are
        values, vectors = torch.linalg.eigh(lower[moving[:, None], moving])
        values = values.clamp_min(0).sqrt().flip(0)
        axes = values.new_zeros(len(values), len(lower))
        axes[:, moving] = vectors.mT.flip(0)
        return Factor(lambda: values[:, None] * axes, values=values, axes=axes, is_squared=True)


def _moving_columns(rows: Tensor, shift: Tensor, size: int) -> Tensor | None:
    """Columns of which not all entries are the shift; None where they seem to be more than two thirds of all.

    So the first `size` rows say. *Heuristic*: where all but a quarter moved, leaving columns out gained nothing.
    """
    near = shift.to(rows.dtype)
    near = torch.where(near.double() == shift, near, torch.nan)  # a shift between two numbers is no entry

    def still(part: Tensor) -> Tensor:
        return (part.amax(0) == near) & (part.amin(0) == near)

    if 3 * int(still(rows[:size]).sum()) < rows.shape[1]:
        return None
    return (~still(rows)).nonzero()[:, 0]


def _add_tiles(tiles: Iterable[Tensor], shift: Tensor, total: Tensor, scatter: Tensor) -> None:
    """Add the rows less the shift to their sum, and their squares to the scatter; rows of the first tile are most."""
    space = ones = None
    for tile in tiles:
        count = tile.shape[0]
        if space is None or ones is None:
            space = tile.new_empty(tile.shape, dtype=torch.float64)
            ones = space.new_ones(count)
        part = space[:count]
        part.copy_(tile).sub_(shift)  # widened first: in float32 the difference would be rounded
        total.addmv_(part.mT, ones[:count])
        add_square(scatter, part)


class SomeRows:
    """Rows spread evenly over the data, for widths or numbers of patches that no covariance can hold.

    Args:
        total: number of rows that will come; None where nobody knows: every other row then goes when they are too many.
        kept: how many of them to keep at most, twice as many where the total is not known.
    """

    def __init__(self, total: int | None, kept: int) -> None:
        self._stride = 1 if total is None else max(1, -(-total // max(kept, 1)))
        self._most = 2 * kept if total is None else None
        self._capacity = 2 * kept if total is None else -(-total // self._stride)
        # side by side from the beginning: many small tensors that stay lie scattered among large ones that go, and the
        # holes between them grow
        self._next, self._count = 0, 0
        self._rows: Tensor | None = None

    def wanted(self, count: int, device: torch.device) -> Tensor:
        """Which of the next `count` rows are kept."""
        indices = torch.arange(min(self._next, count), count, self._stride, device=device)
        self._next = (self._next - count) % self._stride
        return indices

    def keep(self, rows: Tensor) -> None:
        """Keep these rows, which were wanted, as they are."""
        while self._most is not None and self._count + len(rows) > self._most:
            count, half = self._count, -(-self._count // 2)
            if self._rows is not None:
                self._rows[:half] = self._rows[:count:2].clone()
            self._next += self._stride * ((count + len(rows)) % 2)
            self._count, self._stride, rows = half, 2 * self._stride, rows[count % 2 :: 2]
        end = self._count + len(rows)
        if self._rows is None or end > len(self._rows):
            room = rows.new_zeros(max(end, self._capacity), rows.shape[1])  # a checkpoint writes all of it
            if self._rows is not None:
                room[: self._count] = self._rows[: self._count]
            self._rows = room
        self._rows[self._count : end] = rows
        self._count = end

    def add(self, rows: Tensor) -> None:
        """Keep every so many-th row."""
        self.keep(rows[self.wanted(len(rows), rows.device)])

    def factor(self) -> Factor:
        """R of the centred rows that were kept."""
        assert self._rows is not None
        rows = self._rows[: self._count].double()
        centred = (rows - rows.mean(0)) / max(len(rows), 1) ** 0.5
        is_tall, is_squared = (
            len(centred) > centred.shape[1],
            len(centred) * centred.shape[1] ** 2 > covariance_factor.EXACT_WORK,
        )
        return Factor(torch.linalg.qr(centred, mode="r").R if is_tall else centred, is_squared=is_squared)


def state_of(moments: Moments | None) -> State | None:
    """What is known so far, as plain Python and tensors, which are not copied; `moments_of` takes it back."""
    return None if moments is None else {"kind": type(moments).__name__, **vars(moments)}


def moments_of(state: State | None, device: torch.device) -> Moments | None:
    """The accumulator whose `state_of` this is, on a device."""
    if state is None:
        return None
    kinds: dict[str, Callable[[], Moments]] = {
        "TriangularFactor": TriangularFactor, "Covariance": Covariance, "SomeRows": lambda: SomeRows(None, 0)
    }  # fmt: skip
    found = kinds[state["kind"]]()
    vars(found).update(tree_map_only(Tensor, lambda t: t.to(device), {k: v for k, v in state.items() if k != "kind"}))
    return found


def moments_for(num_rows: int | None, width: int) -> Moments:
    """The accumulator for so many rows of this width: the QR factor where it is cheap, else the covariance."""
    if width > WIDEST:
        return SomeRows(num_rows, SOME_ROWS if num_rows is not None else SOME_ROWS // 2)
    if num_rows is None:
        return Covariance()
    return TriangularFactor() if num_rows * width**2 <= covariance_factor.EXACT_WORK else Covariance()
