"""Snapshots of the complex Ginzburg-Landau equation. The steps that make them: `exponential_steps`."""

import math

import numpy as np

from isthmus.tasks.exponential_steps import Etdrk4, Modes, snapshots_kept
from isthmus.tasks.task import Kind, Task

GRID_POINTS = 64
TIME_STEP = 0.05
STEPS_PER_SNAPSHOT = 10
TRANSIENT_STEPS = 4_000
DISPERSION, TWIST = 2.0, -2.0  # 1 + b c < 0: plane waves are unstable, the phase is turbulent


def linear_rates(length: float, grid_points: int) -> np.ndarray:
    """Of each Fourier mode: 1 - (1 + i b) k^2."""
    k = 2 * math.pi / length * np.fft.fftfreq(grid_points, 1 / grid_points)
    return 1 - (1 + 1j * DISPERSION) * k**2


def _kept(grid_points: int) -> np.ndarray:
    """Modes that a cubic product of kept ones cannot reach by another name: the lower half."""
    return np.abs(np.fft.fftfreq(grid_points, 1 / grid_points)) < grid_points / 4


def solver_of(*, length: float, grid_points: int = GRID_POINTS, time_step: float = TIME_STEP) -> Etdrk4:
    """Steps of A_t = A + (1 + i b) A_xx - (1 + i c) |A|^2 A on a circle, in Fourier space."""
    kept = _kept(grid_points)

    def nonlinear(v: Modes) -> Modes:
        a = np.fft.ifft(v)
        return -(1 + 1j * TWIST) * kept * np.fft.fft(np.abs(a) ** 2 * a)

    return Etdrk4.build(linear_rates(length, grid_points), nonlinear, time_step=time_step)


def tangent_solver(*, length: float, grid_points: int = GRID_POINTS, time_step: float = TIME_STEP) -> Etdrk4:
    """The same for a state, the first row, and disturbances of it: 2 |A|^2 w + A^2 w* for each."""
    kept = _kept(grid_points)

    def nonlinear(v: Modes) -> Modes:
        w = np.fft.ifft(v)
        a = w[:1]
        products = 2 * np.abs(a) ** 2 * w + a**2 * w.conj()
        products[0] /= 3
        return -(1 + 1j * TWIST) * kept * np.fft.fft(products)

    return Etdrk4.build(linear_rates(length, grid_points), nonlinear, time_step=time_step)


def ginzburg_landau(
    *, num_samples: int = 2500, length: float = 20.0, seed: int = 0, num_snapshots: int = 20_000
) -> Task:
    """Autoencoding of Ginzburg-Landau snapshots, A_t = A + (1 + 2i) A_xx - (1 - 2i) |A|^2 A on a circle.

    The columns are the real and imaginary parts at 64 points, time step 1/20, a snapshot every half unit of time after
    a transient of 200. No rank is claimed: `benchmarks/tangent_angles.py` measures the dimension of the manifold.

    Args:
        num_samples: number of rows, spread evenly over the trajectory.
        length: circumference of the circle.
        seed: of the small noise on the initial state.
        num_snapshots: number of snapshots the trajectory holds.

    Returns:
        Ordered task, rows in order of time.

    Raises:
        ValueError: `num_samples` is not between 1 and `num_snapshots`, or `length` is not positive.

    Source: Aranson and Kramer 2002, b = 2 and c = -2.

    >>> tasks.ginzburg_landau(num_samples=20, num_snapshots=40).x.shape  # doctest: +SKIP
    (20, 128)
    """
    call = "ginzburg_landau"
    kept = snapshots_kept(call, num_samples=num_samples, num_snapshots=num_snapshots, length=length)
    modes = solver_of(length=length).trajectory(initial_modes(seed), TRANSIENT_STEPS + STEPS_PER_SNAPSHOT * kept)
    a = np.fft.ifft(modes)
    position = length / GRID_POINTS * np.arange(GRID_POINTS)
    return Task(
        np.concatenate([a.real, a.imag], axis=1),
        None,
        None,
        f"ginzburg_landau(length={length:g}, num_samples={num_samples}, seed={seed})",
        Kind.AUTOENCODING,
        ordered=True,
        x_names=tuple(f"{part}({p:.3g})" for part in ("re", "im") for p in position),
    )


def initial_modes(seed: int, grid_points: int = GRID_POINTS) -> Modes:
    """Of a uniform state with small noise, without the modes that are never excited."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal(grid_points) + 1j * rng.standard_normal(grid_points)
    return np.fft.fft(1 + 0.1 * noise) * _kept(grid_points)
