"""The X-cross has Jacobian rank 1 and bottleneck rank 2; the S-shaped classes hang on one curved coordinate."""

from collections.abc import Callable

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from isthmus import tasks
from isthmus.tasks.planar import x_cross_map

Map = Callable[[np.ndarray], np.ndarray]


def numeric_jacobian(f: Map, x: np.ndarray, step: float = 1e-7) -> np.ndarray:
    """Exact up to rounding where f is linear within a step."""
    shifts = step * np.eye(2)
    return np.stack([(f(x + s) - f(x - s)) / (2 * step) for s in shifts], axis=2)


def cross_distances(f: Map) -> list[float]:
    """Betweenness (FC-06): distance of f on a path that joins two tips of the cross to f at the third tip."""
    tips = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0]])
    t = np.linspace(0, 1, 2001)[:, None]
    distances: list[float] = []
    for i in range(3):
        first, second = np.delete(tips, i, axis=0)
        path = np.concatenate([first * (1 - t), second * t])  # through the centre
        distances.append(float(np.linalg.norm(f(path) - f(tips[i : i + 1]), axis=1).min()))
    return distances


@pytest.mark.theorem("FC-05")
def test_the_jacobian_of_the_x_cross_has_rank_one() -> None:
    task = tasks.x_cross(num_samples=500)
    off_kinks = task.x[(np.abs(np.abs(task.x[:, 0]) - np.abs(task.x[:, 1])) > 1e-6) & (np.abs(task.x).min(1) > 1e-6)]
    jacobians = numeric_jacobian(x_cross_map, off_kinks)
    assert set(np.linalg.matrix_rank(jacobians, tol=1e-6).tolist()) == {1} == {task.jacobian_rank}
    identity = numeric_jacobian(lambda x: x, off_kinks)
    assert set(np.linalg.matrix_rank(identity, tol=1e-6).tolist()) == {2}


@pytest.mark.theorem("FC-05", "FC-06")
def test_the_x_cross_does_not_factor_through_a_line() -> None:
    assert min(cross_distances(x_cross_map)) == pytest.approx(2**0.5)
    assert min(cross_distances(lambda x: x[:, :1] + 2 * x[:, 1:])) < 1e-2  # control: this one does
    assert tasks.x_cross().true_rank == 2


@pytest.mark.theorem("FC-05")
def test_the_x_cross_is_continuous_at_the_axes() -> None:
    above, below = x_cross_map(np.array([[1.0, 1e-9], [1.0, -1e-9]]))
    assert np.abs(above - below).max() < 1e-8


def test_one_curved_coordinate_tells_the_class_and_no_straight_one_does() -> None:
    task = tasks.inverted_s_classes(num_samples=800)
    label = task.target.argmax(1)
    hidden = task.x[:, 0] + 1.6 * np.sin(np.pi * task.x[:, 1] / 2)
    np.testing.assert_array_equal(np.round(hidden), label)
    assert LogisticRegression().fit(task.x, label).score(task.x, label) < 0.8
    assert task.kind is tasks.Kind.CLASSIFICATION
    assert task.true_rank == 1


def test_impossible_classes_are_refused() -> None:
    with pytest.raises(ValueError, match="2 <= num_classes"):
        tasks.inverted_s_classes(num_classes=1)
