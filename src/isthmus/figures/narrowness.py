"""Narrow minima: the tangent kernel of networks that under-estimate the rank explodes with the samples (figure 7).

The networks: `large_depth` and `constructions`. Kernels: `theory.tangent_kernels`.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
import xarray as xr

from isthmus.constructions import rank_one_interpolator
from isthmus.figures.claims import Claim
from isthmus.figures.figure import FigurePlan, PaperFigure, Preset
from isthmus.figures.large_depth import RANK, between, exponent, square
from isthmus.figures.panels import Curve, Frame, panel
from isthmus.figures.parts import Hear, Part
from isthmus.figures.workshop import Workshop
from isthmus.networks import FullyConnected, walk
from isthmus.networks.layers import activation_derivative
from isthmus.reports.picture import Picture
from isthmus.theory import rank1_stretch, suffix_jacobians, tangent_kernel_trace


@dataclass(frozen=True, slots=True)
class NarrownessSizes:
    """Numbers of a preset.

    Attributes:
        counts: numbers of samples N, ascending.
        depths: of the networks.
    """

    counts: tuple[int, ...]
    depths: tuple[int, ...]


PRESETS = {
    Preset.PAPER: NarrownessSizes((8, 16, 32, 64, 128, 256, 512), (10, 20, 40)),
    Preset.QUICK: NarrownessSizes((8, 16, 32, 64, 128, 256), (10, 20, 40)),
    Preset.TINY: NarrownessSizes((8, 16, 32), (6, 12)),
}


def plan(preset: Preset) -> FigurePlan[NarrownessSizes]:
    """The identity on points of the unit square by networks of rank 1 and of rank 2 (no picture in the paper)."""
    sizes = PRESETS[preset]
    return FigurePlan(sizes, parts=tuple(_part(count, sizes.depths) for count in sizes.counts))


def _part(count: int, depths: tuple[int, ...]) -> Part:
    return Part("tangent kernels", {"count": count, "depths": depths}, partial(_kernels, count, depths))


def compute(plan: FigurePlan[NarrownessSizes], workshop: Workshop) -> xr.Dataset:
    """Largest trace of the tangent kernel per layer, of both kinds of networks, over N and depth."""
    parts = [part.drop_attrs() for part in workshop.parts(plan.parts)]
    return xr.concat(parts, xr.Variable("count", np.array(plan.sizes.counts, dtype=float)))


def _kernels(count: int, depths: tuple[int, ...], _checkpoint: Path, _hear: Hear) -> xr.Dataset:
    """Both kernels at every depth for N points, and the slope that rank 1 needs."""
    points = square(count)
    direction = rank_one_interpolator(points, points, depth=depths[0]).direction  # the search does not see the depth
    rows = np.array([_pair(points, depth, direction) for depth in depths])
    data = xr.Dataset({name: ("depth", rows[:, i]) for i, name in enumerate(("rank_one", "rank_two"))})
    return data.assign_coords(depth=np.array(depths, dtype=float)).assign(stretch=((), rank1_stretch(points, points)))


def _pair(points: torch.Tensor, depth: int, direction: torch.Tensor) -> tuple[float, float]:
    found = rank_one_interpolator(points, points, depth=depth, direction=direction)
    eye, zero = torch.eye(RANK, dtype=torch.float64), torch.zeros(RANK, dtype=torch.float64)
    identity = FullyConnected.from_layers([eye] * depth, [zero] * depth)
    middles = between(found, points)
    return _largest(found.network, middles) / depth, _largest(identity, middles) / depth


def _largest(network: FullyConnected, x: torch.Tensor) -> float:
    """The largest trace of the tangent kernel at the points."""
    with torch.no_grad():
        states = walk(network, x)
    hidden = states[:-1]
    derivatives = [activation_derivative(state.preactivation, network.negative_slope) for state in hidden]
    suffixes = suffix_jacobians([state.weight.detach() for state in states], derivatives)
    return float(tangent_kernel_trace(([x, *(state.activation for state in hidden)], suffixes)).max())


def draw(data: xr.Dataset) -> tuple[Picture, ...]:
    """Both kernels over N at the largest depth, and that of rank 1 over N at every depth."""
    last = data.isel(depth=-1)
    depths = [
        Curve(f"depth {float(d):.0f}", data["count"], data["rank_one"].sel(depth=d), "both") for d in data["depth"]
    ]
    return (
        panel(
            "narrowness-ranks",
            f"Largest trace of the tangent kernel over the depth, at depth {float(last['depth']):.0f}, for the "
            "identity on N points of the square: networks of rank 1 through all points, and that of the true rank 2.",
            [Curve("rank 1", data["count"], last["rank_one"], "both"),
             Curve("rank 2", data["count"], last["rank_two"], "both")],
            Frame("samples", "tangent kernel / depth", log_x=True, log_y=True),
        ),
        panel(
            "narrowness-depths",
            "The same for rank 1 at several depths.",
            depths,
            Frame("samples", "tangent kernel / depth", log_x=True, log_y=True),
        ),
    )  # fmt: skip


def verdict(data: xr.Dataset) -> tuple[Claim, ...]:
    """Growth with N for rank 1, none for the true rank."""
    last = data.isel(depth=-1)
    return (
        Claim(
            "The tangent kernel of fits that under-estimate the rank blows up with the samples.",
            "Jacot 2023b, section 4.1",
            "exponent in N at the largest depth", exponent(data["count"], last["rank_one"]), least=0.5,
        ),
        Claim(
            "It grows at least like the squared slope that rank 1 needs, to the power 1 - 1/L.",
            "Jacot 2023b, Proposition 9",
            "least kernel / depth over slope^(2 - 2/L)",
            float((last["rank_one"] / data["stretch"] ** (2 - 2 / float(last["depth"]))).min()), least=0.25,
        ),
        Claim(
            "That of the network of the true rank does not.", "Jacot 2023b, section 4.1",
            "exponent in N at the largest depth", exponent(data["count"], last["rank_two"]), most=0.1,
        ),
    )  # fmt: skip


FIGURE = PaperFigure(
    7,
    "narrowness",
    "Narrowness of minima that under-estimate the rank",
    "Jacot 2023b, section 4.1",
    "Networks written down for the identity on random points of the unit square. The paper shows no experiment: every "
    "size is ours.",
    plan,
    compute,
    draw,
    verdict,
)
