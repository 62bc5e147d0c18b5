"""How the points of the 24 benchmark manifolds are drawn: each function takes a generator and how many.

What is known of each: `benchmark_manifolds`.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float64

Points = Float64[np.ndarray, "n d"]
TURN = 2 * np.pi


def sphere_points(rng: np.random.Generator, n: int) -> Points:
    """The unit sphere S^10 in R^11, uniform."""
    v = rng.standard_normal((n, 11))
    return v / np.linalg.norm(v, axis=1, keepdims=True)


def affine_points(rng: np.random.Generator, n: int) -> Points:
    """A cube of 3 dimensions, mapped affinely to R^5."""
    matrix = np.array([[1.2, 0.5, -0.5, 0.4, 1.1], [-0.5, 0.9, -0.2, -0.9, -0.3], [0, 0, 1, -0.1, 0]])
    return 4 * rng.random((n, 3)) @ matrix + np.array([3.0, -1, 0, 0, 8])


def concentrated_points(rng: np.random.Generator, n: int) -> Points:
    """Four coordinates in R^6, easily taken for three."""
    a, b, c, d = rng.random((4, n))
    columns = (
        b**2 * np.cos(TURN * a), c**2 * np.sin(TURN * a), b + c + (b - d) ** 2, b - 2 * c + (a - d) ** 2,
        -b - 2 * c + (c - d) ** 2, a**2 - b**2 + c**2 - d**2,
    )  # fmt: skip
    return np.stack(columns, 1)


def polar_chain(d: int, copies: int) -> Callable[[np.random.Generator, int], Points]:
    """p_(i+1) (cos, sin)(2 pi p_i) around a cycle of d uniform coordinates p, `copies` times over."""

    def points(rng: np.random.Generator, n: int) -> Points:
        p = rng.random((n, d))
        radius = np.roll(p, -1, axis=1)
        pairs = np.stack([radius * np.cos(TURN * p), radius * np.sin(TURN * p)], 2).reshape(n, 2 * d)
        return np.tile(pairs, (1, copies))

    return points


def closed_helix(rng: np.random.Generator, n: int) -> Points:
    """A curve eight times around the tube of a torus, closed."""
    t = TURN * rng.random(n)
    tube = 2 + np.cos(8 * t)
    return np.stack([tube * np.cos(t), tube * np.sin(t), np.sin(8 * t)], 1)


def helicoid(rng: np.random.Generator, n: int) -> Points:
    """A spiral staircase of five turns."""
    r, p = 5 * TURN * rng.random((2, n))
    return np.stack([r * np.cos(p), r * np.sin(p), p / 2], 1)


def roll(rng: np.random.Generator, n: int) -> Points:
    """A rolled-up sheet."""
    t, height = 0.75 * TURN * (1 + 2 * rng.random(n)), 21 * rng.random(n)
    return np.stack([t * np.cos(t), height, t * np.sin(t)], 1)


def solid_cube(rng: np.random.Generator, n: int) -> Points:
    """The cube [-2.5, 2.5]^20."""
    return rng.uniform(-2.5, 2.5, (n, 20))


def cube_faces(d: int) -> Callable[[np.random.Generator, int], Points]:
    """The 2 (d + 1) faces of the cube [0, 1]^(d + 1), the same number of points on each but for the last."""

    def points(rng: np.random.Generator, n: int) -> Points:
        x = rng.random((n, d + 1))
        face = np.arange(n) // (n // (2 * (d + 1)) + 1)
        x[np.arange(n), face // 2] = face % 2
        return x

    return points


def twisted_band(rng: np.random.Generator, n: int) -> Points:
    """A band around a circle with five whole turns."""
    phi, across = TURN * rng.random(n), rng.uniform(-0.5, 0.5, n) * 2
    out = 1 + across / 2 * np.cos(5 * phi)
    return np.stack([out * np.cos(phi), out * np.sin(phi), across / 2 * np.sin(5 * phi)], 1)


def gaussian(rng: np.random.Generator, n: int) -> Points:
    """Standard normal in R^20."""
    return rng.standard_normal((n, 20))


def s_curve(rng: np.random.Generator, n: int) -> Points:
    """A sheet bent like an S."""
    t, height = 1.5 * TURN * (rng.random(n) - 0.5), 2 * rng.random(n)
    return np.stack([np.sin(t), height, np.sign(t) * (np.cos(t) - 1)], 1)


def spiral(rng: np.random.Generator, n: int) -> Points:
    """Five turns of a helix in 13 columns, ten of them zero."""
    t = 5 * TURN * rng.random(n)
    return np.hstack([np.stack([100 * np.cos(t), 100 * np.sin(t), t], 1), np.zeros((n, 10))])


def beta_curves(rng: np.random.Generator, n: int) -> Points:
    """Ten coordinates of density Beta(10, 1/2), each bent into a curve of the plane, twice."""
    x = rng.beta(10, 0.5, (n, 10))
    bent = [x * np.sin(np.cos(TURN * x)), x * np.cos(np.sin(TURN * x))]
    return np.hstack(bent * 2)


def paired_angles(d: int) -> Callable[[np.random.Generator, int], Points]:
    """tan(a cos b) and arctan(b sin a) of uniform coordinates a and their mirror images b, twice."""

    def points(rng: np.random.Generator, n: int) -> Points:
        x = rng.random((n, d))
        mirrored = x[:, ::-1]
        return np.hstack([np.tan(x * np.cos(mirrored)), np.arctan(mirrored * np.sin(x))] * 2)

    return points


def paraboloid(d: int) -> Callable[[np.random.Generator, int], Points]:
    """The square |x|^2 over d coordinates of a Burr distribution, with sin and square of all d + 1."""

    def points(rng: np.random.Generator, n: int) -> Points:
        first, others = rng.exponential(size=(n, 1)), rng.exponential(size=(n, d))
        x = first / (first + others)
        x = np.hstack([x, np.square(x).sum(1, keepdims=True)])
        return np.hstack([x, np.sin(x), np.square(x)])

    return points
