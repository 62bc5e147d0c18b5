"""The 24 manifolds by which estimators of intrinsic dimension are compared, with three dimensions of each.

How their points are drawn: `benchmark_points`. Other curves and surfaces: `manifolds`. Estimators that look at
neighbours: `theory.neighbour_dimensions`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from isthmus.errors import DataError
from isthmus.tasks import benchmark_points as draw
from isthmus.tasks.task import Kind, Task


@dataclass(frozen=True, slots=True)
class Manifold:
    """One of the 24.

    Attributes:
        points: draws n points with a generator, one a row.
        intrinsic: dimension of the manifold.
        embedding: least dimension of a Euclidean space that holds it: the bottleneck rank of its identity.
        flat: dimension of the affine space that it spans.
    """

    points: Callable[[np.random.Generator, int], draw.Points]
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

    >>> tasks.benchmark_manifold("M1_Sphere", num_samples=20).x.shape
    (20, 11)
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


BENCHMARK_MANIFOLDS: Mapping[str, Manifold] = MappingProxyType(
    {
        "M1_Sphere": Manifold(draw.sphere_points, 10, 11, 11),
        "M2_Affine_3to5": Manifold(draw.affine_points, 3, 3, 3),
        "M3_Nonlinear_4to6": Manifold(draw.concentrated_points, 4, 4, 6),
        "M4_Nonlinear": Manifold(draw.polar_chain(4, 1), 4, 4, 8),
        "M5a_Helix1d": Manifold(draw.closed_helix, 1, 2, 3),
        "M5b_Helix2d": Manifold(draw.helicoid, 2, 2, 3),
        "M6_Nonlinear": Manifold(draw.polar_chain(6, 3), 6, 6, 12),
        "M7_Roll": Manifold(draw.roll, 2, 2, 3),
        "M8_Nonlinear": Manifold(draw.polar_chain(12, 3), 12, 12, 24),
        "M9_Affine": Manifold(draw.solid_cube, 20, 20, 20),
        "M10a_Cubic": Manifold(draw.cube_faces(10), 10, 11, 11),
        "M10b_Cubic": Manifold(draw.cube_faces(17), 17, 18, 18),
        "M10c_Cubic": Manifold(draw.cube_faces(24), 24, 25, 25),
        "M10d_Cubic": Manifold(draw.cube_faces(70), 70, 71, 71),
        "M11_Moebius": Manifold(draw.twisted_band, 2, 2, 3),
        "M12_Norm": Manifold(draw.gaussian, 20, 20, 20),
        "M13a_Scurve": Manifold(draw.s_curve, 2, 2, 3),
        "M13b_Spiral": Manifold(draw.spiral, 1, 1, 3),
        "Mbeta": Manifold(draw.beta_curves, 10, 10, 20),
        "Mn1_Nonlinear": Manifold(draw.paired_angles(18), 18, 18, 36),
        "Mn2_Nonlinear": Manifold(draw.paired_angles(24), 24, 24, 48),
        "Mp1_Paraboloid": Manifold(draw.paraboloid(3), 3, 3, 11),
        "Mp2_Paraboloid": Manifold(draw.paraboloid(6), 6, 6, 20),
        "Mp3_Paraboloid": Manifold(draw.paraboloid(9), 9, 9, 29),
    }
)
