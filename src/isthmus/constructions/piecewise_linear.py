"""Piecewise-linear curves R -> R^d as ReLU networks of depth 2, and interpolation through one hidden dimension (FC-19).

Piecewise-linear functions of several variables: `constructions.max_affine`.
"""

from dataclasses import dataclass
from math import inf, isnan

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.constructions.composition import compose_with_identity, merged_composition
from isthmus.errors import DataError, ShapeError
from isthmus.networks import FullyConnected
from isthmus.networks.layers import check_numbers
from isthmus.theory.scales import lengths, unit


@dataclass(frozen=True, slots=True)
class RankOneInterpolation:
    """A network of bottleneck rank at most 1 that passes through the data.

    Attributes:
        network: the network, of the depth that was asked for.
        direction: the unit vector u on which the inputs are projected.
        constant: C_N, with penalty = L + C_N (*exact*; the same for all depths from 3 on). Dominated by one over the
            smallest gap between projected inputs, hence a true but usually very loose upper bound on the least one.
        error: largest absolute error on the data.
    """

    network: FullyConnected
    direction: Tensor
    constant: float
    error: float


def piecewise_linear_network(
    knots: Float[Tensor, " m"],
    values: Float[Tensor, "m d_out"],
    *,
    left_slope: Float[Tensor, " d_out"] | None = None,
    right_slope: Float[Tensor, " d_out"] | None = None,
) -> FullyConnected:
    """The ReLU network of the curve through (knots, values), straight between and beyond (*exact*), depth 2.

        f(t) = f(t_0) - s_left relu(t_0 - t) + sum_i (s_i - s_{i-1}) relu(t - t_i)

    Every neuron is balanced: with outgoing weight c, knot t_i costs 2 |c| sqrt(1 + t_i^2). Knots at which the slope
    does not change have no neuron.

    Args:
        knots: strictly increasing numbers t_0 < .. < t_{m-1}.
        values: values there, one row per knot.
        left_slope: slope before the first knot, zero unless given.
        right_slope: slope after the last knot, zero unless given.

    Raises:
        ShapeError: knots, values and slopes that do not fit.
        ValueError: knots that do not increase strictly, or a slope between them that float64 does not hold.

    Accuracy: rounding times the largest slope times the range of the knots, at every size of knots and values.
    Source: Jacot 2023a, Corollary 1. Test: FC-17.

    >>> network = constructions.piecewise_linear_network(torch.tensor([0.0, 1.0]), torch.tensor([[0.0], [2.0]]))
    >>> network(torch.tensor([[0.5], [2.0]], dtype=torch.float64)).flatten().tolist()
    [1.0, 2.0]
    """
    _check_knots(knots, values, left_slope, right_slope)
    t, y = knots.double(), values.double()
    flat = torch.zeros_like(y[0])
    left, right = (flat if slope is None else slope.double() for slope in (left_slope, right_slope))
    _check_slopes("piecewise_linear_network", t, y)
    rows, outgoing = _neurons(t, y, left, right)
    return FullyConnected.from_layers([rows[:, :1], outgoing.T], [rows[:, 1], y[0]])


def _neurons(t: Tensor, y: Tensor, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Weight and bias of every neuron of the curve, and what goes out of it, as rows."""
    flat, left, right = torch.zeros_like(y[:1]), left[None], right[None]
    inner = y.diff(dim=0) / t.diff()[:, None]
    changes = torch.cat([inner, right]) - torch.cat([flat, inner])  # the left slope has a neuron of its own
    rows = torch.stack([torch.ones_like(t), -t], 1)
    rows, changes = torch.cat([rows, -rows[:1]]), torch.cat([changes, -left])
    used = (changes != 0).any(1)
    used[0] |= not used.any()  # a constant keeps one neuron of zero weight
    rows, changes = rows[used], changes[used]
    scale = lengths(changes).sqrt() / lengths(rows).sqrt()  # of which no quotient is formed: it may be no number
    return rows * scale[:, None], changes / torch.where(scale > 0, scale, torch.ones_like(scale))[:, None]


def rank_one_interpolator(
    x: Float[Tensor, "n d_in"],
    y: Float[Tensor, "n d_out"],
    *,
    depth: int,
    direction: Float[Tensor, " d_in"] | None = None,
    num_directions: int = 200,
    seed: int = 0,
) -> RankOneInterpolation:
    """A ReLU network of the given depth through all the data, of bottleneck rank at most 1 (*exact* on the data).

        x -> t = <u, x> - min  -> identity ->  curve through the (t_i, y_i),     penalty = L + C_N
        C_N = min^2 + the curve's squared norm - 2

    Unless a direction is given, the best of `num_directions` random ones and of their parts orthogonal to the mean
    input, which keep the bias `min` small, is taken (*heuristic*: C_N is an *upper bound* on the least constant; it
    falls slowly with more directions and never rises).

    Args:
        x: samples as rows, distinct unless their targets agree.
        y: targets as rows.
        depth: number of weight matrices, at least 2.
        direction: u, normalised here.
        num_directions: random directions tried.
        seed: seed of the directions.

    Raises:
        ShapeError: x and y with different numbers of rows, or a direction of another size.
        DataError: two samples with the same projection and different targets in every direction tried.
        ValueError: depth < 2, a direction of length 0, or none to try; data whose slopes or squares leave float64.

    Accuracy: rounding times the largest slope, about |y| / (smallest gap of t), times the range of t; sizes of inputs
    and targets from 1e-150 to 1e150 change nothing in this.
    Source: Jacot 2023a, Proposition 2. Test: FC-19.

    >>> made = constructions.rank_one_interpolator(torch.eye(3), torch.eye(3), depth=9, num_directions=5)
    >>> made.network(torch.eye(3, dtype=torch.float64)).round(decimals=6).abs().tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    _check_interpolation(x, y, depth, direction)
    if direction is None and num_directions < 1:
        raise ValueError(f"rank_one_interpolator(num_directions={num_directions}): needs at least one direction.")
    x, y = x.double(), y.double()
    candidates = candidate_directions(x, num_directions, seed) if direction is None else direction.double()[None]
    candidates = candidates / lengths(candidates)[:, None]
    costs = [end_cost(x @ u, y, depth) for u in candidates]
    best = min(range(len(costs)), key=costs.__getitem__)
    if costs[best] == inf:
        _refuse([x @ u for u in candidates], y)
    u = candidates[best]
    network = _through(x @ u, y, u, depth)
    with torch.no_grad():
        error = float((network(x) - y).abs().max())
        return RankOneInterpolation(network, u, float(network.penalty()) - depth, error)


def _through(t: Tensor, y: Tensor, u: Tensor, depth: int) -> FullyConnected:
    """The projection on u, identity layers, and the curve through (t, y)."""
    knots, values, last = _curve(t - t.min(), y)
    _check_slopes("rank_one_interpolator", knots, values)
    curve = piecewise_linear_network(knots, values, right_slope=last)
    projection = FullyConnected.from_layers([u[None]], [-t.min()[None]])
    if depth == 2:
        return merged_composition(projection, curve)
    zero = torch.zeros(1, dtype=torch.float64)
    return compose_with_identity(projection, curve, depth - 3, shift=zero).network


def _curve(t: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Knots and values of the curve through (t, y), and its last slope, with which it goes on: one neuron fewer."""
    order = torch.argsort(t)
    knots, values = t[order], y[order]
    keep = torch.cat([torch.ones_like(knots[:1], dtype=torch.bool), knots.diff() > 0])
    knots, values = knots[keep], values[keep]
    last = (values[-1] - values[-2]) / (knots[-1] - knots[-2]) if len(knots) > 1 else torch.zeros_like(values[0])
    return knots, values, last


def end_cost(t: Tensor, y: Tensor, depth: int) -> float:
    """Squared norm of the network without its identity layers; infinite where projections contradict, or it overflows.

    From its numbers alone: to make the network of every direction takes three to four times as long.
    """
    if _contradict(t, y):
        return inf
    knots, values, last = _curve(t - t.min(), y)
    rows, outgoing = _neurons(knots, values, torch.zeros_like(last), last)
    behind = outgoing.square().sum() + values[0].square().sum()
    if depth == 2:  # the projection is merged into the first layer of the curve
        cost = float(rows[:, 0].square().sum() + (rows[:, 1] - rows[:, 0] * t.min()).square().sum() + behind)
    else:
        cost = 1 + float(rows.square().sum() + behind + t.min().square())
    return inf if isnan(cost) else cost


def _contradict(t: Tensor, y: Tensor) -> bool:
    """Whether two equal projections have different targets."""
    order = torch.argsort(t)
    gaps, steps = (t - t.min())[order].diff(), y[order].diff(dim=0)
    return bool(((gaps == 0) & (steps != 0).any(1)).any())


def _refuse(projections: list[Tensor], y: Tensor) -> None:
    """Say why no direction will do."""
    if all(_contradict(t, y) for t in projections):
        raise DataError(
            "rank_one_interpolator(x, y): needs samples whose projections differ wherever their targets do; every "
            "direction tried has two equal projections with different targets. Remove contradicting rows."
        )
    raise ValueError(
        "rank_one_interpolator: needs inputs, targets and slopes whose squares float64 holds; these leave its range in "
        "every direction tried. Rescale them."
    )


def candidate_directions(x: Tensor, count: int, seed: int) -> Tensor:
    """Random directions, a larger count those of a smaller one among its own, and their parts across the mean."""
    whole = -(-count // 16) * 16  # torch fills tensors of 16 numbers and more in blocks of 16
    drawn = torch.randn(whole, x.shape[1], generator=torch.Generator().manual_seed(seed), dtype=torch.float64)[:count]
    mean = x.mean(0)
    if x.shape[1] == 1 or not bool(mean.any()):
        return drawn
    mean = unit(mean) / unit(mean).norm()
    across = drawn - torch.outer(drawn @ mean, mean)
    return torch.cat([drawn, across - torch.outer(across @ mean, mean)])


def _check_knots(knots: Tensor, values: Tensor, left: Tensor | None, right: Tensor | None) -> None:
    slopes = [tuple(s.shape) for s in (left, right) if s is not None]
    fits = knots.ndim == 1 and values.ndim == 2 and len(knots) == len(values) > 0
    if not fits or any(shape != tuple(values.shape[1:]) for shape in slopes):
        raise ShapeError(
            "piecewise_linear_network: needs knots (m,), values (m, d_out) and slopes (d_out,), m >= 1; got "
            f"{tuple(knots.shape)}, {tuple(values.shape)} and slopes {slopes}."
        )
    check_numbers("piecewise_linear_network", knots=knots, values=values, left_slope=left, right_slope=right)
    if not bool((knots.diff() > 0).all()):
        raise ValueError("piecewise_linear_network: needs strictly increasing knots. Sort them and drop repetitions.")


def _check_slopes(call: str, t: Tensor, y: Tensor) -> None:
    """Raise where a slope or a change of slopes is no number with all its digits."""
    steps, gaps = y.diff(dim=0), t.diff()[:, None]
    slopes = steps / gaps
    lost = (steps != 0) & (slopes.abs() < torch.finfo(slopes.dtype).tiny)
    if bool(lost.any()) or not all(bool(torch.isfinite(part).all()) for part in (steps, gaps, slopes.diff(dim=0))):
        raise ValueError(
            f"{call}: needs slopes between the knots that float64 holds, 2e-308 to 1e308; these values and knots have "
            "others. Rescale them."
        )


def _check_interpolation(x: Tensor, y: Tensor, depth: int, direction: Tensor | None) -> None:
    fits = x.ndim == y.ndim == 2 and len(x) == len(y) > 0
    if not fits or (direction is not None and tuple(direction.shape) != tuple(x.shape[1:])):
        raise ShapeError(
            "rank_one_interpolator: needs x (n, d_in), y (n, d_out), n >= 1, and a direction (d_in,); got "
            f"{tuple(x.shape)}, {tuple(y.shape)}, {None if direction is None else tuple(direction.shape)}."
        )
    check_numbers("rank_one_interpolator", x=x, y=y, direction=direction)
    if depth < 2:
        raise ValueError(f"rank_one_interpolator(depth={depth}): needs depth >= 2; depth 1 is affine.")
    if direction is not None and not bool(direction.any()):
        raise ValueError("rank_one_interpolator(direction=): needs a direction that is not zero. Leave it out.")
