"""Question: does one process that works for hours grow, leak descriptors or threads, or slow down?

    python benchmarks/soak.py [--quick | --minutes N] [--out ROWS.csv]

One round is what a notebook or a service does: `discover` into a folder, `load` it, `diagnose` its network, `report`
it, `fit` a network of its own, on new data each time. After each round: resident memory, open descriptors, threads and
seconds of the processor for each call, in units of a yardstick of the same kind of work that is measured in the same
round: the processor itself is slower while others use its caches. Rounds of the first fifth, at most ten minutes, are
warm-up: imports, caches of fonts and of compiled plans.

A line is fitted to the rounds after it by Theil and Sen (the median of all slopes: a few odd rounds move nothing), and
"flat" means that what this line gains over two hours is at most the allowance, with the whole 95 % interval of the
slope: 2 % of the median for memory, 10 % for the time of a call, half of one for descriptors and threads. Where the
interval is wider than the allowance but holds zero, the run was too short to tell, and that is said.

Answer (two cores of an Intel Xeon under a load of 15 to 20, torch 2.13.0 CPU, 23 November 2026; 40.3 minutes and 160
rounds of which 98 count, not yet the two hours it is meant for): memory is flat by this criterion, 521 MB and +6.8 MB
in two hours (5.6 to 9.5, allowed 10); descriptors stay 12 and threads 2. The time of calls is undecided: without the
yardstick seconds of all calls grew together, as did the load; with it only a few rounds fitted into half an hour.
"""

import argparse
import csv
import ctypes
import gc
import re
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import theilslopes

import isthmus
from isthmus import FullyConnected, tasks

HOURS = 2.0  # what is gained is said for so long
WARM_UP = 0.2
MOST_POINTS = 1500  # all pairs of them are looked at
# allowance: a share of the median, or a count
KINDS = {"memory": 0.02, "heap": 0.02, "blocks": 0.02, "descriptors": 0.5, "threads": 0.5}
SHARE_OF_TIME = 0.10


@dataclass
class Round:
    """What one round of calls took, and what the process held after it."""

    hours: float = 0.0
    values: dict[str, float] = field(default_factory=dict[str, float])

    @contextmanager
    def timed(self, name: str) -> Generator[None]:
        """The seconds of the processor of one call."""
        begun = time.process_time()
        yield
        self.values[name] = time.process_time() - begun

    def measure_yardstick(self) -> None:
        """Divide the seconds so far by those of work that is the same in every round: small products and Python."""
        a = torch.ones(60, 24)
        with self.timed("yardstick"):
            for _ in range(20_000):
                (a @ a.T[:, :8]).relu_()
        for name in set(self.values) - {"yardstick"}:
            self.values[name] /= self.values["yardstick"]

    def look(self) -> None:
        """What the process holds now, as Linux counts it."""
        status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        self.values["memory"] = float(status["VmRSS"].split()[0]) / 1024
        self.values["heap"] = heap_in_use()
        self.values["blocks"] = float(sys.getallocatedblocks())
        self.values["threads"] = float(status["Threads"])
        self.values["descriptors"] = float(sum(1 for _ in Path("/proc/self/fd").iterdir()))


def heap_in_use() -> float:
    """MiB that were asked of malloc and not given back, in all of its arenas and by pages of their own; glibc alone."""
    libc = ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    with tempfile.NamedTemporaryFile() as file:
        stream = ctypes.c_void_p(libc.fopen(file.name.encode(), b"w"))
        libc.malloc_info(0, stream)
        libc.fclose(stream)
        told = Path(file.name).read_text()
    totals = told[told.rindex("</heap>") :]  # of all arenas together
    free = sum(int(size) for size in re.findall(r'<total type="(?:fast|rest)" count="\d+" size="(\d+)"', totals))
    own = sum(int(size) for size in re.findall(r'<total type="mmap" count="\d+" size="(\d+)"', totals))
    taken = sum(int(size) for size in re.findall(r'<system type="current" size="(\d+)"', totals))
    return (taken + own - free) / 2**20


def one_round(number: int, began: float) -> Round:
    """Every call once, on data that no earlier round has seen."""
    found = Round()
    task = tasks.teacher(2, d_in=6, d_out=4, latent_dim=2, num_samples=60, seed=number)
    assert task.y is not None
    x, y = torch.as_tensor(task.x, dtype=torch.float32), torch.as_tensor(task.y, dtype=torch.float32)
    with tempfile.TemporaryDirectory() as folder:
        with found.timed("discover"):
            isthmus.discover(task.x, task.y, ridge=(3e-3,), starts=1, seed=number, out=Path(folder) / "run")
        with found.timed("load"):
            loaded = isthmus.load(Path(folder) / "run")
        with found.timed("diagnose"):
            isthmus.diagnose(loaded.network, x)
        with found.timed("report"):
            isthmus.report(loaded, Path(folder) / "page.html", x=task.x)
        with found.timed("fit"):
            network = FullyConnected(6, 4, width=8, depth=4, seed=number)
            isthmus.fit(network, x, y, ridge=1e-2, checkpoint=Path(folder) / "fit.pt")
    found.measure_yardstick()
    del loaded, network
    gc.collect()  # cycles that wait for the collector are no leak
    found.look()
    found.hours = (time.monotonic() - began) / 3600
    return found


def measured(seconds: float, least: int, each: Callable[[Round], None]) -> list[Round]:
    """Rounds for so long, and at least so many."""
    began, rounds = time.monotonic(), list[Round]()
    while len(rounds) < least or time.monotonic() - began < seconds:
        rounds.append(one_round(len(rounds), began))
        each(rounds[-1])
    return rounds


def after_warm_up(rounds: list[Round]) -> list[Round]:
    """The rounds that are judged, thinned where they are many."""
    start = min(WARM_UP * rounds[-1].hours, 10 / 60)
    kept = [found for found in rounds if found.hours >= start]
    return kept[:: -(-len(kept) // MOST_POINTS)]


def verdict(name: str, rounds: list[Round]) -> tuple[str, ...]:
    """One line of the table: median, gain in two hours with its interval, allowance, and the word."""
    hours = np.array([found.hours for found in rounds])
    values = np.array([found.values[name] for found in rounds])
    middle = float(np.median(values))
    allowed = KINDS.get(name, SHARE_OF_TIME) * (1.0 if name in {"descriptors", "threads"} else middle)
    line: Any = theilslopes(values, hours)
    slope, low, high = HOURS * line.slope, HOURS * line.low_slope, HOURS * line.high_slope
    word = "flat" if high <= allowed else "too short to tell" if low <= 0 else "GROWS"
    return (name, f"{middle:.4g}", f"{slope:+.2g}", f"{low:+.2g} to {high:+.2g}", f"{allowed:.2g}", word)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="five rounds: shows that it works")
    parser.add_argument("--minutes", type=float, default=120.0)
    parser.add_argument("--out", type=Path, help="every round as a row of a .csv file")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    lines: list[dict[str, float]] = []

    def keep(found: Round) -> None:
        lines.append({"hours": found.hours, **found.values})
        if arguments.out is not None:
            with arguments.out.open("w", newline="") as file:
                writer = csv.DictWriter(file, lines[0])
                writer.writeheader()
                writer.writerows(lines)

    rounds = measured(0.0 if arguments.quick else 60 * arguments.minutes, 5, keep)
    kept = after_warm_up(rounds)
    print(f"{len(rounds)} rounds in {60 * rounds[-1].hours:.1f} minutes, {len(kept)} judged; gains in {HOURS:g} hours")
    rows = [("", "median", "gain", "95 % interval", "allowed", "verdict")]
    rows += [verdict(name, kept) for name in rounds[0].values if name != "yardstick"]
    for row in rows:
        print("".join(cell.ljust(width) for cell, width in zip(row, (14, 10, 10, 22, 10, 20), strict=True)).rstrip())


if __name__ == "__main__":
    main()
