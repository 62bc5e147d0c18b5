"""Second moments of activations that come batch by batch, never all at once; their spectra at the end.

Every accumulator gives a factor F with F^T F = centred covariance (divided by n): its singular values are those of the
centred activations over sqrt(n), and F W^T is a factor of the activations times W^T.
"""

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

EXACT_WORK = 2e8  # rows * width^2 up to which the QR factor is kept; above, the covariance
WIDEST = 2048  # widths above are read from some rows only
SOME_ROWS = 2048


@runtime_checkable
class Moments(Protocol):
    """Something that takes rows and knows the factor of their centred covariance."""

    def add(self, rows: Tensor) -> None:
        """Take a batch of rows (m, width)."""
        ...

    def factor(self) -> Tensor:
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

    def factor(self) -> Tensor:
        """The block of R below the row of the mean: the factor of the centred rows."""
        assert self._factor is not None
        return self._factor[1:, 1:] / self.count**0.5


class Covariance:
    """Mean and centred second moments in float64, merged batch by batch.

    Accuracy: singular values below 1e-8 of the largest are lost to rounding.
    """

    def __init__(self) -> None:
        self.count = 0
        self._mean: Tensor | None = None
        self._scatter: Tensor | None = None

    def add(self, rows: Tensor) -> None:
        """Take a batch of rows."""
        mean = rows.mean(0, dtype=torch.float64)
        centred = rows - mean if rows.dtype == torch.float64 else rows.double().sub_(mean)
        scatter = centred.mT @ centred
        if self._mean is None or self._scatter is None:
            self._mean, self._scatter = mean, scatter
        else:
            total, step = self.count + len(rows), mean - self._mean
            self._scatter += scatter
            self._scatter.addr_(step, step, alpha=self.count * len(rows) / total)
            self._mean = self._mean + step * (len(rows) / total)
        self.count += len(rows)

    def factor(self) -> Tensor:
        """The symmetric square root's right half, sqrt(eigenvalues) times eigenvectors, largest first."""
        assert self._scatter is not None
        values, vectors = torch.linalg.eigh(self._scatter / self.count)
        return (values.clamp_min(0).sqrt()[:, None] * vectors.mT).flip(0)


class SomeRows:
    """Rows spread evenly over the data, for widths or numbers of patches that no covariance can hold.

    Args:
        total: number of rows that will come.
        kept: how many of them to keep at most.
    """

    def __init__(self, total: int, kept: int) -> None:
        self._stride = max(1, -(-total // max(kept, 1)))
        self._next, self._kept = 0, list[Tensor]()

    def wanted(self, count: int, device: torch.device) -> Tensor:
        """Which of the next `count` rows are kept."""
        indices = torch.arange(self._next, count, self._stride, device=device)
        self._next = (self._next - count) % self._stride
        return indices

    def keep(self, rows: Tensor) -> None:
        """Keep these rows, which were wanted."""
        self._kept.append(rows.double())

    def add(self, rows: Tensor) -> None:
        """Keep every so many-th row."""
        self.keep(rows[self.wanted(len(rows), rows.device)])

    def factor(self) -> Tensor:
        """R of the centred rows that were kept."""
        rows = torch.cat(self._kept)
        centred = (rows - rows.mean(0)) / max(len(rows), 1) ** 0.5
        return torch.linalg.qr(centred, mode="r").R if len(centred) > centred.shape[1] else centred


def moments_for(num_rows: int, width: int) -> Moments:
    """The accumulator for so many rows of this width: the QR factor where it is cheap, else the covariance."""
    if width > WIDEST:
        return SomeRows(num_rows, SOME_ROWS)
    return TriangularFactor() if num_rows * width**2 <= EXACT_WORK else Covariance()
