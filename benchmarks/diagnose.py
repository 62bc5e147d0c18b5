"""Question: what does `diagnose` cost over the bare forward pass, and how much memory does it take?

A chain of L = 50 layers of width 200 with ReLU (10 outputs), float32 as trained, on 10,000 and 60,000 samples: sums
over the data alone (spectra), then everything; a network of 10 layers of width 512 on 60,000 x 784; all of a
LeakyResNet of the same depth and width on 10,000. Peak memory is that of the process beyond the data, in a process of
its own.

    python benchmarks/diagnose.py [--quick]

Answer: on 10,000 samples spectra take 3.7 times the float32 forward pass and everything 5.4 times, with 183 MiB; on
60,000 samples both 3.5 times; the spectra of 10 layers of width 512 on 60,000 x 784 take 3.3 times (one
pair). The target of 3 is missed in all three. Times are of the processor in one thread; a ratio is that to the bare
passes right before and after, the median of three; two cores of one Intel Xeon at 2.5 GHz shared with jobs of others
(load 5 to 9), so that the same code gave 3.7 to 4.4 on 10,000 samples. At width 200 the forward pass is 1.0; float64
products take 1.0 to 1.3 (half of the multiplications at half of the speed or less), widening and centring 0.3, norms of
what activations take away 0.4, decompositions 0.7 on 10,000 samples, of which 0.3 are the singular values of weights.
Many neurons of a network of this depth never fire at its start, which makes decompositions cheaper here than where all
do. Since these figures, neurons that never fire are left out of the products too: on 10,000 samples, old and new in
turn in one process on a busier machine (load 13), 5.3, 5.2, 4.6 became 4.1, 4.3, 3.9; with weights after He, where 60
to 97 % of the neurons move, nothing was gained. The leaky network was not timed again: before, it had not ended after
150 s, where 8 s were the target (torch 2.13.0 CPU, November 2026).

What 3 would need, part by part, in turn in one process (load 11, medians of 13), in units of the pass of 4,096 rows
through one layer and its ReLU with all neurons alive: the float64 product by dsyrk 1.44 (by blocks of the lower
triangle 1.55 and 1.71, whole 1.81; three float32 products of halves of 12 bits, which still round their sums, 2.76),
widening 0.15, centring 0.12, norms 0.30 (0.19 if one of them is read from the diagonal of the product); and on 10,000
rows eigenvectors 0.37, eigenvalues of z 0.16 (stacked: the same for each), singular values of W 0.29 (0.19 from
squares, which lose those below 1e-8). The pass, the product and the widening alone are 2.6.
"""

import argparse
import multiprocessing
import os
import resource
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from isthmus import LeakyResNet, diagnose
from isthmus.diagnostics.samples import Samples
from isthmus.diagnostics.session import open_session
from isthmus.diagnostics.table import spectra_of


def chain(d_in: int, width: int, depth: int, d_out: int) -> nn.Sequential:
    """Linear layers with ReLU in between."""
    sizes = [d_in, *[width] * (depth - 1), d_out]
    parts: list[nn.Module] = []
    for fan_in, fan_out in zip(sizes[:-1], sizes[1:], strict=True):
        parts += [nn.Linear(fan_in, fan_out), nn.ReLU()]
    return nn.Sequential(*parts[:-1])


def forward(module: nn.Module, x: Tensor) -> None:
    """The bare forward pass, in batches of 4,096."""
    with torch.no_grad():
        for part in x.split(4096):
            module(part)


def spectra(module: nn.Module, x: Tensor) -> None:
    """Sums over the data and the spectra from them, no derivatives."""
    with open_session(module, Samples.of(x)) as session:
        spectra_of(session.sums(session.budget(None).batch, lambda _output, _start: None))


def seconds(work: Callable[[], object]) -> float:
    """Seconds of the processor."""
    began = time.process_time()
    work()
    return time.process_time() - began


def over_forward(work: Callable[[], object], bare: Callable[[], object], pairs: int = 3) -> tuple[float, float]:
    """Median of the seconds of the bare pass, and of the ratio to the mean of the bare passes before and after."""
    around, ratios = [seconds(bare)], list[float]()
    for _ in range(pairs):
        one = seconds(work)
        around.append(seconds(bare))
        ratios.append(2 * one / (around[-2] + around[-1]))
    return statistics.median(around), statistics.median(ratios)


def peak() -> float:
    """Largest resident size of this process so far, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def one_chain(sizes: tuple[int, int, int, int], num: int) -> str:
    """Times and memory of one chain, as a line."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    module, x = chain(*sizes), torch.randn(num, sizes[0])
    forward(module, x[:4096])
    before = peak()
    bare, some = over_forward(lambda: spectra(module, x), lambda: forward(module, x))
    _, everything = over_forward(lambda: diagnose(module, x), lambda: forward(module, x), pairs=1)
    return (
        f"depth {sizes[2]:>3} width {sizes[1]:>4} N {num:>6} | forward {bare:7.2f} s | spectra {some:5.2f} x | "
        f"everything {everything:5.2f} x | peak {peak() - before:7.0f} MiB"
    )


def leaky(width: int, depth: int, num: int) -> str:
    """All diagnostics of a leaky network, as a line."""
    torch.set_num_threads(1)
    network = LeakyResNet(20, 10, width=width, depth=depth, effective_depth=2.0, seed=0)
    x, y = torch.randn(num, 20), torch.randn(num, 10)
    before, began = peak(), time.perf_counter()
    diagnose(network, x, y, ridge=0.01)
    return (
        f"leaky depth {depth} width {width} N {num} | everything {time.perf_counter() - began:.2f} s | "
        f"peak {peak() - before:.0f} MiB"
    )


def main() -> None:
    """Run each case in a process of its own, so that peaks do not mix."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the depth and of the samples")
    s = 10 if parser.parse_args().quick else 1
    cases: list[tuple[Callable[..., str], tuple[object, ...]]] = [
        (one_chain, ((200, 200, 50 // s, 10), 10_000 // s)),
        (one_chain, ((200, 200, 50 // s, 10), 60_000 // s)),
        (one_chain, ((784, 512, 10, 10), 60_000 // s**2)),
        (leaky, (200, 50 // s, 10_000 // s)),
    ]
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # numpy, which takes the products, reads it when it is imported
    context = multiprocessing.get_context("spawn")
    for function, arguments in cases:
        with context.Pool(1) as pool:
            print(pool.apply(function, arguments), flush=True)


if __name__ == "__main__":
    main()
