"""Spellings of one run are one run, whose former ids are still found."""

import inspect
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from isthmus import tasks
from isthmus.errors import PlanError
from isthmus.sweeps import Plan, sweep
from isthmus.sweeps.engine_choice import EngineChoice
from isthmus.sweeps.runs import SweepRun
from isthmus.sweeps.setup import prepared
from isthmus.sweeps.sweeping import run_plan
from isthmus.sweeps.task_fields import make_task
from isthmus.tasks import BUILTIN
from sweep_plans import NETWORK, TASK, TRAINING, attempts

NAMED = {name: {"name": name} for name in BUILTIN if hasattr(tasks, name)}
SAME: dict[str, tuple[dict[str, object], ...]] = {
    "equal widths": ({"width": 6, "depth": 4}, {"width": [6, 6, 6], "depth": 4}),
    "linear layers": tuple({"linear": linear} for linear in ([1, 2], [2, 1], [1, 1, 2], (2, 1, 2))),
    "left out": tuple({"task.leave_out": columns} for columns in (["a", "b"], ["b", "a"], ["b", "a", "b"])),
    "whole": ({"ridge": 1}, {"ridge": 1.0}),
    "zero": ({"negative_slope": 0.0}, {"negative_slope": -0.0}, {"negative_slope": 0}),
    "usual": ({"bias": True}, {}),
    "places": ({"network.seed": 0}, {"seed": 0}),
    "kind": ({"network.kind": "fully_connected"}, {}),
    "loss": ({"loss": "squared"}, {}),
}
OTHER: dict[str, tuple[dict[str, object], ...]] = {
    "widths": ({"width": [6, 5, 6]}, {"width": [5, 6, 6]}, {"width": 6}),
    "linear layers": ({"linear": [1]}, {"linear": [2]}, {"linear": [1, 2]}, {"linear": []}),
    "targets": ({"task.target": ["y", "c"]}, {"task.target": ["c", "y"]}),
}


def _spelled(place: Path, settings: dict[str, object]) -> SweepRun:
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 5)), columns=["a", "b", "c", "d", "y"])
    table.to_csv(place / "x.csv", index=False)
    of_file = any(key.startswith("task.") for key in settings)
    task = {"file": str(place / "x.csv"), "target": "y"} if of_file else TASK
    return Plan(task, NETWORK, TRAINING, settings=[settings]).runs()[0]


@pytest.mark.parametrize("name", SAME)
def test_spellings_of_one_run_are_one_run(name: str, tmp_path: Path) -> None:
    runs = [_spelled(tmp_path, settings) for settings in SAME[name]]
    assert len({run.id for run in runs}) == 1
    # and they are the same indeed: whatever is made of what was written is equal
    made = [prepared(run.former or run.settings, run.source) for run in runs]
    for other in made[1:]:
        assert torch.equal(other.x, made[0].x)
        assert all(map(torch.equal, other.network.state_dict().values(), made[0].network.state_dict().values()))
        assert torch.equal(other.network(other.x), made[0].network(made[0].x))
    if len({repr(settings) for settings in SAME[name]}) > 1 and not name.startswith("left"):
        with pytest.raises(PlanError, match=r"run 2 .* is run 1 again"):
            Plan(TASK, NETWORK, TRAINING, settings=SAME[name]).runs()


@pytest.mark.parametrize("name", OTHER)
def test_other_runs_are_not_one(name: str, tmp_path: Path) -> None:
    runs = [_spelled(tmp_path, settings) for settings in OTHER[name]]
    assert len({run.id for run in runs}) == len(runs)


@pytest.mark.parametrize("name", NAMED)
def test_a_task_whose_usual_arguments_are_written_is_the_same_task(name: str, tmp_path: Path) -> None:
    usual = {
        p.name: p.default
        for p in inspect.signature(inspect.unwrap(getattr(tasks, name))).parameters.values()
        if p.default is not inspect.Parameter.empty and isinstance(p.default, int | float)
    }
    if any(
        p.default is inspect.Parameter.empty
        for p in inspect.signature(inspect.unwrap(getattr(tasks, name))).parameters.values()
    ):
        usual = {"seed": 0}  # what it needs has no usual value
    plans = (Plan(task, NETWORK, TRAINING, grid={"seed": [0]}) for task in ({"name": name}, {"name": name, **usual}))
    one, other = (plan.runs()[0] for plan in plans)
    assert one.id == other.id
    if name != "kuramoto_sivashinsky":  # seconds
        a, b = (make_task(run.former["task"] if run.former else run.settings["task"], None) for run in (one, other))
        assert np.array_equal(a.x, b.x)
        assert np.array_equal(a.target, b.target)


@pytest.mark.parametrize("name", sorted(set(BUILTIN) - {"kuramoto_sivashinsky"}))  # which takes seconds
def test_a_measured_table_is_the_same_task_whatever_its_seed(name: str) -> None:
    task = {"name": name}
    runs = Plan(task, NETWORK, TRAINING, settings=[{"task.seed": seed, "seed": seed} for seed in (0, 1)]).runs()
    one, other = (run.settings["task"] for run in runs)
    a, b = (make_task({"name": name, "seed": seed}, None) for seed in (0, 1))
    assert (one == other) is bool(np.array_equal(a.x, b.x) and np.array_equal(a.target, b.target))


def test_runs_of_earlier_versions_are_found_under_the_spelling_that_they_had(tmp_path: Path) -> None:
    plan = Plan(TASK, NETWORK, TRAINING, settings=[{"width": [6, 6, 6]}, {"width": 6, "ridge": 0.1}])
    new = plan.runs()[0]
    assert new.former is not None
    earlier = replace(new, settings=new.former, former=None)
    assert earlier.id != new.id
    kept = tmp_path / "kept"
    run_plan((earlier,), kept, EngineChoice(0), listener=lambda _progress: None)
    found = sweep(plan, out=kept, workers=0)
    assert found["id"].values.tolist() == [earlier.id, plan.runs()[1].id]
    assert found["status"].values.tolist() == ["done"] * 2
    assert [what for _, what in attempts(kept)].count("begin") == 2
    fresh = sweep(plan, out=tmp_path / "fresh", workers=0)
    assert fresh["id"].values[0] == new.id
    assert fresh["objective"].values.tolist() == found["objective"].values.tolist()
