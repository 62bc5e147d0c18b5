"""The 24 manifolds by which estimators of intrinsic dimension are compared, with three dimensions of each.

Other curves and surfaces: `manifolds`. Estimators that look at neighbours: `theory.neighbour_dimensions`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from jaxtyping import Float64

from isthmus.errors import DataError
from isthmus.tasks.task import Kind, Task

Points = Float64[np.ndarray, "n d"]
TURN = 2 * np.pi


@dataclass(frozen=True, slots=True)
class Manifold:
    """One of the 24.

    Attributes:
        points: draws n points with a generator, one a row.
        intrinsic: dimension of the manifold.
        embedding: least dimension of a Euclidean space that holds it: the bottleneck rank of its identity.
        flat: dimension of the affine space that it spans.
    """

    points: Callable[[np.random.Generator, int], Points]
    intrinsic: int
    embedding: int
    flat: int


def benchmark_manifold(name: str, *, num_samples: int = 2500, seed: int = 0) -> Task:
    """One of the 24 benchmark manifolds, to be autoencoded.

        jacobian_rank: dimension of the manifold;   true_rank: least R^k that holds it;   flat_rank: of its affine hull

    A closed manifold of dimension d needs d + 1 coordinates (spheres, the boundaries of cubes, the closed curve), an
    image of a cube d. The band M11 has ten half turns, an even number: it is an annulus, which lies in the plane.

    Args:
        name: one of `BENCHMARK_MANIFOLDS`.
        num_samples: number of rows, drawn as the collection draws them (not uniformly on every manifold).
        seed: of the points.

    Returns:
        Task in the columns of the collection, constant ones included.

    Raises:
        DataError: no such name; the line lists all.
        ValueError: fewer than 1 row.

    Accuracy: *exact* but for two. M3: 4 supposes that the map of the cube is one-to-one. Mbeta: each of its plane
    curves meets itself once, at x = .47 and .63; 10 speaks of x > .63, where 99.7 % of the draws of each coordinate
    lie.
    Source: Hein and Audibert 2005; Rozza et al. 2012; Campadelli et al. 2015.
    """
    if name not in BENCHMARK_MANIFOLDS:
        raise DataError(f"benchmark_manifold({name!r}): unknown. Known are {', '.join(BENCHMARK_MANIFOLDS)}.")
    if num_samples < 1:
        raise ValueError(f"benchmark_manifold(num_samples={num_samples}): needs at least 1 row.")
    known = BENCHMARK_MANIFOLDS[name]
    x = known.points(np.random.default_rng(seed), num_samples)
    source = f"{name}(num_samples={num_samples}, seed={seed})"
    return Task(
        x, None, known.embedding, source, Kind.AUTOENCODING, jacobian_rank=known.intrinsic, flat_rank=known.flat
    )


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


BENCHMARK_MANIFOLDS: Mapping[str, Manifold] = MappingProxyType(
    {
        "M1_Sphere": Manifold(sphere_points, 10, 11, 11),
        "M2_Affine_3to5": Manifold(affine_points, 3, 3, 3),
        "M3_Nonlinear_4to6": Manifold(concentrated_points, 4, 4, 6),
        "M4_Nonlinear": Manifold(polar_chain(4, 1), 4, 4, 8),
        "M5a_Helix1d": Manifold(closed_helix, 1, 2, 3),
        "M5b_Helix2d": Manifold(helicoid, 2, 2, 3),
        "M6_Nonlinear": Manifold(polar_chain(6, 3), 6, 6, 12),
        "M7_Roll": Manifold(roll, 2, 2, 3),
        "M8_Nonlinear": Manifold(polar_chain(12, 3), 12, 12, 24),
        "M9_Affine": Manifold(solid_cube, 20, 20, 20),
        "M10a_Cubic": Manifold(cube_faces(10), 10, 11, 11),
        "M10b_Cubic": Manifold(cube_faces(17), 17, 18, 18),
        "M10c_Cubic": Manifold(cube_faces(24), 24, 25, 25),
        "M10d_Cubic": Manifold(cube_faces(70), 70, 71, 71),
        "M11_Moebius": Manifold(twisted_band, 2, 2, 3),
        "M12_Norm": Manifold(gaussian, 20, 20, 20),
        "M13a_Scurve": Manifold(s_curve, 2, 2, 3),
        "M13b_Spiral": Manifold(spiral, 1, 1, 3),
        "Mbeta": Manifold(beta_curves, 10, 10, 20),
        "Mn1_Nonlinear": Manifold(paired_angles(18), 18, 18, 36),
        "Mn2_Nonlinear": Manifold(paired_angles(24), 24, 24, 48),
        "Mp1_Paraboloid": Manifold(paraboloid(3), 3, 3, 11),
        "Mp2_Paraboloid": Manifold(paraboloid(6), 6, 6, 20),
        "Mp3_Paraboloid": Manifold(paraboloid(9), 9, 9, 29),
    }
)
