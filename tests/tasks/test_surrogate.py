"""The covariance surrogate keeps the first two moments and drops the rest."""

import numpy as np
import pytest

from isthmus import tasks


def circle(n: int) -> np.ndarray:
    t = np.random.default_rng(0).uniform(0, 2 * np.pi, n)
    return np.stack([3 + np.cos(t), np.sin(t), 2 * np.cos(t)], 1)


def moment_defect(x: np.ndarray, z: np.ndarray) -> float:
    """Largest difference of means and covariances in units of their sampling error (up to a factor of about one)."""
    scale = x.std(0)
    means = np.abs(x.mean(0) - z.mean(0)) / scale
    covariances = np.abs(np.cov(x.T) - np.cov(z.T)) / np.outer(scale, scale)
    return float(np.sqrt(len(x)) * max(means.max(), covariances.max()))


def test_mean_and_covariance_are_kept_within_sampling_error() -> None:
    x = circle(20_000)
    surrogate = tasks.covariance_surrogate(x, seed=1)
    assert moment_defect(x, surrogate.x) < 5 * np.sqrt(2)  # five standard errors of a variance
    assert moment_defect(x, 1.1 * surrogate.x) > 5 * np.sqrt(2)
    assert np.linalg.matrix_rank(surrogate.x - surrogate.x.mean(0), tol=1e-6) == 2


def test_the_circle_is_gone() -> None:
    x = circle(2000)
    z = tasks.covariance_surrogate(x).x
    radius = [np.hypot(v[:, 0] - 3, v[:, 1]) for v in (x, z)]
    assert radius[0].std() < 1e-12
    assert radius[1].std() > 0.1


def test_targets_are_drawn_jointly() -> None:
    x = circle(20_000)
    y = x[:, :1] - 2 * x[:, 1:2]
    surrogate = tasks.covariance_surrogate(x, y=y)
    assert surrogate.y is not None
    np.testing.assert_allclose(surrogate.y, surrogate.x[:, :1] - 2 * surrogate.x[:, 1:2], atol=1e-12)


def test_same_seed_same_bits() -> None:
    x = circle(50)
    np.testing.assert_array_equal(tasks.covariance_surrogate(x, 3).x, tasks.covariance_surrogate(x, 3).x)
    assert not np.array_equal(tasks.covariance_surrogate(x, 3).x, tasks.covariance_surrogate(x, 4).x)


def test_one_row_has_no_covariance() -> None:
    with pytest.raises(ValueError, match="at least 2 rows"):
        tasks.covariance_surrogate(np.ones((1, 3)))


def test_targets_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="50 of x and 49 of y"):
        tasks.covariance_surrogate(circle(50), y=np.ones((49, 1)))
