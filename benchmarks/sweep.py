"""Question: what does a sweep cost beyond the training of its runs, and what do two workers gain?

    python benchmarks/sweep.py [--quick | --speed-up]

Overhead: seconds per run beyond `fit` (data, readings, files, index), runs of .02 s in this process. Listing: 10,000
records from the index to a table. Speed-up: the same runs on one worker and on two, in turn, five times after a
warm-up, from the first end of a run to the last, so that the start of the workers does not count; the median of the
five ratios. Where other work takes the cores it says so: workers that wait for a core gain nothing. Constants for
`docs/notes/scale.md`: bytes per run on disk and in the index, bytes of a job and of a report.

Answer (two cores of an Intel Xeon, torch 2.13.0 CPU, 21 November 2026, little else running: a load of 2 in all):
39 ms per run beyond training by the clock, 37 ms of the processor (goal 50); 10,000 records listed and tabled in .79 s
by the clock (goal 1); on two workers 1.92 times as fast as on one (goal 1.8), the median of 1.39, 2.47, 1.96, 1.69 and
1.92; a few minutes before it was 1.88, that of 1.94, 1.33, 2.13, 1.88 and 1.79. Single ratios mean little: the two
workers were ready without a core a quarter of the time. The command `isthmus sweep table` on 10,000 runs takes 1.0 to
1.25 s of the processor as a whole, start of the program included (on a busy machine, so not by the clock).
"""

import argparse
import logging
import os
import pickle
import statistics
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from distributed import Client, LocalCluster

from isthmus import FullyConnected
from isthmus.sweeps import Plan, SweepProgress, sweep
from isthmus.sweeps.folder import INDEX
from isthmus.sweeps.index import Index, Row, Status
from isthmus.sweeps.run_table import run_columns
from isthmus.sweeps.setup import prepared
from isthmus.sweeps.store import Store, checked_run, run_folder
from isthmus.sweeps.worker import Ending, Job, Report, versions
from isthmus.training import Limits, fit
from isthmus.training.losses import SQUARED, DataLoss
from isthmus.training.steps.step import step_of
from isthmus.training.threads import one_thread_each

TASK: dict[str, object] = {
    "name": "teacher", "rank": 1, "d_in": 5, "d_out": 2, "latent_dim": 2, "num_samples": 40
}  # fmt: skip


def plan(runs: int, evaluations: int, *, width: int = 6) -> Plan:
    """So many seeds of a small network."""
    training: dict[str, object] = {"ridge": 1e-2, "evaluations": evaluations, "dtype": "float64"}
    return Plan(TASK, {"width": width, "depth": 4}, training, grid={"seed": list(range(runs))})


def overhead(folder: Path, runs: int) -> tuple[float, float]:
    """Seconds per run beyond `fit`, the first runs (imports) aside: by the clock, and of the processor.

    On a busy machine the clock counts other people's work, between the steps of a run, too.
    """
    sweep(plan(3, 20), out=folder, workers=0)
    began, worked = time.perf_counter(), time.process_time()
    found = sweep(plan(3 + runs, 20), out=folder, workers=0)
    total, work = time.perf_counter() - began, time.process_time() - worked
    starts = [prepared(run.settings, None) for run in plan(3 + runs, 20).runs()[3:]]
    worked = time.process_time()
    with one_thread_each():
        for start in starts:
            fit(start.network, start.x, start.y, ridge=1e-2, limits=Limits(evaluations=20))
    training = time.process_time() - worked
    return (total - float(found["seconds"].values[3:].sum())) / runs, (work - training) / runs


def listing(folder: Path, template: Row, records: int) -> tuple[float, float, float]:
    """Seconds to list and table so many records, those of the processor, and bytes of the index per record."""
    path = folder / "many.sqlite"
    rows = [Row(f"{i:020x}", Status.DONE, _with_seed(template, i), template.numbers) for i in range(records)]
    with closing(Index(path)) as index:
        index.put(rows)
    began, worked = time.perf_counter(), time.process_time()
    with closing(Index(path, read_only=True)) as index:
        table = pd.DataFrame(run_columns(index.rows()))
    seconds, work = time.perf_counter() - began, time.process_time() - worked
    assert len(table) == records
    return seconds, work, path.stat().st_size / records


def _with_seed(row: Row, seed: int) -> dict[str, dict[str, object]]:
    settings = {name: dict(section) for name, section in row.settings.items()}
    settings["network"]["seed"] = seed
    return settings


def span(folder: Path, scheduler: str, workers: int, runs: int, evaluations: int) -> float:
    """Seconds from the first finished run to the last, per run: no start of workers in it."""
    ends: list[tuple[float, int]] = []

    def hear(event: SweepProgress) -> None:
        if event.done and (not ends or event.done > ends[-1][1]):
            ends.append((time.perf_counter(), event.done))

    sweep(plan(runs, evaluations, width=24), out=folder, scheduler=scheduler, progress=hear)
    # one worker finishes its first run before the other does: what counts starts once both have
    first = next(i for i, (_, done) in enumerate(ends) if done >= workers)
    return (ends[-1][0] - ends[first][0]) / (ends[-1][1] - ends[first][1])


@dataclass(frozen=True, slots=True)
class Turn:
    """One sweep: seconds per run by the clock; of its workers the seconds on a core, and ready without one."""

    seconds: float
    worked: float
    waited: float


def turns(folder: Path, *, rounds: int, runs: int, evaluations: int) -> dict[int, list[Turn]]:
    """The same sweep on one worker and on two, in turn, on workers that stay: what else goes on falls on both alike."""
    found: dict[int, list[Turn]] = {1: [], 2: []}
    with ExitStack() as stack:
        clusters = {workers: stack.enter_context(_workers(workers)) for workers in found}
        for number in range(-1, rounds):  # the first one only warms up
            for workers, (scheduler, processes) in clusters.items():
                before = _on_cores(processes)
                seconds = span(folder / f"{workers}-{number}", scheduler, workers, runs, evaluations)
                worked, waited = (now - then for now, then in zip(_on_cores(processes), before, strict=True))
                if number >= 0:
                    found[workers].append(Turn(seconds, worked, waited))
    return found


@contextmanager
def _workers(count: int) -> Generator[tuple[str, list[int]]]:
    """A scheduler's address and the processes of its workers."""
    cluster: Any
    client: Any
    with LocalCluster(
        n_workers=count, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL
    ) as cluster:
        with Client(cluster, set_as_default=False) as client:
            processes = list(client.run(os.getpid).values())
        yield cluster.scheduler_address, processes


def _on_cores(processes: list[int]) -> tuple[float, float]:
    """Seconds that the threads of processes have had a core, and have waited for one; Linux counts both."""
    counts = [
        [int(word) for word in path.read_text().split()[:2]]
        for process in processes
        for path in Path(f"/proc/{process}/task").glob("*/schedstat")
    ]
    worked, waited = map(sum, zip(*counts, strict=True))
    return 1e-9 * worked, 1e-9 * waited


def tell_speed_up(found: dict[int, list[Turn]]) -> None:
    """The median of the ratios of neighbouring turns, and by how much others were in the way."""
    ratios = [one.seconds / two.seconds for one, two in zip(found[1], found[2], strict=True)]
    told = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    print(f"speed-up on 2 workers: {statistics.median(ratios):.2f} times, the median of {told} (goal 1.8)")
    for workers, of in found.items():
        share = [turn.waited / (turn.worked + turn.waited) for turn in of]
        print(
            f"{workers} worker{'s' * (workers > 1)}: {statistics.median(t.seconds for t in of):.3f} s per run, "
            f"{statistics.median(t.worked for t in of):.1f} s of the processor in all; ready but without a core "
            f"{100 * statistics.median(share):.0f} % of the time"
        )


def scheduling(job: Job, report: Report, tasks: int) -> float:
    """Seconds of the processor per job at client, scheduler and worker together, all in this process."""
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        worked = time.process_time()
        futures = [client.submit(_echo, job, report, i, pure=False) for i in range(tasks)]
        client.gather(futures)
        return (time.process_time() - worked) / tasks


def _echo(_job: Job, report: Report, _number: int) -> Report:
    return report


def gradient(rows: int, repeats: int) -> float:
    """Seconds of the processor per row of one gradient: float32, 50 columns in and out, depth 9, width 64."""
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(rows, 50, generator=generator) for _ in range(2))
    step = step_of(FullyConnected(50, 50, width=64, depth=9, seed=0), x, DataLoss(SQUARED, y), 1e-3)
    with torch.no_grad(), one_thread_each():
        step()
        worked = time.process_time()
        for _ in range(repeats):
            step()
        return (time.process_time() - worked) / (rows * repeats)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs and records, no workers")
    parser.add_argument("--speed-up", action="store_true", help="one worker against two, and nothing else")
    options = parser.parse_args()
    if options.speed_up:
        speed_up()
        return
    quick = options.quick
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs = 5 if quick else 50
        wall, work = overhead(folder / "overhead", runs)
        print(f"overhead per run: {1000 * wall:.1f} ms, {1000 * work:.1f} ms of the processor ({runs} runs, goal 50)")
        store = Store(folder / "overhead")
        with closing(store.place.reader()) as index:
            row = index.rows()[0]
        records = 1000 if quick else 10_000
        seconds, work, size = listing(folder, row, records)
        print(
            f"{records} records listed and tabled: {seconds:.3f} s, {work:.3f} s of the processor (goal 1 for 10,000)",
            flush=True,
        )
        one = run_folder(store.folder, row.id)
        job = Job(row.id, row.settings, None, str(store.folder), store.token, versions())
        report = Report(row.id, Ending.DONE, row.numbers)
        print(
            f"bytes per run: {sum(p.stat().st_size for p in one.iterdir())} in its folder, {size:.0f} in {INDEX}, "
            f"{len(pickle.dumps(job))} as a job, {len(pickle.dumps(report))} as a report"
        )
        began = time.perf_counter()
        checked = sum(checked_run(store.folder, path.name, print) is not None for path in store.finished_folders())
        print(f"checksums of a finished run: {1000 * (time.perf_counter() - began) / checked:.2f} ms", flush=True)
        each = scheduling(job, report, 100 if quick else 1000)
        print(f"client, scheduler and worker: {1000 * each:.2f} ms of the processor per job", flush=True)
        print(f"one gradient: {1e9 * gradient(10_000, 2 if quick else 20):.0f} ns of the processor per row", flush=True)
    if not quick:
        speed_up()


def speed_up() -> None:
    """Measure one worker against two."""
    with tempfile.TemporaryDirectory() as name:
        tell_speed_up(turns(Path(name), rounds=5, runs=16, evaluations=1500))


if __name__ == "__main__":
    main()
