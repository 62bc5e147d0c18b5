"""What a discovery would take; how near it comes over sizes: benchmarks/scaling.py."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isthmus import Discovery, Forecast, Limits, discover, foresee, tasks
from isthmus.discovery.accuracy import STARTS, TEACHERS, WORDS
from isthmus.discovery.data.splitting import FOLDS
from isthmus.discovery.foresee import timed
from isthmus.discovery.kinds import family_of
from isthmus.discovery.kinds.family import Family
from isthmus.discovery.settings import Settings
from isthmus.errors import DataError
from minima import noise_problem

FEW = Limits(evaluations=60)


def small_teacher() -> tasks.Task:
    return tasks.teacher(1, d_in=6, d_out=3, num_samples=200, seed=1)


@pytest.fixture(scope="module")
def told() -> Forecast:
    task = small_teacher()
    return foresee(task.x, task.y, limits=FEW, workers=1)


@pytest.fixture(scope="module")
def found() -> Discovery:
    task = small_teacher()
    return discover(task.x, task.y, limits=FEW, workers=1, effort="quick")


def test_the_sizes_are_those_of_the_networks_that_are_trained(told: Forecast, found: Discovery) -> None:
    assert (told.rows, told.rows_in_all, told.inputs, told.outputs) == (200, 200, 6, 3)
    assert told.shapes == tuple(tuple(w.shape) for w in found.network.state_dict().values() if w.ndim == 2)
    assert told.memory > 8 * 200 * (6 + 3)


def test_the_gradients_that_are_planned_are_nearly_those_that_are_taken(told: Forecast, found: Discovery) -> None:
    of_starts = int(found.runs["gradient_evaluations"].sum())
    assert 1.2 * of_starts < told.evaluations < 4 * of_starts  # starts take 50 to 60 % of them
    assert told.evaluations_of_doubts == 10 * told.evaluations


def test_seconds_are_gradients_times_what_one_takes(told: Forecast) -> None:
    gradients = told.evaluations * told.seconds_of_gradient
    assert 0.4 * gradients < told.seconds < 0.4 * gradients + 5.0
    assert told.seconds_of_doubts == pytest.approx(told.evaluations_of_doubts * told.seconds_of_gradient)
    assert 1e-5 < told.seconds_of_gradient < 0.1


def test_quick_effort_leaves_doubts_alone_and_more_is_asked_for_with_more_ranks() -> None:
    task = small_teacher()
    quick = foresee(task.x, task.y, limits=FEW, effort="quick", rows=100)
    more = foresee(task.x, task.y, limits=FEW, effort="quick", ranks=True, control=True)
    assert (quick.evaluations_of_doubts, quick.seconds_of_doubts, quick.rows) == (0, 0.0, 100)
    assert more.evaluations > 3 * quick.evaluations
    assert "100 of 200; the others check the answer" in quick.summary()


@pytest.mark.parametrize("ridges", [[1e-2], [1e-1, 1e-2, 1e-3, 1e-4]])
def test_of_classes_what_is_trained_for_accuracy_is_planned(ridges: list[float]) -> None:
    task = small_teacher()
    labels = (task.x[:, 0] > 0).astype(int)  # of two classes combinations of the six inputs are counted
    asked: dict[str, Any] = {"loss": "cross_entropy", "ridge": ridges, "starts": 1}
    quick = foresee(task.x, labels, effort="quick", **asked)
    settings = Settings()
    each = settings.linear_steps * 9 // 8
    trained = FOLDS * (len(ridges) + 1 + TEACHERS + STARTS * 6)
    assert foresee(task.x, labels, **asked).evaluations == quick.evaluations + trained * each


def test_what_a_time_limit_leaves_out_of_classes_is_said() -> None:
    task = small_teacher()
    parts: list[str] = []
    asked: dict[str, Any] = {"loss": "cross_entropy", "ridge": 1e-2, "starts": 1, "workers": 1}
    cut = discover(task.x, (task.x[:, 0] > 0).astype(int), limits=Limits(seconds=0.2), **asked)
    assert any("left out the rank for accuracy" in text for text in cut.warnings)
    whole = discover(
        task.x, (task.x[:, 0] > 0).astype(int), limits=Limits(evaluations=20),
        progress=lambda event: parts.append(event.part), **asked,
    )  # fmt: skip
    assert not any("left out" in text for text in whole.warnings)
    assert WORDS in parts


def test_a_time_limit_is_kept() -> None:
    task = small_teacher()
    told = foresee(task.x, task.y, limits=Limits(seconds=0.5), effort="thorough")
    assert told.seconds + told.seconds_of_doubts == pytest.approx(0.5)


def test_constant_targets_take_nothing() -> None:
    told = foresee(np.random.default_rng(0).normal(size=(50, 3)), np.ones((50, 1)))
    assert (told.evaluations, told.seconds, told.shapes) == (0, 0.0, ())
    assert "networks: none" in told.summary()


def test_nothing_is_written(tmp_path: Path) -> None:
    task = small_teacher()
    foresee(task.x, task.y, limits=FEW, out=tmp_path / "run")
    assert not [*tmp_path.iterdir()]


def test_what_the_memory_cannot_hold_is_refused_as_the_discovery_is(monkeypatch: pytest.MonkeyPatch) -> None:
    task = small_teacher()
    monkeypatch.setenv("ISTHMUS_MEMORY", "6M")
    for call in (foresee, discover):
        with pytest.raises(DataError, match=r"discover: 200 rows, 6 inputs and 3 outputs: needs .*; it may take 6 MiB"):
            call(task.x, task.y, limits=FEW, workers=1)
    monkeypatch.setenv("ISTHMUS_MEMORY", "2M")
    for call in (foresee, discover):
        with pytest.raises(DataError, match=r"discover: the default depth: needs .* Take a smaller depth"):
            call(task.x, task.y, limits=FEW, workers=1)


@pytest.mark.parametrize(
    ("network", "text"),
    [
        (None, ": 6 64 64 64 24 24 24 24 64 64 64 3"),
        ("leaky", "18 weight matrices: 16 of 24 x 25, 1 of 24 x 6, 1 of 3 x 24"),
        ("resnet", "18 weight matrices: 1 of 24 x 6, 1 of 3 x 24, 16 of 24 x 24"),
    ],
)
def test_the_sizes_of_every_kind_of_network_are_told(network: str | None, text: str) -> None:
    task = small_teacher()
    told = foresee(task.x, task.y, network=network, limits=FEW, starts=1, ridge=1e-2)
    assert text in dict(told.lines)["networks"]


def test_one_slow_reading_counts_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is multiplied by dozens: a machine that stalled for half a second once added a minute."""
    measured, stalls = Family[Any].measured, [0.5, 0.0]

    def stalled(self: Family[Any], *arguments: Any, **named: Any) -> object:
        time.sleep(stalls.pop(0))
        return measured(self, *arguments, **named)

    monkeypatch.setattr(Family, "measured", stalled)
    _, reading = timed(family_of(noise_problem(6, 2), Settings().scaled_to(20)))
    assert 0 < reading < 0.5
    assert not stalls


def test_an_unknown_option_is_refused() -> None:
    task = small_teacher()
    with pytest.raises(TypeError, match=r"foresee\(row=...\): no option of this name"):
        foresee(task.x, task.y, row=3)
    with pytest.raises(ValueError, match="needs one of quick, default, thorough"):
        foresee(task.x, task.y, effort="much")
