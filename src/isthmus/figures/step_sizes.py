"""Large steps and label noise keep minima wide: the tangent kernel of what gradient descent finds (figure 13).

Plain gradient descent at a fixed step, which no solver of `training` is: its step is the question here. Minima that
under-estimate the rank, written down: `narrowness`. Kernels: `theory.tangent_kernels`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from isthmus.constructions import rank_one_interpolator
from isthmus.figures.claims import Claim
from isthmus.figures.figure import FigurePlan, PaperFigure, Preset
from isthmus.figures.large_depth import RANK, exponent, square
from isthmus.figures.panels import Curve, Frame, panel
from isthmus.figures.parts import Hear, Part, unheard
from isthmus.figures.workshop import Workshop
from isthmus.networks import FullyConnected, walk
from isthmus.networks.layers import activation_derivative
from isthmus.reports.picture import Picture
from isthmus.tasks import teacher
from isthmus.theory import sharpness, suffix_jacobians, tangent_kernel
from isthmus.training import FitEvent

D_IN, D_OUT = 5, 3
SMALL, LARGE = 0.15, 0.6  # times 1/L: the steps eta
NOISE = 0.3  # of the labels, in standard deviations of the targets, drawn anew at each step
PUSHED = 1e-3  # relative size of what moves a network that is written down off its minimum
GIVEN_UP = 1.0  # data loss, over the variance, beyond which a descent is given up
LEARNED = 0.1  # of the variance: descents that left more have not come to any minimum
RUNS = ("small steps", "large steps", "large steps, noisy labels")


@dataclass(frozen=True, slots=True)
class StepSizes:
    """Numbers of a preset.

    Attributes:
        depths: L, ascending.
        starts: at each depth, of which a claim takes the mean and the spread.
        width: of every hidden layer.
        num_samples: rows.
        steps: of each descent.
        count: points through which the networks that are written down go.
    """

    depths: tuple[int, ...]
    starts: int
    width: int
    num_samples: int
    steps: int
    count: int


PRESETS = {
    Preset.PAPER: StepSizes((3, 6, 12, 24), 5, 50, 100, 20_000, 64),
    Preset.QUICK: StepSizes((3, 6, 12), 4, 16, 30, 3000, 16),
    Preset.TINY: StepSizes((3, 4), 2, 6, 10, 60, 8),
}


def plan(preset: Preset) -> FigurePlan[StepSizes]:
    """Descents on a teacher of rank 2, and from networks of rank 1 and 2 that fit exactly; every size is ours."""
    sizes = PRESETS[preset]
    descents = [_part("descent", depth, sizes, start) for depth in sizes.depths for start in range(sizes.starts)]
    return FigurePlan(sizes, parts=(*descents, *(_part("held", depth, sizes, 0) for depth in sizes.depths)))


def _part(name: str, depth: int, sizes: StepSizes, start: int) -> Part:
    settings = {"depth": depth, "start": start, "width": sizes.width, "num_samples": sizes.num_samples}
    settings |= {"steps": sizes.steps, "count": sizes.count, "rates": (SMALL, LARGE), "noise": NOISE, "pushed": PUSHED}
    make = {"descent": _descents, "held": _held}[name]
    return Part(f"step sizes: {name}", settings, partial(make, depth, start, sizes))


def compute(plan: FigurePlan[StepSizes], workshop: Workshop) -> xr.Dataset:
    """Trace and curvature of the minima over run, start and depth; losses of the networks that are pushed."""
    sizes = plan.sizes
    parts = [part.drop_attrs() for part in workshop.parts(plan.parts)]
    rows, held = parts[: -len(sizes.depths)], parts[-len(sizes.depths) :]
    depth = xr.Variable("depth", np.array(sizes.depths, dtype=float))
    by_depth = [xr.concat(rows[i : i + sizes.starts], "start") for i in range(0, len(rows), sizes.starts)]
    return xr.concat(by_depth, depth).merge(xr.concat(held, depth))


def _descents(depth: int, start: int, sizes: StepSizes, _checkpoint: Path, hear: Hear) -> xr.Dataset:
    """From one start with small steps, large ones, and large ones on noisy labels."""
    made = teacher(RANK, d_in=D_IN, d_out=D_OUT, num_samples=sizes.num_samples, seed=0)
    x, y = (torch.from_numpy(part).double() for part in (made.x, made.y))
    x, y = (x - x.mean(0)) / x.std(0), y - y.mean(0)
    y = y / y.square().sum(1).mean().sqrt()
    found: dict[str, list[float]] = {"loss": [], "trace": [], "edge": []}
    for rate, noise in ((SMALL, 0.0), (LARGE, 0.0), (LARGE, NOISE)):
        network = FullyConnected(D_IN, D_OUT, width=sizes.width, depth=depth, seed=start, dtype=torch.float64)
        step, steps = rate / depth, sizes.steps
        noisy = partial(_noisy, noise, torch.Generator().manual_seed(start)) if noise else Tensor.clone
        found["loss"].append(descend(network, x, y, step=step, steps=steps, noisy=noisy, hear=hear))
        kernel = _kernel(network, x)
        found["trace"].append(float(torch.einsum("iikk->", kernel)) / len(x))
        found["edge"].append(float(sharpness(kernel)) * rate / depth / 2)
    return xr.Dataset({name: ("run", values) for name, values in found.items()})


def _held(depth: int, _start: int, sizes: StepSizes, _checkpoint: Path, hear: Hear) -> xr.Dataset:
    """Losses after as many large steps from a network of rank 1 through all points, and from that of rank 2."""
    points = square(sizes.count)
    eye, zero = torch.eye(RANK, dtype=torch.float64), torch.zeros(RANK, dtype=torch.float64)
    networks = {
        "rank_one": rank_one_interpolator(points, points, depth=depth).network,
        "rank_two": FullyConnected.from_layers([eye] * depth, [zero] * depth),
    }
    variance = float((points - points.mean(0)).square().sum(1).mean())
    losses = dict[str, float]()
    for name, network in networks.items():
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for parameter in network.parameters():
                push = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
                parameter += PUSHED * parameter.norm() / len(parameter) ** 0.5 * push
        step, steps = LARGE / depth, sizes.steps // 10
        losses[name] = descend(network, points, points, step=step, steps=steps, hear=hear) / variance
    return xr.Dataset({name: ((), min(value, GIVEN_UP)) for name, value in losses.items()})


def descend(
    network: FullyConnected,
    x: Tensor,
    y: Tensor,
    *,
    step: float,
    steps: int,
    noisy: Callable[[Tensor], Tensor] = Tensor.clone,
    hear: Hear = unheard,
) -> float:
    """Gradient descent on (1/N) sum |f(x_i) - y_i - noise|^2 at a fixed step; the loss without noise at its end."""
    parameters = list(network.parameters())
    for done in range(steps):
        value = (network(x) - noisy(y)).square().sum(1).mean()
        gradients = torch.autograd.grad(value, parameters)
        hear(FitEvent(network, done + 1, steps, value.item()))
        if not value < 1e6 * GIVEN_UP:  # it has left, and NaN would follow
            return torch.inf
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter -= step * gradient
    with torch.no_grad():
        loss = float((network(x) - y).square().sum(1).mean())
    return loss if loss == loss else torch.inf


def _noisy(noise: float, generator: torch.Generator, y: Tensor) -> Tensor:
    return y + noise * torch.randn(y.shape, generator=generator, dtype=y.dtype)


def _kernel(network: FullyConnected, x: Tensor) -> Tensor:
    with torch.no_grad():
        states = walk(network, x)
    hidden = states[:-1]
    derivatives = [activation_derivative(state.preactivation, network.negative_slope) for state in hidden]
    suffixes = suffix_jacobians([state.weight.detach() for state in states], derivatives)
    return tangent_kernel(([x, *(state.activation for state in hidden)], suffixes))


def draw(data: xr.Dataset) -> tuple[Picture, ...]:
    """The kernel over depth for the three kinds of descent, and where their curvature ends."""
    trace, edge = (data[name].where(_ended(data)) for name in ("trace", "edge"))
    trace = trace / data["depth"]
    curves = [
        Curve(name, data["depth"], trace.isel(run=i).mean("start"), "both", i,
              trace.isel(run=i).min("start"), trace.isel(run=i).max("start"))
        for i, name in enumerate(RUNS)
    ]  # fmt: skip
    edges = [Curve(name, data["depth"], edge.isel(run=i).mean("start"), "both", i) for i, name in enumerate(RUNS)]
    return (
        panel(
            "step-sizes-kernel",
            f"Trace of the tangent kernel over N and depth, where gradient descent ended at steps {SMALL}/L and "
            f"{LARGE}/L, and at the latter with labels that are noisy anew at each step; all starts lie in the bands.",
            curves,
            Frame("depth", "tangent kernel / depth", log_x=True, log_y=True),
        ),
        panel(
            "step-sizes-edge",
            "Largest curvature at the end times half the step: 1 is the edge beyond which descent does not stay.",
            edges,
            Frame("depth", "curvature x step / 2", limits=(0, None)),
        ),
    )


def _ended(data: xr.Dataset) -> xr.DataArray:
    """Which descents came to a minimum: at steps beyond what the start allows they leave, or collapse."""
    return data["loss"] <= LEARNED


def _claim(statement: str, source: str, quantity: str, starts: Sequence[float], *, least: float = -math.inf,
           most: float = math.inf) -> Claim:  # fmt: skip
    """A claim on the starts whose descents ended somewhere; open where fewer than two did."""
    ended = [value for value in starts if math.isfinite(value)]
    if len(ended) < len(starts):
        quantity = f"{quantity}; of {len(ended)} of {len(starts)} starts, the others came to no minimum"
    few = "" if len(ended) > 1 else "fewer than two starts came to minima"
    return Claim.over_starts(
        statement, source, quantity, ended if not few else [math.nan] * 2, least=least, most=most, doubt=few
    )


def verdict(data: xr.Dataset) -> tuple[Claim, ...]:
    """What large steps and label noise do to the kernel, and which fits descent stays at."""
    place = "Jacot 2023b, section 4"
    trace, edge = (data[name].where(_ended(data)) for name in ("trace", "edge"))
    small, large, noisy = (trace.isel(run=i) for i in range(3))
    curves = [large.isel(start=i) for i in range(data.sizes["start"])]
    growth = [exponent(data["depth"], curve) if curve.notnull().all() else math.nan for curve in curves]
    deepest = {"depth": -1}
    return (
        _claim(
            "Steps of order 1/L force the tangent kernel to be of order L.", place,
            "exponent in L of its trace at the large steps", growth, most=1.3,
        ),
        _claim(
            "Descent at step eta ends where the curvature is at most 2 / eta.", place,
            "largest curvature times eta / 2 over depths, at the large steps",
            edge.isel(run=1).max("depth").values.tolist(), most=1.25,
        ),
        _claim(
            "Smaller steps leave it in narrower minima.", place,
            "trace after small steps over that after large ones, at the largest depth",
            (small / large).isel(deepest).values.tolist(), least=1.2,
        ),
        _claim(
            "Label noise leads to wider minima.", place,
            "trace with label noise over that without, at the largest depth",
            (noisy / large).isel(deepest).values.tolist(), most=0.8,
        ),
        Claim(
            "Steps of order 1/L leave fits that under-estimate the rank.", "Jacot 2023b, section 4.1",
            "least loss over the variance after a push off the interpolator of rank 1",
            float(data["rank_one"].min()), least=0.05,
        ),
        Claim(
            "They stay at those of the true rank.", "Jacot 2023b, section 4.1",
            "largest loss over the variance after such a push", float(data["rank_two"].max()), most=1e-3,
        ),
    )  # fmt: skip


FIGURE = PaperFigure(
    13,
    "step-sizes",
    "Large steps, label noise and the tangent kernel",
    "Jacot 2023b, section 4",
    "Gradient descent at fixed steps on a teacher of rank 2 without a ridge, and from networks written down for the "
    "identity on random points of the unit square. The paper shows no experiment: every size is ours.",
    plan,
    compute,
    draw,
    verdict,
)
