"""The Kuramoto-Sivashinsky solver: its order, its conserved mean, the spread of its snapshots and their covariance."""

from dataclasses import replace

import numpy as np
import pytest

from isthmus import tasks
from isthmus.tasks.kuramoto_sivashinsky import GRID_POINTS, LENGTH, evolve, solver_of, tangent_solver

POSITION = LENGTH / GRID_POINTS * np.arange(GRID_POINTS)


@pytest.fixture(scope="module")
def task() -> tasks.Task:
    """A trajectory of a tenth of the default length."""
    return tasks.kuramoto_sivashinsky(num_samples=1000, num_snapshots=4000)


def components_needed(x: np.ndarray, unexplained: float) -> int:
    """Least number of principal components that leaves at most this fraction of the variance."""
    variance = np.linalg.svd(x - x.mean(0), compute_uv=False) ** 2
    left = 1 - np.cumsum(variance) / variance.sum()
    return int((left > unexplained).sum()) + 1


def observed_orders(*, broken: bool) -> np.ndarray:
    """Orders of convergence at time 4 from a smooth state, each from two successive halvings of the step."""
    u = np.cos(2 * np.pi * POSITION / LENGTH) * (1 + np.sin(2 * np.pi * POSITION / LENGTH))
    ends: list[np.ndarray] = []
    for num_steps in (256, 512, 1024, 2048):
        solver = solver_of(length=LENGTH, grid_points=GRID_POINTS, time_step=4 / num_steps)
        if broken:
            solver = replace(solver, update=solver.update[::-1])
        v = np.fft.rfft(u)
        for _ in range(num_steps):
            v = solver.step(v)
        ends.append(np.fft.irfft(v, GRID_POINTS))
    changes = np.abs(np.diff(ends, axis=0)).max(1)
    return np.log2(changes[:-1] / changes[1:])


@pytest.mark.slow
def test_the_solver_is_of_fourth_order() -> None:
    # stiff terms hold the order near 3 at coarser steps; it reaches 4 from 1/64 on
    assert np.abs(observed_orders(broken=False) - 4).max() < 0.25
    # control: the same weights in reversed order
    assert observed_orders(broken=True).max() < 3


def test_linear_waves_grow_at_their_exact_rate() -> None:
    k = 2 * np.pi / LENGTH * 3
    u = 1e-9 * np.cos(k * POSITION)
    expected = u * np.exp(k**2 - k**4)
    wrong = u * np.exp(k**2 + k**4)
    after = evolve(u, num_steps=4)  # time 1; the nonlinear part is of relative size 1e-9
    assert np.abs(after - expected).max() < 1e-7 * np.abs(expected).max()
    assert np.abs(after - wrong).max() > 0.1 * np.abs(wrong).max()


@pytest.mark.slow
def test_the_mean_is_conserved_and_the_energy_is_that_of_the_attractor(task: tasks.Task) -> None:
    assert task.x.shape == (1000, GRID_POINTS)
    assert np.abs(task.x.mean(1)).max() < 1e-12
    energy = (task.x**2).mean(1)
    assert 0.2 < energy.min() < energy.max() < 4
    assert energy.mean() == pytest.approx(1.4, rel=0.1)
    assert np.abs(task.x).max() < 4


@pytest.mark.slow
def test_a_linear_reconstruction_needs_more_than_the_rank(task: tasks.Task) -> None:
    assert task.true_rank == 8
    assert 12 <= components_needed(task.x, 1e-3) <= 14
    # control: eight components lose more than one per cent
    assert components_needed(task.x, 1e-2) > 8


@pytest.mark.slow
def test_rows_are_spread_over_a_trajectory_that_the_seed_alone_decides() -> None:
    every = tasks.kuramoto_sivashinsky(num_samples=41, num_snapshots=41)
    fifth = tasks.kuramoto_sivashinsky(num_samples=9, num_snapshots=41)
    np.testing.assert_array_equal(fifth.x, every.x[::5])
    assert fifth.ordered
    assert fifth.y is None
    other = tasks.kuramoto_sivashinsky(num_samples=5, num_snapshots=5, seed=1)
    assert np.abs(every.x[:5] - other.x).max() > 0.1


@pytest.mark.slow
def test_the_rank_is_claimed_at_its_own_length_only() -> None:
    assert tasks.kuramoto_sivashinsky(num_samples=2, num_snapshots=2, length=36.0).true_rank is None


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"num_samples": 0}, "1 <= num_samples"),
        ({"num_samples": 50_000}, "num_samples <= num_snapshots"),
        ({"length": -1.0}, "positive length"),
    ],
)
def test_impossible_trajectories_are_refused(arguments: dict[str, int], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        tasks.kuramoto_sivashinsky(**arguments)


def test_disturbances_are_led_along_by_the_derivative_of_a_step() -> None:
    rng = np.random.default_rng(2)
    small = 1e-6
    state = np.fft.rfft(
        evolve(np.cos(2 * np.pi * POSITION / LENGTH) + 0.1 * rng.normal(size=GRID_POINTS), num_steps=99)
    )
    others = np.fft.rfft(rng.normal(size=(3, GRID_POINTS)))
    others[:, 0] = 0
    led = tangent_solver(length=LENGTH, grid_points=GRID_POINTS, time_step=0.25).step(
        np.concatenate([state[None], others])
    )
    step = solver_of(length=LENGTH, grid_points=GRID_POINTS, time_step=0.25).step
    expected = np.stack([(step(state + small * w) - step(state - small * w)) / (2 * small) for w in others])
    assert np.abs(led[0] - step(state)).max() < 1e-12 * np.abs(state).max()
    assert np.abs(led[1:] - expected).max() < 1e-8 * np.abs(expected).max()
    assert np.abs(others - expected).max() > 0.1 * np.abs(expected).max(), "control: nothing was led anywhere"
