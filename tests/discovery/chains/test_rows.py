"""Rows of features come from all over the samples, whatever their order, and distances without copies of them."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import isthmus
from foreign_modules import samples
from isthmus.discovery.chains import compression, exact_moves, polishing, rows
from isthmus.discovery.chains.compression_search import CompressionSearch, entering
from isthmus.discovery.chains.exact_moves import without_redundant_neurons
from isthmus.discovery.chains.rows import MOST_ROWS, drawn, row_batches, spacing, three_parts
from isthmus.networks.opening import whole
from isthmus.networks.stage_kinds import Stage, inner_chains

CLASSES = 10


def by_class(count: int, *shape: int) -> Tensor:
    """Samples in the order of their classes; every number of one is its class."""
    return (torch.arange(count) * CLASSES // count).float().reshape(-1, *[1] * len(shape)).repeat(1, *shape)


def assert_all_classes(values: Tensor, count: int) -> None:
    """Each class has its share, within 5 standard deviations."""
    found = torch.bincount(values.long().flatten(), minlength=CLASSES) / values.numel()
    assert float((found - 1 / CLASSES).abs().max()) <= 5 * (0.1 * 0.9 / count) ** 0.5


class Inner(nn.Module):
    """A part whose forward depends on numbers around a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) if float(x.sum()) < 1e30 else x


@pytest.mark.parametrize("shape", [(200, 4), (33, 4)])
def test_of_many_rows_some_from_all_over_the_samples_are_looked_at(shape: tuple[int, ...]) -> None:
    x = by_class(4000, *shape)
    found = torch.cat(list(row_batches([], x, 4, channels_first=False)))
    assert MOST_ROWS <= len(found) <= MOST_ROWS + 1024 * shape[0]
    assert_all_classes(found[:, 0], len(found) // shape[0])
    [stage] = whole(Inner(), x, "why")
    [path] = inner_chains(stage)
    assert_all_classes(entering(stage, path, x)[:, 0, 0], len(found) // shape[0])


def test_of_few_rows_all_are() -> None:
    x = by_class(4000, 4)
    assert torch.equal(torch.cat(list(row_batches([], x, 4, channels_first=False))), x.double())
    assert drawn(x, 4000) is x


def test_each_part_of_a_compression_has_its_share_of_each_class() -> None:
    x = by_class(60_000, 2)
    for heldout in (None, x):
        found = vars(compression)["_parts"](x, heldout)
        assert [len(part) for part in found[:3]] == [8192, 2048, 8192]
        for part in found[:3]:
            assert_all_classes(part[:, 0], len(part))


def test_what_comes_in_turn_is_not_left_out() -> None:
    """Every second row is of one kind: no stride of two may choose the other alone."""
    x = (torch.arange(16_384) % 2).float()[:, None]
    found = vars(compression)["_parts"](by_class(100, 1), x)
    assert 0.4 < float(found.reporting.mean()) < 0.6


def test_exact_moves_look_at_rows_of_all_classes() -> None:
    """A neuron that is awake on the last class alone is not dead."""
    layers = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    with torch.no_grad():
        layers.get_parameter("0.weight").copy_(torch.tensor([[1.0, 2, 0, 1], [0, 1, 1, 3], [1, 1, 1, 1]]))
        layers.get_parameter("0.bias").copy_(torch.tensor([0.0, 0.5, -4 * (CLASSES - 1.5)]))
    stages = [Stage(str(i), layer) for i, layer in enumerate(layers)]
    x = by_class(6000, 9, 4) + 0.1 * samples(6000, 9, 4)
    assert exact_moves.MOST_ROWS < 9 * 6000
    found = without_redundant_neurons(stages, (0, 2), x)
    assert len(found[0].module.get_parameter("weight")) == 3


def test_what_trains_against_the_original_sees_all_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Tensor] = []

    def distilled(stages: Sequence[Stage], x: Tensor, target: Tensor) -> list[Stage]:
        assert torch.equal(x, target)
        seen.append(x)
        return [*stages]

    monkeypatch.setattr(polishing, "distilled", distilled)
    x = by_class(6000, 4)
    layers = [Stage("0", nn.Linear(4, 4)), Stage("1", nn.ReLU()), Stage("2", nn.Linear(4, 4))]
    search = CompressionSearch(layers, x, lambda _: 0.0, 0.5)
    search.go_down(0.5)
    polishing.polished_attempts(search, x)
    assert_all_classes(seen[0][:, 0], len(seen[0]))


@pytest.mark.slow
def test_rows_in_the_order_of_their_classes_are_compressed_as_any_others() -> None:
    generator = torch.Generator().manual_seed(1)
    centres = 4 * torch.randn(CLASSES, 16, generator=generator)
    x = centres[by_class(40_000).long()] + torch.randn(40_000, 16, generator=generator)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        module = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
    orders = torch.arange(40_000), torch.randperm(40_000, generator=generator)
    sorted_one, mixed = (isthmus.compress(module, x[order], tolerance=0.2, allow_slower=True) for order in orders)
    assert mixed.parameters_after < 0.8 * mixed.parameters_before
    assert sorted_one.parameters_after == pytest.approx(mixed.parameters_after, rel=0.1)


def images(count: int, width: int) -> Tensor:
    """Rows of which some lie far off."""
    x = samples(count, width)
    return torch.cat([x[:-3], 6 * x[-3:]])


@pytest.mark.parametrize("width", [150, 300])
def test_products_of_pairs_give_the_distances(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x = images(120, width)
    found = spacing(x)
    monkeypatch.setattr(rows, "COLUMNS", 37)
    parts = spacing(x)
    assert found is not None
    assert parts is not None
    standard = ((x - x.mean(0)) / x.std(0)).double()
    wanted = torch.cdist(standard, standard, compute_mode="donot_use_mm_for_euclid_dist").sort(1).values[:, 5]
    for one in (found, parts):
        np.testing.assert_allclose(one.apart, wanted.numpy(), rtol=1e-5)
        assert one.usual == pytest.approx(found.usual, rel=1e-5)
        assert 1.5 < one.reach(np.arange(len(x))) < float(wanted.max() / found.usual)


WIDTH = 80_000
PROGRAM = f"""
import torch
from isthmus.discovery.chains.rows import spacing
from isthmus.training.sharded.process_group import peak_memory
x, cpu = torch.ones(300, {WIDTH}), torch.device("cpu")
spacing(x[:, :400].contiguous())
peaks = [peak_memory(cpu)]
for call in (lambda: spacing(x), lambda: (x - x.mean(0)) / x.std(0)):
    call()
    peaks.append(peak_memory(cpu))
print(*peaks)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of this process alone is known there")
def test_distances_of_images_take_a_part_of_their_memory() -> None:
    """Two copies of the images and one of as many normal ones had been made, twice over."""
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3] / "src"), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    before, by_products, by_copies = map(int, found.stdout.split())
    assert by_products - before <= 0.4 * 4 * 300 * WIDTH
    assert by_copies - before >= 4 * 300 * WIDTH, "the measure measures"


@pytest.mark.parametrize(
    ("num_rows", "sizes"), [(5, (1, 2, 2)), (60, (28, 12, 20)), (300, (140, 60, 100)), (900, (540, 180, 180))]
)
def test_of_three_parts_each_row_is_in_one(num_rows: int, sizes: tuple[int, int, int]) -> None:
    parts = three_parts(num_rows, seed=0)
    assert tuple(map(len, parts)) == sizes
    assert sorted(int(i) for part in parts for i in part) == list(range(num_rows))


@pytest.mark.parametrize("seed", range(4))
def test_rows_that_lie_far_off_are_dealt_to_all_three_parts(seed: int) -> None:
    apart = np.random.default_rng(seed).uniform(size=200)
    rare = [3, 50, 51, 120, 121, 199]
    apart[rare] = 10 + np.arange(6)
    fit, choose, report = (set(part.tolist()) for part in three_parts(200, seed=seed, apart=apart))
    assert 199 in report  # the farthest of them
    assert 1 <= len(choose & {*rare}) <= 2
    assert 2 <= len(report & {*rare}) <= 3
    assert len(fit & {*rare}) >= 2
    assert fit | choose | report == {*range(200)}
    usual = [set(part.tolist()) for part in three_parts(200, seed=seed)]
    assert [len(part) for part in usual] == [len(fit), len(choose), len(report)]
