"""Hundreds of kills at drawn file operations and moments: nothing lost, nothing different, nothing left behind.

The children that are killed: `kill_driver`. Kills of whole groups of processes: `test_sweep_faults`.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Set
from pathlib import Path

import numpy as np
import pytest

import isthmus
from command_lines import write_table
from damage import bits
from isthmus import tasks
from sweep_plans import computed_after_their_end, contents, write_plan

ENVIRONMENT = os.environ | {
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": os.pathsep.join([str(Path(isthmus.__file__).parents[1]), str(Path(__file__).parents[1])]),
}
DRIVER = Path(__file__).parents[1] / "kill_driver.py"
# windows that so many kills fall into, whatever the machine
TRAINING = {"training", "writing a checkpoint", "between training and record", "writing the result"}


def killed(kills: int, folder: Path, *words: str, windows: Set[str] = frozenset()) -> list[str]:
    """Kill so many times; the names of the runs, each of which ended. What they were at is printed, and checked."""
    folder.mkdir()
    command = [sys.executable, str(DRIVER), str(kills), "7", str(folder), *words]
    with (folder.parent / "rows.jsonl").open("w") as rows:
        done = subprocess.run(command, env=ENVIRONMENT, stdout=rows, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [json.loads(line) for line in (folder.parent / "rows.jsonl").read_text().splitlines()]
    places, ended = Counter(line["at"] for line in lines if "at" in line), [x["ended"] for x in lines if "ended" in x]
    assert places.total() >= kills
    print(len(ended), "runs,", places.total(), "kills:", dict(sorted(places.items())))  # noqa: T201 - the measurement
    assert windows <= {place.partition(",")[0] for place in places}
    return ended


def files(folder: Path) -> set[str]:
    """All but what readers of the index leave beside it."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if "sqlite-" not in path.name}


def check_discoveries(kills: int, tmp_path: Path, *, windows: Set[str]) -> None:
    task = tasks.teacher(1, d_in=5, d_out=2, latent_dim=2, num_samples=60, noise=0.05, seed=3)
    assert task.y is not None
    names = [f"x{i}" for i in range(5)] + ["y0", "y1"]
    data = write_table(tmp_path / "data.csv", names, np.hstack([task.x, task.y]).round(6))
    words = ["discover", str(data), "--target", "y0,y1", "--ridge", "1e-2", "--starts", "1", "--evaluations", "20"]
    place = tmp_path / "killed"
    runs = killed(kills, place, *words, windows=windows)
    whole, all_files = isthmus.load(place / "whole"), files(place / "whole")
    shown = {name for name in all_files if name.startswith(("plots", "report", "interpretation"))}
    assert shown
    assert any((place / name / "plots").exists() for name in runs)
    for name in runs:
        folder = place / name
        found = isthmus.load(folder)
        for part in ("network", "encoder", "decoder", "scree", "objective_curve", "reasons", "interval"):
            assert bits(getattr(found, part)) == bits(getattr(whole, part)), part
        assert found.runs.drop_vars("seconds").identical(whole.runs.drop_vars("seconds"))
        assert files(folder) == (all_files if (folder / "plots").exists() else all_files - shown)
        for picture in folder.glob("plots/*"):
            assert picture.read_bytes() == (place / "whole" / "plots" / picture.name).read_bytes(), picture.name


def check_sweeps(kills: int, tmp_path: Path, *, windows: Set[str] = frozenset()) -> None:
    plan = write_plan(tmp_path, "seed = [0, 1, 2]", evaluations=30)
    place = tmp_path / "killed"
    runs = killed(kills, place, "sweep", str(plan), "--workers", "0", windows=windows)
    whole = contents(place / "whole")
    assert len(whole) == 3
    for name in runs:
        folder = place / name
        assert contents(folder) == whole
        assert computed_after_their_end(folder) == []
        assert files(folder) == files(place / "whole")


@pytest.mark.slow
def test_some_kills_of_sweeps_change_nothing_and_leave_nothing(tmp_path: Path) -> None:
    check_sweeps(5, tmp_path)


@pytest.mark.slow
def test_two_hundred_kills_of_discoveries_change_nothing_and_leave_nothing(tmp_path: Path) -> None:
    check_discoveries(200, tmp_path, windows=TRAINING | {"between trainings", "drawing pictures and page"})


@pytest.mark.slow
def test_a_hundred_kills_of_sweeps_change_nothing_and_leave_nothing(tmp_path: Path) -> None:
    check_sweeps(100, tmp_path, windows=TRAINING)
