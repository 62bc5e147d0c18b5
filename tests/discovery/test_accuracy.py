"""The rank of accuracy: its rule on rows whose answers are known, what is trained, a discovery that says it."""

import re
import time
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch

import isthmus
from isthmus import Limits, tasks
from isthmus.discovery.accuracy import (
    EASED,
    HEAT,
    STARTS,
    TEACHERS,
    AccuracyRank,
    HalfShape,
    HeldOutRows,
    Trainings,
    accuracy_rank,
    drawn,
    read,
)
from isthmus.discovery.data.checking import checked_data
from isthmus.discovery.data.sample import Sample
from isthmus.discovery.data.splitting import FOLDS
from isthmus.discovery.kinds.connected import Connected
from isthmus.discovery.minimum import Minimum, flat_parameters
from isthmus.discovery.one_size import OneSize
from isthmus.discovery.settings import Settings
from isthmus.discovery.work.runner import Tracker, UnitRunner
from isthmus.discovery.work.unit import Unit, silent
from isthmus.errors import DataWarning
from isthmus.reports import verdict_of
from isthmus.theory.curve_readings import standard_error
from isthmus.training import Outcome

RNG = np.random.default_rng(0)


def told(*shares: float, rows: int = 400) -> np.ndarray:
    """Which rows are right through 0, 1, ... dimensions: nested, as far as the shares grow."""
    return np.stack([np.arange(rows) < round(share * rows) for share in shares]).astype(float)


def read_alone(right: np.ndarray) -> AccuracyRank:
    return read([right], [np.ones(right.shape[1])])


def test_the_least_rank_that_loses_nothing_is_read() -> None:
    found = read_alone(told(0.3, 0.6, 0.9, 0.9, 0.9))
    assert (found.rank, found.low, found.high) == (2, 2, 2)
    assert found.accuracy.tolist() == pytest.approx([0.3, 0.6, 0.9, 0.9, 0.9])
    assert found.error[2] == pytest.approx(np.sqrt(0.9 * 0.1 / 400))


@pytest.mark.parametrize(("lost", "rows", "rank"), [(6, 400, 1), (7, 400, 2), (600, 40_000, 2)])
def test_one_standard_error_of_the_best_is_allowed(lost: int, rows: int, rank: int) -> None:
    # of 400 rows .9 are right through the best: sqrt(.9 .1 / 400) = .015, 6 rows; of a hundred times as many a tenth
    assert read_alone(told(0.5, 0.9 - lost / rows, 0.9, 0.9, rows=rows)).rank == rank


def test_where_all_are_right_one_row_is_allowed() -> None:
    assert read_alone(told(0.5, 399 / 400, 1.0)).rank == 1
    assert read_alone(told(0.5, 398 / 400, 1.0)).rank == 2


def test_no_dimension_helps_where_the_largest_class_is_all_there_is_to_say() -> None:
    assert read_alone(told(0.7, 0.7, 0.69)).rank == 0


def test_weights_count_rows_and_parts_are_put_side_by_side() -> None:
    right, weight = told(0.2, 0.5, 0.9, rows=50), np.ones(50)
    right[1, 45:] = 1
    twice = read([right, right[:2]], [weight, weight])  # the second part has no rank 2: its rank 1 stands for it
    assert twice.accuracy.tolist() == pytest.approx([0.2, 0.6, 0.75])
    heavy = np.where(np.arange(50) < 30, 2.0, 1.0)
    repeated = np.concatenate([right, right[:, :30]], axis=1)
    assert read([right], [heavy]).accuracy.tolist() == pytest.approx(read_alone(repeated).accuracy.tolist())
    assert read([right], [heavy]).accuracy.tolist() != pytest.approx(read_alone(right).accuracy.tolist())


def test_rows_are_drawn_as_rows_and_whole_groups_as_groups() -> None:
    """A row drawn twice had counted as one of twice the weight, by which a standard error is 1.4 times as large."""
    rng = np.random.default_rng(0)
    rows, numbers = drawn(np.arange(400), rng)
    assert len(rows) == 400
    assert len(set(rows.tolist())) < 300, "some are drawn twice"
    assert len(set(numbers.tolist())) == 400, "and are two"
    right = np.repeat([1.0, 0.0], 200)[rows]
    error = np.sqrt(right.mean() * (1 - right.mean()) / 400)
    assert standard_error(right, np.full(400, 1 / 400), numbers) == pytest.approx(error)
    group = np.repeat(np.arange(50), 8)
    rows, numbers = drawn(group, rng)
    assert len(rows) == 400
    assert np.unique(numbers, return_counts=True)[1].tolist() == [8] * 50
    assert all(len(set(group[rows[numbers == number]])) == 1 for number in numbers)
    assert len(set(group[rows].tolist())) < 40


def test_chance_differences_give_an_interval() -> None:
    right = np.stack([RNG.random(200) < p for p in (0.3, 0.55, 0.62, 0.64)]).astype(float)
    found = read_alone(right)
    assert found.low <= found.rank <= found.high
    assert found.low < found.high


SETTINGS = Settings(
    width=16, linear_width=3, ridges=(1e-1, 1e-2, 1e-3, 1e-4, 1e-5), starts=("linear",), adam_steps=60,
    lbfgs_evaluations=20, polish_evaluations=5, raise_evaluations=5, refine_evaluations=5,
)  # fmt: skip


def octants(rows: int = 240) -> tuple[np.ndarray, np.ndarray]:
    """Classes by the signs of three of five numbers: three dimensions tell all of them, two do not."""
    x = np.random.default_rng(2).uniform(-1, 1, size=(rows, 5))
    return x, ((x[:, :3] > 0) @ [4, 2, 1]).astype(float)


def trained(seconds: float | None = None, units: list[Unit] | None = None) -> AccuracyRank | None:
    """That of octants, after a search that reads one dimension; the units that it trains are added to a list."""
    x, y = octants()
    sample = Sample.of(checked_data(x, y, "cross_entropy"), SETTINGS)
    problem = sample.posed(SETTINGS)
    assert problem is not None
    runner = UnitRunner(None, Tracker(silent, 0, None if seconds is None else time.monotonic() + seconds), workers=1)
    if units is not None:
        run = runner.run
        runner.run = lambda more: units.extend(more) or run(more)  # type: ignore[method-assign]
    one = SimpleNamespace(rank=1)
    search: Any = SimpleNamespace(
        runner=runner, size=OneSize(problem, SETTINGS, runner, prefix="", label=""), decision=one,
        readings=SimpleNamespace(objective=one, scree=one, jacobian_rank=1), trained=SimpleNamespace(ridge=1e-2),
    )  # fmt: skip
    return accuracy_rank(sample, search)


@pytest.mark.other_types
def test_ranks_are_tried_until_more_tell_no_more_apart() -> None:
    found = trained()
    assert found is not None
    assert found.rank == 3  # the search had read 1
    assert found.accuracy[3] > 0.85
    assert found.accuracy[2] < found.accuracy[3] - 0.1
    assert len(found.accuracy) > found.rank + 1


@pytest.mark.other_types
def test_networks_of_many_dimensions_tell_those_of_each_rank_at_a_smaller_ridge() -> None:
    units: list[Unit] = []
    found = trained(units=units)
    assert found is not None
    made = Counter(re.sub(r"-[0-9]$", "", unit.key) for unit in units)  # starts beside each other
    inside = [key for key in made if key.startswith("accuracy-within-0")]
    assert len(inside) == len(SETTINGS.ridges) + 1  # each ridge with one layer, the best one with those of the search
    telling = [key for key in made if re.match(r"accuracy-fold-\d-\d-5-[^t]", key)]  # of five inputs five dimensions
    assert [made[key] for key in telling] == [TEACHERS] * FOLDS
    for number in range(FOLDS):
        own = [key for key in telling if f"fold-{number}-" in key][0]
        layers, ridge = own.split("-")[3], float(own.split("-5-")[1])
        told = [key for key in made if re.match(rf"accuracy-fold-{number}-{layers}-\d-told-", key)]
        assert [made[key] for key in told] == [STARTS] * (len(found.accuracy) - 1)
        assert {key.split("told-")[1] for key in told} == {f"{ridge / EASED:g}"}
    assert all(unit.cost == SETTINGS.linear_steps * 9 // 8 for unit in units)


@pytest.mark.other_types
def test_of_each_rank_the_start_that_ended_lowest_counts_and_none_that_diverged() -> None:
    objectives = {(1, 0): 3.0, (1, 1): 1.0, (1, 2): 2.0, (2, 0): 4.0, (2, 1): 5.0, (2, 2): 0.0}
    lost = {(2, 2), (3, 0), (3, 1), (3, 2)}
    minima = {
        place: Minimum(
            objective=objectives.get(place, 0.0), ridge=1e-2, theta=torch.zeros(0), rank=place[0], start=place[1],
            outcome=Outcome.DIVERGED if place in lost else Outcome.CONVERGED,
        )
        for place in [*objectives, (3, 0), (3, 1), (3, 2)]
    }  # fmt: skip
    part: Any = SimpleNamespace(
        unit=lambda shape, rank, start, told: (rank, start), right=lambda shape, minimum: minimum.start
    )
    trainings = object.__new__(Trainings)
    trainings.runner = cast("Any", SimpleNamespace(run=lambda units: [minima[u] for u in units], out_of_time=bool))
    assert trainings.right([(part, HalfShape(1, 1e-2), None)], [1, 2, 3]) == [{1: 1, 2: 0}]


@pytest.mark.other_types
def test_nothing_is_said_where_time_is_over() -> None:
    assert trained(seconds=0.0) is None


def test_a_factor_of_the_logits_says_nothing_of_which_is_the_largest() -> None:
    x, y = octants(60)
    problem = Sample.of(checked_data(x, y, "cross_entropy"), SETTINGS).posed(SETTINGS)
    assert problem is not None
    part, shape = HeldOutRows("of it", problem, SETTINGS), HalfShape(1, 1e-2)
    network = Connected(problem, replace(SETTINGS, relu_layers=1)).of_middle([2], seed=0)
    minimum = Minimum(objective=1.0, ridge=1e-2, theta=flat_parameters(network), rank=2, middle=1)
    with torch.no_grad():
        network.weights[-1].mul_(3)
        network.biases[-1].mul_(3)
    larger = replace(minimum, theta=flat_parameters(network))
    assert part.loss(shape, larger) == pytest.approx(part.loss(shape, minimum), rel=1e-2)
    assert problem.heldout_error(network) > part.loss(shape, minimum)
    assert part.loss(shape, replace(minimum, outcome=Outcome.DIVERGED)) == np.inf


def test_what_networks_say_is_the_mean_of_their_shares() -> None:
    x, y = octants(60)
    problem = Sample.of(checked_data(x, y, "cross_entropy"), SETTINGS).posed(SETTINGS)
    assert problem is not None
    part, shape = HeldOutRows("of it", problem, SETTINGS), HalfShape(1, 1e-2)
    networks = [Connected(problem, replace(SETTINGS, relu_layers=1)).of_middle([2], seed=n) for n in range(2)]
    minima = [Minimum(objective=1.0, ridge=1e-2, theta=flat_parameters(n), rank=2, middle=1) for n in networks]
    told = part.told(shape, [*minima, replace(minima[0], outcome=Outcome.DIVERGED)])
    assert told is not None
    with torch.no_grad():
        wanted = sum((n(problem.x) / HEAT).softmax(1) for n in networks) / 2
    torch.testing.assert_close(told, wanted)
    assert part.told(shape, []) is None


@pytest.mark.slow
def test_a_discovery_of_classes_says_it_beside_its_rank() -> None:
    task = tasks.mixture_classes(1, d_in=9, num_classes=3, num_samples=160, latent_dim=4, overlap=0.05, seed=4)
    assert task.y is not None
    limits = Limits(evaluations=30)
    options: dict[str, Any] = {"loss": "cross_entropy", "ridge": [1e-2], "starts": 1, "workers": 1, "limits": limits}
    x = np.column_stack([task.x, np.ones(len(task.x))])
    with pytest.warns(DataWarning, match="constant input column") as said:
        found = isthmus.discover(x, task.y.argmax(1), **options)
    assert len(said) == 1  # however often its rows are split, and whatever is done about doubts
    ranks = [int(found.readings[f"accuracy_rank{end}"] or 0) for end in ("_low", "", "_high")]
    assert ranks == sorted(ranks)
    assert 0.5 < found.scree["fold_accuracy"].values.max() <= 1
    assert (found.scree["fold_accuracy_error"].values[:1] < 0.05).all()
    line = next(line.text for line in verdict_of(found).lines if line.label == "For accuracy")
    assert line.startswith(f"Through {ranks[1]} dimension")
    with pytest.warns(DataWarning, match="constant input column"):
        quick = isthmus.discover(x, task.y.argmax(1), effort="quick", **options)
    assert "accuracy_rank" not in quick.readings
    assert quick.rank == found.rank or found.remedies
