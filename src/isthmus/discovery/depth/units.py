"""What the depth path computes: cold starts of one rank, and the same rank at another depth. One function per unit.

The order of the units and what is read off them: `depth.path`. Starts without a prescribed rank: `kinds.connected`.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial

import torch
from torch import Tensor

from isthmus.discovery.data.problem import Problem
from isthmus.discovery.depth.between_rows import LinesBetweenRows
from isthmus.discovery.depth.row_maps import (
    MAPPED_RANKS,
    geodesic_coordinates,
    neighbour_coordinates,
    ring_coordinates,
)
from isthmus.discovery.factorisation import joined
from isthmus.discovery.halves import Half
from isthmus.discovery.kinds.connected import RATE, Connected
from isthmus.discovery.kinds.family import DESCENDED
from isthmus.discovery.minimum import Minimum
from isthmus.discovery.settings import SEEDS, Settings
from isthmus.discovery.work.unit import Session
from isthmus.networks import FullyConnected, rebalance
from isthmus.networks.folding import with_linear_run
from isthmus.training import Limits, fit
from isthmus.training.losses import SQUARED
from isthmus.training.moves import truncate_middle
from isthmus.training.solvers.solver import LBFGS
from isthmus.training.solvers.trials import ExactMoves

RING_RANK = 2  # dimensions that a ring lies in
RING_POLISHED = 2  # times the evaluations of a descent, that each of its halves is trained towards it


class RankStart(StrEnum):
    """Where a network of a given rank comes from."""

    GEODESIC = "geodesic"
    TRUNCATED = "truncated"
    RANDOM = "random"
    NEIGHBOURS = "neighbours"
    RING = "ring"
    DESCENDED = DESCENDED


# starts that know where rows lie on the data
MAPS = {
    RankStart.GEODESIC: geodesic_coordinates,
    RankStart.NEIGHBOURS: neighbour_coordinates,
    RankStart.RING: ring_coordinates,
}


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
    rings = [RankStart.RING] if problem.autoencoding and rank == RING_RANK else []
    return [*geodesic, RankStart.TRUNCATED, *[RankStart.RANDOM] * depth.random_starts, *mapped, *rings]


def start_cost(settings: Settings, kind: RankStart) -> int:
    """Gradient evaluations that a start of this kind takes at most."""
    if kind is RankStart.RING:
        return _half_evaluations(settings, kind) + settings.start_evaluations
    return settings.start_evaluations


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
        coordinates = _mapped(family.problem, kind, rank, seed=settings.seed)
        evaluations = _half_evaluations(settings, kind)
        network = network_through(
            coordinates, family, middle=middle, ridge=ridge, evaluations=evaluations, session=session
        )
        solver = (family.adam(settings.adam_steps, RATE / 3), lbfgs)
    end = family.trained(network, ridge, solver, session)
    return family.measured(network, end, ridge=ridge, rank=rank, middle=middle, kind=str(kind))


def _mapped(problem: Problem, kind: RankStart, rank: int, *, seed: int) -> Tensor:
    """Coordinates of the training rows; a ring may be seen in the units that they came in."""
    targets, placed = problem.targets, MAPS[kind]
    if kind is RankStart.RING and targets is not None and targets.mixing is None:
        placed = partial(placed, scale=targets.scale)
    return placed(problem.y, rank, seed=seed)


def _half_evaluations(settings: Settings, kind: RankStart) -> int:
    """Gradient evaluations of L-BFGS in which each half learns its map.

    A ring that its halves only half know folds in the training that follows: pictures of a pendulum, 964 and 951, end
    at an objective of .0364 and .0359, torn (errors between rows of .8 and 1.8), where the halves have 250; at .0344
    and .0347, whole (.12 and .20), where they have 3,000.
    """
    return RING_POLISHED * settings.descent_evaluations if kind is RankStart.RING else settings.polish_evaluations


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
    coordinates: Tensor, family: Connected, *, middle: int, ridge: float, evaluations: int, session: Session
) -> FullyConnected:
    """A start that is curved already: both halves trained towards coordinates (n, rank) of the rows.

    Args:
        coordinates: of the training rows.
        family: what networks there are.
        middle: linear layers between the halves.
        ridge: of both.
        evaluations: gradient evaluations of L-BFGS in which each half is trained, after Adam.
        session: of the unit.
    """
    problem, settings, rank = family.problem, family.settings, coordinates.shape[1]
    encoder = _half(settings.encoder, problem.d_in, rank, seed=settings.seed)
    decoder = _half(settings.decoder, rank, problem.d_out, seed=(settings.seed + 1) % SEEDS)
    for half, x, y, loss in (
        (encoder, problem.x, coordinates, SQUARED),
        (decoder, coordinates, problem.y, problem.loss),
    ):
        solver = (family.adam(settings.adam_steps, RATE), LBFGS(evaluations))
        limits = Limits(seconds=session.seconds)
        fit(
            half, x, y, ridge=ridge, loss=loss, solver=solver, sample_weight=problem.weight, limits=limits,
            callback=session.hear, device=session.device,
        )  # fmt: skip
    return with_linear_run(joined(encoder, decoder, dtype=problem.x.dtype), rank=rank, middle=middle)


def _half(half: Half, d_in: int, d_out: int, *, seed: int) -> FullyConnected:
    return FullyConnected(d_in, d_out, width=half.widths, depth=half.layers + 1, seed=seed)
