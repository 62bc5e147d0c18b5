"""How much leak a leaky network needs before three readings of the rank agree, found by raising it.

The readings: `theory.leaky` and `diagnostics`. The rank of a task from data alone: `discover`.
"""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from isthmus.diagnostics import leaky_diagnosis
from isthmus.errors import NumericalWarning
from isthmus.networks import LeakyResNet, walk
from isthmus.networks.devices import device_of
from isthmus.processes.shared_state import silenced
from isthmus.theory.inputs import Real, check_positive
from isthmus.training import Limits, fit
from isthmus.training.limits import Clock
from isthmus.training.solvers.adaptive_steps import read_at
from isthmus.training.solvers.preconditioned import PreconditionedLBFGS

LEAK = 0.25  # rho Lt of every layer: half of it changes the Hamiltonian's reading by 0.1 to 0.2 on the small net
TOLERANCE = 0.2
CRITICAL = 1e-2  # stationarity above which a reading does not count: 1/ridge amplifies every residual
MOMENT = 1e-3  # seconds
LOWER = 1e-3  # relative fall of the objective that counts: the same minimum trained again differed by 1e-5
Row = dict[str, float]
READINGS = ("rank_from_hamiltonian", "cost_of_identity", "rank_from_slope")


@dataclass(frozen=True, slots=True)
class EffectiveDepth:
    """Where the readings agree, or why they do not.

    Attributes:
        rank: the integer that all three are near, or None.
        effective_depth: the Lt at which they are, or None.
        reason: one sentence.
        table: dimension "effective_depth": `depth`, `objective`, `stationarity`, `rank_from_hamiltonian` (median over
            the layers, from below), `cost_of_identity` (least over the layers, from above), `rank_from_slope`
            (2 / ridge) dV / dLt between this Lt and the one before, NaN at the first and where the rank was lowered.
        network: trained at the last Lt.
    """

    rank: int | None
    effective_depth: float | None
    reason: str
    table: xr.Dataset
    network: LeakyResNet


def effective_depth(  # noqa: PLR0913
    network: LeakyResNet,
    x: Float[Tensor, "n d_in"],
    y: Float[Tensor, "n d_out"],
    *,
    ridge: Real,
    most: Real = 30.0,
    factor: Real = 1.5,
    solver: PreconditionedLBFGS | None = None,
    limits: Limits | None = None,
) -> EffectiveDepth:
    """The effective depth at which Hamiltonian, cost of identity and objective agree on a rank (*estimate*).

        -2 H / Lt (from below),   min over layers of |A|^2_K (from above),   (2 / ridge) dV / dLt:   all within 0.2 of k

    Lt is raised from that of `network` by `factor`, each time from the weights before: read at the same distance from
    the nearer end in units of the leak, so that the middle is drawn out and both ends stay. Layers are equally long,
    with rho Lt <= 0.25. Where they agree on k, both Lt are trained again from a middle of k - 1 directions; if that
    ends lower, k was that of a local minimum, and the readings of the lower one count.

    Args:
        network: the first Lt and initial weights; not changed.
        x: samples as rows.
        y: targets; squared error.
        ridge: lambda, > 0.
        most: largest Lt.
        factor: between one Lt and the next, > 1.
        solver: of every Lt; the default stops at a relative stationarity of 1e-4 with the relu smoothed by 0.05.
        limits: seconds for everything, gradient evaluations of each training, also with a solver of yours.

    Returns:
        The rank and where it was read, or neither and the reason.

    Raises:
        ValueError: `ridge` <= 0, `factor` <= 1, or `most` below the Lt of the network. ShapeError, DataError: x and y
            do not fit.

    Accuracy: that of the solver and O(rho) of the discretisation. A local minimum of one rank too many is kept from
    one Lt to the next; one direction fewer is tried where the readings agree, so that it is found out there at last.
    The rank is that of the least objective at this ridge: a ridge or Lt at which a direction of the task costs more
    than it saves leaves that direction out. Where a smaller ridge reads more, believe the smaller one.
    Source: Jacot and Kaiser 2024, figure 1; the slope is ours (LEAKY-13).
    Test: tests/discovery/depth/test_effective_depth.py.

    >>> isthmus.effective_depth(leaky, x, y, ridge=1e-1).rank  # doctest: +SKIP
    """
    check_positive("effective_depth", "ridge", ridge)
    _check_range(network.effective_depth, most, factor)
    limits = limits or Limits()
    chosen = solver or PreconditionedLBFGS(smoothing=(0.05,), tolerance=1e-4, evaluations=limits.evaluations or 4000)
    clock, rows = Clock(), list[Row]()

    def read(network: LeakyResNet, known: list[Row]) -> Row:
        objective = fit(network, x, y, ridge=float(ridge), solver=chosen, limits=_left(limits, clock)).objective
        return readings_at(network, objective, _energies(network, x, y, float(ridge)), float(ridge), known)

    def late() -> bool:
        return limits.seconds is not None and clock.seconds() > limits.seconds

    before = now = drawn_out(network, network.effective_depth)
    while True:
        rows.append(read(now, rows))
        rank = _agreed(rows[-1])
        while rank and not late():
            branch, longer, lower = _through_fewer(before, now, x, rank - 1, read)
            if not lower[-1]["objective"] < (1 - LOWER) * rows[-1]["objective"]:
                break
            before, now, rows[-2:] = branch, longer, lower  # what they agreed on was a local minimum
            rank = _agreed(rows[-1])
        following = now.effective_depth * float(factor)
        if rank is not None or following > most or late():
            break
        before, now = now, drawn_out(now, following)
    reason = _reason(rows[-1], rank, late=late() and following <= most)
    return EffectiveDepth(rank, None if rank is None else now.effective_depth, reason, _table(rows), now)


def _check_range(first: float, most: Real, factor: Real) -> None:
    check_positive("effective_depth", "effective_depth of the network", first)
    if not factor > 1 or not most >= first:
        raise ValueError(
            f"effective_depth(factor={factor:g}, most={most:g}): needs a factor > 1 and most >= {first:g}, the Lt that "
            "the network starts with."
        )


def _left(limits: Limits, clock: Clock) -> Limits:
    """What one fit may take; a moment where nothing is left, in which it makes one iteration."""
    if limits.seconds is None:
        return limits
    return replace(limits, seconds=max(limits.seconds - clock.seconds(), MOMENT))


def _energies(network: LeakyResNet, x: Tensor, y: Tensor, ridge: float) -> xr.Dataset:
    with silenced(NumericalWarning):  # the stationarity stands in the table
        return leaky_diagnosis(network, x, y, ridge=ridge)


def _through_fewer(
    before: LeakyResNet, now: LeakyResNet, x: Tensor, rank: int, read: Callable[[LeakyResNet, list[Row]], Row]
) -> tuple[LeakyResNet, LeakyResNet, list[Row]]:
    """Networks through `rank` directions, trained at the Lt before and then at this one, and what they read.

    At this one from two starts, of which the lower counts: a middle that is drawn out may blow up, and then collapse.
    """
    branch = narrowed(before, x, rank)
    there = read(branch, [])
    starts = [drawn_out(branch, now.effective_depth), narrowed(now, x, rank)]
    here, longer = min(((read(start, [there]), start) for start in starts), key=lambda ended: ended[0]["objective"])
    return branch, longer, [there, here]


def narrowed(network: LeakyResNet, x: Float[Tensor, "n d_in"], rank: int) -> LeakyResNet:
    """A copy whose middle half writes into the leading `rank` directions of the stream in its middle only.

    W' = P W in the layers between a quarter and three quarters of the leak, P the projection onto the leading principal
    directions of A at one half: what is outside them decays with the leak. A start for training, not a minimum.

    Args:
        network: not changed.
        x: samples as rows, by which directions are ordered.
        rank: from 0.
    """
    lower = copy.deepcopy(network)
    with torch.no_grad():
        times = network.steps.double().cumsum(0)
        middle = walk(network, x)[int((times < 0.5).sum())].activation
        axes = torch.linalg.svd(middle, full_matrices=False).Vh[:rank]
        inside = (times > 0.25) & (times <= 0.75)
        lower.weights[inside] = axes.T @ axes @ lower.weights[inside]
    return lower


def drawn_out(network: LeakyResNet, effective_depth: float) -> LeakyResNet:
    """A float64 network of another Lt that starts from the weights of this one: its middle is drawn out.

    W' / Lt' at leak time t from the nearer end is W / Lt at min(t, Lt / 2) from that end.

    Args:
        network: not changed.
        effective_depth: Lt', at least that of the network.
    """
    depth = max(network.depth, math.ceil(effective_depth / LEAK))
    drawn = LeakyResNet(
        network.d_in, network.d_out, width=network.width, depth=depth, effective_depth=effective_depth,
        maps=network.maps, bias=network.has_bias, scheme=network.scheme, seed=0, dtype=torch.float64,
    ).to(device_of(network))  # fmt: skip
    Lt, steps = network.effective_depth, network.steps.double()
    known = Lt * (steps.cumsum(0) - steps / 2)
    asked = effective_depth * (drawn.steps.cumsum(0) - drawn.steps / 2)
    near = torch.minimum(asked, effective_depth - asked).clamp(max=Lt / 2)
    asked = torch.where(2 * asked < effective_depth, near, Lt - near)
    with torch.no_grad():
        drawn.weights.copy_(read_at(network.weights.double(), known, asked) * (effective_depth / Lt))
        drawn.embedding.copy_(network.embedding)
        drawn.unembedding.copy_(network.unembedding)
        drawn.smoothing.copy_(network.smoothing)
    return drawn


def readings_at(network: LeakyResNet, objective: float, energies: xr.Dataset, ridge: float, rows: list[Row]) -> Row:
    """What is read at this Lt, after those before it."""
    slope = math.nan
    if rows:
        rise = objective - rows[-1]["objective"]
        slope = 2 / ridge * rise / (network.effective_depth - rows[-1]["effective_depth"])
    return {
        "effective_depth": network.effective_depth,
        "depth": float(network.depth),
        "objective": objective,
        "stationarity": float(energies.attrs["stationarity"]),
        "rank_from_hamiltonian": float(energies["rank_from_hamiltonian"].median()),
        "cost_of_identity": float(energies["cost_of_identity"].min()),
        "rank_from_slope": slope,
    }


def _agreed(row: Row) -> int | None:
    """The integer that the readings are near, if they are and the network is critical."""
    values = [row[name] for name in READINGS]
    if not row["stationarity"] <= CRITICAL or not all(map(math.isfinite, values)):
        return None
    rank = round(sum(values) / len(values))
    return rank if all(abs(value - rank) <= TOLERANCE for value in values) else None


def _reason(row: Row, rank: int | None, *, late: bool) -> str:
    below, above, slope = (row[name] for name in READINGS)
    read = (
        f"at Lt = {row['effective_depth']:.3g} the Hamiltonian reads {below:.2f}, the cost of identity {above:.2f} and "
        f"the objective {'nothing yet' if math.isnan(slope) else f'{slope:.2f}'}"
    )
    if rank is not None:
        return f"All within {TOLERANCE:g} of {rank}: {read}."
    if not row["stationarity"] <= CRITICAL:
        far = f"relative stationarity {row['stationarity']:.2g}, more than {CRITICAL:g}"
        if late:
            return f"The time was used up before the network was at a critical point ({far}): {read}."
        return f"The network is not at a critical point ({far}), so that its readings do not count: {read}."
    why = "the time was used up" if late else "the largest Lt was reached"
    return f"No integer is within {TOLERANCE:g} of all three before {why}: {read}."


def _table(rows: list[Row]) -> xr.Dataset:
    names = [name for name in rows[0] if name != "effective_depth"]
    return xr.Dataset(
        {name: ("effective_depth", np.array([row[name] for row in rows])) for name in names},
        coords={"effective_depth": np.array([row["effective_depth"] for row in rows])},
    )
