"""Files of older versions open: a discovery, a stopped one, a half trained fit, a sweep.

`tests/older/files_0_1.zip` was written by the version of 23 November 2026, before minima and losses became objects. The
data are all signs in six columns: their means and variances are exact, so that every processor knows them again.
"""

import itertools
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import isthmus
from isthmus import FullyConnected, Limits, discover, fit
from isthmus.errors import CheckpointError, DataError
from isthmus.sweeps import Plan, sweep

ARCHIVE = Path(__file__).parents[1] / "older" / "files_0_1.zip"
X = np.array(list(itertools.product([-1.0, 1.0], repeat=6)))
Y = np.stack([X[:, 0] * X[:, 1], X[:, 2]], 1)
PLAN: dict[str, Any] = {
    "task": {"name": "teacher", "rank": 1, "d_in": 5, "d_out": 2, "latent_dim": 2, "num_samples": 40},
    "network": {"width": 6},
    "training": {"ridge": 1e-2, "evaluations": 60, "dtype": "float64"},
}


@pytest.fixture
def older(tmp_path: Path) -> Path:
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_a_discovery_is_loaded_and_predicts(older: Path) -> None:
    found = isthmus.load(older / "discovery")
    assert found.rank == 2
    assert found.transform(X).shape == (64, 2)
    assert float(np.square(found.predict(X) - Y).sum(1).mean()) < 0.9 * float(np.square(Y).sum(1).mean())
    assert found.runs["kind"].values.tolist()[:2] == ["linear", "random"]


@pytest.mark.slow
def test_a_stopped_discovery_goes_on_from_its_units(older: Path) -> None:
    unit = older / "stopped" / "work" / "start-0.01-0.pt"
    kept = torch.load(unit, weights_only=True)["result"]
    arguments: dict[str, Any] = {"network": "leaky", "depth": 4, "ridge": [1e-2], "starts": 2, "workers": 1}
    out, limits = older / "stopped", Limits(evaluations=1500)
    deeper: dict[str, Any] = arguments | {"depth": 5}
    with pytest.raises(DataError, match="other settings"):
        discover(X, Y, **deeper, limits=limits, out=out, effort="quick")
    found = discover(X, Y, **arguments, limits=limits, out=out, effort="quick")
    first = found.runs.isel(run=0)
    assert float(first["objective"]) == kept["objective"]
    assert float(first["seconds"]) == kept["seconds"], "it was not trained again"
    assert found.runs.sizes["run"] == 2


def test_a_half_trained_fit_goes_on(older: Path, pytestconfig: pytest.Config) -> None:
    def network() -> FullyConnected:
        return FullyConnected(6, 2, width=6, depth=3, seed=0, dtype=torch.float64)

    limits, heard = Limits(evaluations=200), list[int]()
    with pytest.raises(CheckpointError, match="belongs to another fit"):
        fit(network(), X, Y, ridge=1e-2, limits=limits, checkpoint=older / "fit.pt")
    found = fit(
        network(), X, Y, ridge=1e-3, limits=limits, checkpoint=older / "fit.pt",
        callback=lambda event: heard.append(event.evaluations),
    )  # fmt: skip
    assert heard[0] > 80, "it goes on where it was"
    if pytestconfig.getoption("--seed-shift"):
        return  # the older file starts its network where it always does
    fresh = fit(network(), X, Y, ridge=1e-3, limits=limits)
    assert found.objective == pytest.approx(fresh.objective, rel=1e-3)  # the first part is of another processor


def test_a_sweep_computes_nothing_again(older: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (older / "sweep").glob("runs/*/*/*")}
    table = sweep(Plan(**PLAN, grid={"depth": [2, 3]}), out=older / "sweep", workers=0)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert bool(np.isfinite(table["objective"].values).all())
