"""Rows of features at a place in a chain: pixels and tokens are rows too, flattened channels are taken apart again."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from isthmus.networks.chain import run
from isthmus.networks.stage_kinds import Stage

BATCH = 1024
# rows of features per factor: beyond it the statistics no longer move, and convolutions give many per sample
MOST_ROWS = 65536


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


def row_batches(stages: Sequence[Stage], x: Tensor, channels: int, *, channels_first: bool) -> Iterator[Tensor]:
    """What the steps give on samples, as batches of rows; at most about `MOST_ROWS` of them."""
    seen = 0
    for batch in x.split(BATCH):
        with torch.no_grad():  # never around a yield: two iterators side by side would leave it switched off
            rows = features(run(stages, batch), channels, channels_first=channels_first)
        yield rows
        seen += len(rows)
        if seen >= MOST_ROWS:
            return
