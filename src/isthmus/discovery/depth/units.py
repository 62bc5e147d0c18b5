"""What the depth path computes: cold starts of one rank, and the same rank at another depth. One function per unit.

The order of the units and what is read off them: `depth.path`. Starts without a prescribed rank: `kinds.connected`.
"""

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from isthmus.discovery.data.problem import Problem
from isthmus.discovery.depth.between_rows import LinesBetweenRows
from isthmus.discovery.factorisation import joined
from isthmus.discovery.halves import Half
from isthmus.discovery.kinds.connected import RATE, Connected
from isthmus.discovery.kinds.family import DESCENDED
from isthmus.discovery.minimum import Minimum
from isthmus.discovery.settings import SEEDS
from isthmus.discovery.work.unit import Session
from isthmus.networks import FullyConnected, rebalance
from isthmus.networks.folding import with_linear_run
from isthmus.processes.shared_state import silenced
from isthmus.training import Limits, fit
from isthmus.training.losses import SQUARED
from isthmus.training.moves import truncate_middle
from isthmus.training.solvers.solver import LBFGS
from isthmus.training.solvers.trials import ExactMoves

NEIGHBOURS = 12  # of each row in the graph whose shortest paths are the distances along the data
GEODESIC_ROWS = 1000  # rows that the graph is made of; the others are placed between them
MAPPED_RANKS = 3  # dimensions up to which rows are mapped by who their neighbours are, in time n log n
MAPPED_ROWS = 2000  # that are; the others are placed between them
PERPLEXITY = 60  # neighbours of a row that its place hangs on


class RankStart(StrEnum):
    """Where a network of a given rank comes from."""

    GEODESIC = "geodesic"
    TRUNCATED = "truncated"
    RANDOM = "random"
    NEIGHBOURS = "neighbours"
    DESCENDED = DESCENDED


MAPS = frozenset({RankStart.GEODESIC, RankStart.NEIGHBOURS})  # starts that know where rows lie on the data


@dataclass(frozen=True, slots=True)
class DepthSettings:
    """Numbers of a depth path.

    Attributes:
        middle_layers: numbers of linear middle layers, ascending; the first is the flat end.
        anchor: the number at which starts are trained; the best goes from there to all others.
        random_starts: for each rank, besides the geodesic and the truncated one.
        beyond: ranks above that of the discovery that are tried.
        lowest: rank down to which they are trained; lower ones only while none above the least has a lower objective.
    """

    middle_layers: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    anchor: int = 4
    random_starts: int = 1
    beyond: int = 1
    lowest: int = field(default=1, repr=False)  # by their text unfinished work knows the depths that were asked for


def kinds_of(problem: Problem, depth: DepthSettings, rank: int) -> list[RankStart]:
    """The starts of a rank; targets that are not standardised, as classes, have no distances along the data."""
    geodesic = [RankStart.GEODESIC] if problem.loss.standardised else []
    mapped = [RankStart.NEIGHBOURS] if problem.autoencoding and rank <= MAPPED_RANKS else []
    return [*geodesic, RankStart.TRUNCATED, *[RankStart.RANDOM] * depth.random_starts, *mapped]


def ranked_start(
    family: Connected, session: Session, *, kind: RankStart, number: int, rank: int, middle: int, base: Minimum
) -> Minimum:
    """Train a network of `rank` from a start of this kind; `base` is the truncated network of the objective curve."""
    settings, ridge = family.settings, base.ridge
    lbfgs = LBFGS(settings.lbfgs_evaluations)
    if kind is RankStart.TRUNCATED:
        network = with_linear_run(family.network_of(base), rank=rank, middle=middle)
        solver = (ExactMoves(), lbfgs)
    elif kind is RankStart.RANDOM:
        network = family.narrow(rank, middle=middle, seed=settings.seed_of(number))
        solver = (family.adam(settings.adam_steps, RATE), lbfgs)
    else:
        placed = neighbour_coordinates if kind is RankStart.NEIGHBOURS else geodesic_coordinates
        coordinates = placed(family.problem.y, rank, seed=settings.seed)
        network = network_through(coordinates, family, middle=middle, ridge=ridge, session=session)
        solver = (family.adam(settings.adam_steps, RATE / 3), lbfgs)
    end = family.trained(network, ridge, solver, session)
    return family.measured(network, end, ridge=ridge, rank=rank, middle=middle, kind=str(kind))


def descended(family: Connected, session: Session, *, rank: int, base: Minimum) -> Minimum:
    """Take dimensions away from the minimum `base` until `rank` are left, and train long; or train it on.

    One dimension at a time the others bend to carry what it did: on six curved dimensions that fill twelve columns
    random starts of rank 6 end at an objective of .13 to .14, this way down from 12 at .049, as low as a start at the
    true coordinates (.044).
    """
    network, middle = family.network_of(base), base.middle
    assert middle is not None
    if rank < base.dimensions:
        truncate_middle(network, rank)
        network = with_linear_run(network, rank=rank, middle=middle)
    adam = family.adam(family.settings.descent_steps, RATE / 3)
    solver = (ExactMoves(), adam, LBFGS(family.settings.descent_evaluations))
    end = family.trained(network, base.ridge, solver, session)
    return family.measured(network, end, ridge=base.ridge, rank=rank, middle=middle, kind=str(RankStart.DESCENDED))


def at_depth(
    family: Connected, session: Session, *, base: Minimum, middle: int, lines: LinesBetweenRows | None
) -> Minimum:
    """The minimum `base` at another number of middle layers: its linear run rewritten, then polished."""
    network = _rewritten(family, base, middle)
    solver = (ExactMoves(), LBFGS(family.settings.polish_evaluations))
    end = family.trained(network, base.ridge, solver, session)
    between = float("nan") if lines is None else lines.error(network)
    return family.measured(
        network, end, ridge=base.ridge, rank=base.rank, middle=middle, kind=base.kind, between=between,
        true_rank=_true_rank(network),
    )  # fmt: skip


def objective_at_depth(family: Connected, base: Minimum, middle: int) -> float:
    """Objective of the minimum `base` at another number of middle layers, before any polishing."""
    return family.problem.objective(_rewritten(family, base, middle), base.ridge)


def _rewritten(family: Connected, base: Minimum, middle: int) -> FullyConnected:
    # another number of factors of a large product throws the norms of all layers out of balance
    rewritten = with_linear_run(family.network_of(base), rank=base.dimensions, middle=middle)
    return rebalance(rewritten, tolerance=1e-2, sweeps=100)


def _true_rank(network: FullyConnected) -> int:
    """Rank of the product of the linear run, singular values above 1 % of the largest: a rank may have collapsed."""
    first, last = min(network.linear), max(network.linear) + 1
    product = network.weights[first - 1].detach().double()
    for weight in network.weights[first:last]:
        product = weight.detach().double() @ product
    s = torch.linalg.svdvals(product)
    return int((s > 0.01 * s[0]).sum()) if float(s[0]) > 0 else 0


def network_through(
    coordinates: Tensor, family: Connected, *, middle: int, ridge: float, session: Session
) -> FullyConnected:
    """A start that is curved already: both halves trained towards coordinates (n, rank) of the rows."""
    problem, settings, rank = family.problem, family.settings, coordinates.shape[1]
    encoder = _half(settings.encoder, problem.d_in, rank, seed=settings.seed)
    decoder = _half(settings.decoder, rank, problem.d_out, seed=(settings.seed + 1) % SEEDS)
    for half, x, y, loss in (
        (encoder, problem.x, coordinates, SQUARED),
        (decoder, coordinates, problem.y, problem.loss),
    ):
        solver = (family.adam(settings.adam_steps, RATE), LBFGS(settings.polish_evaluations))
        limits = Limits(seconds=session.seconds)
        fit(
            half, x, y, ridge=ridge, loss=loss, solver=solver, sample_weight=problem.weight, limits=limits,
            callback=session.hear, device=session.device,
        )  # fmt: skip
    return with_linear_run(joined(encoder, decoder, dtype=problem.x.dtype), rank=rank, middle=middle)


def _half(half: Half, d_in: int, d_out: int, *, seed: int) -> FullyConnected:
    return FullyConnected(d_in, d_out, width=half.widths, depth=half.layers + 1, seed=seed)


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
    with 32 layers, and whole from these (.088), at .0310 where three have .0374. Not pictures of a pendulum
    (docs/notes/remedies.md).
    """
    from sklearn.manifold import TSNE
    from sklearn.neighbors import KNeighborsRegressor

    rows = y.double().numpy()
    chosen = np.random.default_rng(seed).permutation(len(rows))[:MAPPED_ROWS]
    perplexity = min(PERPLEXITY, (len(chosen) - 1) / 3)
    init = "pca" if rank <= min(len(chosen), rows.shape[1]) else "random"
    placed = TSNE(rank, perplexity=perplexity, init=init, random_state=seed % 2**32).fit_transform(rows[chosen])
    found = KNeighborsRegressor(min(rank + 1, len(chosen)), weights="distance").fit(rows[chosen], placed).predict(rows)
    return _of_variance(rank, np.asarray(found, np.float64)).to(y.dtype)


def _of_variance(rank: int, found: NDArray[np.float64]) -> Tensor:
    """Coordinates of total variance `rank`."""
    spread = float(np.sqrt(found.var(0).sum() / rank))
    return torch.from_numpy(found / (spread or 1.0))
