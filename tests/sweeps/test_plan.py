"""Plans: what they expand to, what an id depends on, and every refusal, one row each."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from isthmus.errors import DataError, PlanError
from isthmus.sweeps import Plan
from isthmus.sweeps.plan_check import checked_runs
from isthmus.sweeps.task_fields import make_task
from sweep_plans import NETWORK, TASK, TRAINING, tiny, write_plan


def test_a_grid_is_every_combination_the_last_axis_fastest() -> None:
    runs = tiny(depth=[3, 4], ridge=[1e-2, 1e-3], seed=[0]).runs()
    assert [run.label for run in runs] == [
        f"depth={depth}, ridge={ridge}, seed=0" for depth in (3, 4) for ridge in (1e-2, 1e-3)
    ]
    assert [run.settings["network"]["depth"] for run in runs] == [3, 3, 4, 4]
    assert [run.settings["training"]["ridge"] for run in runs] == [1e-2, 1e-3, 1e-2, 1e-3]
    assert len({run.id for run in runs}) == 4


def test_python_and_toml_give_the_same_runs(tmp_path: Path) -> None:
    from_file = Plan.read(write_plan(tmp_path, "depth = [3, 4]\ntask.seed = [0, 7]"))
    from_python = replace(tiny(depth=[3, 4]), grid={"depth": [3, 4], "task.seed": [0, 7]})
    assert [run.id for run in from_file.runs()] == [run.id for run in from_python.runs()]
    assert [run.settings["task"]["seed"] for run in from_file.runs()] == [0, 7, 0, 7]


def test_a_list_of_settings_is_one_run_each() -> None:
    plan = Plan(TASK, NETWORK, TRAINING, settings=[{"depth": 3, "ridge": 0.1}, {"depth": 4}])
    assert [run.label for run in plan.runs()] == ["depth=3, ridge=0.1", "depth=4"]
    assert plan.runs()[1].settings["training"]["ridge"] == TRAINING["ridge"]


def test_equal_settings_have_equal_ids_however_they_are_written() -> None:
    base = tiny(seed=[0])
    written_out = replace(
        base,
        task={**TASK, "noise": 0, "seed": 0},
        network={"kind": "fully_connected", "bias": True, "depth": 4, "width": 6},
        training={**TRAINING, "loss": "squared"},
        record={"weights": True},
        grid={"network.seed": [0]},
    )
    assert base.runs()[0].id == written_out.runs()[0].id


def test_a_zarr_is_a_file_of_data_and_known_by_what_is_in_it(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr", reason="the extra zarr is not installed")
    x = np.random.default_rng(0).normal(size=(30, 3))
    zarr.create_array(tmp_path / "x.zarr", data=x, chunks=(10, 3))
    plan = Plan({"file": str(tmp_path / "x.zarr"), "target": "c3"}, NETWORK, TRAINING, grid={"seed": [0]})
    run = plan.runs()[0]
    assert np.array_equal(make_task(run.settings["task"], run.source).x, x[:, :2])
    shutil.move(tmp_path / "x.zarr", tmp_path / "moved.zarr")
    assert replace(plan, task={**plan.task, "file": str(tmp_path / "moved.zarr")}).runs()[0].id == run.id
    shutil.move(tmp_path / "moved.zarr", tmp_path / "x.zarr")
    shutil.copy(tmp_path / "x.zarr" / "c" / "0" / "0", tmp_path / "x.zarr" / "c" / "1" / "0")
    with pytest.raises(DataError, match=r"x.zarr: is not the file of the plan"):
        make_task(run.settings["task"], run.source)
    assert plan.runs()[0].id != run.id


@pytest.mark.parametrize(
    "change",
    [
        {"task": {**TASK, "seed": 1}},
        {"network": {**NETWORK, "width": 7}},
        {"training": {**TRAINING, "evaluations": 61}},
        {"record": {"history": False}},
    ],
    ids=["task", "network", "training", "record"],
)
def test_each_section_counts_in_the_id(change: dict[str, dict[str, object]]) -> None:
    base = tiny(seed=[0])
    assert base.runs()[0].id != replace(base, **change).runs()[0].id  # pyright: ignore[reportArgumentType]


def test_an_id_is_one_that_was_published() -> None:
    # a changed id would compute every finished run of every sweep again: raise SCHEMA only if that is meant
    assert tiny(seed=[0]).runs()[0].id == "6c3a5d401b761b5472dc"


def file_plan(folder: Path, name: str = "data.csv") -> Plan:
    rows = np.random.default_rng(0).normal(size=(30, 4)).round(3)
    folder.mkdir(exist_ok=True)
    lines = ["a,b,c,y", *(",".join(map(str, row)) for row in rows.tolist())]
    (folder / name).write_text("\n".join(lines) + "\n")
    return Plan({"file": name, "target": "y"}, NETWORK, TRAINING, grid={"seed": [0]}, folder=folder)


def test_columns_of_a_file_are_left_out_and_older_ids_stay(tmp_path: Path) -> None:
    plan = file_plan(tmp_path)
    [plain] = plan.runs()
    [none] = replace(plan, task={**plan.task, "leave_out": []}).runs()
    [fewer] = replace(plan, task={**plan.task, "leave_out": "b"}).runs()
    assert none.id == plain.id != fewer.id
    assert "leave_out" not in plain.settings["task"], "it would be another run than before there was the key"
    tasks = [make_task(run.settings["task"], run.source) for run in (plain, fewer)]
    assert [task.x_names for task in tasks] == [("a", "b", "c"), ("a", "c")]


def test_a_file_counts_by_its_bytes_and_not_by_its_path(tmp_path: Path) -> None:
    here = file_plan(tmp_path / "here").runs()[0]
    there = file_plan(tmp_path / "there", "other.csv").runs()[0]
    assert here.id == there.id
    assert here.source != there.source
    path = tmp_path / "here" / "data.csv"
    path.write_text(path.read_text().replace("a,b", "A,b"))
    assert file_plan(tmp_path / "third").runs()[0].id == here.id
    shutil.copy(path, tmp_path / "third" / "data.csv")
    changed = replace(file_plan(tmp_path / "fourth"), folder=tmp_path / "third").runs()[0]
    assert changed.id != here.id


def leaky(**change: object) -> dict[str, object]:
    return {"kind": "leaky", "width": 6, "depth": 4, "effective_depth": 3.0, **change}


Change = Callable[[Plan], Plan]
REFUSED: dict[str, tuple[Change, tuple[str, ...]]] = {
    "unknown key": (lambda p: replace(p, network={**NETWORK, "widht": 6}), ("'widht'", "Did you mean 'width'?")),
    "unknown training key": (
        lambda p: replace(p, training={**TRAINING, "ridges": 1}), ("[training]", "'ridges'", "'ridge'")
    ),
    "unknown task": (lambda p: replace(p, task={"name": "techer"}), ("'techer'", "Did you mean 'teacher'?")),
    "unknown task key": (lambda p: replace(p, task={**TASK, "nois": 1.0}), ("[task]", "'nois'", "'noise'")),
    "unknown record": (lambda p: replace(p, record={"weight": True}), ("[record]", "'weight'", "'weights'")),
    "unknown axis": (lambda p: replace(p, grid={"dept": [3]}), ("[grid]", "'dept'", "Did you mean 'depth'?")),
    "two axes of one key": (
        lambda p: replace(p, grid={"depth": [3, 4], "network.depth": [5]}),
        ("grid.network.depth and grid.depth are both network.depth",),
    ),
    "unknown axis of a setting": (
        lambda p: replace(p, grid={}, settings=[{"depth": 3}, {"dept": 3}]),
        ("[[settings]] of run 2", "'dept'", "Did you mean 'depth'?"),
    ),
    "unknown section": (lambda p: replace(p, grid={"trainin.ridge": [3]}), ("'trainin'", "'training'")),
    "no task": (lambda p: replace(p, task={}), ("[task]", "name or a file")),
    "missing key": (lambda p: replace(p, network={"depth": 3}), ("network.width is missing",)),
    "missing task argument": (lambda p: replace(p, task={"name": "teacher", "rank": 1}), ("task.d_in is missing",)),
    "no values": (lambda p: replace(p, grid={"depth": []}), ("grid.depth is empty",)),
    "empty grid": (lambda p: replace(p, grid={}), ("the grid is empty",)),
    "grid and settings": (lambda p: replace(p, settings=[{"depth": 3}]), ("both a grid and settings",)),
    "no list": (lambda p: replace(p, grid={"depth": 3}), ("grid.depth is 3", "list")),
    "depth 0": (lambda p: replace(p, grid={"depth": [3, 0]}), ("run 2 (depth=0)", "network.depth is 0", "from 1")),
    "negative ridge": (lambda p: replace(p, grid={"ridge": [-1.0]}), ("run 1 (ridge=-1.0)", "training.ridge", ">= 0")),
    "infinite ridge": (lambda p: replace(p, grid={"ridge": [float("inf")]}), ("training.ridge is inf",)),
    "true as a number": (lambda p: replace(p, grid={"depth": [True]}), ("network.depth is True",)),
    "text as a number": (lambda p: replace(p, grid={"ridge": ["1e-3"]}), ("training.ridge is '1e-3'",)),
    "unknown kind": (lambda p: replace(p, network={**NETWORK, "kind": "resnett"}), ("network.kind", "'resnet'")),
    "slope of another kind": (lambda p: replace(p, network=leaky(negative_slope=0.1)), ("'negative_slope'",)),
    "no effective depth": (
        lambda p: replace(p, network={**NETWORK, "kind": "leaky"}), ("network.effective_depth is missing",)
    ),
    "the same run twice": (lambda p: replace(p, grid={"ridge": [1, 1.0]}), ("run 2 (ridge=1.0) is run 1 again",)),
    "missing file": (lambda p: replace(p, task={"file": "no.csv"}), ("task.file", "no.csv")),
    "linear layer too far": (
        lambda p: replace(p, network={**NETWORK, "linear": [9]}), ("run 1 (seed=0)", "linear", "9")
    ),
    "rank above d_in": (lambda p: replace(p, task={**TASK, "rank": 9}), ("run 1 (seed=0)", "rank")),
    "classes of numbers": (
        lambda p: replace(p, training={**TRAINING, "loss": "cross_entropy"}), ("cross_entropy", "classes")
    ),
    "preconditioned but fully connected": (
        lambda p: replace(p, training={**TRAINING, "solver": "preconditioned"}), ("preconditioned", "leaky")
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_carried_out_is_refused_in_one_line(name: str) -> None:
    change, words = REFUSED[name]
    with pytest.raises(PlanError) as caught:
        checked_runs(change(tiny(seed=[0])))
    message = str(caught.value)
    assert message.startswith("plan")
    assert "\n" not in message
    assert [word for word in words if word not in message] == [], message


TEXTS = {
    "no TOML": ("depth =", ("cannot be read as TOML",)),
    "unknown section": ("[netwrok]\nwidth = 1", ("'netwrok'", "Did you mean 'network'?")),
    "section missing": ('[task]\nname = "teacher"', ("[network] is missing",)),
    "no table": ('task = "teacher"', ("task is 'teacher'", "[task]")),
    "no list of tables": ("[settings]\ndepth = 3", ("settings is", "[[settings]]")),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_file_that_is_no_plan_is_refused(name: str, tmp_path: Path) -> None:
    text, words = TEXTS[name]
    (tmp_path / "plan.toml").write_text(text)
    with pytest.raises(PlanError) as caught:
        Plan.read(tmp_path / "plan.toml")
    assert [word for word in ("plan.toml", *words) if word not in str(caught.value)] == [], str(caught.value)


def test_a_plan_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="no such file"):
        Plan.read(tmp_path / "no.toml")
