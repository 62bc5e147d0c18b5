"""Question: what share of the training of a small network does a `Monitor` take that records every 100 steps?

Answer: 3.4 to 3.6 % (step 1.5 to 1.6 ms, record 5.3 to 5.7 ms; three runs), so it may stay on.
Shared machine, one thread of two busy cores, torch 2.13.0 CPU, November 2026.
Times are of the processor, not of the clock, in one thread and one process; medians of interleaved pairs.

A step is one of Adam on 64 samples through 20-64-64-64-5; a record reads all four layers on 128 samples.
`--quick` takes 3 pairs in place of 15. `--lightning` times the steps of a `lightning.Trainer` on the CPU without a
logger: there the share is 1.5 to 1.6 % (step 3.4 to 3.8 ms, record 5.5 to 6.2 ms; five runs of 1,000 steps, lightning
2.6.6).
"""

import argparse
import statistics
import sys
import time

import torch
from torch import nn

from isthmus.diagnostics import Monitor, lightning_callback
from isthmus.diagnostics.monitor import LayerRecord

EVERY, STEPS = 100, 50


def network() -> nn.Sequential:
    """20-64-64-64-5 with ReLUs."""
    hidden = [part for _ in range(2) for part in (nn.Linear(64, 64), nn.ReLU())]
    return nn.Sequential(nn.Linear(20, 64), nn.ReLU(), *hidden, nn.Linear(64, 5))


def step(module: nn.Module, optimiser: torch.optim.Optimizer) -> None:
    """One step of training."""
    x = torch.randn(64, 20)
    optimiser.zero_grad()
    (module(x) - x[:, :5]).square().sum(1).mean().backward()
    optimiser.step()


def under_lightning(runs: int, num_steps: int = 1000) -> None:
    """Print the share for a trainer with the callback, one line per run."""
    import lightning
    from torch.utils.data import DataLoader, TensorDataset

    class Learner(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = network()

        def training_step(self, batch: list[torch.Tensor], _index: int) -> torch.Tensor:
            return (self.net(batch[0]) - batch[0][:, :5]).square().sum(1).mean()

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.Adam(self.net.parameters(), lr=1e-3)

    class Timed(Monitor):
        seconds = 0.0

        def record(self, number: int) -> list[LayerRecord]:
            start = time.process_time()
            found = super().record(number)
            self.seconds += time.process_time() - start
            return found

    x = torch.randn(6400, 20)
    for _ in range(runs):
        module = Learner()
        monitor = Timed(module.net, x[:256], every=EVERY)
        trainer = lightning.Trainer(
            max_steps=num_steps, accelerator="cpu", logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False, callbacks=[lightning_callback(monitor)],
        )  # fmt: skip
        start = time.process_time()
        trainer.fit(module, DataLoader(TensorDataset(x), batch_size=64))
        rest = time.process_time() - start - monitor.seconds
        one, record = rest / num_steps, monitor.seconds / (num_steps // EVERY)
        sys.stdout.write(
            f"step {1e3 * one:.2f} ms | record {1e3 * record:.2f} ms | share {monitor.seconds / rest:.2%}\n"
        )


def main() -> None:
    """Print milliseconds of a step and of a record, and the share."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--lightning", action="store_true")
    given = parser.parse_args()
    pairs = 3 if given.quick else 15
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if given.lightning:
        under_lightning(1 if given.quick else 5)
        return
    module = network()
    optimiser = torch.optim.Adam(module.parameters(), lr=1e-3)
    monitor = Monitor(module, torch.randn(256, 20))
    monitor.record(0)
    step(module, optimiser)
    steps, records = list[float](), list[float]()
    for pair in range(1, pairs + 1):
        start = time.process_time()
        for _ in range(STEPS):
            step(module, optimiser)
        middle = time.process_time()
        for part in range(2):
            monitor.record(2 * pair + part)
        steps.append((middle - start) / STEPS)
        records.append((time.process_time() - middle) / 2)
    one, record = statistics.median(steps), statistics.median(records)
    sys.stdout.write(f"step   {1e3 * one:.2f} ms\nrecord {1e3 * record:.2f} ms\n")
    sys.stdout.write(f"share  {record / (EVERY * one):.2%} at a record every {EVERY} steps\n")


if __name__ == "__main__":
    main()
