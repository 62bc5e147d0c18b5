"""Plans as they are written in Python: values of numpy and torch, dicts, and what is no plan."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr

from isthmus.errors import IsthmusError, PlanError, SweepError
from isthmus.sweeps import Plan, sweep
from sweep_plans import NETWORK, TASK, TRAINING, tiny

Given = dict[str, Any]
BASE: Given = {"task": TASK, "network": NETWORK, "training": TRAINING, "grid": {"seed": [0]}}


def planned(**change: Any) -> Plan:
    """The plan with other parts."""
    parts: Given = {**BASE, **change}
    return Plan(**parts)


PLAIN: dict[str, tuple[Given, Given]] = {
    "array": ({"grid": {"ridge": np.logspace(-2, -1, 2)}}, {"grid": {"ridge": [0.01, 0.1]}}),
    "list of numbers": ({"grid": {"ridge": list(np.logspace(-2, -1, 2))}}, {"grid": {"ridge": [0.01, 0.1]}}),
    "whole numbers": ({"grid": {"depth": list(np.arange(2, 4))}}, {"grid": {"depth": [2, 3]}}),
    "range": ({"grid": {"seed": range(2)}}, {"grid": {"seed": [0, 1]}}),
    "tensor": ({"grid": {"seed": torch.arange(2)}}, {"grid": {"seed": [0, 1]}}),
    "series": ({"grid": {"seed": pd.Series([0, 1])}}, {"grid": {"seed": [0, 1]}}),
    "widths": ({"grid": {"width": [np.array([4, 5, 6]), 7]}}, {"grid": {"width": [[4, 5, 6], 7]}}),
    "rows": ({"grid": {"width": np.array([[4, 5, 6], [7, 8, 9]])}}, {"grid": {"width": [[4, 5, 6], [7, 8, 9]]}}),
    "switch": ({"grid": {"bias": np.array([True, False])}}, {"grid": {"bias": [True, False]}}),
    "text": ({"grid": {"loss": np.array(["squared", "huber"])}}, {"grid": {"loss": ["squared", "huber"]}}),
    "section": ({"network": {"width": np.int64(6), "depth": np.uint8(4)}}, {"network": {"width": 6, "depth": 4}}),
    "training": ({"training": {"ridge": np.float64(0.5)}}, {"training": {"ridge": 0.5}}),
    "task": ({"task": {**TASK, "num_samples": np.int32(40)}}, {}),
    "settings": (
        {"grid": {}, "settings": ({"depth": np.int64(3)}, {"ridge": np.float64(0.5)})},
        {"grid": {}, "settings": [{"depth": 3}, {"ridge": 0.5}]},
    ),
    "nested": ({"grid": {"task": {"seed": range(2)}}}, {"grid": {"task.seed": [0, 1]}}),
    "kind": ({"grid": {"kind": ["fully_connected"]}}, {"grid": {"network.kind": ["fully_connected"]}}),
}


@pytest.mark.parametrize("name", PLAIN)
def test_values_of_libraries_are_the_numbers_that_they_hold(name: str) -> None:
    given, meant = PLAIN[name]
    one, other = (planned(**change).runs() for change in (given, meant))
    assert [run.id for run in one] == [run.id for run in other]
    assert [list(run.axes.values()) for run in one] == [list(run.axes.values()) for run in other]
    assert [type(value) for run in one for value in run.axes.values()] == [
        type(value) for run in other for value in run.axes.values()
    ]


# what is no plan, and the words that say so
REFUSED: dict[str, tuple[Any, str]] = {
    "number": (3, "needs a Plan, a dict with its sections, or the path"),
    "nothing": (None, "needs a Plan, a dict with its sections, or the path"),
    "list": ([BASE], "needs a Plan, a dict"),
    "dict without a task": ({"network": NETWORK, "training": TRAINING}, "section \\[task\\] is missing"),
    "dict of other keys": ({**BASE, "gird": {}}, "unknown key 'gird'. Did you mean 'grid'"),
    "dict of no text": ({**BASE, 3: {}}, "unknown key '3'"),
    **{
        f"{section} {kind}": ({**BASE, section: value}, rf"{section} is .*; needs a table, \[{section}\]")
        for section in ("task", "network", "training", "grid", "record")
        for kind, value in (("nothing", None), ("list", ["width"]), ("pairs", [("seed", [0])]), ("number", 3))
    },
    **{
        f"settings {kind}": ({**BASE, "grid": {}, "settings": value}, r"settings.* is .*; needs a list of tables")
        for kind, value in (("number", 3), ("dict", {"seed": 3}), ("numbers", [3]), ("text", "ab"), ("none", None))
    },
    "axis of no text": ({**BASE, "grid": {1: [0]}}, "grid has the key 1; needs text"),
    "setting of no text": ({**BASE, "grid": {}, "settings": [{1: 0}]}, r"settings\[0\] has the key 1"),
    "axis of one value": ({**BASE, "grid": {"seed": np.int64(3)}}, "grid.seed is 3; needs a list"),
    "axis of a set": ({**BASE, "grid": {"seed": {3}}}, r"grid.seed is \{3\}; needs a list"),
    "axis of an iterator": ({**BASE, "grid": {"seed": iter([3])}}, "grid.seed is .*; needs a list"),
    "axis of NaN": ({**BASE, "grid": {"ridge": np.array([np.nan])}}, "training.ridge is nan; needs a number >= 0"),
    "whole with a point": ({**BASE, "grid": {"depth": np.array([2.0])}}, "network.depth is 2.0; needs a whole number"),
    "other section": ({**BASE, "grid": {"rank": [1]}}, "unknown key 'rank'. Did you mean 'task.rank'?"),
    "other samples": ({**BASE, "grid": {"num_samples": [9]}}, "Did you mean 'task.num_samples'?"),
    "typed rank": ({**BASE, "grid": {"task.rnk": [1]}}, "Did you mean 'rank'?"),
    "key of another kind": ({**BASE, "grid": {"effective_depth": [1.0]}}, "'effective_depth' is of leaky networks"),
    "part of a key": ({**BASE, "grid": {"slope": [0.1]}}, "unknown key 'slope'. Did you mean 'negative_slope'?"),
    "section as an axis": (
        {**BASE, "grid": {"task": [{"name": "circle"}]}},
        r"task is a section; an axis is .*task\.KEY",
    ),
    "loss beyond the precision": (
        {**BASE, "training": {"ridge": 0.1, "dtype": "float32", "loss": "huber:1e50"}},
        "run 1 .*delta: float32 takes",
    ),
    "samples beyond the memory": (
        {**BASE, "task": {**TASK, "num_samples": 10**13}},
        "run 1 .*is too large for the memory of this machine",
    ),
    "data beyond the precision": (
        {**BASE, "task": {**TASK, "noise": 1e150}, "training": {"ridge": 0.1, "dtype": "float32", "scaling": "none"}},
        "run 1 .*: the targets have numbers beyond float32. Use",
    ),
    "typed kind": ({**BASE, "grid": {"knd": ["leaky"]}}, "Did you mean 'kind'?.* Known are kind, .*task.rank"),
}


@pytest.mark.other_types
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_plan_is_refused_in_words(name: str, tmp_path: Path) -> None:
    given, words = REFUSED[name]
    with pytest.raises(IsthmusError, match=words) as caught:
        sweep(given, out=tmp_path / "out", workers=0)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.other_types
@pytest.mark.parametrize("given", [BASE, planned()], ids=["dict", "plan"])
def test_a_dict_is_a_plan(given: Any, tmp_path: Path) -> None:
    found = sweep(given, out=tmp_path, workers=np.int64(0), retries=np.int64(1))  # pyright: ignore[reportArgumentType]
    assert found["id"].values.tolist() == [run.id for run in tiny(seed=[0]).runs()]


@pytest.mark.other_types
@pytest.mark.parametrize("words", [{"out": 3}, {"out": ""}, {"scheduler": 3}, {"slurm": 3}, {"progress": 3}], ids=str)
def test_options_of_other_kinds_are_refused_in_words(words: Any) -> None:
    with pytest.raises(PlanError, match="needs"):
        sweep(tiny(seed=[0]), **words)


@pytest.mark.other_types
@pytest.mark.parametrize("part", [{"folder": 3}, {"folder": None}, {"most_runs": "3"}, {"most_runs": 0}], ids=str)
def test_other_parts_of_a_plan_are_refused_in_words(part: Any) -> None:
    with pytest.raises(ValueError, match="^plan: .* needs"):
        planned(**part)


@pytest.mark.other_types
@pytest.mark.parametrize("words", [{"workers": "2"}, {"workers": 0.5}, {"retries": "a"}, {"retries": -1}], ids=str)
def test_counts_that_are_none_are_refused_in_words(words: Any) -> None:
    with pytest.raises(ValueError, match="sweep.*needs"):
        sweep(tiny(seed=[0]), **words)


def test_a_file_is_no_folder_of_a_sweep(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(SweepError, match="out: is a file. Give a new or empty folder"):
        sweep(tiny(seed=[0]), out=tmp_path / "out", workers=0)


def test_settings_are_columns_that_a_file_can_hold(tmp_path: Path) -> None:
    settings: list[Given] = [
        {"linear": [1], "depth": 3},
        {"linear": [], "ridge": 0.5},
        {"width": [4, 5, 6]},
        {"kind": "leaky", "depth": 3, "effective_depth": 2.0},
    ]
    found = sweep(planned(grid={}, settings=settings), workers=0)
    assert found["depth"].values.tolist() == [3, 4, 4, 3], "what the plan says where a setting does not"
    assert found["ridge"].values.tolist() == [0.01, 0.5, 0.01, 0.01]
    assert found["width"].values.tolist() == ["6", "6", "4 5 6", "6"]
    assert found["linear"].values.tolist() == ["1", "[]", "[]", ""]
    assert found["kind"].values.tolist() == ["fully_connected"] * 3 + ["leaky"]
    assert np.isnan(found["effective_depth"].values[:3]).all()
    assert found["effective_depth"].values[3] == 2.0
    found.to_netcdf(tmp_path / "found.nc", engine="scipy")
    with xr.open_dataset(tmp_path / "found.nc", engine="scipy") as back:
        assert back["ridge"].values.tolist() == found["ridge"].values.tolist()


@pytest.mark.other_types
def test_a_plan_that_is_changed_in_python_keeps_its_words() -> None:
    with pytest.raises(PlanError, match="^mine: network is 3"):
        planned(network=3, name="mine")
