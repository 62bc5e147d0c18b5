"""Question: how do seconds and memory of a discovery grow with rows, columns, rank, width, depth and starts?

Each case is a discovery of a teacher with effort "quick", one worker and few gradients, in a process of its own, forked
from one that has loaded everything: its CPU seconds, and the most memory beyond what it began with. Before it, what
`isthmus.foresee` says of it. The slopes are those of straight lines through logarithms; beside them stand those of the
theory over the same cases: multiplications of the gradients that are planned,

    evaluations * rows * sum of all weight matrices * 6,

and the bytes of `search_memory`.

    python benchmarks/scaling.py [--quick] [--only AXIS] [--out FILE]

Answer: CPU seconds grow with rows as n^.55 (.8 beyond 1,600; theory 1), columns .41 (.33), rank .28 (0), width 1.26
(1.72), depth .42 (.34), starts .48 (.55); what was foretold holds within a factor of two in 24 of 24 cases:
docs/performance.md. (AMD EPYC, two cores under a load of 5 to 7, torch 2.13.0 CPU, November 2026.)
"""

import argparse
import json
import multiprocessing
import os
import resource
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from isthmus import Limits
from isthmus.discovery.asked import Asked
from isthmus.discovery.foresee import forecast
from isthmus.tasks import teacher

BASE = {"rows": 400, "columns": 10, "rank": 2, "width": 64, "depth": 11, "starts": 2}
AXES = {
    "rows": (100, 400, 1600, 6400),
    "columns": (10, 40, 160, 640),
    "rank": (1, 2, 4, 8),
    "width": (32, 64, 128, 256),
    "depth": (8, 11, 16, 24),
    "starts": (1, 2, 4, 8),
}
EVALUATIONS = 100  # of a start
QUICK = {axis: sizes[:2] for axis, sizes in AXES.items() if axis in {"rows", "starts"}}


def case(axis: str, size: int, *, evaluations: int) -> dict[str, Any]:
    """One discovery: foretold, carried out, and what it took."""
    sizes = {**BASE, axis: size}
    columns = sizes["columns"] if axis != "rank" else 20
    task = teacher(
        sizes["rank"], d_in=columns, d_out=max(columns // 2, 2), latent_dim=max(3, sizes["rank"]),
        num_samples=sizes["rows"], seed=1,
    )  # fmt: skip
    asked = Asked(
        effort="quick", workers=1, executor="threads", depth=sizes["depth"], starts=sizes["starts"],
        limits=Limits(evaluations=evaluations),
    )  # fmt: skip
    request = asked.request(task.x, task.y)
    request = replace(request, settings=replace(request.settings, width=sizes["width"]))
    told = forecast(request)
    kept, began, clock = _peak(), time.process_time(), time.monotonic()
    found = request.answered()
    multiplied = 6 * told.evaluations * told.rows * sum(a * b for a, b in told.shapes)
    return {
        "axis": axis, "size": size, "cpu_seconds": time.process_time() - began, "seconds": time.monotonic() - clock,
        "foretold": told.seconds, "mebibytes": max(_peak() - kept, 0.1), "foretold_mebibytes": told.memory / 2**20,
        "multiplications": multiplied, "rank": found.rank, "load": os.getloadavg()[0],
    }  # fmt: skip


def _peak() -> float:
    """MiB that this process has held at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def alone(*arguments: Any, **named: Any) -> dict[str, Any]:
    """The case in a process of its own."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(case, arguments, named)


def slope(rows: list[dict[str, Any]], name: str) -> float:
    """Of the logarithm of a column over that of the size."""
    return float(np.polyfit(np.log([r["size"] for r in rows]), np.log([r[name] for r in rows]), 1)[0])


def table(rows: list[dict[str, Any]]) -> str:
    """Slopes by axis, in markdown."""
    lines = [
        "| axis | sizes | CPU seconds | slope | of multiplications | MiB | slope | of `search_memory` |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for axis in dict.fromkeys(r["axis"] for r in rows):
        own = [r for r in rows if r["axis"] == axis]
        words = [", ".join(f"{r[name]:.3g}" for r in own) for name in ("size", "cpu_seconds", "mebibytes")]
        slopes = [f"{slope(own, n):.2f}" for n in ("cpu_seconds", "multiplications", "mebibytes", "foretold_mebibytes")]
        lines.append(
            f"| {axis} | {words[0]} | {words[1]} | {slopes[0]} | {slopes[1]} | {words[2]} | {slopes[2]} | {slopes[3]} |"
        )
    ratios = sorted(r["seconds"] / r["foretold"] for r in rows)
    within = sum(0.5 <= ratio <= 2 for ratio in ratios)
    lines.append(
        f"\nSeconds over those foretold: {ratios[0]:.2f} to {ratios[-1]:.2f}, median {np.median(ratios):.2f}; within a "
        f"factor of two {within} of {len(ratios)}."
    )
    return "\n".join(lines)


def main() -> None:
    """One line for each case, then the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two axes of two sizes, few gradients")
    parser.add_argument("--only", choices=AXES, help="one axis")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    axes = QUICK if options.quick else AXES
    rows = list[dict[str, Any]]()
    for axis, sizes in axes.items():
        for size in sizes if options.only in {None, axis} else ():
            rows.append(alone(axis, size, evaluations=20 if options.quick else EVALUATIONS))
            print(json.dumps({k: round(v, 3) if isinstance(v, float) else v for k, v in rows[-1].items()}), flush=True)
    print(table(rows))
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
