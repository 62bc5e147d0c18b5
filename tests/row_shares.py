"""Rows and a network that the tests of trainings by shares of rows or of layers are made on."""

import torch

from isthmus import FullyConnected
from isthmus.training.losses import SQUARED, DataLoss, Loss
from loss_targets import targets_of

ROWS = 5000  # four leaves


def data_of(loss: Loss = SQUARED, rows: int = ROWS) -> tuple[torch.Tensor, DataLoss]:
    """Random rows of 5 numbers and targets of 4."""
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(rows, 5, generator=generator, dtype=torch.float64)
    y = torch.randn(rows, 4, generator=generator, dtype=torch.float64)
    return x, DataLoss(loss, targets_of(loss, y))


def network(outputs: int = 4, **shape: object) -> FullyConnected:
    """One with random biases, of width 7 and depth 4 unless `shape` says otherwise."""
    made = FullyConnected(5, outputs, **{"width": 7, "depth": 4, **shape}, seed=1, dtype=torch.float64)  # pyright: ignore[reportArgumentType]
    with torch.no_grad():
        for bias in made.biases:
            bias.normal_(generator=torch.Generator().manual_seed(7))
    return made
