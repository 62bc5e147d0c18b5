"""The callback under a real `lightning.Trainer`: what it records and what it leaves alone.

What it costs: benchmarks/monitor.py.
"""

import importlib.util
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from closeness import random
from isthmus.diagnostics import Monitor, lightning_callback

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("lightning") is None, reason="lightning is not installed"),
    pytest.mark.filterwarnings("ignore"),  # what Lightning says of its own use of torch, and of few workers
]


def data() -> Tensor:
    return random(1600, 20).float()


def network() -> Any:
    """20-64-64-64-5 with ReLUs, learning to copy five of its inputs."""
    import lightning  # pyright: ignore[reportMissingImports] # an extra of the tests, in no environment of ours

    class Learner(lightning.LightningModule):  # pyright: ignore
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            hidden = [part for _ in range(2) for part in (nn.Linear(64, 64), nn.ReLU())]
            self.net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), *hidden, nn.Linear(64, 5))

        def forward(self, x: Tensor) -> Tensor:
            return self.net(x)

        def training_step(self, batch: list[Tensor], _index: int) -> Tensor:
            return (self(batch[0]) - batch[0][:, :5]).square().sum(1).mean()

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.Adam(self.net.parameters(), lr=1e-3)

    return Learner()


def fitted(module: Any, steps: int, callbacks: list[object], *, batches_per_step: int = 1) -> None:
    """Train for so many steps of the optimiser."""
    import lightning  # pyright: ignore[reportMissingImports]

    trainer: Any = lightning.Trainer(  # pyright: ignore
        max_steps=steps, max_epochs=-1, accelerator="cpu", callbacks=callbacks, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        accumulate_grad_batches=batches_per_step,
    )  # fmt: skip
    torch.manual_seed(1)
    trainer.fit(module, DataLoader(TensorDataset(data()), batch_size=64))


def test_a_lightning_trainer_records_and_trains_as_without() -> None:
    alone, watched = network(), network()
    monitor = Monitor(watched, data()[:256], every=100)
    fitted(alone, 300, [])
    fitted(watched, 300, [lightning_callback(monitor)])
    assert monitor.history["step"].values.tolist() == [100, 200, 300]
    assert monitor.history["layer"].values.tolist() == ["net.0", "net.2", "net.4", "net.6"]
    assert all(torch.equal(a, b) for a, b in zip(alone.parameters(), watched.parameters(), strict=True))
    last = [layer.dimension_participation for layer in monitor.record(301)]
    assert monitor.history["dimension_participation"].sel(step=300).values.tolist() == last
    assert monitor.history["dimension_participation"].sel(step=100).values.tolist() != last


def test_batches_that_share_a_step_are_recorded_once() -> None:
    module = network()
    monitor = Monitor(module.net, data(), every=5)
    fitted(module, 15, [lightning_callback(monitor)], batches_per_step=4)
    assert monitor.history["step"].values.tolist() == [5, 10, 15]
    assert monitor.history["layer"].values.tolist() == ["0", "2", "4", "6"], "a part of the module will do"
