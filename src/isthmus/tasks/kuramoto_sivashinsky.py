"""Snapshots of the Kuramoto-Sivashinsky equation and the solver that makes them. Pictures of them: `plots`.

The Gaussian control with the same covariance is in `surrogate`.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Complex128, Float64

from isthmus.tasks.task import Kind, Task

LENGTH = 22.0
GRID_POINTS = 64
TIME_STEP = 0.25
STEPS_PER_SNAPSHOT = 2
TRANSIENT_STEPS = 4000
NUM_SNAPSHOTS = 40_000
CONTOUR_POINTS = 32


@dataclass(frozen=True, slots=True, eq=False)
class Etdrk4:
    """Fourth-order exponential Runge-Kutta step for u_t = -u u_x - u_xx - u_xxxx on a circle, in Fourier space.

    The linear part is solved exactly; the phi functions are means over a circle around each eigenvalue, since their
    closed forms cancel catastrophically near zero. Modes from a third of the grid up are removed from u^2 (dealiasing).

    Args:
        length: circumference L of the circle.
        grid_points: number of equidistant points, even.
        time_step: step h.

    Source: Cox and Matthews 2002; contour means of Kassam and Trefethen 2005.
    """

    length: float
    grid_points: int
    time_step: float
    whole: Float64[np.ndarray, " modes"]
    half: Float64[np.ndarray, " modes"]
    stage: Float64[np.ndarray, " modes"]
    update: tuple[Float64[np.ndarray, " modes"], Float64[np.ndarray, " modes"], Float64[np.ndarray, " modes"]]
    derivative: Complex128[np.ndarray, " modes"]

    @classmethod
    def build(cls, *, length: float, grid_points: int, time_step: float) -> "Etdrk4":
        """The step's coefficients, one per Fourier mode."""
        h = time_step
        k = 2 * math.pi / length * np.arange(grid_points // 2 + 1)
        hL = h * (k**2 - k**4)
        circle = np.exp(1j * math.pi * (np.arange(CONTOUR_POINTS) + 0.5) / CONTOUR_POINTS)
        w = hL[:, None] + circle
        e = np.exp(w)
        phi = [
            h * np.mean(p / w**3, axis=1).real
            for p in (-4 - w + e * (4 - 3 * w + w**2), 2 + w + e * (w - 2), -4 - 3 * w - w**2 + e * (4 - w))
        ]
        stage = h * np.mean((np.exp(w / 2) - 1) / w, axis=1).real
        kept = np.arange(len(k)) < grid_points // 3
        return cls(
            length, grid_points, h, np.exp(hL), np.exp(hL / 2), stage, (phi[0], phi[1], phi[2]), -0.5j * k * kept
        )

    def nonlinear(self, v: Complex128[np.ndarray, " modes"]) -> Complex128[np.ndarray, " modes"]:
        """Fourier modes of -(u^2)_x / 2."""
        return self.derivative * np.fft.rfft(np.fft.irfft(v, self.grid_points) ** 2)

    def step(self, v: Complex128[np.ndarray, " modes"]) -> Complex128[np.ndarray, " modes"]:
        """The modes one time step later; the conserved mean stays zero."""
        first = self.nonlinear(v)
        a = self.half * v + self.stage * first
        second = self.nonlinear(a)
        third = self.nonlinear(self.half * v + self.stage * second)
        fourth = self.nonlinear(self.half * a + self.stage * (2 * third - first))
        f1, f2, f3 = self.update
        after = self.whole * v + f1 * first + 2 * f2 * (second + third) + f3 * fourth
        after[0] = 0.0
        return after


def evolve(
    u: Float64[np.ndarray, " points"], *, length: float = LENGTH, time_step: float = TIME_STEP, num_steps: int
) -> Float64[np.ndarray, " points"]:
    """The state `num_steps` time steps after the state `u` on an even number of grid points."""
    solver = Etdrk4.build(length=length, grid_points=len(u), time_step=time_step)
    v = np.fft.rfft(u)
    for _ in range(num_steps):
        v = solver.step(v)
    return np.fft.irfft(v, len(u))


def kuramoto_sivashinsky(
    *, num_samples: int = 2500, seed: int = 0, length: float = LENGTH, num_snapshots: int = NUM_SNAPSHOTS
) -> Task:
    """Autoencoding of Kuramoto-Sivashinsky snapshots, u_t = -u u_x - u_xx - u_xxxx on a circle: physics of rank 8.

    64 grid points, time step 1/4, a snapshot every second step after a transient of 1000 time units. At L = 22 the
    attractor lies in a manifold of 8 dimensions; a linear reconstruction to 99, 99.9 and 99.99 % of the variance needs
    10, 13 and 16.

    Args:
        num_samples: number of rows, spread evenly over the trajectory: with the default, neighbours are 8 time units
            apart, so that held-out blocks leak little.
        seed: of the small noise on the initial state.
        length: circumference L; the rank is known at 22 only.
        num_snapshots: number of snapshots the trajectory holds; fewer is faster and covers the attractor less.

    Returns:
        Ordered task, rows in order of time.

    Raises:
        ValueError: `num_samples` is not between 1 and `num_snapshots`, or `length` is not positive.

    Cost: 4 s for the 40,000 snapshots of the default. Source: Ding, Chate, Cvitanovic, Siminos and Takeuchi 2016
    (dimension 8 at L = 22).
    """
    if not 1 <= num_samples <= num_snapshots:
        raise ValueError(
            f"kuramoto_sivashinsky(num_samples={num_samples}, num_snapshots={num_snapshots}): "
            "needs 1 <= num_samples <= num_snapshots."
        )
    if not 0 < length < math.inf:
        raise ValueError(f"kuramoto_sivashinsky(length={length}): needs a positive length; 22 has rank 8.")
    kept = np.linspace(0, num_snapshots - 1, num_samples).round().astype(int)
    solver = Etdrk4.build(length=length, grid_points=GRID_POINTS, time_step=TIME_STEP)
    modes = _trajectory(solver, _initial_modes(seed), TRANSIENT_STEPS + STEPS_PER_SNAPSHOT * kept)
    position = length / GRID_POINTS * np.arange(GRID_POINTS)
    return Task(
        np.fft.irfft(modes, GRID_POINTS),
        None,
        8 if length == LENGTH else None,
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


def _trajectory(
    solver: Etdrk4, v: Complex128[np.ndarray, " modes"], kept_steps: np.ndarray
) -> Complex128[np.ndarray, "samples modes"]:
    """The modes after each of the increasing step numbers."""
    kept = np.empty((len(kept_steps), len(v)), dtype=np.complex128)
    done = 0
    for row, target in enumerate(kept_steps.tolist()):
        for _ in range(target - done):
            v = solver.step(v)
        done = target
        kept[row] = v
    return kept
