"""Question: does what is said of a network hold on data and in memory that nobody looked at?

Suites, each case a row of --out:
compression  100 small networks (MLP, convolution, residual) trained here for a second, tolerances 1e-3 to 1e-1, 60
             to 600 rows: is the tolerance kept on 10,000 fresh rows, is the network never larger, and how fast is it
ridge        20 networks (MLP, convolution, residual) trained here by Adam with L2 of .003 to .03 until nothing moves:
             is the weight decay that `forensics` reads off the checkpoint within 10 %
memory       100 diagnoses of ten kinds of networks, each in a process of its own: does the peak stay below what was
             announced

    python benchmarks/networks.py [SUITE ...] [--cases N] [--quick] [--out rows.csv]

Answer (a CPU of which /proc/cpuinfo says no more than "AMD EPYC", two cores shared with other programs, November 2026):
compression  99 of 100 kept (72 where the rows that choose also report), the other at 1.002 times its tolerance; never
             larger; parameters 1.03 times fewer at the median, up to 1.9: these networks are dense
ridge        20 of 20, the worst 0.5 % off; residuals of .05 to .33, as ReLUs end at their kinks
memory       first 56 of 100: 55 kept, the other (attention) announced 129 MiB and took 140.6; 89 of 100 before holes
             were given back
"""

import argparse
import csv
import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch

import isthmus
from measured.memory_child import KINDS
from measured.network_cases import NetworkCase, compression_cases, decayed_cases

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
)
FRESH = 10_000
CHILD = Path(__file__).parent / "measured" / "memory_child.py"


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
        "suite": "compression", "case": case.name, "holds": error <= case.tolerance, "tolerance": case.tolerance,
        "error": error, "bound": found.error_bound, "smaller": found.parameters_before / found.parameters_after,
        "faster": found.speedup,
    }  # fmt: skip


def diagnoses(count: int) -> Iterator[Line]:
    """One diagnosis in a child process each, of random size, rows and limit."""
    rng = np.random.default_rng(0)
    for number, kind in zip(range(count), itertools.cycle(KINDS)):
        size, rows, memory = (
            int(rng.integers(2, 9)) * 4,
            int(rng.integers(40, 900)),
            float(rng.choice([150, 400, 1500])),
        )
        words = [sys.executable, str(CHILD), kind, str(size), str(rows), str(memory)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            why = done.stderr.strip().splitlines()[-1]
            found = {"announced": memory, "peak": 0.0 if "needs at least" in why else float("nan")}
        else:
            found = json.loads(done.stdout)
        yield {
            "suite": "memory", "case": f"{kind} {size} {rows} {memory:g} {number}",
            "holds": found["peak"] <= found["announced"], **found,
        }  # fmt: skip


SUITES: dict[str, tuple[Callable[[int], Iterator[Line]], int]] = {
    "compression": (compressions, 100), "ridge": (ridges, 20), "memory": (diagnoses, 100),
}  # fmt: skip


def measure(suite: str, count: int, out: Path | None) -> None:
    """Print every case of a suite and how many held; a row of the file as soon as it is measured."""
    lines: list[Line] = []
    for line in SUITES[suite][0](count):
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
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path)
    told = parser.parse_args()
    torch.set_num_threads(1)
    for suite in told.suites or SUITES:
        usual = SUITES[suite][1]
        measure(suite, told.cases or (3 if told.quick else usual), told.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
