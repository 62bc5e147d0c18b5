"""Snapshots of the Kuramoto-Sivashinsky equation. The steps that make them: `exponential_steps`.

The Gaussian control with the same covariance is in `surrogate`.
"""

import math
from dataclasses import replace

import numpy as np
from jaxtyping import Complex128, Float64

from isthmus.tasks.exponential_steps import Etdrk4, Modes, snapshots_kept
from isthmus.tasks.task import Kind, Task

LENGTH = 22.0
KNOWN = {22.0: 8, 44.0: 18, 66.0: 28}  # dimension of the manifold by length; computed by benchmarks/tangent_angles.py
GRID_POINTS = 64
TIME_STEP = 0.25
STEPS_PER_SNAPSHOT = 2
TRANSIENT_STEPS = 4000
NUM_SNAPSHOTS = 40_000


def solver_of(*, length: float, grid_points: int, time_step: float) -> Etdrk4:
    """Steps of u_t = -u u_x - u_xx - u_xxxx on a circle; modes from a third of the grid up are removed from u^2.

    Args:
        length: circumference L of the circle.
        grid_points: number of equidistant points, even.
        time_step: step h.
    """
    k = 2 * math.pi / length * np.arange(grid_points // 2 + 1)
    derivative = -0.5j * k * (np.arange(len(k)) < grid_points // 3)

    def nonlinear(v: Modes) -> Modes:
        """Fourier modes of -(u^2)_x / 2."""
        return derivative * np.fft.rfft(np.fft.irfft(v, grid_points) ** 2)

    return _of_mean_zero(Etdrk4.build(k**2 - k**4, nonlinear, time_step=time_step))


def tangent_solver(*, length: float, grid_points: int, time_step: float) -> Etdrk4:
    """The same for a state, the first row, and disturbances of it: -(u w)_x for each."""
    k = 2 * math.pi / length * np.arange(grid_points // 2 + 1)
    derivative = -1j * k * (np.arange(len(k)) < grid_points // 3)

    def nonlinear(v: Modes) -> Modes:
        u = np.fft.irfft(v, grid_points)
        products = u[:1] * u
        products[0] /= 2
        return derivative * np.fft.rfft(products)

    return _of_mean_zero(Etdrk4.build(k**2 - k**4, nonlinear, time_step=time_step))


def _of_mean_zero(solver: Etdrk4) -> Etdrk4:
    """Without the rounding of the mean, which is conserved."""
    return replace(solver, whole=np.concatenate([[0.0], solver.whole[1:]]))


def evolve(
    u: Float64[np.ndarray, " points"], *, length: float = LENGTH, time_step: float = TIME_STEP, num_steps: int
) -> Float64[np.ndarray, " points"]:
    """The state `num_steps` time steps after the state `u` on an even number of grid points."""
    solver = solver_of(length=length, grid_points=len(u), time_step=time_step)
    return np.fft.irfft(solver.led(np.fft.rfft(u), num_steps), len(u))


def kuramoto_sivashinsky(
    *, num_samples: int = 2500, seed: int = 0, length: float = LENGTH, num_snapshots: int = NUM_SNAPSHOTS
) -> Task:
    """Autoencoding of Kuramoto-Sivashinsky snapshots, u_t = -u u_x - u_xx - u_xxxx on a circle: physics of rank 8.

    64 grid points, time step 1/4, a snapshot every second step after a transient of 1000 time units. At L = 22 the
    attractor lies in a manifold of 8 dimensions; a linear reconstruction to 99, 99.9 and 99.99 % of the variance needs
    10, 13 and 16. At L = 44 and 66 it has 18 and 28, by the angles between tangent subspaces.

    Args:
        num_samples: number of rows, spread evenly over the trajectory: with the default, neighbours are 8 time units
            apart, so that held-out blocks leak little.
        seed: of the small noise on the initial state.
        length: circumference L; the rank is known at 22, 44 and 66 only.
        num_snapshots: number of snapshots the trajectory holds; fewer is faster and covers the attractor less.

    Returns:
        Ordered task, rows in order of time.

    Raises:
        ValueError: `num_samples` is not between 1 and `num_snapshots`, or `length` is not positive.

    Cost: 4 s for the 40,000 snapshots of the default. Source: Ding, Chate, Cvitanovic, Siminos and Takeuchi 2016
    (dimension 8 at L = 22).

    >>> tasks.kuramoto_sivashinsky(num_samples=20, num_snapshots=40).x.shape
    (20, 64)
    """
    call = "kuramoto_sivashinsky"
    kept = snapshots_kept(call, num_samples=num_samples, num_snapshots=num_snapshots, length=length)
    solver = solver_of(length=length, grid_points=GRID_POINTS, time_step=TIME_STEP)
    modes = solver.trajectory(_initial_modes(seed), TRANSIENT_STEPS + STEPS_PER_SNAPSHOT * kept)
    position = length / GRID_POINTS * np.arange(GRID_POINTS)
    return Task(
        np.fft.irfft(modes, GRID_POINTS),
        None,
        KNOWN.get(length),
        f"kuramoto_sivashinsky(length={length:g}, num_samples={num_samples}, seed={seed})",
        Kind.AUTOENCODING,
        ordered=True,
        x_names=tuple(f"u({p:.3g})" for p in position),
    )


def _initial_modes(seed: int) -> Complex128[np.ndarray, " modes"]:
    angle = 2 * math.pi / GRID_POINTS * np.arange(GRID_POINTS)
    noise = 0.01 * np.random.default_rng(seed).standard_normal(GRID_POINTS)
    u = 0.1 * np.cos(angle) * (1 + np.sin(angle)) + noise
    return np.fft.rfft(u - u.mean())
