"""What a sweep shows of runs that were lost, of readings that are none, and of settings of any type."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from isthmus.diagnostics.leaky import FAR
from isthmus.sweeps import Plan, sweep
from isthmus.sweeps.folder import SweepFolder
from isthmus.sweeps.index import Row, Status
from isthmus.sweeps.run_files import read_result
from isthmus.sweeps.run_readings import hamiltonian_rank, heard_warnings
from isthmus.sweeps.run_table import LOST, MISSING, RANKS, WARNINGS, alike, run_columns, scalar
from isthmus.sweeps.runs import SweepRun
from isthmus.sweeps.store import Store, run_folder
from isthmus.sweeps.sweeping import grid_dataset
from isthmus.training import Outcome
from sweep_plans import NETWORK, TASK, TRAINING, finished_row, tiny

LEAKY: dict[str, object] = {"kind": "leaky", "width": 6, "depth": 4}


def test_the_lost_are_those_of_the_outcomes() -> None:
    assert set(LOST) == {outcome.name for outcome in Outcome if outcome.is_lost}


@pytest.mark.parametrize("outcome", [outcome.name for outcome in Outcome])
def test_a_lost_run_has_no_rank_wherever_it_is_shown_and_says_why(outcome: str) -> None:
    """Runs of earlier versions have ranks there: of weights of 1e-17, and of 1e30."""
    ranks = dict.fromkeys(RANKS, 5)
    row = finished_row(3, 0.1, 0, outcome=outcome, **ranks)
    columns = run_columns([row])
    run = SweepRun(row.settings, None, {"seed": 0})
    data = grid_dataset([run], {"seed": [0]}, [Row(run.id, row.status, row.settings, row.numbers)])
    for name in RANKS:
        assert columns[name] == [None if outcome in LOST else 5]
        np.testing.assert_array_equal(data[name].values, [math.nan if outcome in LOST else 5])
    assert columns["objective"] == [pytest.approx(0.3)]
    assert bool(columns[MISSING][0]) is bool(data[MISSING].values[0]) is (outcome in LOST)


def test_a_run_that_collapsed_or_diverged_writes_no_rank(tmp_path: Path) -> None:
    plan = Plan(TASK, NETWORK, {**TRAINING, "dtype": "float32", "evaluations": 200}, grid={"ridge": [10.0, 1.8e19]})
    found = sweep(plan, out=tmp_path / "out", workers=0)
    assert found["outcome"].values.tolist() == ["COLLAPSED", "DIVERGED"]
    for run in plan.runs():
        numbers = read_result(run_folder(tmp_path / "out", run.id)).numbers
        assert {numbers[name] for name in RANKS} == {None}
        assert numbers[MISSING] == LOST[str(numbers["outcome"])]


def test_a_hamiltonian_away_from_a_critical_point_is_no_rank_and_the_run_says_so(tmp_path: Path) -> None:
    """-9,195 dimensions stood in tables and pictures, and the warning in a file that nobody opens."""
    plan = Plan(TASK, LEAKY, {**TRAINING, "evaluations": 5}, grid={"effective_depth": [2.0], "seed": [0, 1]})
    found = sweep(plan, out=tmp_path / "out", workers=0)
    assert np.isnan(found["rank_hamiltonian"].values).all()
    assert all("far from critical" in text for text in found[WARNINGS].values.ravel())
    place = SweepFolder(tmp_path / "out")
    for _ in range(2):
        rows = place.reader().rows()
        columns = run_columns(rows)
        assert all("far from critical" in str(text) for text in columns[WARNINGS])
        Store(tmp_path / "out").rebuilt_index(lambda _text: None).close()


@pytest.mark.parametrize(
    ("stationarity", "ranks", "expected", "says"),
    [
        (FAR, [1.0, 2.0], 1.5, False),
        (0.0, [0.0, 0.0], 0.0, False),
        (2 * FAR, [1.0, 2.0], None, False),  # `leaky_diagnosis` has said so
        (math.nan, [1.0, 2.0], None, False),
        (0.0, [-40.0, 2.0], None, True),
        (0.0, [math.nan, math.nan], None, True),
    ],
)
def test_a_hamiltonian_is_a_rank_at_critical_points_from_0_on(
    stationarity: float, ranks: list[float], expected: float | None, says: bool
) -> None:
    """At effective depth 1 networks that had converged read -20: their kinetic energy outweighs the rest."""
    columns = {"rank_from_hamiltonian": ("layer", np.array(ranks))}
    with heard_warnings() as said:
        assert hamiltonian_rank(xr.Dataset(columns, attrs={"stationarity": stationarity})) == expected
    assert bool(said) is says


def test_a_rank_estimate_that_is_missing_has_its_reason(tmp_path: Path) -> None:
    """Of every kind of run that could have one."""
    plan = tiny(depth=[2, 4], ridge=[1e-2, 1e-4])
    found = sweep(plan, out=tmp_path / "a", workers=0)
    np.testing.assert_array_equal(np.isnan(found["rank_estimate"].values), found[MISSING].values != "")
    unread = sweep(replace(plan, record={"ranks": False}), out=tmp_path / "b", workers=0)
    assert np.isnan(unread["rank_estimate"].values).all()
    assert (unread[MISSING].values == "the plan has ranks = false under [record]").all()


TYPES: dict[str, list[dict[str, object]]] = {
    "numbers and lists of them": [{"width": 6}, {"width": [4, 5, 6]}],
    "a key that other kinds lack": [{"seed": 0}, {"network.kind": "resnet", "block_depth": 1}],
    "lists of nothing": [{"linear": []}, {"linear": [1]}],
    "words": [{"scaling": "none"}, {"scaling": "column"}],
    "yes and no": [{"bias": True}, {"bias": False}],
    "one with a default": [{"seed": 0}, {"seed": 0, "ridge": 0.1}, {"depth": 3}],
    "none and a number": [{"evaluations": 3}, {"evaluations": None}],
}


@pytest.mark.parametrize("name", TYPES)
def test_settings_of_any_type_come_back_and_go_into_every_file(name: str, tmp_path: Path) -> None:
    plan = Plan(TASK, NETWORK, TRAINING, settings=TYPES[name])
    runs = plan.runs()
    rows = [Row(run.id, Status.DONE, run.settings, {"objective": 0.5, "outcome": "PLATEAU"}) for run in runs]
    data, table = grid_dataset(runs, {}, rows), pd.DataFrame(run_columns(rows))
    data.to_netcdf(tmp_path / "a.nc")
    data.to_dataframe().to_parquet(tmp_path / "a.parquet")
    table.to_parquet(tmp_path / "b.parquet")
    read = pd.read_parquet(tmp_path / "b.parquet").set_index("id")
    for axis in {axis for setting in TYPES[name] for axis in setting}:
        key = axis.rpartition(".")[2]
        used = [{**run.settings["network"], **run.settings["training"]}.get(key) for run in runs]
        assert [words(value) for value in data[axis].values] == [words(value) for value in used]
        assert [words(value) == "" for value in data[axis].values] == [value is None for value in used]
        for column in set(read) & {f"network.{key}", f"training.{key}"}:
            assert [words(read[column][run.id]) for run in runs] == [words(value) for value in used]


def words(value: object) -> str:
    """A value as text, whatever its type: none is "", and 6.0 is 6."""
    value = scalar(value)
    if value is None or value != value:
        return ""
    return f"{float(value):g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


@pytest.mark.parametrize("values", [[[4, 5, 6], 6], [6, 7], [[4, 5, 6], [6, 5, 4]]], ids=["mixed", "numbers", "lists"])
def test_axes_of_any_type_go_into_files(values: list[object], tmp_path: Path) -> None:
    plan = tiny(width=values, bias=[True, False])
    data = grid_dataset(plan.runs(), plan.axes(), [])
    data.to_netcdf(tmp_path / "a.nc")
    data.to_dataframe().to_parquet(tmp_path / "a.parquet")
    assert data["width"].values.tolist() == alike(values)
