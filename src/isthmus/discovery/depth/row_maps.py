"""Maps of the rows, from which networks of a given rank start: who lies beside whom, and how far along the data.

Each takes rows (n, d), a rank and a seed to coordinates (n, rank) of total variance `rank`. Which rank starts from
which map: `depth.units`.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from isthmus.processes.shared_state import silenced

Array = NDArray[np.float64]

NEIGHBOURS = 12  # of each row in the graph whose shortest paths are the distances along the data
GEODESIC_ROWS = 1000  # rows that the graph is made of; the others are placed between them
MAPPED_RANKS = 3  # dimensions up to which rows are mapped by who their neighbours are, in time n log n
MAPPED_ROWS = 2000  # that are; the others are placed between them
PERPLEXITY = 60  # neighbours of a row that its place hangs on
RING_NEIGHBOURS = (12, 20, 30)  # of a row in the graph that turns; a ring is tried with each
RING_ROWS, RING_COLUMNS = 1000, 40  # principal components of the rows
SAME_UNITS = 1.5  # largest over smallest scale of columns up to which it is not asked which units they are in
TANGENT = 8  # neighbours of a row that its tangent plane is made of
BENT = 7  # harmonics of the angle along which the middle and the direction of the width turn
SWEEPS = 10  # of the width against what it moves
SMOOTH = 0.35  # radians over which the width is made even
RADIUS = 2.2  # of the ring, in standard deviations of its width
BESIDE = 5  # neighbours by which a ring is judged
TINY = 1e-100  # where rows do not differ


def geodesic_coordinates(y: Tensor, rank: int, *, seed: int) -> Tensor:
    """Isomap coordinates (n, rank) of the rows, of total variance `rank`; also of a cloud in pieces.

    They keep distances along the data (Tenenbaum, de Silva and Langford 2000). Random starts of rank 1 end on a helix
    with a jump in it (objective .097 to .167 on four seeds at ridge 1e-3 with 24 middle layers); from these coordinates
    the coil is unrolled.
    """
    from sklearn.manifold import Isomap  # a fifth of the time in which a discovery starts, for depth paths alone

    rows = y.double().numpy()
    chosen = np.random.default_rng(seed).permutation(len(rows))[:GEODESIC_ROWS]
    with silenced():  # a graph in pieces is joined by its shortest edges, which is what we want
        model = Isomap(n_neighbors=min(NEIGHBOURS, len(chosen) - 1), n_components=rank).fit(rows[chosen])
        found = np.nan_to_num(np.asarray(model.transform(rows)))
    found = np.pad(found, ((0, 0), (0, rank - found.shape[1])))  # few rows have fewer
    return _of_variance(rank, found).to(y.dtype)


def neighbour_coordinates(y: Tensor, rank: int, *, seed: int) -> Tensor:
    """Coordinates (n, rank) that keep neighbours together, by t-SNE (van der Maaten and Hinton 2008), as above.

    Distances are given up for that, so that what is closed and winds besides is unwound: through two dimensions a
    closed helix of 2,500 rows ended torn (error between rows 1.5) from distances along it, at an objective of .0357
    with 32 layers, and whole from these (.088), at .0310 where three have .0374.
    """
    from sklearn.manifold import TSNE

    rows = y.double().numpy()
    chosen = np.random.default_rng(seed).permutation(len(rows))[:MAPPED_ROWS]
    perplexity = min(PERPLEXITY, (len(chosen) - 1) / 3)
    init = "pca" if rank <= min(len(chosen), rows.shape[1]) else "random"
    model = TSNE(rank, perplexity=perplexity, init=init, random_state=seed % 2**32)
    placed = np.asarray(model.fit_transform(rows[chosen]), np.float64)
    return _of_variance(rank, _between(rows, chosen, placed)).to(y.dtype)


def ring_coordinates(y: Tensor, rank: int, *, seed: int, scale: Array | None = None) -> Tensor:
    """Coordinates (n, 2) of a ribbon that closes: an angle, and the width at each angle as the radius.

    The angle turns along the two slowest functions of the graph of neighbours (Belkin and Niyogi 2003). The width w
    begins as what grows across them, on the data: see `_across`. Made of mean 0 and variance 1 at each angle,

        y ~ C(angle) + w D(angle),   C, D trigonometric of degree 7,

    is solved for C and D and for w in turns. Which graph is told by how well each row is known from those beside it on
    the ring, and whether by columns of variance 1 or in their own units: a band that is twisted five times around is a
    ring of its three columns as they are, and none once they are stretched. A pendulum that swings and turns is such a
    ribbon: of 406 of 507 pictures the width has a correlation of .97 with its speed.

    Args:
        y: rows.
        rank: 2.
        seed: of the choice of rows; others are placed between them.
        scale: by which its columns were divided; None: all by the same.
    """
    assert rank == 2
    rows = y.double().numpy()
    chosen = np.random.default_rng(seed).permutation(len(rows))[:RING_ROWS]
    points = _principal(rows[chosen])
    stretched = scale is not None and float(scale.max()) > SAME_UNITS * float(scale.min())
    rings = [*_rings(points), *(_rings(_principal(rows[chosen] * scale)) if stretched else [])]
    best = min(rings, key=lambda ring: _missed(ring, points))
    return _of_variance(rank, _between(rows, chosen, best)).to(y.dtype)


def _principal(rows: Array) -> Array:
    u, s, _ = np.linalg.svd(rows - rows.mean(0), full_matrices=False)
    return (u * s)[:, :RING_COLUMNS]


def _rings(points: Array) -> list[Array]:
    """One for each graph."""
    counts = sorted({min(count, len(points) - 1) for count in RING_NEIGHBOURS})
    angles = [_slowest_angle(points, count) for count in counts]
    return [_ring(angle, _settled(points, angle, _across(points, angle))) for angle in angles]


def _slowest_angle(points: Array, count: int) -> Array:
    """Of the two functions of least energy w' L w / w' D w on the graph of neighbours, beside the constant.

    Its weights fall with the distance, by the scale of each row (Zelnik-Manor and Perona 2004).
    """
    from scipy.linalg import eigh
    from sklearn.neighbors import NearestNeighbors

    far, places = NearestNeighbors(n_neighbors=count).fit(points).kneighbors()
    scale = np.maximum(far[:, count // 2], 1e-6 * np.sqrt(np.square(points).mean()) + TINY)
    weights = np.zeros((len(points), len(points)))
    np.put_along_axis(weights, places, np.exp(-np.square(far) / (scale[:, None] * scale[places])), 1)
    weights = np.maximum(weights, weights.T)
    degrees = weights.sum(1) + TINY
    most = min(2, len(points) - 1)
    turn = eigh(np.diag(degrees) - weights, np.diag(degrees), subset_by_index=(most - 1, most))[1]
    return np.arctan2(*(turn / (turn.std(0) + TINY)).T)


def _across(points: Array, angle: Array) -> Array:
    """What grows across the angle, on the data: least squares of its differences between neighbours.

        w_j - w_i ~ (n_i + n_j) / 2 . (y_j - y_i)

    n_i lies in the tangent plane at row i, perpendicular to where the angle grows. Its sign is that of the main
    eigenvector of the graph whose edges are n_i . n_j: parallel transport of one direction (Singer and Wu 2012). Of
    the pictures of 24 pendulums the width ends everywhere in order with the speed (rank correlations at each angle of
    at least .88). What is main at each angle, its sign kept from angle to angle, did so of 19: coarse pixels and a
    turning ribbon bend it by more than a right angle from one to the next.
    """
    from sklearn.neighbors import NearestNeighbors

    n, count = len(points), min(TANGENT, len(points) - 1)
    far, places = NearestNeighbors(n_neighbors=count).fit(points).kneighbors()
    steps = points[places] - points[:, None]
    turned = np.angle(np.exp(1j * (angle[places] - angle[:, None])))
    normal = _normals(steps, turned, np.exp(-np.square(far / (far[:, -1:] + TINY))))
    begin, end = np.repeat(np.arange(n), count), places.ravel()
    normal *= _signs(n, begin, end, (normal[begin] * normal[end]).sum(1))[:, None]

    step = steps.reshape(n * count, -1)
    rise, length = ((normal[begin] + normal[end]) / 2 * step).sum(1), np.square(step).sum(1)
    agree = np.maximum((normal[begin] * normal[end]).sum(1), 0)
    return _summed(n, begin, end, rise, agree / (length + 1e-6 * length.mean() + TINY))


def _normals(steps: Array, turned: Array, weight: Array) -> Array:
    """Unit vectors (n, d) in the tangent planes, perpendicular to where the angle grows; signs are free.

    Args:
        steps: to the neighbours of each row (n, count, d).
        turned: by which the angle changes with each (n, count).
        weight: of each (n, count).
    """
    tangent = np.linalg.svd(weight[..., None] * steps, full_matrices=False)[2][:, :2]
    along = steps @ tangent.swapaxes(1, 2)
    growth = (np.linalg.pinv(weight[..., None] * along) @ (weight * turned)[..., None])[..., 0]
    growth /= np.linalg.norm(growth, axis=1, keepdims=True) + TINY
    return np.einsum("nt,ntd->nd", growth[:, ::-1] * [-1, 1], tangent)


def _signs(n: int, begin: NDArray[np.int64], end: NDArray[np.int64], products: Array) -> Array:
    """Of n rows, by which most products along the edges become positive: of the main eigenvector of their graph."""
    from scipy.linalg import eigh

    signed = np.zeros((n, n))
    signed[begin, end] = signed[end, begin] = products
    degrees = np.sqrt(np.abs(signed).sum(1) + TINY)
    main = eigh(signed / (degrees[:, None] * degrees), subset_by_index=(n - 1, n - 1))[1][:, 0]
    return np.where(main < 0, -1.0, 1.0)


def _summed(n: int, begin: NDArray[np.int64], end: NDArray[np.int64], rise: Array, weights: Array) -> Array:
    """The function of n rows whose differences along edges are these, by weighted least squares."""
    edges, source = np.zeros((n, n)), np.zeros(n)
    np.add.at(edges, (begin, end), weights)
    edges += edges.T
    laplacian = np.diag(edges.sum(1)) - edges
    np.add.at(source, end, weights * rise)
    np.add.at(source, begin, -weights * rise)
    return np.linalg.solve(laplacian + (1e-9 * np.trace(laplacian) / n + TINY) * np.eye(n), source)


def _settled(points: Array, angle: Array, width: Array) -> Array:
    """The width after some sweeps: middle and direction at each angle fitted to it, then it to them."""
    turning = _turning(angle)
    width = _even(angle, width)
    for _ in range(SWEEPS):
        design = np.hstack([turning, turning * width[:, None]])
        gram = design.T @ design
        fitted = np.linalg.solve(gram + 1e-5 * np.trace(gram) * np.eye(len(gram)), design.T @ points)
        direction = turning @ fitted[turning.shape[1] :]
        length = np.square(direction).sum(1)
        left = ((points - design @ fitted) * direction).sum(1)
        width = _even(angle, width + left / (length + 1e-2 * length.mean() + TINY))
    return width


def _even(angle: Array, width: Array) -> Array:
    """The width with mean 0 and variance 1 around each angle."""
    near = np.exp((np.cos(angle[:, None] - angle) - 1) / SMOOTH**2)
    near /= near.sum(1, keepdims=True)
    centred = width - near @ width
    return centred / np.maximum(np.sqrt(near @ np.square(centred)), TINY)


def _turning(angle: Array) -> Array:
    waves = [wave(order * angle) for order in range(1, BENT + 1) for wave in (np.cos, np.sin)]
    return np.stack([np.ones_like(angle), *waves], 1)


def _ring(angle: Array, width: Array) -> Array:
    return ((RADIUS + width) * np.stack([np.cos(angle), np.sin(angle)])).T


def _missed(placed: Array, points: Array) -> float:
    """How far rows are from the mean of those beside them on the map."""
    from sklearn.neighbors import KNeighborsRegressor

    beside = KNeighborsRegressor(min(BESIDE, len(points) - 1), weights="distance").fit(placed, points)
    return float(np.square(beside.predict(None) - points).sum())  # None: each row by the others


def _between(rows: Array, chosen: NDArray[np.int64], placed: Array) -> Array:
    """The places of all rows, from those of some."""
    from sklearn.neighbors import KNeighborsRegressor

    beside = KNeighborsRegressor(min(placed.shape[1] + 1, len(chosen)), weights="distance")
    return np.asarray(beside.fit(rows[chosen], placed).predict(rows), np.float64)


def _of_variance(rank: int, found: Array) -> Tensor:
    """Coordinates of total variance `rank`."""
    spread = float(np.sqrt(found.var(0).sum() / rank))
    return torch.from_numpy(found / (spread or 1.0))
