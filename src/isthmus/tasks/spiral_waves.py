"""Pictures of a turning spiral wave, by the reaction and diffusion of two substances."""

import numpy as np
from jaxtyping import Float64

from isthmus.tasks.task import Kind, Task

Array = Float64[np.ndarray, "..."]
GRID, WIDTH = 32, 20.0  # cells on each side of the square, and its length
TWIST, DIFFUSION = 1.0, 0.1
SETTLED, TURN = 100.0, 7.0  # time until the motion repeats itself, and about how long one turn takes
MOMENTS = 350  # from which pictures are drawn, over several turns


def spiral_waves(*, side: int = 16, num_samples: int = 600, noise: float = 0.01, seed: int = 0) -> Task:
    """Autoencoding of pictures of one substance: a closed motion, of dimension 1 and rank 2.

        u_t = (1 - r^2) u + b r^2 v + d (u_xx + u_yy),   r^2 = u^2 + v^2
        v_t = (1 - r^2) v - b r^2 u + d (v_xx + v_yy)

    on a square of length 20 with walls that nothing crosses, b = 1, d = .1, once the spiral turns evenly.

    Args:
        side: pixels on each side, each the mean of its cells: 4, 8, 16 or 32.
        num_samples: rows, in random order.
        noise: standard deviation of noise on each pixel; u lies between -1 and 1.
        seed: of the moments and the noise.

    Raises:
        ValueError: another `side`.

    Cost: 3 s. Source: Champion, Lusch, Kutz and Brunton 2019 (the equations, and 2 coordinates).

    >>> tasks.spiral_waves(side=4, num_samples=20).x.shape  # doctest: +SKIP
    (20, 16)
    """
    if side not in {4, 8, 16, 32}:
        raise ValueError(f"spiral_waves(side={side}): needs 4, 8, 16 or 32 pixels on each side.")
    from scipy.fft import dctn, idctn  # no other task needs them
    from scipy.integrate import solve_ivp

    rng = np.random.default_rng(seed)
    k2 = np.square(np.pi / WIDTH * np.arange(GRID))
    decay = -DIFFUSION * (k2[:, None] + k2)

    def velocity(_t: float, flat: Array) -> Array:
        u, v = flat.reshape(2, GRID, GRID)
        r2 = u**2 + v**2
        waves: list[Array] = [
            np.asarray(idctn(decay * np.asarray(dctn(w, norm="ortho")), norm="ortho")) for w in (u, v)
        ]
        spread = np.stack(waves)
        return (spread + [(1 - r2) * u + TWIST * r2 * v, (1 - r2) * v - TWIST * r2 * u]).ravel()

    place = (np.arange(GRID) + 0.5) * WIDTH / GRID - WIDTH / 2
    r, angle = np.hypot(place[:, None], place), np.arctan2(place, place[:, None])
    begin = np.tanh(r) * np.stack([np.cos(angle - r), np.sin(angle - r)])
    times = SETTLED + np.linspace(0, 5 * TURN, MOMENTS)
    found = solve_ivp(velocity, (0.0, times[-1]), begin.ravel(), t_eval=times, rtol=1e-5, atol=1e-6)
    cells = found.y.reshape(2, GRID, GRID, MOMENTS)[0].transpose(2, 0, 1)
    pixels = cells.reshape(MOMENTS, side, GRID // side, side, GRID // side).mean((2, 4)).reshape(MOMENTS, -1)
    rows = rng.integers(MOMENTS, size=num_samples)
    x = pixels[rows] + noise * rng.standard_normal((num_samples, side**2))
    source = f"spiral_waves(side={side}, num_samples={num_samples}, noise={noise:g}, seed={seed})"
    names = tuple(f"pixel {i}" for i in range(side**2))
    return Task(x, None, 2, source, Kind.AUTOENCODING, x_names=names, jacobian_rank=1)
