"""Convolutions have a spectrum by frequency in the table: exact for circular padding, NaN in other rows."""

import numpy as np
import pytest
import torch
from torch import nn

import isthmus
from foreign_modules import samples
from isthmus.diagnostics import convolution_columns
from isthmus.reports.tables import layer_table
from isthmus.theory.convolutions import frequency_singular_values

DOUBLE = torch.float64


def network() -> nn.Sequential:
    """A circular and a strided convolution, each channel of the latter apart, and a linear layer."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1, padding_mode="circular"), nn.ReLU(),
            nn.Conv2d(4, 4, 2, stride=2, groups=4), nn.ReLU(), nn.Flatten(), nn.Linear(36, 3),
        ).double()  # fmt: skip


def test_spectra_by_frequency_stand_in_the_rows_of_convolutions() -> None:
    module, x = network(), samples(20, 2, 6, 6, dtype=DOUBLE)
    found = isthmus.diagnose(module, x)
    table = found.layers
    assert table["frequency_pairs"].values.tolist()[:2] == [72, 36]
    wanted = frequency_singular_values(module.get_parameter("0.weight").detach(), grid=(6, 6))
    assert np.allclose(table["frequency_singular_values"].values[0, :, :2], wanted)
    for row, number in ((0, 72), (1, 36)):
        values = table["frequency_singular_values"].values[row].ravel()
        values = np.sort(values[np.isfinite(values)])[::-1]
        assert len(values) == number
        energy = np.cumsum(np.square(values)) / np.square(values).sum()
        assert table["frequency_rank_99"].values[row] == 1 + int((energy < 0.99).sum())
    assert np.isnan(table["frequency_rank_99"].values[2])
    assert "frequencies x channels, 99 %" in layer_table(found).headings
    depthwise = table["frequency_singular_values"].values[1, :9]
    single = [
        frequency_singular_values(w[None], grid=(6, 6), stride=(2, 2))
        for w in module.get_parameter("2.weight").detach()
    ]
    assert np.allclose(np.sort(depthwise), np.sort(torch.cat(single, 1)))


def test_large_images_are_looked_at_on_a_coarser_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution_columns, "MOST_WORK", 200.0)
    table = isthmus.diagnose(network(), samples(20, 2, 6, 6, dtype=DOUBLE), jacobians=False).layers
    assert table["frequency_pairs"].values[0] == 2 * 9


def test_spectra_that_would_fill_the_memory_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution_columns, "MOST_NUMBERS", 100)
    table = isthmus.diagnose(network(), samples(20, 2, 6, 6, dtype=DOUBLE), jacobians=False).layers
    assert "frequency_singular_values" not in table
    assert table["frequency_pairs"].values[:2].tolist() == [72, 36]
