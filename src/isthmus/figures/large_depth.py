"""Very large depth: approximate rank 1, what rank 1 costs in slope, and the depths at which it cannot win (figure 4).

Interpolators: `constructions.piecewise_linear`. Their tangent kernels: `narrowness`. Windows: `theory.depth_ranges`.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
import xarray as xr

from isthmus.constructions import RankOneInterpolation, rank_one_interpolator
from isthmus.figures.claims import Claim
from isthmus.figures.figure import FigurePlan, PaperFigure, Preset
from isthmus.figures.panels import Curve, Frame, panel
from isthmus.figures.parts import Hear, Part
from isthmus.figures.workshop import Workshop
from isthmus.networks import walk
from isthmus.networks.jacobians import jacobians
from isthmus.networks.layer_widths import widened
from isthmus.reports.picture import Picture
from isthmus.theory import depth_window, rank1_stretch
from isthmus.training import fit
from isthmus.training.solvers.solver import LBFGS

RANK = 2  # of the identity on the square
LARGEST = 1024  # number of samples
NOISE = 0.02  # of the neurons that are added to an interpolator, so that training can leave rank 1


@dataclass(frozen=True, slots=True)
class LargeDepthSizes:
    """Numbers of a preset.

    Attributes:
        counts: numbers of samples N, ascending; few samples do not fill the square, whose diameter they are held to.
        depth: of the interpolators whose slopes are measured; their excess over it does not depend on it.
        trained_depths: of the networks that are trained on from an interpolator.
        trained_count: samples that those are trained on.
        width: of their layers.
        ridge: of their training.
        evaluations: gradients of each.
    """

    counts: tuple[int, ...]
    depth: int
    trained_depths: tuple[int, ...]
    trained_count: int
    width: int
    ridge: float
    evaluations: int


PRESETS = {
    Preset.PAPER: LargeDepthSizes((32, 64, 128, 256, 512, 1024), 20, (10, 20, 40, 80, 160), 10, 20, 1e-5, 4000),
    Preset.QUICK: LargeDepthSizes((32, 64, 128, 256, 512), 20, (10, 20, 40, 80), 6, 10, 1e-5, 800),
    Preset.TINY: LargeDepthSizes((8, 16, 32), 6, (6, 12), 4, 5, 1e-5, 40),
}


def plan(preset: Preset) -> FigurePlan[LargeDepthSizes]:
    """The identity on points of the unit square, rank 2 with constant 0 (the paper shows no picture; sizes ours)."""
    sizes = PRESETS[preset]
    trained = [_training(depth, sizes) for depth in sizes.trained_depths]
    return FigurePlan(sizes, parts=(*trained, *(_slopes(count, sizes.depth) for count in sizes.counts)))


def _slopes(count: int, depth: int) -> Part:
    return Part("interpolator of rank one", {"count": count, "depth": depth}, partial(_interpolated, count, depth))


def _training(depth: int, sizes: LargeDepthSizes) -> Part:
    settings = {"depth": depth, "count": sizes.trained_count, "width": sizes.width, "ridge": sizes.ridge}
    settings |= {"evaluations": sizes.evaluations, "noise": NOISE, "seed": 0}
    return Part("rank one, trained on", settings, partial(_trained, depth, sizes))


def square(count: int) -> torch.Tensor:
    """Random points of the unit square, the first ones the same for every count."""
    return torch.rand(LARGEST, RANK, generator=torch.Generator().manual_seed(0), dtype=torch.float64)[:count]


def compute(plan: FigurePlan[LargeDepthSizes], workshop: Workshop) -> xr.Dataset:
    """Costs, slopes and windows over N; profiles of trained networks over depth."""
    sizes = plan.sizes
    parts = [part.drop_attrs() for part in workshop.parts(plan.parts)]
    trained, slopes = parts[: len(sizes.trained_depths)], parts[len(sizes.trained_depths) :]
    data = xr.concat(slopes, xr.Variable("count", np.array(sizes.counts, dtype=float)))
    return data.merge(xr.concat(trained, xr.Variable("depth", np.array(sizes.trained_depths, dtype=float))))


def _interpolated(count: int, depth: int, _checkpoint: Path, _hear: Hear) -> xr.Dataset:
    """The interpolator of N points: its cost beyond its depth, its slopes, and the depths at which it can win."""
    points = square(count)
    found = rank_one_interpolator(points, points, depth=depth)
    stretch = rank1_stretch(points, points)
    window = depth_window(rank=RANK, constant=0.0, rank1_constant=found.constant, rank1_stretch=stretch)
    slopes = torch.linalg.matrix_norm(jacobians(found.network, between(found, points)), 2)
    numbers = {
        "excess": found.constant, "slope": float(slopes.max()), "stretch": stretch, "certified": window.certified,
        "undercut": window.undercut,
    }  # fmt: skip
    return xr.Dataset({name: ((), float(value)) for name, value in numbers.items()})


def between(found: RankOneInterpolation, points: torch.Tensor) -> torch.Tensor:
    """The middles between samples that are neighbours along the direction of an interpolator."""
    order = (points @ found.direction).argsort()
    return (points[order][1:] + points[order][:-1]) / 2


def _trained(depth: int, sizes: LargeDepthSizes, checkpoint: Path, hear: Hear) -> xr.Dataset:
    """Trained on from an interpolator of rank 1 with added neurons: what it costs, and s2 / s1 along its depth."""
    points = square(sizes.trained_count)
    start = rank_one_interpolator(points, points, depth=depth)
    network = widened(start.network, sizes.width, noise=NOISE)
    result = fit(
        network, points, points, ridge=sizes.ridge, solver=LBFGS(sizes.evaluations), checkpoint=checkpoint,
        callback=hear,
    )  # fmt: skip
    with torch.no_grad():
        spectra = [torch.linalg.svdvals(state.activation) for state in walk(network, points)[:-1]]
    ratios = np.array([float(s[1] / s[0]) for s in spectra])
    profile = np.interp(np.linspace(0, 1, 41), np.linspace(0, 1, len(ratios)), ratios)
    numbers = {
        "trained_penalty": result.penalty, "trained_objective": result.objective, "trained_loss": result.data_loss,
        "trained_excess": start.constant, "least_ratio": float(ratios.min()),
    }  # fmt: skip
    data = xr.Dataset({name: ((), value) for name, value in numbers.items()})
    return data.assign(profile=("place", profile), place=np.linspace(0, 1, 41), ridge=((), sizes.ridge))


def exponent(count: xr.DataArray, values: xr.DataArray) -> float:
    """Slope of log values against log count."""
    return float(np.polyfit(np.log(count.values), np.log(values.values), 1)[0])


def draw(data: xr.Dataset) -> tuple[Picture, ...]:
    """Slopes over N, windows over N, penalty per layer and profiles over depth."""
    count, depth = data["count"], data["depth"]
    profiles = [Curve(f"depth {float(d):.0f}", data["place"], data["profile"].sel(depth=d)) for d in depth.values[-4:]]
    bound = Curve("1 + C_N / L", depth, 1 + data["trained_excess"] / depth, "both", 1)
    fitted = {name: f"N^{exponent(count, data[name]):.2f}" for name in ("slope", "stretch")}
    return (
        panel(
            "large-depth-slopes",
            "Largest slope of networks of rank 1 through N points of the square that they map to themselves, and the "
            "slope that every map of rank 1 needs (path through the points over their diameter), each with its fitted "
            "power of N.",
            [
                Curve(f"interpolator, {fitted['slope']}", count, data["slope"], "both"),
                Curve(f"needed, {fitted['stretch']}", count, data["stretch"], "both"),
            ],
            Frame("samples", "slope", log_x=True, log_y=True),
        ),
        panel(
            "large-depth-window",
            "Depths at which no map of rank 1 is optimal for this task of rank 2 (up to the certified depth), and from "
            "which on the known network of rank 1 is cheaper.",
            [
                Curve("rank 1 cannot win up to", count, data["certified"], "both"),
                Curve("rank 1 wins from", count, data["undercut"], "both"),
            ],
            Frame("samples", "depth", log_x=True, log_y=True),
        ),
        panel(
            "large-depth-penalty",
            "Squared norm per layer of networks trained on from an interpolator of rank 1 with added neurons.",
            [Curve("trained", depth, data["trained_penalty"] / depth, "both"), bound],
            Frame("depth", "squared norm / depth", levels={"rank 1": 1.0}, whole=True),
        ),
        panel(
            "large-depth-profile",
            "Second over first singular value of the activations along the depth of these networks.",
            profiles,
            Frame("layer / depth", "second / first singular value", log_y=True),
        ),
    )  # fmt: skip


def verdict(data: xr.Dataset) -> tuple[Claim, ...]:
    """Cost near the depth, approximate rank 1, slopes that explode, windows that grow."""
    bound = data["ridge"] * (data["depth"] + data["trained_excess"])
    shallow, deep = data.isel(depth=0), data.isel(depth=-1)
    expected = float((shallow["depth"] / deep["depth"]) ** 0.25)
    return (
        Claim(
            "Any finite data are fitted at a squared norm of L plus a constant.", "Jacot 2023a, Proposition 2",
            "largest objective over ridge (L + C_N)", float((data["trained_objective"] / bound).max()), most=1.01,
        ),
        Claim(
            "At large depth some layer is close to rank 1, by L^(-1/4).", "Jacot 2023a, Proposition 4",
            "least second / first singular value, deepest over shallowest",
            float(deep["least_ratio"] / shallow["least_ratio"]), most=1.2 * expected,
        ),
        Claim(
            "The slope that rank 1 needs grows like N^(1 - 1/k), k = 2.", "Jacot 2023a, Theorem 2",
            "fitted exponent", exponent(data["count"], data["stretch"]), least=0.4, most=0.6,
        ),
        Claim(
            "Interpolators of rank 1 have at least this slope.", "Jacot 2023a, Theorem 2",
            "least slope / needed slope", float((data["slope"] / data["stretch"]).min()), least=1.0,
        ),
        Claim(
            "The window of depths in which rank 2 wins grows with the number of samples.", "Jacot 2023a, Proposition 5",
            "least growth of the certified depth from one N to the next", float(data["certified"].diff("count").min()),
            least=1e-3,
        ),
    )  # fmt: skip


FIGURE = PaperFigure(
    4,
    "large-depth",
    "Approximate rank 1 at very large depth, and the window of depths",
    "Jacot 2023a, Propositions 2, 4 and 5, Theorem 2",
    "The identity on random points of the unit square. The paper shows no experiment: every size is ours.",
    plan,
    compute,
    draw,
    verdict,
)
