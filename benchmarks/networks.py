"""Question: does what is said of a network hold on data and in memory that nobody looked at?

Suites, each case a row of --out:
compression  100 small networks (MLP, convolution, residual) trained here for a second, tolerances 1e-3 to 1e-1, 60
             to 600 rows: is the 95 % bound kept on 10,000 fresh rows, and with it the tolerance, is the network never
             larger, and how fast is it
ridge        20 networks (MLP, convolution, residual) trained here by Adam with L2 of .003 to .03 until nothing moves:
             is the weight decay that `forensics` reads off the checkpoint within 10 %
planted      40 networks of 13 kinds with a planted rank of 2 to 7, and 40 without: is every number of the diagnosis the
             planted one (layers, heads, hidden states, gates), and none below the width where nothing was planted
rivals       12 networks trained here on digits, MNIST (--mnist FILE) and text: parameters of `compress` against plain
             and data-aware SVD of every layer, and torch-pruning where it is installed, at the same error on fresh
             rows, and whether it is slower than before
memory       100 diagnoses of ten kinds of networks, each in a process of its own: does the peak stay below what was
             announced
forward      the same by forward passes alone, in the type of the network
gpt2         a GPT-2 small of random weights with planted ranks of 7 and 40, on --cases thousand random tokens (100) by
             forward passes alone: at most 2.5 times the bare passes, 4 GiB, and both ranks read

    python benchmarks/networks.py [SUITE ...] [--cases N] [--quick] [--mnist mnist.npz] [--out rows.csv]

Answer (a CPU of which /proc/cpuinfo says no more than "AMD EPYC", two cores shared with other programs, November 2026):
compression  95 of 100 bounds kept, the others exceeded 1.005 to 1.41 times; 57 were made smaller. 98 of 100
             tolerances; never larger; parameters 1.01 times fewer at the median, up to 1.7: these networks are dense.
             Before far rows were dealt to all parts 98, 69 and 1.03. With Hall's corrected t 18 of 68 had been
             exceeded, up to 400 times, where channels were removed that wake on one row in a thousand
ridge        20 of 20, the worst 0.5 % off; residuals of .05 to .33, as ReLUs end at their kinks
planted      40 networks: all numbers right, and none of their twins below its width
rivals       11 of 12 smaller than the best of their rivals, 1.0 to 2.4 times, 1.67 at the median; tolerance kept by
             all. The twelfth, a residual network of 38,218 whose pass takes a millisecond, hangs on the noise of the
             machine: 28,788 parameters in three runs, 36,799 in two, all of them in one on busy cores; data-aware SVD
             takes 29,386, whatever that costs in time, and `allow_slower` 26,628 at .96 times the speed.
             torch-pruning, by magnitude and without training behind it, took 1.4 to 7 times as many on the nine of
             digits and MNIST before, and cannot prune a transformer
memory       100 of 100, 3 of them refused as too small; a residual network (158 MiB of 148, another 153 of 149) and
             attention (227 of 225) took more at first: those three with what was mended, 9 convolutions and the kinds
             without tokens or convolutions before it, other rows of tokens before the last of it
forward      22 of the first 22 of 60, announced 1.02 to 7 times what was taken, most for convolutions; run anew an
             encoder layer took 280 and 266 MiB of 241 in two of three runs, and 172 to 193 in four since what the
             last batch left free is given back: the others were not run again
gpt2         100,000 tokens: 1.55 times the bare passes, 1,617 MiB taken of 1,647 announced, both ranks read; 2,237
             MiB while rows that stay were many small tensors. 4,000 tokens: 6.7 times
Rows: `benchmarks/measured/network_planted.csv`, `network_rivals.csv`, `network_memory.csv` beside it.
"""

import argparse
import csv
import itertools
import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch

import isthmus
from measured.low_rank_rivals import fewest_parameters
from measured.memory_child import KINDS
from measured.network_cases import NetworkCase, compression_cases, decayed_cases
from measured.planted_cases import planted_case, planted_names, read
from measured.pruning_rival import fewest_parameters_pruned, is_installed
from measured.trained_cases import CASES

Line = dict[str, object]
COLUMNS: tuple[str, ...] = (
    "suite",
    "case",
    "holds",
    "tolerance",
    "error",
    "bound",
    "smaller",
    "faster",
    "within",
    "simplex",
    "announced",
    "peak",
    "missed",
    "false",
    "before",
    "after",
    "svd",
    "data_svd",
    "pruned",
    "ratio",
)
FRESH, RIVAL_ROWS = 10_000, 3000
HERE = Path(__file__).parent


def compressions(count: int) -> Iterator[Line]:
    """One compression each."""
    for case in compression_cases(count):
        yield _compressed(case)


def ridges(count: int) -> Iterator[Line]:
    """One training with weight decay each, and what its end tells of it."""
    for case in decayed_cases(count):
        module, x, classes = case.trained()
        found = isthmus.forensics(module, x, classes)
        assert found.collapse is not None
        off = abs(2 * found.ridge / case.decay - 1)
        yield {
            "suite": "ridge", "case": case.name, "holds": off <= 0.1, "tolerance": 0.1, "error": off,
            "bound": found.residual, "within": found.collapse.variation, "simplex": found.collapse.simplex_distance,
        }  # fmt: skip


def _compressed(case: NetworkCase) -> Line:
    module, x = case.network(), case.rows(case.num_rows, seed=10**6)
    found = isthmus.compress(module, x, tolerance=case.tolerance)
    fresh = case.rows(FRESH, seed=10**7)
    with torch.no_grad():
        wanted = module(fresh).double()
        error = float((found.module(fresh) - wanted).norm() / (wanted - wanted.mean(0)).norm())
    return {
        "suite": "compression", "case": case.name, "holds": error <= found.error_bound, "tolerance": case.tolerance,
        "error": error, "bound": found.error_bound, "smaller": found.parameters_before / found.parameters_after,
        "faster": found.speedup,
    }  # fmt: skip


def planted(count: int) -> Iterator[Line]:
    """Two diagnoses each, of a network with a planted rank and of its twin without."""
    for seed, (kind, rank) in enumerate(planted_names(count)):
        wrong: list[list[str]] = []
        for is_planted in (True, False):
            case = planted_case(kind, rank, seed=seed, is_planted=is_planted)
            table = isthmus.diagnose(case.module, case.x, jacobians=False).layers
            found = {what: read(table, what) for what in case.wanted}
            wrong.append([
                f"{what} {found[what]:g} for {number}" for what, number in case.wanted.items()
                if (found[what] != number if is_planted else found[what] < number)
            ])  # fmt: skip
        yield {
            "suite": "planted", "case": f"{kind} {rank} {seed}", "holds": not any(wrong), "missed": "; ".join(wrong[0]),
            "false": "; ".join(wrong[1]),
        }  # fmt: skip


def rivals(count: int, mnist: Path | None = None) -> Iterator[Line]:
    """One training and one compression each, and what SVD takes for the same error."""
    for case in CASES[:count]:
        module, x, fresh = case.trained(mnist)
        found = isthmus.compress(module, x, tolerance=case.tolerance)
        fresh = fresh[:RIVAL_ROWS]
        with torch.no_grad():
            wanted = module(fresh).double()
            error = float((found.module(fresh) - wanted).norm() / (wanted - wanted.mean(0)).norm())
        allowed = max(error, 1e-9)
        plain, aware = (
            fewest_parameters(module, x, fresh, error=allowed, uses_data=uses_data) for uses_data in (False, True)
        )
        pruned = fewest_parameters_pruned(module, x, fresh, error=allowed) if is_installed() else float("nan")
        ratio = min(n for n in (plain, aware, pruned) if not math.isnan(n)) / found.parameters_after
        yield {
            "suite": "rivals", "case": case.name, "holds": error <= case.tolerance and ratio >= 1,
            "tolerance": case.tolerance, "error": error, "bound": found.error_bound, "faster": found.speedup,
            "before": found.parameters_before, "after": found.parameters_after, "svd": plain, "data_svd": aware,
            "pruned": pruned, "ratio": ratio,
        }  # fmt: skip


def in_a_process(child: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A module of `measured`, started from here so that it finds its neighbours."""
    asked = [sys.executable, "-m", f"measured.{child}", *words]
    return subprocess.run(asked, cwd=HERE, capture_output=True, text=True, check=False)


def diagnoses(count: int, *words: str) -> Iterator[Line]:
    """One diagnosis in a child process each, of random size, rows and limit."""
    suite = "forward" if words else "memory"
    rng = np.random.default_rng(0)
    for number, kind in zip(range(count), itertools.cycle(KINDS)):
        size, rows, memory = (
            int(rng.integers(2, 9)) * 4,
            int(rng.integers(40, 900)),
            float(rng.choice([150, 400, 1500])),
        )
        done = in_a_process("memory_child", kind, str(size), str(rows), str(memory), *words)
        if done.returncode:
            why = done.stderr.strip().splitlines()[-1]
            found = {"announced": memory, "peak": 0.0 if "needs at least" in why else float("nan")}
        else:
            found = json.loads(done.stdout)
        yield {
            "suite": suite, "case": f"{kind} {size} {rows} {memory:g} {number}",
            "holds": found["peak"] <= found["announced"], **found,
        }  # fmt: skip


def language_model(thousands: int) -> Iterator[Line]:
    """One diagnosis of a GPT-2 small in a child process."""
    done = in_a_process("gpt2_child", str(thousands))
    if done.returncode:
        sys.exit(done.stderr)
    found = json.loads(done.stdout)
    is_kept = found["ratio"] <= 2.5 and found["peak"] <= min(found["announced"], 4096) and found["ranks"]
    yield {
        "suite": "gpt2", "case": f"small, {found['tokens']} tokens", "holds": is_kept, "ratio": found["ratio"],
        "announced": found["announced"], "peak": found["peak"], "missed": "" if found["ranks"] else "ranks",
    }  # fmt: skip


SUITES: dict[str, tuple[Callable[[int], Iterator[Line]], int]] = {
    "planted": (planted, 40), "rivals": (rivals, len(CASES)), "compression": (compressions, 100),
    "ridge": (ridges, 20), "memory": (diagnoses, 100), "forward": (lambda count: diagnoses(count, "forward"), 60),
    "gpt2": (language_model, 100),
}  # fmt: skip


def measure(suite: str, made: Iterator[Line], out: Path | None) -> None:
    """Print every case of a suite and how many held; a row of the file as soon as it is measured."""
    lines: list[Line] = []
    for line in made:
        lines.append(line)
        print("  ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in line.items()), flush=True)
        if out is not None:
            _write(line, out)
    print(f"{suite}: holds in {sum(bool(line['holds']) for line in lines)} of {len(lines)}")


def _write(line: Line, out: Path) -> None:
    is_new = not out.exists()
    with out.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if is_new:
            writer.writeheader()
        writer.writerow(line)


def main() -> int:
    """Measure the suites that are asked for, all without."""
    parser = argparse.ArgumentParser()
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=", ".join(SUITES))
    parser.add_argument("--cases", type=int)
    parser.add_argument("--mnist", type=Path, help="an .npz with images and classes; without it larger digits")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path)
    told = parser.parse_args()
    torch.set_num_threads(1)
    for suite in told.suites or SUITES:
        usual = SUITES[suite][1]
        count = told.cases or (3 if told.quick else usual)
        made = rivals(count, told.mnist) if suite == "rivals" else SUITES[suite][0](count)
        measure(suite, made, told.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
