"""Networks that are r neurons narrow in the middle: cold starts of a given rank.

Starts without a prescribed rank: `starts`. One network at another depth: `networks.folding`. Training: `depth_units`.
"""

import warnings
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from isthmus.discovery.factorisation import Factorisation, joined
from isthmus.discovery.problem import Problem
from isthmus.discovery.settings import Settings
from isthmus.networks import FullyConnected
from isthmus.networks.folding import with_linear_run
from isthmus.training import FitEvent, Limits, fit
from isthmus.training.moves import rebalancing
from isthmus.training.solvers import LBFGS, Adam

NEIGHBOURS = 12  # of each row in the graph whose shortest paths are the distances along the data
GEODESIC_ROWS = 1000  # rows that the graph is made of; the others are placed between them


def narrow_network(d_in: int, d_out: int, settings: Settings, *, rank: int, middle: int, seed: int) -> FullyConnected:
    """ReLU layers, `middle` linear layers of `rank` neurons with identities between them, ReLU layers."""
    r = settings.relu_layers
    widths = [settings.width] * r + [rank] * middle + [settings.width] * r
    linear = range(r + 1, r + middle + 1)
    network = FullyConnected(d_in, d_out, width=widths, depth=2 * r + middle + 1, linear=linear, seed=seed)
    with torch.no_grad():
        for weight in network.weights[r + 1 : r + middle]:
            weight.copy_(torch.eye(rank))
    return network


def geodesic_network(  # noqa: PLR0913
    problem: Problem,
    settings: Settings,
    *,
    rank: int,
    middle: int,
    ridge: float,
    limits: Limits,
    callback: Callable[[FitEvent], bool],
) -> FullyConnected:
    """A start that is curved already: both halves trained towards distances along the data.

    The coordinates in the middle are those of Isomap (Tenenbaum, de Silva and Langford 2000) on the targets. Random
    starts of rank 1 end on a helix with a jump in it (objective .097 to .167 on four seeds at ridge 1e-3 with 24 middle
    layers); from these coordinates the coil is unrolled.
    """
    coordinates = geodesic_coordinates(problem.y, rank, seed=settings.seed)
    r, width = settings.relu_layers, settings.width
    encoder = FullyConnected(problem.d_in, rank, width=width, depth=r + 1, seed=settings.seed)
    decoder = FullyConnected(rank, problem.d_out, width=width, depth=r + 1, seed=settings.seed + 1)
    for half, x, y in ((encoder, problem.x, coordinates), (decoder, coordinates, problem.y)):
        warm_up = Adam(settings.adam_steps, 3e-3, moves=(rebalancing,), move_every=20)
        solver = (warm_up, LBFGS(settings.polish_evaluations))
        fit(half, x, y, ridge=ridge, solver=solver, sample_weight=problem.weight, limits=limits, callback=callback)
    whole = joined(Factorisation(encoder, decoder, rank, r + 1, 0.0), dtype=problem.x.dtype)
    return with_linear_run(whole, rank=rank, middle=middle)


def geodesic_coordinates(y: Tensor, rank: int, *, seed: int) -> Tensor:
    """Isomap coordinates (n, rank) of the rows, of total variance `rank`; also of a cloud in pieces."""
    from sklearn.manifold import Isomap  # a fifth of the time in which a discovery starts, for depth paths alone

    rows = y.double().numpy()
    chosen = np.random.default_rng(seed).permutation(len(rows))[:GEODESIC_ROWS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a graph in pieces is joined by its shortest edges, which is what we want
        model = Isomap(n_neighbors=min(NEIGHBOURS, len(chosen) - 1), n_components=rank).fit(rows[chosen])
        found = np.nan_to_num(np.asarray(model.transform(rows)))
    spread = float(np.sqrt(found.var(0).sum() / rank))
    return torch.from_numpy(found / (spread or 1.0)).to(y.dtype)
