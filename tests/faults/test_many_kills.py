"""Hundreds of kills at drawn file operations: nothing lost, nothing different, nothing left behind.

The children that are killed: `kill_driver`. Kills of whole groups of processes: `test_sweep_faults`.
"""

import json
import os
import subprocess
import sys
from collections import Counter
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


def killed(kills: int, folder: Path, *words: str) -> list[str]:
    """Kill so many times; the names of the runs, each of which ended. Where they were killed is printed."""
    folder.mkdir()
    command = [sys.executable, str(DRIVER), str(kills), "7", str(folder), *words]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    places = Counter(place for line in lines for place in line["kills"])
    assert places.total() >= kills
    print(len(lines), "runs,", places.total(), "kills:", dict(places))  # noqa: T201 - the measurement
    return [line["run"] for line in lines]


def files(folder: Path) -> set[str]:
    """All but what readers of the index leave beside it."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if "sqlite-" not in path.name}


def check_discoveries(kills: int, tmp_path: Path) -> None:
    task = tasks.teacher(1, d_in=5, d_out=2, latent_dim=2, num_samples=60, noise=0.05, seed=3)
    assert task.y is not None
    names = [f"x{i}" for i in range(5)] + ["y0", "y1"]
    data = write_table(tmp_path / "data.csv", names, np.hstack([task.x, task.y]).round(6))
    words = ["discover", str(data), "--target", "y0,y1", "--ridge", "1e-2", "--starts", "1", "--evaluations", "20"]
    words.append("--no-pictures")
    command = [sys.executable, "-m", "isthmus", *words, "--out", str(tmp_path / "whole")]
    assert subprocess.run(command, env=ENVIRONMENT, capture_output=True, check=False).returncode in {0, 3}
    whole = isthmus.load(tmp_path / "whole")
    runs = killed(kills, tmp_path / "killed", *words)
    for name in runs:
        found = isthmus.load(tmp_path / "killed" / name)
        for part in ("network", "encoder", "decoder", "scree", "objective_curve", "reasons", "interval"):
            assert bits(getattr(found, part)) == bits(getattr(whole, part)), part
        assert found.runs.drop_vars("seconds").identical(whole.runs.drop_vars("seconds"))
        assert files(tmp_path / "killed" / name) == files(tmp_path / "whole")


def check_sweeps(kills: int, tmp_path: Path) -> None:
    plan = write_plan(tmp_path, "seed = [0, 1, 2]", evaluations=30)
    isthmus.sweep(plan, out=tmp_path / "whole", workers=0)
    whole = contents(tmp_path / "whole")
    for name in killed(kills, tmp_path / "killed", "sweep", str(plan), "--workers", "0"):
        folder = tmp_path / "killed" / name
        assert contents(folder) == whole
        assert computed_after_their_end(folder) == []
        assert files(folder) == files(tmp_path / "whole")


@pytest.mark.slow
def test_some_kills_of_sweeps_change_nothing_and_leave_nothing(tmp_path: Path) -> None:
    check_sweeps(5, tmp_path)


@pytest.mark.slow
def test_two_hundred_kills_of_discoveries_change_nothing_and_leave_nothing(tmp_path: Path) -> None:
    check_discoveries(200, tmp_path)


@pytest.mark.slow
def test_a_hundred_kills_of_sweeps_change_nothing_and_leave_nothing(tmp_path: Path) -> None:
    check_sweeps(100, tmp_path)
