"""What the depth path computes: cold starts of one rank, and the same rank at another depth. One function per unit.

The order of the units and what is read off them: `depth_path`. The starts themselves: `rank_starts`.
"""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import torch

from isthmus.discovery.between_rows import LinesBetweenRows
from isthmus.discovery.curves import Callback, Result, measured_connected, narrow_network_of, network_of, trained
from isthmus.discovery.problem import Problem
from isthmus.discovery.rank_starts import geodesic_network, narrow_network
from isthmus.discovery.settings import Settings
from isthmus.networks import FullyConnected, rebalance
from isthmus.networks.folding import with_linear_run
from isthmus.training import Limits
from isthmus.training.losses import Loss
from isthmus.training.moves import rebalancing, truncate_middle
from isthmus.training.solvers import LBFGS, Adam
from isthmus.training.trials import ExactMoves


class RankStart(StrEnum):
    """Where a network of a given rank comes from."""

    GEODESIC = "geodesic"
    TRUNCATED = "truncated"
    RANDOM = "random"
    DESCENDED = "descended"


@dataclass(frozen=True, slots=True)
class DepthSettings:
    """Numbers of a depth path.

    Attributes:
        middle_layers: numbers of linear middle layers, ascending; the first is the flat end.
        anchor: the number at which starts are trained; the best goes from there to all others.
        random_starts: for each rank, besides the geodesic and the truncated one.
        beyond: ranks above that of the discovery that are tried.
    """

    middle_layers: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    anchor: int = 4
    random_starts: int = 1
    beyond: int = 1


def kinds_of(problem: Problem, depth: DepthSettings) -> list[RankStart]:
    """The starts of each rank; classes have no distances along the data."""
    geodesic = [RankStart.GEODESIC] if problem.loss is Loss.SQUARED else []
    return [*geodesic, RankStart.TRUNCATED, *[RankStart.RANDOM] * depth.random_starts]


def ranked_start(  # noqa: PLR0913
    problem: Problem,
    settings: Settings,
    *,
    kind: RankStart,
    number: int,
    rank: int,
    middle: int,
    base: Result,
    seconds: float | None,
    checkpoint: Path | None,
    callback: Callback,
) -> Result:
    """Train a network of `rank` from a start of this kind; `base` is the truncated network of the objective curve."""
    ridge, limits = base["ridge"], Limits(seconds=seconds)
    if kind is RankStart.TRUNCATED:
        network = with_linear_run(network_of(problem, settings, base["theta"]), rank=rank, middle=middle)
    elif kind is RankStart.RANDOM:
        seed = 1000 * settings.seed + number
        network = narrow_network(problem.d_in, problem.d_out, settings, rank=rank, middle=middle, seed=seed)
    else:
        network = geodesic_network(
            problem, settings, rank=rank, middle=middle, ridge=ridge, limits=limits, callback=callback
        )
    lbfgs = LBFGS(settings.lbfgs_evaluations)
    rate = 3e-3 if kind is RankStart.RANDOM else 1e-3
    adam = Adam(settings.adam_steps, rate, moves=(rebalancing,), move_every=20)
    solver = (ExactMoves(), lbfgs) if kind is RankStart.TRUNCATED else (adam, lbfgs)
    result = trained(problem, network, ridge, solver, seconds=seconds, checkpoint=checkpoint, callback=callback)
    return measured_connected(problem, network, result) | {
        "ridge": ridge,
        "rank": rank,
        "middle": middle,
        "kind": str(kind),
    }


def descended(  # noqa: PLR0913
    problem: Problem,
    settings: Settings,
    *,
    rank: int,
    base: Result,
    seconds: float | None,
    checkpoint: Path | None,
    callback: Callback,
) -> Result:
    """Take dimensions away from the minimum `base` until `rank` are left, and train long; or train it on.

    One dimension at a time the others bend to carry what it did: on six curved dimensions that fill twelve columns
    random starts of rank 6 end at an objective of .13 to .14, this way down from 12 at .049, as low as a start at the
    true coordinates (.044).
    """
    network = narrow_network_of(problem, settings, base["theta"], base["rank"], middle=base["middle"])
    if rank < base["rank"]:
        truncate_middle(network, rank)
        network = with_linear_run(network, rank=rank, middle=base["middle"])
    adam = Adam(settings.descent_steps, 1e-3, moves=(rebalancing,), move_every=20)
    solver = (ExactMoves(), adam, LBFGS(settings.descent_evaluations))
    result = trained(problem, network, base["ridge"], solver, seconds=seconds, checkpoint=checkpoint, callback=callback)
    about = {"ridge": base["ridge"], "rank": rank, "middle": base["middle"], "kind": str(RankStart.DESCENDED)}
    return measured_connected(problem, network, result) | about


def at_depth(  # noqa: PLR0913
    problem: Problem,
    settings: Settings,
    *,
    base: Result,
    middle: int,
    lines: LinesBetweenRows | None,
    seconds: float | None,
    checkpoint: Path | None,
    callback: Callback,
) -> Result:
    """The minimum `base` at another number of middle layers: its linear run rewritten, then polished."""
    rank, ridge = base["rank"], base["ridge"]
    network = _rewritten(problem, settings, base, middle)
    solver = (ExactMoves(), LBFGS(settings.polish_evaluations))
    result = trained(problem, network, ridge, solver, seconds=seconds, checkpoint=checkpoint, callback=callback)
    between = float("nan") if lines is None else lines.error(network)
    about = {"ridge": ridge, "rank": rank, "middle": middle, "depth": network.depth, "kind": base["kind"]}
    return measured_connected(problem, network, result) | about | {"between": between, "true_rank": _true_rank(network)}


def objective_at_depth(problem: Problem, settings: Settings, base: Result, middle: int) -> float:
    """Objective of the minimum `base` at another number of middle layers, before any polishing."""
    return problem.objective(_rewritten(problem, settings, base, middle), base["ridge"])


def _rewritten(problem: Problem, settings: Settings, base: Result, middle: int) -> FullyConnected:
    known = narrow_network_of(problem, settings, base["theta"], base["rank"], middle=base["middle"])
    # another number of factors of a large product throws the norms of all layers out of balance
    return rebalance(with_linear_run(known, rank=base["rank"], middle=middle), tolerance=1e-2, sweeps=100)


def _true_rank(network: FullyConnected) -> int:
    """Rank of the product of the linear run, singular values above 1 % of the largest: a rank may have collapsed."""
    first, last = min(network.linear), max(network.linear) + 1
    product = network.weights[first - 1].detach().double()
    for weight in network.weights[first:last]:
        product = weight.detach().double() @ product
    s = torch.linalg.svdvals(product)
    return int((s > 0.01 * s[0]).sum()) if float(s[0]) > 0 else 0
