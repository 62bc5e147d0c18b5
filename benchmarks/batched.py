"""Question: up to which width are many networks trained faster at once than one after the other, on one core?

Sixteen networks, L = 4, ten inputs, three outputs, 256 samples, float64, four ridges; 60 steps of Adam with
rebalancing, then 60 gradients of L-BFGS. CPU seconds of `fit` for all, one after the other, over those of `fit_batch`;
the median of five interleaved repetitions.

    python benchmarks/batched.py [--quick] [--device cuda]

Answer: up to width 48. Median ratio 3.3 at width 4, 3.2 at 8, 2.4 at 16, 1.9 at 24, 1.5 at 32 (1.38 at least), 1.2 at
48 (1.04 at least), 0.91 at 64 (0.84 to 1.12). `batching_pays` says yes up to 32, where no repetition was near 1 (one
core of a busy Intel Xeon, torch 2.13.0 CPU, November 2026). On an NVIDIA H100 four networks at once (--quick) took
1.12 times (width 8) and 1.11 times (64) as long as one after the other, each a CUDA graph; more were not tried.
"""

import argparse
import statistics
from collections.abc import Callable

import torch

from isthmus import FullyConnected, fit
from isthmus.training.batched.fit_batch import BatchSchedule, fit_batch
from isthmus.training.moves import rebalancing
from isthmus.training.solvers.solver import LBFGS, Adam
from training_tables.timing import Clock, clock_of

WIDTHS = (4, 8, 16, 24, 32, 48, 64)
SCHEDULE: BatchSchedule = (Adam(60, moves=(rebalancing,), move_every=10), LBFGS(60, plateau=0.0))
RIDGES = (1e-3, 3e-3, 1e-2, 3e-2)


def networks(width: int, count: int, device: torch.device) -> list[FullyConnected]:
    """Fresh networks of one shape."""
    return [
        FullyConnected(10, 3, width=width, depth=4, seed=seed, dtype=torch.float64).to(device) for seed in range(count)
    ]


def seconds(action: Callable[[], object], clock: Clock) -> float:
    """What it takes by that clock."""
    began = clock()
    action()
    return clock() - began


def ratio(width: int, count: int, x: torch.Tensor, y: torch.Tensor) -> tuple[float, float, float]:
    """Seconds separately and at once, and the first over the second."""
    ridges, clock = [RIDGES[i % len(RIDGES)] for i in range(count)], clock_of(x.device)
    batch, single = networks(width, count, x.device), networks(width, count, x.device)
    at_once = seconds(lambda: fit_batch(batch, x, y, ridges=ridges, solver=SCHEDULE), clock)
    separately = seconds(
        lambda: [fit(n, x, y, ridge=r, solver=SCHEDULE) for n, r in zip(single, ridges, strict=True)], clock
    )
    return separately, at_once, separately / at_once


def main() -> None:
    """Measure at each width and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two widths, four networks, once")
    parser.add_argument("--device", default="cpu", help="where they are trained; seconds by the clock on a GPU")
    arguments = parser.parse_args()
    quick = arguments.quick
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(256, 10, generator=generator, dtype=torch.float64)
    y = torch.relu(x @ torch.randn(10, 3, generator=generator, dtype=torch.float64))
    x, y = x.to(arguments.device), y.to(arguments.device)
    count, repeats = (4, 1) if quick else (16, 5)
    widths = (8, 64) if quick else WIDTHS
    ratio(8, 2, x, y)  # warm up
    rounds = [{width: ratio(width, count, x, y) for width in widths} for _ in range(repeats)]
    print("width | seconds: separately at once | ratio: median  least  most")
    for width in widths:
        separately, at_once, ratios = zip(*(r[width] for r in rounds), strict=True)
        print(
            f"{width:>5} | {statistics.median(separately):>19.3f} {statistics.median(at_once):>7.3f} "
            f"| {statistics.median(ratios):>13.2f} {min(ratios):>6.2f} {max(ratios):>5.2f}"
        )


if __name__ == "__main__":
    main()
