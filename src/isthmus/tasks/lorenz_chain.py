"""A chain of coupled Lorenz systems, observed in many columns: chaos that no manifold of few dimensions holds."""

import numpy as np
from jaxtyping import Float64

from isthmus.tasks.task import Kind, Task

Array = Float64[np.ndarray, "..."]
SIGMA, RHO, BETA = 10.0, 28.0, 8.0 / 3.0
EVERY, TRANSIENT = 0.2, 20.0  # time between two rows, and before the first
MOTIONS = 20  # trajectories that the rows are taken from


def lorenz_chain(*, num_systems: int = 6, coupling: float = 1.0, num_samples: int = 2000, seed: int = 0) -> Task:
    """Autoencoding of all coordinates of a ring of Lorenz systems, coupled through x by diffusion.

        x_i' = sigma (y_i - x_i) + c (x_{i-1} - 2 x_i + x_{i+1})
        y_i' = x_i (rho - z_i) - y_i,   z_i' = x_i y_i - beta z_i

    Each system has its own strong contraction and no separation of scales is common to all, so that rows fill all
    3 num_systems columns: no rank below that is claimed.

    Args:
        num_systems: in the ring, at least 1; one is the Lorenz system of 1963.
        coupling: c >= 0.
        num_samples: rows, taken from several trajectories in turn.
        seed: of where the trajectories begin.

    Raises:
        ValueError: fewer systems, or a negative coupling.

    >>> tasks.lorenz_chain(num_systems=3, num_samples=20).x.shape
    (20, 9)
    """
    if num_systems < 1 or not coupling >= 0:
        raise ValueError(
            f"lorenz_chain(num_systems={num_systems}, coupling={coupling}): needs a system, and a coupling >= 0."
        )
    from scipy.integrate import solve_ivp  # no other task of this kind needs it

    rng = np.random.default_rng(seed)
    each = -(-num_samples // MOTIONS)
    begin = rng.normal(size=(3, num_systems, MOTIONS)) * 8 + np.array([0.0, 0.0, 25.0])[:, None, None]
    times = TRANSIENT + EVERY * np.arange(each)
    found = solve_ivp(
        lambda t, v: velocity(v.reshape(begin.shape), coupling).ravel(), (0.0, times[-1]), begin.ravel(),
        t_eval=times, rtol=1e-7, atol=1e-7,
    )  # fmt: skip
    rows = found.y.reshape(*begin.shape, each).transpose(2, 3, 1, 0).reshape(MOTIONS * each, 3 * num_systems)
    return Task(
        rows[:num_samples],
        None,
        None,
        f"lorenz_chain(num_systems={num_systems}, coupling={coupling:g}, num_samples={num_samples}, seed={seed})",
        Kind.AUTOENCODING,
        x_names=tuple(f"{name}{i}" for i in range(1, num_systems + 1) for name in "xyz"),
    )


def velocity(state: Array, coupling: float) -> Array:
    """Of (x, y, z), each (systems, ...)."""
    x, y, z = state
    beside = np.roll(x, 1, axis=0) - 2 * x + np.roll(x, -1, axis=0)
    return np.stack([SIGMA * (y - x) + coupling * beside, x * (RHO - z) - y, x * y - BETA * z])
