"""Autoencoders of a curve in the plane, deep and shallow: deep ones project onto the curve (figure 3).

Data: `tasks.manifolds`. Exact statements about autoencoders: FC-46.
"""

from dataclasses import dataclass

import torch
import xarray as xr

from isthmus import plots
from isthmus.figures.claims import Claim
from isthmus.figures.figure import FigurePlan, PaperFigure, Preset
from isthmus.figures.workshop import Trained, Workshop
from isthmus.networks import FullyConnected
from isthmus.networks.jacobians import jacobians
from isthmus.reports.picture import Picture
from isthmus.sweeps import Plan
from isthmus.theory import idempotency_defect

NOISE, DRAWN = 0.3, 60  # of the data's spread; arrows in each picture
FITTED = 0.05  # of the variance: a data loss above it says that the curve was not learned


@dataclass(frozen=True, slots=True)
class Sizes:
    """Numbers of a preset.

    Attributes:
        shallow: depth of the shallow autoencoder.
        deep: of the deep one.
        width: of every hidden layer.
        num_samples: points of the curve.
        ridge: of both.
        seeds: starts; the one of least objective is shown.
        evaluations: gradients of each training.
    """

    shallow: int
    deep: int
    width: int
    num_samples: int
    ridge: float
    seeds: tuple[int, ...]
    evaluations: int


PRESETS = {
    Preset.PAPER: Sizes(2, 12, 100, 1000, 1e-4, (0, 1, 2), 6000),
    Preset.QUICK: Sizes(2, 8, 30, 200, 1e-3, (0, 1), 2000),
    Preset.TINY: Sizes(2, 4, 10, 40, 1e-3, (0,), 150),
}


def plan(preset: Preset) -> FigurePlan[Sizes]:
    """A random piecewise linear curve (FC-49; depths and widths are lost, ours)."""
    sizes = PRESETS[preset]
    sweep = Plan(
        {"name": "curve_autoencoder", "num_samples": sizes.num_samples},
        {"width": sizes.width},
        {"ridge": sizes.ridge, "evaluations": sizes.evaluations, "scaling": "none", "dtype": "float64"},
        grid={"depth": [sizes.shallow, sizes.deep], "seed": list(sizes.seeds)},
        name="denoising",
    )
    return FigurePlan(sizes, {"curve": sweep})


def compute(plan: FigurePlan[Sizes], workshop: Workshop) -> xr.Dataset:
    """Noisy points with what both autoencoders make of them, distances to the curve, defects of the Jacobian."""
    runs = workshop.trained(plan.sweeps["curve"])
    found = [_one(runs, depth) for depth in (plan.sizes.shallow, plan.sizes.deep)]
    return xr.concat(found, xr.Variable("depth", [float(plan.sizes.shallow), float(plan.sizes.deep)]))


def _one(runs: list[Trained], depth: int) -> xr.Dataset:
    best = min((run for run in runs if run.axis("depth") == depth), key=lambda run: run.number("objective"))
    network = best.network()
    assert isinstance(network, FullyConnected)
    x = best.data()[0].double()
    spread = x.var(0, correction=0).sum()
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(0), dtype=x.dtype)
    noisy = x + NOISE * spread.sqrt() * noise / x.shape[1] ** 0.5
    with torch.no_grad():
        cleaned = network(noisy)
    before, after = (torch.cdist(points, x).min(1).values.mean() for points in (noisy, cleaned))
    numbers = {
        "gain": float(after / before),
        "defect": float(idempotency_defect(jacobians(network, x)).median()),
        "lost": best.number("data_loss") / float(spread),
    }
    columns = {"start": noisy[:DRAWN], "end": cleaned[:DRAWN]}
    return xr.Dataset(
        {name: (("sample", "component"), rows.numpy()) for name, rows in columns.items()}
        | {name: ((), value) for name, value in numbers.items()}
    )


def draw(data: xr.Dataset) -> tuple[Picture, ...]:
    """Arrows of both autoencoders."""
    return tuple(_arrows(data.isel(depth=i), name) for i, name in enumerate(("shallow", "deep")))


def _arrows(data: xr.Dataset, name: str) -> Picture:
    depth, gain = float(data["depth"]), float(data["gain"])
    return Picture(
        f"denoising-{name}",
        f"Noisy points around the curve and where the autoencoder of depth {depth:.0f} sends them: their mean distance "
        f"to the samples of the curve becomes {100 * gain:.0f} % of what it was.",
        f"Arrows from noisy points in the plane to the outputs of an autoencoder of depth {depth:.0f}.",
        lambda: plots.autoencoder_arrows(data),
    )


def verdict(data: xr.Dataset) -> tuple[Claim, ...]:
    """Deep networks denoise and are projections, shallow ones are not."""
    shallow, deep = data.isel(depth=0), data.isel(depth=1)
    lost = float(data["lost"].max())
    doubt = "" if lost <= FITTED else f"an autoencoder loses {100 * lost:.0f} % of the variance"
    return (
        Claim(
            "Deep autoencoders project noisy points onto the data.", "001, Figure 3",
            "mean distance to the data, after over before", float(deep["gain"]), most=0.3, doubt=doubt,
        ),
        Claim(
            "Shallow ones do not.", "001, Figure 3", "mean distance to the data, after over before",
            float(shallow["gain"]), least=0.3, doubt=doubt,
        ),
        Claim(
            "Near the data a deep autoencoder is a projection, J J = J.", "001, section 5",
            "median |J J - J| relative to |J|, deep over shallow", float(deep["defect"] / shallow["defect"]), most=0.5,
            doubt=doubt,
        ),
    )  # fmt: skip


FIGURE = PaperFigure(
    3,
    "denoising",
    "Denoising autoencoders",
    "001, Figure 3 B and C",
    "A random piecewise linear curve in the plane; depths, widths and samples are ours, the paper's are lost. Its "
    "panel A, autoencoders of images, is not computed.",
    plan,
    compute,
    draw,
    verdict,
)
