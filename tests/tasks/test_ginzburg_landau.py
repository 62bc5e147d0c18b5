"""The Ginzburg-Landau equation: a plane wave that is known, disturbances, and what its snapshots are."""

import numpy as np
import pytest

from isthmus import tasks
from isthmus.tasks.ginzburg_landau import DISPERSION, GRID_POINTS, TWIST, initial_modes, solver_of, tangent_solver

LENGTH = 20.0


def test_a_plane_wave_turns_at_its_exact_rate() -> None:
    """A = F exp(i (q x - w t)) with F^2 = 1 - q^2 and w = c + (b - c) q^2."""
    q = 2 * np.pi / LENGTH * 2
    x = LENGTH / GRID_POINTS * np.arange(GRID_POINTS)
    rate = TWIST + (DISPERSION - TWIST) * q**2
    wave = np.sqrt(1 - q**2) * np.exp(1j * q * x)
    after = np.fft.ifft(solver_of(length=LENGTH, time_step=0.01).led(np.fft.fft(wave), 100))
    assert np.abs(after - wave * np.exp(-1j * rate)).max() < 1e-7
    assert np.abs(after - wave * np.exp(1j * rate)).max() > 0.1, "control: the other way round"


def test_disturbances_are_led_along_by_the_derivative_of_a_step() -> None:
    rng = np.random.default_rng(2)
    small = 1e-6
    state = solver_of(length=LENGTH).led(initial_modes(1), 400)
    others = np.fft.fft(rng.normal(size=(3, GRID_POINTS)) + 1j * rng.normal(size=(3, GRID_POINTS)))
    led = tangent_solver(length=LENGTH).step(np.concatenate([state[None], others]))
    step = solver_of(length=LENGTH).step
    expected = np.stack([(step(state + small * w) - step(state - small * w)) / (2 * small) for w in others])
    assert np.abs(led[0] - step(state)).max() < 1e-12 * np.abs(state).max()
    assert np.abs(led[1:] - expected).max() < 1e-7 * np.abs(expected).max()
    assert np.abs(others - expected).max() > 0.01 * np.abs(expected).max(), "control: nothing was led anywhere"


@pytest.mark.slow
def test_snapshots_are_ordered_and_their_seed_alone_decides() -> None:
    few = {"num_samples": 3, "num_snapshots": 3}
    first, again = tasks.ginzburg_landau(**few, seed=4), tasks.ginzburg_landau(**few, seed=4)
    assert first.x.shape == (3, 2 * GRID_POINTS)
    assert first.ordered
    assert first.true_rank is None
    assert np.array_equal(first.x, again.x)
    assert not np.array_equal(first.x, tasks.ginzburg_landau(**few, seed=5).x)


def test_a_length_and_a_number_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="positive length"):
        tasks.ginzburg_landau(length=0.0)
    with pytest.raises(ValueError, match="1 <= num_samples <= num_snapshots"):
        tasks.ginzburg_landau(num_samples=5, num_snapshots=4)
