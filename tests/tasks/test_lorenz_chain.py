"""A ring of Lorenz systems: one alone is that of 1963, and its rows fill all columns."""

import numpy as np
import pytest

from isthmus import tasks
from isthmus.tasks.lorenz_chain import BETA, RHO, velocity


def test_its_fixed_points_are_those_of_one_system() -> None:
    """x = y = +-sqrt(beta (rho - 1)), z = rho - 1, the same in all systems, so that the coupling does nothing."""
    root = np.sqrt(BETA * (RHO - 1))
    rest = np.array([root, root, RHO - 1])[:, None] * np.ones((3, 5))
    assert np.abs(velocity(rest, 3.0)).max() < 1e-12
    rest[0, 2] += 0.1
    assert np.abs(velocity(rest, 3.0)[0] - velocity(rest, 0.0)[0]).tolist() == pytest.approx([0, 0.3, 0.6, 0.3, 0])


def test_its_volume_shrinks_at_the_known_rate() -> None:
    """The trace of the Jacobian: -(sigma + 1 + beta) for each system, and -2 c for the coupling."""
    rng = np.random.default_rng(0)
    state, trace, small = rng.normal(size=(3, 4)), 0.0, 1e-6
    for place in np.ndindex(3, 4):
        step = np.zeros((3, 4))
        step[place] = small
        trace += (velocity(state + step, 2.0) - velocity(state - step, 2.0))[place] / (2 * small)
    assert trace == pytest.approx(-4 * (10 + 1 + BETA) - 4 * 2 * 2.0, rel=1e-6)


@pytest.mark.slow
def test_rows_fill_all_columns_and_claim_no_rank() -> None:
    task = tasks.lorenz_chain(num_systems=3, num_samples=200, seed=1)
    assert task.x.shape == (200, 9)
    assert task.x_names == ("x1", "y1", "z1", "x2", "y2", "z2", "x3", "y3", "z3")
    assert task.true_rank is None
    share = np.linalg.svd(task.x - task.x.mean(0), compute_uv=False) ** 2
    assert share[-1] / share.sum() > 1e-3
    assert np.array_equal(task.x, tasks.lorenz_chain(num_systems=3, num_samples=200, seed=1).x)


@pytest.mark.parametrize("bad", [{"num_systems": 0}, {"coupling": -1.0}, {"coupling": float("nan")}])
def test_what_cannot_be_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="needs a system"):
        tasks.lorenz_chain(**bad)  # pyright: ignore[reportArgumentType]
