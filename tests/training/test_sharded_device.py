"""`fit_shards` on a CUDA device, alone: the minimum of the CPU, checkpoints. Two: `test_sharded_processes`."""

from pathlib import Path

import pytest
import torch

from isthmus import FullyConnected
from isthmus.errors import DataError
from isthmus.training import FitResult, Limits, Outcome, fit_shards
from isthmus.training.sharded.process_group import own_device
from isthmus.training.sharded.team import Team

CUDA = torch.device("cuda", 0)
pytestmark = [
    pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
]  # fmt: skip


def fitted(
    device: torch.device, *, split: bool, ridge: float = 3e-2, checkpoint: Path | None = None, stop_after: int = 10**9
) -> FitResult:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(200, 5, generator=generator, dtype=torch.float64)
    y = torch.tanh(x @ torch.randn(5, 4, generator=generator, dtype=torch.float64))
    # linear layers: one minimum, which every path reaches; over the kinks of ReLU paths part at the first rounding
    network = FullyConnected(5, 4, width=7, depth=3, linear=(1, 2), seed=1, dtype=torch.float64).to(device)
    return fit_shards(
        network, x.to(device), y.to(device), total=200, team=Team(device=device), ridge=ridge, checkpoint=checkpoint,
        limits=Limits(evaluations=300), callback=lambda event: event.evaluations >= stop_after, split_parameters=split,
    )  # fmt: skip


@pytest.mark.parametrize("split", [False, True])
def test_a_device_reaches_the_minimum_of_the_cpu(split: bool) -> None:
    here, there = fitted(torch.device("cpu"), split=split), fitted(CUDA, split=split)
    assert here.outcome is there.outcome is Outcome.CONVERGED
    assert there.objective == pytest.approx(here.objective, rel=1e-10)
    assert there.rank == here.rank
    assert fitted(CUDA, split=split, ridge=0.031).objective != pytest.approx(here.objective, rel=1e-10)


@pytest.mark.parametrize("split", [False, True])
def test_a_fit_on_a_device_goes_on_bit_for_bit(split: bool, tmp_path: Path) -> None:
    path, undisturbed = tmp_path / "fit.parts.pt", fitted(CUDA, split=split)
    for stop in (8, 25, 45):
        assert fitted(CUDA, split=split, checkpoint=path, stop_after=stop).outcome is Outcome.INTERRUPTED
    assert fitted(CUDA, split=split, checkpoint=path).objective == undisturbed.objective


def test_more_processes_than_devices_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", str(torch.cuda.device_count()))
    with pytest.raises(DataError, match="has no CUDA device"):
        own_device()
