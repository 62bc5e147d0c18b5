"""Rows of features at a place in a chain: pixels and tokens are rows too, flattened channels are taken apart again."""

from collections.abc import Iterator, Sequence

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


def row_batches(stages: Sequence[Stage], x: Tensor, channels: int, *, channels_first: bool) -> Iterator[Tensor]:
    """What the steps give on samples, as batches of rows; at most about `MOST_ROWS` of them."""
    seen = 0
    for batch in batches(x):
        with torch.no_grad():  # never around a yield: two iterators side by side would leave it switched off
            rows = features(run(stages, batch), channels, channels_first=channels_first)
        yield rows
        seen += len(rows)
        if seen >= MOST_ROWS:
            return


def distances(x: Tensor) -> NDArray[np.float64] | None:
    """How far each sample lies from its fifth nearest, its numbers in units of their deviation; None for many samples.

    Many are told apart by chance, and tokens by no distance.
    """
    return _distances(_standardised(x)) if len(x) <= MOST_APART and x.is_floating_point() else None


def reach(x: Tensor, reporting: NDArray[np.intp]) -> float:
    """How many times further off than the worst row that reports one is taken to be; 1 at least (*heuristic*).

        max(1, g / sqrt(c))

    g is how much farther apart samples lie than as many of a normal distribution of the same covariance, c how many of
    those that report lie beyond where that one reaches: of rows of a rare kind that report in ones and twos the worst
    is no measure. 1.0 for normal rows; 2 to 6 where 1 to 10 rows in 100 are of another kind, or tails are heavy.

    Args:
        x: the samples.
        reporting: the places of those that report.
    """
    apart = distances(x)
    if apart is None:
        return 1.0
    rows = _standardised(x)
    drawn = torch.randn(len(rows), len(rows), generator=torch.Generator().manual_seed(0), dtype=rows.dtype)
    usual = float(_distances(drawn @ rows / len(rows) ** 0.5).max())
    beyond = int((apart[reporting] > usual).sum())
    return max(1.0, float(apart.max()) / usual / beyond**0.5) if usual > 0 and beyond else 1.0


def _standardised(x: Tensor) -> Tensor:
    rows = x.detach().flatten(1).float().cpu()
    deviation = rows.std(0)
    return (rows - rows.mean(0)) / deviation.where(deviation > 0, torch.ones_like(deviation))


def _distances(rows: Tensor) -> NDArray[np.float64]:
    nearest = min(NEAREST, len(rows) - 1)
    found = [torch.cdist(part, rows).kthvalue(nearest + 1, dim=1).values for part in rows.split(BATCH)]
    return torch.cat(found).double().numpy()
