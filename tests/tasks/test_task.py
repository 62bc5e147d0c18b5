"""A task checks itself when it is built."""

from typing import Any

import numpy as np
import pytest

from isthmus import tasks


def build(**changes: Any) -> tasks.Task:
    fields: dict[str, Any] = {"x": np.ones((4, 2)), "y": np.ones((4, 1)), "true_rank": 1, "source": "test"}
    return tasks.Task(**(fields | changes))


def test_autoencoding_has_its_input_as_target() -> None:
    task = build(y=None, kind=tasks.Kind.AUTOENCODING)
    assert task.target is task.x
    assert build().target is not None
    assert task.num_samples == 4


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"y": None}, "exactly when autoencoding"),
        ({"kind": tasks.Kind.AUTOENCODING}, "exactly when autoencoding"),
        ({"y": np.ones((3, 1))}, "got 4 of x and 3 of y"),
        ({"x_names": ("a",)}, "as many x_names as columns"),
        ({"y_names": ("a", "b")}, "as many y_names as columns"),
        ({"jacobian_rank": 2}, "jacobian_rank <= true_rank <= flat_rank"),
        ({"flat_rank": 0}, "jacobian_rank <= true_rank <= flat_rank"),
        ({"directions": np.ones((1, 3))}, r"directions of 2 columns, got \(1, 3\)"),
        ({"directions": np.ones((0, 2))}, r"true_rank = 1 directions of 2 columns, got \(0, 2\)"),
        ({"modes": np.ones((1, 2))}, r"true_rank = 1 modes of 1 columns, got \(1, 2\)"),
    ],
)
def test_contradictions_are_refused(changes: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        build(**changes)


def test_known_directions_and_modes_are_counted() -> None:
    task = build(directions=np.eye(2), modes=np.ones((1, 1)))
    assert (task.index_rank, task.mode_rank) == (2, 1)
    assert (build().index_rank, build().mode_rank) == (None, None)


def test_digits_autoencode_unless_asked_for_classes() -> None:
    task, classes = tasks.digits(), tasks.digits(classes=True)
    assert task.x.shape == (1797, 64)
    assert task.kind is tasks.Kind.AUTOENCODING
    assert (task.x.min(), task.x.max()) == (0, 1)
    assert classes.y is not None
    assert classes.y.shape == (1797, 10)
    assert classes.y_names == tuple("0123456789")
    np.testing.assert_array_equal(classes.y.sum(1), 1)
