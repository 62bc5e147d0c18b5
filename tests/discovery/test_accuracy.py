"""The rank of accuracy: its rule on rows whose answers are known, and a discovery of classes that says it."""

from typing import Any

import numpy as np
import pytest

import isthmus
from isthmus import Limits, tasks
from isthmus.discovery.held_out_once import AccuracyRank, read
from isthmus.errors import DataWarning
from isthmus.reports import verdict_of

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


@pytest.mark.parametrize(("lost", "won", "rank"), [(9, 6, 1), (30, 25, 1), (12, 5, 2), (1, 0, 2)])
def test_one_standard_error_of_the_difference_is_allowed(lost: int, won: int, rank: int) -> None:
    # of n rows l are lost and w won: the mean is (l - w) / n, its error sqrt(l + w) / n
    right = told(0.5, 0.9, 0.9)
    right[1, :lost] = 0
    right[1, 399 : 399 - won : -1] = 1
    assert read_alone(right).rank == rank


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


def test_chance_differences_give_an_interval() -> None:
    right = np.stack([RNG.random(200) < p for p in (0.3, 0.55, 0.62, 0.64)]).astype(float)
    found = read_alone(right)
    assert found.low <= found.rank <= found.high
    assert found.low < found.high


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
