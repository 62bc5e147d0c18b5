"""A sweep whose runs take a tenth of a second each, and what tests compare of finished sweeps."""

from pathlib import Path
from typing import Any

from isthmus.sweeps import Plan
from isthmus.sweeps.index import Row, Status
from isthmus.sweeps.run_files import RESULT, WEIGHTS, arrays_of, read_result
from pages import HOSTILE

TASK: dict[str, object] = {
    "name": "teacher", "rank": 1, "d_in": 5, "d_out": 2, "latent_dim": 2, "num_samples": 40
}  # fmt: skip
NETWORK: dict[str, object] = {"width": 6, "depth": 4}
TRAINING: dict[str, object] = {"ridge": 1e-2, "evaluations": 20, "dtype": "float64"}
TOML = """
[task]
name = "teacher"
rank = 1
d_in = 5
d_out = 2
latent_dim = 2
num_samples = 40

[network]
width = 6
depth = 4

[training]
ridge = 1e-2
evaluations = {evaluations}
dtype = "float64"

[grid]
{grid}
"""


def tiny(**grid: list[Any]) -> Plan:
    """The plan with these axes."""
    return Plan(TASK, NETWORK, TRAINING, grid=grid)


def write_plan(folder: Path, grid: str = "seed = [0, 1]", *, evaluations: int = 20, extra: str = "") -> Path:
    """The same as a file."""
    path = folder / "plan.toml"
    path.write_text(TOML.format(grid=grid, evaluations=evaluations) + extra)
    return path


def contents(folder: Path) -> dict[str, tuple[object, ...]]:
    """Id -> everything of each finished run that must not depend on interruptions: all but its seconds."""
    found: dict[str, tuple[object, ...]] = {}
    for result in sorted(folder.glob(f"runs/*/*/{RESULT}")):
        run = read_result(result.parent)
        numbers = {name: repr(value) for name, value in run.numbers.items() if name != "seconds"}
        found[run.id] = (
            numbers,
            run.warnings,
            repr(arrays_of(result.parent).to_dict()),
            (result.parent / WEIGHTS).read_bytes(),
        )
    return found


def attempts(folder: Path) -> list[tuple[str, str]]:
    """(run, "begin" or "end") in the order in which it happened."""
    lines = (folder / "work" / "attempts.log").read_text().splitlines()
    return [(line.split()[0], line.split()[1]) for line in lines]


def computed_after_their_end(folder: Path) -> list[str]:
    """Runs that were begun again although they had ended."""
    ended: set[str] = set()
    again: list[str] = []
    for run, what in attempts(folder):
        if what == "begin" and run in ended:
            again.append(run)
        ended.update([run] if what == "end" else [])
    return again


PAGE_TASK = {"name": "teacher", "rank": 2, "d_in": 5}
GRID = [(depth, ridge, seed) for depth in (3, 6) for ridge in (0.1, 0.01, 0.001, 0.0001) for seed in (0, 1)]


def finished_row(depth: int, ridge: float, seed: int, **changed: object) -> Row:
    """A run as the index has it."""
    settings = {"task": PAGE_TASK, "network": {"depth": depth, "seed": seed}, "training": {"ridge": ridge}}
    numbers = {"outcome": "STEP_LIMIT", "objective": ridge * depth, "rank": depth, "rank_estimate": 2, "true_rank": 2}
    return Row(f"{depth}-{ridge}-{seed}", Status.DONE, settings, numbers | changed)


def finished_rows() -> list[Row]:
    """Fifteen finished runs, two of which read another rank, and one that failed with markup in its words."""
    found = [
        finished_row(*place, **({"rank_estimate": 3} if place[1] == 0.1 and place[0] == 3 else {}))
        for place in GRID[:-1]
    ]
    last = finished_row(*GRID[-1])
    return [*found, Row(last.id, Status.FAILED, last.settings, {}, f"Traceback\nValueError: {HOSTILE}")]
