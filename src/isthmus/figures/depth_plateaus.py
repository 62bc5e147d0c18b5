"""The penalty against depth: straight pieces with the slope of a whole number, and collapse at the end (figure 5).

One depth in detail: `rank_recovery`. Slopes between neighbours: `theory.depth_ranges`.
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from isthmus import plots
from isthmus.figures.claims import Claim
from isthmus.figures.figure import FigurePlan, PaperFigure, Preset
from isthmus.figures.panels import Curve, Frame, panel
from isthmus.figures.workshop import FinishedTraining, Workshop
from isthmus.reports.picture import Picture
from isthmus.sweeps import Plan

RANK, COUNTED, FITTED, SHOWN = 2, 0.1, 0.1, 10  # the paper's thresholds of singular values and of the training loss


@dataclass(frozen=True, slots=True)
class DepthPlateausSizes:
    """Numbers of a preset.

    Attributes:
        depths: L, ascending.
        seeds: starts at each depth; the one of least objective counts.
        width: of every hidden layer.
        num_samples: rows.
        ridge: the same at every depth.
        evaluations: gradients of each training.
    """

    depths: tuple[int, ...]
    seeds: tuple[int, ...]
    width: int
    num_samples: int
    ridge: float
    evaluations: int


PRESETS = {
    Preset.PAPER: DepthPlateausSizes((*range(3, 25), 26, 28, 30, 33, 36, 40, 44), (0, 1, 2), 100, 500, 0.01, 4000),
    Preset.QUICK: DepthPlateausSizes((4, 6, 8, 10, 13, 17, 22, 30, 40), (0, 1, 2), 24, 150, 0.01, 1500),
    Preset.TINY: DepthPlateausSizes((4, 6, 30), (0,), 8, 40, 0.01, 80),
}


def plan(preset: Preset) -> FigurePlan[DepthPlateausSizes]:
    """A teacher of rank 2 behind 8 latent coordinates (FC-50; the number of outputs and inputs is ours)."""
    sizes = PRESETS[preset]
    sweep = Plan(
        {"name": "teacher", "rank": RANK, "d_in": 20, "d_out": 20, "latent_dim": 8, "num_samples": sizes.num_samples},
        {"width": sizes.width},
        {"ridge": sizes.ridge, "evaluations": sizes.evaluations},
        grid={"depth": list(sizes.depths), "seed": list(sizes.seeds)},
        name="depth-plateaus",
    )
    return FigurePlan(sizes, {"depths": sweep})


def compute(plan: FigurePlan[DepthPlateausSizes], workshop: Workshop) -> xr.Dataset:
    """Of the best start at every depth: penalty, losses, counts; weight spectra at four depths."""
    runs = workshop.trained(plan.sweeps["depths"])
    best = [
        min((run for run in runs if run.axis("depth") == depth), key=lambda run: run.number("objective"))
        for depth in plan.sizes.depths
    ]
    names = ("objective", "data_loss", "penalty", "rank_jacobian")
    data = xr.Dataset(
        {name: ("depth", [run.number(name) for run in best]) for name in names},
        coords={"depth": [float(depth) for depth in plan.sizes.depths]},
    )
    data["count"] = ("depth", [_count(run) for run in best])
    fitted = [run for run in best if run.number("data_loss") <= FITTED] or best
    chosen = [fitted[i] for i in np.unique(np.linspace(0, len(fitted) - 1, 4).round().astype(int))]
    deepest = int(max(run.axis("depth") for run in chosen))
    spectra = np.full((len(chosen), deepest, SHOWN), np.nan)
    for i, run in enumerate(chosen):
        values = run.table()["weight_singular_values"].values[:, :SHOWN]
        spectra[i, : len(values), : values.shape[1]] = values
    data["spectra"] = (("shown", "layer", "component"), spectra)
    data["shown"] = [run.axis("depth") for run in chosen]
    return data


def _count(run: FinishedTraining) -> float:
    """The paper's rank: singular values of the middle matrix above 0.1."""
    values = run.table()["weight_singular_values"]
    return float((values.isel(layer=values.sizes["layer"] // 2) > COUNTED).sum())


def _slopes(data: xr.Dataset) -> dict[int, float]:
    """Least-squares slope of the penalty over the depths of each count that three depths or more share and fit."""
    found: dict[int, float] = {}
    for rank in np.unique(data["count"].values):
        part = data.sel(depth=(data["count"] == rank) & (data["data_loss"] <= FITTED))
        if rank > 0 and part.sizes["depth"] >= 3:
            found[int(rank)] = float(np.polyfit(part["depth"].values, part["penalty"].values, 1)[0])
    return found


def draw(data: xr.Dataset) -> tuple[Picture, ...]:
    """The penalty over depth by count, the loss beside it, and the spectra of the chosen depths."""
    ranks = sorted({int(rank) for rank in data["count"].values})
    slopes = _slopes(data)
    penalty = [_points(data, rank, slopes.get(rank), place) for place, rank in enumerate(ranks)]
    lost = data["penalty"].where(data["data_loss"] > FITTED)
    penalty.append(Curve("training loss above 0.1", data["depth"], lost, "points", 5))
    losses = [Curve("data loss", data["depth"], data["data_loss"], "both")]
    losses.append(Curve("objective", data["depth"], data["objective"], "both"))
    spectra = [_spectrum(data, float(depth)) for depth in data["shown"]]
    return (
        panel(
            "depth-plateaus-penalty",
            "Squared norm of the weights against depth, by how many singular values of the middle matrix are above "
            "0.1. Along one rank it rises by that whole number per layer; where training collapses it is 0.",
            penalty,
            Frame("depth", "squared norm", limits=(0, None), whole=True),
        ),
        panel(
            "depth-plateaus-loss",
            "Data loss (over the variance of the targets) and objective against depth.",
            losses,
            Frame("depth", "loss", limits=(0, None), whole=True),
        ),
        *spectra,
    )


def _points(data: xr.Dataset, rank: int, slope: float | None, place: int) -> Curve:
    chosen = data["penalty"].where((data["count"] == rank) & (data["data_loss"] <= FITTED))
    name = f"rank {rank}" if slope is None else f"rank {rank}, slope {slope:.2f}"
    return Curve(name, data["depth"], chosen, "both", place % 5)


def _spectrum(data: xr.Dataset, depth: float) -> Picture:
    part = data[["spectra"]].sel(shown=depth).isel(layer=slice(int(depth)))
    return Picture(
        f"depth-plateaus-spectra-{depth:.0f}",
        f"Singular values of every weight matrix at depth {depth:.0f}, over the largest: only the middle grows.",
        f"A map of the singular values of weights, layer by component, at depth {depth:.0f}.",
        lambda: plots.layer_spectra(part, variable="spectra", rank=RANK),
    )


def verdict(data: xr.Dataset) -> tuple[Claim, ...]:
    """Whole slopes, the true rank found, ranks that fall, and the collapse."""
    slopes = _slopes(data)
    off = max((abs(slope - rank) for rank, slope in slopes.items()), default=np.nan)
    told = ", ".join(f"{slope:.2f} at rank {rank}" for rank, slope in slopes.items())
    fitted = data.sel(depth=data["data_loss"] <= FITTED)
    counts = fitted["count"].values
    collapsed = float(data["penalty"].isel(depth=-1))
    return (
        Claim(
            "Along the depths of one rank the squared norm rises by that rank per layer.", "Jacot 2023b, Figure 1",
            f"largest distance of a slope from its rank ({told or 'no rank at three depths'})", off, most=0.35,
        ),
        Claim(
            f"The true rank ({RANK}) is found over a range of depths.", "Jacot 2023b, Figure 1",
            "depths that read it", float((counts == RANK).sum()), least=2,
        ),
        Claim(
            "Depth lowers the rank: over-estimates come at small depths.", "Jacot 2023b, section 3.1",
            "depths at which the count rises", float((np.diff(counts) > 0).sum()) if len(counts) else np.nan, most=0,
        ),
        Claim(
            "At large depth the weights collapse to 0.", "Jacot 2023b, Figure 1",
            f"squared norm at depth {float(data['depth'][-1]):.0f}", collapsed, most=1e-3,
        ),
    )  # fmt: skip


FIGURE = PaperFigure(
    5,
    "depth-plateaus",
    "Penalty against depth with whole slopes",
    "Jacot 2023b, Figure 1",
    "A teacher of rank 2 from 20 to 20 dimensions, E|y|^2 = 1, ridge 0.01 at every depth (the paper's scale of the "
    "targets is lost, so its 0.001 cannot be compared); its latent dimension, lost too, is 8 here.",
    plan,
    compute,
    draw,
    verdict,
)
