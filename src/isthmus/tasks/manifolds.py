"""Curves and surfaces to autoencode, with the rank of a flat answer and of the deepest one.

A deep network may use a curved coordinate (a helix has rank 1), but no network can cut a closed manifold open: a circle
keeps rank 2, a sphere and a torus 3, although locally one or two coordinates would do.
"""

import math
from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float, Float64
from torch import Tensor

from isthmus.tasks.task import Kind, Task
from isthmus.tasks.teachers import ShallowNetwork
from isthmus.theory.home import at_home


def helix_map(t: Float[Tensor, "*n 1"]) -> Float[Tensor, "*n 3"]:
    """(cos t, sin t, t / 4)."""
    return torch.cat([torch.cos(t), torch.sin(t), t / 4], -1)


def swiss_roll_map(s: Float[Tensor, "*n 2"]) -> Float[Tensor, "*n 3"]:
    """(r cos r, r sin r, h) of radius and height."""
    r, h = s[..., :1], s[..., 1:]
    return torch.cat([r * torch.cos(r), r * torch.sin(r), h], -1)


def circle_map(t: Float[Tensor, "*n 1"]) -> Float[Tensor, "*n 2"]:
    """(cos t, sin t)."""
    return torch.cat([torch.cos(t), torch.sin(t)], -1)


def torus_map(s: Float[Tensor, "*n 2"]) -> Float[Tensor, "*n 3"]:
    """Radius 2 to the middle of the tube, 1 across it, by two angles."""
    p, q = s[..., :1], s[..., 1:]
    return torch.cat([(2 + torch.cos(q)) * torch.cos(p), (2 + torch.cos(q)) * torch.sin(p), torch.sin(q)], -1)


def sphere_map(s: Float[Tensor, "*n 2"]) -> Float[Tensor, "*n 3"]:
    """Unit sphere by angle and height; uniform in both is uniform on the sphere."""
    p, h = s[..., :1], s[..., 1:]
    r = torch.sqrt(1 - h**2)
    return torch.cat([r * torch.cos(p), r * torch.sin(p), h], -1)


def helix(*, num_samples: int = 1200, seed: int = 0) -> Task:
    """Two turns of a helix: flat rank 3, bottleneck rank 1 (*exact*).

    >>> task = tasks.helix(num_samples=30)
    >>> task.true_rank, task.flat_rank
    (1, 3)
    """
    return _on(helix_map, "helix", bounds=[(0.0, 4 * math.pi)], ranks=(1, 1, 3), num_samples=num_samples, seed=seed)


def swiss_roll(*, num_samples: int = 1500, seed: int = 0) -> Task:
    """A rolled-up sheet: flat rank 3, bottleneck rank 2 (*exact*).

    >>> task = tasks.swiss_roll(num_samples=30)
    >>> task.true_rank, task.flat_rank
    (2, 3)
    """
    bounds = [(1.5 * math.pi, 4.5 * math.pi), (0.0, 15.0)]
    return _on(swiss_roll_map, "swiss_roll", bounds=bounds, ranks=(2, 2, 3), num_samples=num_samples, seed=seed)


def circle(*, num_samples: int = 1000, seed: int = 0) -> Task:
    """The unit circle: locally 1, but closed, so that flat and bottleneck rank are 2 (*exact*).

    >>> task = tasks.circle(num_samples=30)
    >>> task.true_rank, task.flat_rank
    (2, 2)
    """
    return _on(circle_map, "circle", bounds=[(0.0, 2 * math.pi)], ranks=(1, 2, 2), num_samples=num_samples, seed=seed)


def torus(*, num_samples: int = 1500, seed: int = 0) -> Task:
    """A torus in space: locally 2, but it does not embed in the plane: bottleneck rank 3 (*exact*).

    >>> tasks.torus(num_samples=30).true_rank
    3
    """
    return _on(torus_map, "torus", bounds=[(0.0, 2 * math.pi)] * 2, ranks=(2, 3, 3), num_samples=num_samples, seed=seed)


def sphere(*, num_samples: int = 1500, seed: int = 0) -> Task:
    """The unit sphere: locally 2, but any map to the plane glues two opposite points: bottleneck rank 3 (*exact*).

    >>> tasks.sphere(num_samples=30).true_rank
    3
    """
    return _on(
        sphere_map,
        "sphere",
        bounds=[(0.0, 2 * math.pi), (-1.0, 1.0)],
        ranks=(2, 3, 3),
        num_samples=num_samples,
        seed=seed,
    )


def cube(*, dimension: int = 17, num_columns: int = 20, num_samples: int = 2500, seed: int = 0) -> Task:
    """A solid cube, uniform, turned into more columns: local, bottleneck and flat rank are its dimension (*exact*).

    Raises:
        ValueError: not 1 <= dimension <= num_columns.

    >>> tasks.cube(dimension=3, num_columns=5, num_samples=30).true_rank
    3
    """
    if not 1 <= dimension <= num_columns:
        raise ValueError(
            f"cube(dimension={dimension}, num_columns={num_columns}): needs 1 <= dimension <= num_columns."
        )
    rng = np.random.default_rng(seed)
    frame = np.linalg.qr(rng.standard_normal((num_columns, dimension)))[0]
    latent = rng.random((num_samples, dimension))
    source = f"cube(dimension={dimension}, num_columns={num_columns}, num_samples={num_samples}, seed={seed})"
    d = dimension
    return Task(latent @ frame.T, None, d, source, Kind.AUTOENCODING, latent=latent, jacobian_rank=d, flat_rank=d)


def curved_plane(*, dimension: int = 5, num_columns: int = 20, num_samples: int = 1500, seed: int = 0) -> Task:
    """A plane whose further columns are waves over it, turned: bottleneck rank is its dimension, all columns are flat.

        x = [z, sin(z W + b)] Q,   z uniform in [-1.5, 1.5]^k,   W ~ 1.5 N(0, 1) / sqrt(k),   Q orthogonal

    Exact: z is read off linearly, and k coordinates cannot be brought into fewer.

    Raises:
        ValueError: not 1 <= dimension < num_columns.

    >>> task = tasks.curved_plane(dimension=2, num_columns=6, num_samples=30)
    >>> task.true_rank, task.flat_rank
    (2, 6)
    """
    if not 1 <= dimension < num_columns:
        raise ValueError(
            f"curved_plane(dimension={dimension}, num_columns={num_columns}): needs 1 <= dimension < num_columns."
        )
    rng, waves = np.random.default_rng(seed), num_columns - dimension
    z = rng.uniform(-1.5, 1.5, (num_samples, dimension))
    directions = rng.normal(size=(dimension, waves)) / math.sqrt(dimension) * 1.5
    columns = np.concatenate([z, np.sin(z @ directions + rng.uniform(0, 2 * math.pi, waves))], axis=1)
    turn = np.linalg.qr(rng.normal(size=(num_columns, num_columns)))[0]
    source = f"curved_plane(dimension={dimension}, num_columns={num_columns}, num_samples={num_samples}, seed={seed})"
    return Task(
        columns @ turn, None, dimension, source, Kind.AUTOENCODING, latent=z, jacobian_rank=dimension,
        flat_rank=num_columns,
    )  # fmt: skip


def _on(
    parametrisation: Callable[[Tensor], Tensor],
    name: str,
    *,
    bounds: list[tuple[float, float]],
    ranks: tuple[int, int, int],
    num_samples: int,
    seed: int,
) -> Task:
    low, high = np.array(bounds).T
    latent = np.random.default_rng(seed).uniform(low, high, (num_samples, len(bounds)))
    return Task(
        parametrisation(torch.from_numpy(latent)).numpy(),
        None,
        ranks[1],
        f"{name}(num_samples={num_samples}, seed={seed})",
        Kind.AUTOENCODING,
        latent=latent,
        jacobian_rank=ranks[0],
        flat_rank=ranks[2],
    )


@at_home
def curve_autoencoder(*, num_samples: int = 1000, seed: int = 0) -> Task:
    """Autoencoding of a random piecewise linear curve in the plane, g(z) with z ~ N(0, 1) and g a shallow ReLU network.

    Curves that cross themselves are drawn again: those do not embed in a line. Bottleneck rank 1 (*exact*), flat
    rank 2.

    Source: Jacot 2023a, Figure 3 (FC-49).

    >>> tasks.curve_autoencoder(num_samples=30).x.shape
    (30, 2)
    """
    generator = torch.Generator().manual_seed(seed)
    while True:
        network = ShallowNetwork.random(1, 2, generator=generator, dtype=torch.float64)
        z = torch.randn(num_samples, 1, generator=generator, dtype=torch.float64)
        if not crosses_itself(_corners(network, z)):
            break
    source = f"curve_autoencoder(num_samples={num_samples}, seed={seed})"
    kind = Kind.AUTOENCODING
    return Task(network(z).numpy(), None, 1, source, kind, latent=z.numpy(), jacobian_rank=1, flat_rank=2)


def _corners(network: ShallowNetwork, z: Float[Tensor, "n 1"]) -> Float64[np.ndarray, "corners 2"]:
    """The curve's corners between the least and the largest z, and its two ends."""
    kinks = -network.bias / network.inner[:, 0]
    inside = kinks[(kinks > z.min()) & (kinks < z.max())]
    places = torch.cat([z.min()[None], inside.sort().values, z.max()[None]])
    return network(places[:, None]).numpy()


def crosses_itself(corners: Float64[np.ndarray, "corners 2"]) -> bool:
    """Whether two segments of the polygonal line that are not neighbours meet in an inner point of both."""
    start, end = corners[:-1], corners[1:]

    def side(p: np.ndarray) -> np.ndarray:
        """On which side of line i lies point j."""
        along, to = (end - start)[:, None], p[None] - start[:, None]
        return np.sign(along[..., 0] * to[..., 1] - along[..., 1] * to[..., 0])

    splits = side(start) * side(end) < 0
    return bool((splits & splits.T).any())
