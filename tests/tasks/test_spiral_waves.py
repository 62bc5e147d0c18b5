"""A turning spiral: its pictures lie on a closed curve."""

import numpy as np
import pytest

from isthmus import tasks


@pytest.mark.slow
def test_pictures_lie_on_a_closed_curve_that_is_passed_evenly() -> None:
    task = tasks.spiral_waves(side=8, num_samples=300, noise=0.0, seed=1)
    assert (task.true_rank, task.jacobian_rank, task.x.shape) == (2, 1, (300, 64))
    centred = task.x - task.x.mean(0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    assert s[1] ** 2 > 0.3 * (s**2).sum(), "control: a motion to and fro would lie on a line"
    radius = np.hypot(u[:, 0] * s[0], u[:, 1] * s[1])
    assert radius.min() > 0.8 * radius.max(), "nothing lies inside of the curve"
    angles = np.sort(np.arctan2(u[:, 1], u[:, 0]))
    assert np.diff(angles).max() < 0.3, "and it is closed"


@pytest.mark.slow
def test_noise_and_moments_are_of_the_seed() -> None:
    few = {"side": 4, "num_samples": 20}
    first = tasks.spiral_waves(**few, noise=0.1, seed=2).x
    assert np.array_equal(first, tasks.spiral_waves(**few, noise=0.1, seed=2).x)
    assert (first - tasks.spiral_waves(**few, noise=0.0, seed=2).x).std() == pytest.approx(0.1, rel=0.3)


def test_a_side_that_cells_do_not_fill_is_refused() -> None:
    with pytest.raises(ValueError, match="4, 8, 16 or 32"):
        tasks.spiral_waves(side=9)
