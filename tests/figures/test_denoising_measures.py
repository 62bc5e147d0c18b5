"""Figure 3 in numbers: a projection takes noise away, the identity keeps it; and what a start at rank 1 gains."""

from pathlib import Path

import numpy as np
import pytest
import torch

from isthmus import tasks
from isthmus.figures.denoising_measures import NOISE, RankOneStart, defect, measured, with_noise
from isthmus.figures.parts import opened
from isthmus.networks import FullyConnected

LINE = torch.linspace(-1, 1, 50, dtype=torch.float64)[:, None] * torch.tensor([[1.0, 0.0]], dtype=torch.float64)


def linear(matrix: list[list[float]]) -> FullyConnected:
    weight = torch.tensor(matrix, dtype=torch.float64)
    return FullyConnected.from_layers([weight], [torch.zeros(2, dtype=torch.float64)])


@pytest.mark.parametrize(("matrix", "least", "most", "off"), [
    ([[1.0, 0.0], [0.0, 1.0]], 1.0, 1.0, 0.0), ([[1.0, 0.0], [0.0, 0.0]], 0.0, 0.3, 0.0),
    ([[0.5, 0.0], [0.0, 0.5]], 0.0, 0.9, 0.125**0.5),
])  # fmt: skip
def test_the_share_of_the_distance_that_stays(matrix: list[list[float]], least: float, most: float, off: float) -> None:
    network = linear(matrix)
    found = measured(network, LINE, noise=NOISE, data_loss=0.5 * float(LINE.var(0, correction=0).sum()), objective=1.0)
    assert least <= float(found["gain"]) <= most
    assert float(found["lost"]) == pytest.approx(0.5)
    assert defect(network, LINE) == pytest.approx(off)
    np.testing.assert_array_equal(found["noisy"].values, with_noise(LINE, NOISE).numpy())


@pytest.mark.slow
def test_a_start_at_rank_one_undercuts_the_identity_of_the_plane(tmp_path: Path) -> None:
    starts = [RankOneStart(14, 12, 60, ridge=1e-3, evaluations=1500, seed=seed) for seed in range(3)]
    parts = [start.part() for start in starts]
    for part in parts:
        part.compute(opened(tmp_path))
    # one start alone may end in a minimum as high as the identity: which of them does hangs on the processor
    found = min((part.result(tmp_path) for part in parts), key=lambda table: float(table["objective"]))
    identity = starts[0].ridge * 2 * starts[0].depth  # about where cold starts end
    assert float(found["objective"]) < 0.95 * identity
    assert float(found["gain"]) < 0.5
    np.testing.assert_array_equal(found["clean"].values, tasks.curve_autoencoder(num_samples=60).x)
