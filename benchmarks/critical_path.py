"""Question: how many times faster can a discovery be with more workers, as its units wait for each other?

A discovery is computed by one worker, its units handed out as to W, and what each unit took is noted. Units that are
handed out together can run at once, those handed out later wait for all of them: so a run is laid out on W simulated
workers by giving each unit, in its order, to the worker that is free first. What lies between the units (readings, the
answer) stays as it is. Units in vain are starts that one worker would not have trained.

    python benchmarks/critical_path.py [ROWS ...] [--quick] [--out FILE]

Answer: of a teacher of rank 3 with 500 rows, answered at once, 2.1 times with two workers, 2.8 with four, 5.2 with
sixteen, which train 5 units more than the 22 of one. Where workers would stand idle, what is likely to be needed next
is trained ahead: starts at the ridges beside those that were asked for, and the ranks of neighbouring curves beside
those of the first. That leaves four batches of eight: starts, a rank more, ranks, halves. Without it the same hour
gave 2.0, 3.0 and 3.3. The longest start, raise, rank and halves one after the other take a fifth of the 9.4 s, so
that no number of workers would give much more than 5 without shorter trainings. (Seconds under a load of 15 to 25 on
two cores of an AMD EPYC, so that 10 % are noise; torch 2.13.0 CPU, November 2026.)
"""

import argparse
import heapq
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from isthmus import Discovery, Limits, discover
from isthmus.discovery.minimum import Minimum
from isthmus.discovery.work.runner import UnitRunner
from isthmus.discovery.work.unit import Session, Unit
from isthmus.tasks import teacher

WORKERS = (1, 2, 4, 16)
Log = list[list[float]]


class Timed:
    """What a unit computes, with a note of how long it took."""

    def __init__(self, unit: Unit, batch: list[float]) -> None:
        self.unit, self.batch = unit, batch

    def __call__(self, session: Session) -> Minimum:
        """The result."""
        began = time.thread_time()
        found = self.unit.compute(session)
        self.batch.append(time.thread_time() - began)
        return found


def logged(log: Log) -> Any:
    """`UnitRunner._results` that notes the seconds of the units that are handed out together."""
    run = UnitRunner._results  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    def noted(self: UnitRunner, units: Sequence[Unit]) -> list[Minimum]:
        log.append(batch := [])
        workers, self.workers = self.workers, 1
        try:
            return run(self, [
                Unit(u.key, Timed(u, batch), u.cost, u.stage, u.ridge, u.start) for u in units
            ])  # fmt: skip
        finally:
            self.workers = workers

    return noted


def makespan(batches: Sequence[Sequence[float]], workers: int) -> float:
    """Seconds of all units on so many workers, each batch after the one before."""
    total = 0.0
    for batch in batches:
        free = [0.0] * workers
        for seconds in batch:
            heapq.heapreplace(free, free[0] + seconds)
        total += max(free)
    return total


def run(rows: int, *, workers: int, evaluations: int | None) -> tuple[Discovery, Log, float]:
    """A discovery that hands out its units as to so many workers: seconds of the units, and those between them."""
    log: Log = []
    before = UnitRunner._results  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    UnitRunner._results = logged(log)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    task = teacher(3, d_in=12, d_out=8, num_samples=rows, seed=1)
    began = time.process_time()
    try:
        found = discover(task.x, task.y, workers=workers, executor="threads", limits=Limits(evaluations=evaluations))
        here = time.process_time() - began
    finally:
        UnitRunner._results = before  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    return found, log, max(here - sum(map(sum, log)), 0.0)


def measured(rows: int, *, evaluations: int | None = None) -> dict[str, Any]:
    """One discovery for each number of workers: seconds in units and between them, and how often faster."""
    found, log, between = run(rows, workers=1, evaluations=evaluations)
    units, count = sum(map(sum, log)), sum(map(len, log))
    row = {
        "rows": rows, "rank": found.rank, "verdict": found.verdict.name, "batches": len(log),
        "units": count, "seconds_in_units": round(units, 2), "seconds_between": round(between, 2),
    }  # fmt: skip
    faster, more = dict[str, float](), dict[str, int]()
    for workers in WORKERS[1:]:
        _, laid_out, _ = run(rows, workers=workers, evaluations=evaluations)
        faster[str(workers)] = round((units + between) / (makespan(laid_out, workers) + between), 2)
        more[str(workers)] = sum(map(len, laid_out)) - count
    return {**row, "times_faster": faster, "units_in_vain": more}


def main() -> None:
    """One line for each number of rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=int, nargs="*", default=[500, 2000])
    parser.add_argument("--quick", action="store_true", help="few rows and gradients")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    sizes, evaluations = ([60, 80], 20) if options.quick else (options.rows, None)
    found = [measured(rows, evaluations=evaluations) for rows in sizes]
    for row in found:
        print(json.dumps(row))
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
