"""Starts that are curved already, for a given rank: both halves begin at distances along the data.

Starts without a prescribed rank, and random ones: `kinds.connected`. Training: `depth.units`.
"""

import warnings

import numpy as np
import torch
from torch import Tensor

from isthmus.discovery.factorisation import joined
from isthmus.discovery.halves import Half
from isthmus.discovery.kinds.connected import RATE, Connected
from isthmus.discovery.work.unit import Session
from isthmus.networks import FullyConnected
from isthmus.networks.folding import with_linear_run
from isthmus.training import Limits, fit
from isthmus.training.losses import SQUARED
from isthmus.training.solvers.solver import LBFGS

NEIGHBOURS = 12  # of each row in the graph whose shortest paths are the distances along the data
GEODESIC_ROWS = 1000  # rows that the graph is made of; the others are placed between them


def geodesic_network(family: Connected, *, rank: int, middle: int, ridge: float, session: Session) -> FullyConnected:
    """A start that is curved already: both halves trained towards distances along the data.

    The coordinates in the middle are those of Isomap (Tenenbaum, de Silva and Langford 2000) on the targets. Random
    starts of rank 1 end on a helix with a jump in it (objective .097 to .167 on four seeds at ridge 1e-3 with 24 middle
    layers); from these coordinates the coil is unrolled.
    """
    problem, settings = family.problem, family.settings
    coordinates = geodesic_coordinates(problem.y, rank, seed=settings.seed)
    encoder = _half(settings.encoder, problem.d_in, rank, seed=settings.seed)
    decoder = _half(settings.decoder, rank, problem.d_out, seed=settings.seed + 1)
    for half, x, y, loss in (
        (encoder, problem.x, coordinates, SQUARED),
        (decoder, coordinates, problem.y, problem.loss),
    ):
        solver = (family.adam(settings.adam_steps, RATE), LBFGS(settings.polish_evaluations))
        limits = Limits(seconds=session.seconds)
        fit(
            half, x, y, ridge=ridge, loss=loss, solver=solver, sample_weight=problem.weight, limits=limits,
            callback=session.hear,
        )  # fmt: skip
    return with_linear_run(joined(encoder, decoder, dtype=problem.x.dtype), rank=rank, middle=middle)


def _half(half: Half, d_in: int, d_out: int, *, seed: int) -> FullyConnected:
    return FullyConnected(d_in, d_out, width=half.widths, depth=half.layers + 1, seed=seed)


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
