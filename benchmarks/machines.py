"""Question: how much faster is a discovery with more workers, and on a GPU?

Seconds by the clock of teachers of rank 3 (twelve inputs, eight outputs), each in a process of its own: of `discover`
alone, start of its workers included, and of the whole process with its imports. Default effort, one thread a worker.

    python benchmarks/machines.py [--rows 500 2000] [--workers 1 2 4 8 16] [--device cpu cuda] [--quick]

Answer: two workers gain 1.2 times at 500 rows and 1.4 at 2,000 on two cores. Two cores of an AMD EPYC, nothing else at
work, medians of two: 500 rows 4.0 s with one worker (6.4 with imports), 3.4 (5.6) with two processes, 4.1 with two
threads; 2,000 rows 9.3 (11.6), 6.6 (9.0) and 7.9. The command, which begins the processes while it loads, without
pictures: 6.4 and 5.1 s, 11.4 and 8.8. What is lost waits for trainings that others begin from, and for imports: 2.4 s
once more in the other process, which leave at most 1.25 times of 4.0 s and 1.6 of 9.3 on two cores. An
NVIDIA H100 beside one core of an Intel Xeon: 500 rows 6.8 s (14.8); an H200, one worker: 500, 2,000 and 10,000 rows
5.5, 5.9 and 6.9 s (13.0, 13.7, 14.5). All of them rank 3, confident (torch 2.13.0 CPU and 2.11, November 2026). More
workers: `critical_path.py`.
"""

import argparse
import json
import os
import subprocess
import sys
import time

CHILD = """
import json, sys, time
from isthmus import discover
from isthmus.tasks import teacher
given = json.loads(sys.argv[1])
task = teacher(3, d_in=12, d_out=8, num_samples=given["rows"], seed=1)
began = time.perf_counter()
found = discover(task.x, task.y, workers=given["workers"], device=given["device"], effort=given["effort"])
print(json.dumps([time.perf_counter() - began, found.rank, str(found.verdict)]))
"""


def main() -> None:
    """Print one line per run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", type=int, default=[500, 2000])
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2, 4, 8, 16])
    parser.add_argument("--device", nargs="+", default=["cpu"])
    parser.add_argument("--quick", action="store_true", help="one run of 100 rows: whether it works")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rows, arguments.workers = [100], [1]
    print("rows | device | workers | seconds of discover, of the process | rank and verdict")
    for rows in arguments.rows:
        for device in arguments.device:
            for workers in arguments.workers:
                given = {"rows": rows, "workers": workers, "device": device}
                given["effort"] = "quick" if arguments.quick else "default"
                began = time.perf_counter()
                told = subprocess.run(
                    [sys.executable, "-c", CHILD, json.dumps(given)], check=True, capture_output=True, text=True,
                    env=os.environ | {"OMP_NUM_THREADS": "1"},
                ).stdout  # fmt: skip
                seconds, rank, verdict = json.loads(told.splitlines()[-1])
                whole = time.perf_counter() - began
                print(f"{rows} | {device} | {workers} | {seconds:.1f} {whole:.1f} | {rank} {verdict}", flush=True)


if __name__ == "__main__":
    main()
