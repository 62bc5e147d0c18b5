"""Rows of features at a place in a chain: pixels and tokens are rows too, flattened channels are taken apart again."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from isthmus.diagnostics.samples import row_ranges
from isthmus.networks.chain import run
from isthmus.networks.stage_kinds import Stage

BATCH = 1024
# rows of features per factor: beyond it the statistics no longer move, and convolutions give many per sample
MOST_ROWS = 65536
MOST_APART, NEAREST = 4096, 5
COLUMNS = 4096  # of images, of which a copy is made at once
MOST_OF_FEW = 100  # rows that report where that is more than a fifth


def features(values: Tensor, channels: int, *, channels_first: bool) -> Tensor:
    """Values entering a layer as float64 rows of `channels` features.

    Args:
        values: (n, channels, ..) or (n, channels * pixels) where channels come first, else (n, .., channels).
        channels: number of features.
        channels_first: whether a convolution made the values.
    """
    values = values.detach().double().cpu()
    if channels_first:
        values = values.reshape(len(values), channels, -1).movedim(1, -1)
    return values.reshape(-1, channels)


def batches(x: Tensor) -> list[Tensor]:
    """Samples, 1024 at a time; a single one left over goes with those before."""
    return [x[start:end] for start, end in row_ranges(len(x), BATCH)]


def drawn(x: Tensor, count: int) -> Tensor:
    """As many samples from all over `x`, in any order: neighbours resemble each other, and every so-manyth may too."""
    if len(x) <= count:
        return x
    return x[torch.randperm(len(x), generator=torch.Generator().manual_seed(0))[:count].to(x.device)]


def enough(x: Tensor, rows_of: Callable[[Tensor], int]) -> Tensor:
    """So many samples, drawn, that about `MOST_ROWS` rows of features come of them; a whole batch at least.

    Args:
        x: samples.
        rows_of: how many rows come of some samples.
    """
    if len(x) <= BATCH:
        return x
    each = max(rows_of(x[:2]) // 2, 1)
    return drawn(x, BATCH * -(-MOST_ROWS // (BATCH * each)))


def row_batches(stages: Sequence[Stage], x: Tensor, channels: int, *, channels_first: bool) -> Iterator[Tensor]:
    """What the steps give on samples, as batches of rows; about `MOST_ROWS` at the most, from all over the samples."""

    def rows_of(batch: Tensor) -> Tensor:
        with torch.no_grad():  # never around a yield: two iterators side by side would leave it switched off
            return features(run(stages, batch), channels, channels_first=channels_first)

    for batch in batches(enough(x, lambda few: len(rows_of(few)))):
        yield rows_of(batch)


@dataclass(frozen=True, slots=True, eq=False)
class Spacing:
    """How far samples lie apart, their numbers in units of their deviation.

    Attributes:
        apart: the distance of each from its fifth nearest.
        usual: the largest of those of as many of a normal distribution of the same covariance.
    """

    apart: NDArray[np.float64]
    usual: float

    def reach(self, reporting: NDArray[np.intp]) -> float:
        """How many times further off than the worst row that reports one is taken to be; 1 at least (*heuristic*).

            max(1, g / sqrt(c))

        g is how much farther apart samples lie than those normal ones, c how many of those that report lie beyond where
        these reach: of rows of a rare kind that report in ones and twos the worst is no measure. 1.0 for normal rows;
        2 to 6 where 1 to 10 rows in 100 are of another kind, or tails are heavy.

        Args:
            reporting: the places of those that report.
        """
        beyond = int((self.apart[reporting] > self.usual).sum())
        is_known = self.usual > 0 and beyond > 0
        return max(1.0, float(self.apart.max()) / self.usual / beyond**0.5) if is_known else 1.0


def spacing(x: Tensor) -> Spacing | None:
    """How far samples lie apart; None for many of them, which are told apart by chance, and for tokens.

    Of images, more numbers than samples, the products of all pairs are formed, and no copy of the images is.
    """
    if len(x) > MOST_APART or not x.is_floating_point():
        return None
    columns, count = x.detach().flatten(1), len(x)
    draws = torch.randn(count, count, generator=torch.Generator().manual_seed(0), dtype=torch.float32)
    if columns.shape[1] <= count:
        rows = _standardised(columns)
        return Spacing(_distances(rows), float(_distances(draws @ rows / count**0.5).max()))
    products, wide = torch.zeros(count, count, dtype=torch.float64), draws.double() / count**0.5
    for part in columns.split(COLUMNS, 1):
        rows = _standardised(part)
        products += rows @ rows.T
    usual = float(_nearest_by(wide @ products @ wide.T).max())
    return Spacing(_nearest_by(products), usual)


def three_parts(
    num_rows: int, *, seed: int, apart: NDArray[np.floating] | None = None
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Rows to fit on, to choose by and to report on, each in order.

    A fifth choose. A fifth report, of few rows more, up to a third: what is proved of a network rests on them.

    Args:
        num_rows: at least 5.
        seed: of the split.
        apart: how far each row lies from the others. Every part then gets its share of those that lie far off, of
            which there may be few, and the farthest one reports (measured: a kind of 3 rows in 100 was among those
            that report by chance, or was not, and a network that fails on it was called good).
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(num_rows)
    if apart is not None:
        order = order[np.argsort(-apart[order], kind="stable")]
    report = max(2, round(num_rows / 5), min(MOST_OF_FEW, num_rows // 3))
    choose = max(2, round(num_rows / 5))
    last = _one_of_each(order, report, rng)
    others = order[~np.isin(order, last)]
    middle = _one_of_each(others, choose, rng)
    return np.sort(others[~np.isin(others, middle)]), np.sort(middle), np.sort(last)


def _standardised(columns: Tensor) -> Tensor:
    rows = columns.float().cpu()
    deviation = rows.std(0)
    return (rows - rows.mean(0)) / deviation.where(deviation > 0, torch.ones_like(deviation))


def _distances(rows: Tensor) -> NDArray[np.float64]:
    nearest = min(NEAREST, len(rows) - 1)
    found = [torch.cdist(part, rows).kthvalue(nearest + 1, dim=1).values for part in rows.split(BATCH)]
    return torch.cat(found).double().numpy()


def _nearest_by(products: Tensor) -> NDArray[np.float64]:
    """The distances of rows from their fifth nearest, by the products of all pairs; these are overwritten.

    |a - b|^2 = |a|^2 + |b|^2 - 2 a.b
    """
    squares, nearest = products.diagonal().clone(), min(NEAREST, len(products) - 1)
    squared = products.mul_(-2).add_(squares).add_(squares[:, None]).clamp_min_(0)
    return squared.kthvalue(nearest + 1, dim=1).values.sqrt().numpy()


def _one_of_each(order: NDArray[np.intp], count: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """One row of each of so many stretches of equal length: of the first stretch its first, of the others any."""
    ends = np.arange(count + 1) * len(order) // count
    places = rng.integers(ends[:-1], ends[1:])
    places[0] = 0
    return order[places]
