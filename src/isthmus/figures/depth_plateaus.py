"""The penalty against depth: straight pieces with the slope of a whole number, and collapse at the end (figure 5).

One depth in detail: `rank_recovery`. Slopes between neighbours: `theory.depth_ranges`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import xarray as xr

from isthmus import plots
from isthmus.figures.claims import Claim, StartRule
from isthmus.figures.figure import FigurePlan, PaperFigure, Preset
from isthmus.figures.panels import Curve, Frame, panel
from isthmus.figures.workshop import FinishedTraining, Workshop
from isthmus.reports.picture import Picture
from isthmus.sweeps import Plan

RANK, COUNTED, FITTED, SHOWN = 2, 0.1, 0.1, 10  # the paper's thresholds of singular values and of the training loss
LEAST_FITTED = 3  # depths of a curve: fewer make no slope
UNSURE = 2.0  # a value within this factor of the threshold is on neither side of it, see `count`


@dataclass(frozen=True, slots=True)
class DepthPlateausSizes:
    """Numbers of a preset.

    Attributes:
        depths: L, ascending.
        best_of: starts at each depth of one curve; the one of least objective counts.
        width: of every hidden layer.
        num_samples: rows.
        ridge: the same at every depth.
        evaluations: gradients of each training.
        curves: each of starts of its own, which the claims count as one start.
    """

    depths: tuple[int, ...]
    best_of: int
    width: int
    num_samples: int
    ridge: float
    evaluations: int
    curves: StartRule = StartRule((4, 8))

    def trainings(self, curves: int) -> Plan:
        """Those of so many curves."""
        return Plan(
            {"name": "teacher", "rank": RANK, "d_in": 20, "d_out": 20, "latent_dim": 8,
             "num_samples": self.num_samples},
            {"width": self.width},
            {"ridge": self.ridge, "evaluations": self.evaluations},
            grid={"depth": list(self.depths), "seed": list(range(curves * self.best_of))},
            name="depth-plateaus",
        )  # fmt: skip


PRESETS = {
    Preset.PAPER: DepthPlateausSizes((*range(3, 25), 26, 28, 30, 33, 36, 40, 44), 3, 100, 500, 0.01, 4000),
    Preset.QUICK: DepthPlateausSizes((4, 6, 8, 10, 13, 17, 22, 30, 40), 3, 24, 150, 0.01, 1500),
    Preset.TINY: DepthPlateausSizes((4, 6, 30), 1, 8, 40, 0.01, 80, StartRule((2,))),
}


def plan(preset: Preset) -> FigurePlan[DepthPlateausSizes]:
    """A teacher of rank 2 behind 8 latent coordinates (FC-50; the number of outputs and inputs is ours)."""
    sizes = PRESETS[preset]
    return FigurePlan(sizes, {"depths": sizes.trainings(sizes.curves.looks[0])})


def compute(plan: FigurePlan[DepthPlateausSizes], workshop: Workshop) -> xr.Dataset:
    """Of the best start at every depth: penalty, losses, counts; of the first curve weight spectra at four depths."""
    sizes = plan.sizes

    def computed(count: int) -> xr.Dataset:
        runs = workshop.trained(sizes.trainings(count))
        found = [[run for run in runs if run.axis("seed") // sizes.best_of == curve] for curve in range(count)]
        best = [[_best(of, depth) for depth in sizes.depths] for of in found]
        return xr.concat([_curve(of, sizes) for of in best], "start").merge(_shown_spectra(best[0]))

    return sizes.curves.decided(computed, verdict)


def _best(runs: Sequence[FinishedTraining], depth: int) -> FinishedTraining:
    return min((run for run in runs if run.axis("depth") == depth), key=lambda run: run.number("objective"))


def _curve(best: Sequence[FinishedTraining], sizes: DepthPlateausSizes) -> xr.Dataset:
    names = ("objective", "data_loss", "penalty", "rank_jacobian")
    data = xr.Dataset(
        {name: ("depth", [run.number(name) for run in best]) for name in names},
        coords={"depth": [float(depth) for depth in sizes.depths]},
    )
    data["count"] = ("depth", [_count(run) for run in best])
    return data


def _shown_spectra(best: Sequence[FinishedTraining]) -> xr.Dataset:
    fitted = [run for run in best if run.number("data_loss") <= FITTED] or best
    chosen = [fitted[i] for i in np.unique(np.linspace(0, len(fitted) - 1, 4).round().astype(int))]
    deepest = int(max(run.axis("depth") for run in chosen))
    spectra = np.full((len(chosen), deepest, SHOWN), np.nan)
    for i, run in enumerate(chosen):
        values = run.table()["weight_singular_values"].values[:, :SHOWN]
        spectra[i, : len(values), : values.shape[1]] = values
    shown = [run.axis("depth") for run in chosen]
    return xr.Dataset({"spectra": (("shown", "layer", "component"), spectra)}, coords={"shown": shown})


def _count(run: FinishedTraining) -> float:
    values = run.table()["weight_singular_values"]
    return count(values.isel(layer=values.sizes["layer"] // 2).values)


def count(singular_values: np.ndarray) -> float:
    """The paper's rank, singular values of the middle matrix above 0.1; NaN where one of them is within a factor of 2.

    At depth 4 of the first quick curve the fourth value is .100, and whether it counted made rank 3 a slope of .54 off
    or none at all: which of the two was for the rounding of a machine to say.
    """
    counted = int((singular_values > COUNTED).sum())
    sure = int((singular_values > COUNTED * UNSURE).sum()) == int((singular_values > COUNTED / UNSURE).sum())
    return float(counted) if sure else math.nan


def _slopes(data: xr.Dataset) -> dict[int, float]:
    """Least-squares slope of the penalty over the depths of each count that three depths or more share and fit."""
    found: dict[int, float] = {}
    for rank in np.unique(data["count"].values):
        part = data.sel(depth=(data["count"] == rank) & (data["data_loss"] <= FITTED))
        if rank > 0 and part.sizes["depth"] >= LEAST_FITTED:
            found[int(rank)] = float(np.polyfit(part["depth"].values, part["penalty"].values, 1)[0])
    return found


def draw(data: xr.Dataset) -> tuple[Picture, ...]:
    """Of the first curve the penalty over depth by count, the loss beside it, and spectra of the chosen depths."""
    data = data.isel(start=0)
    fitted = data["data_loss"] <= FITTED
    ranks = sorted({int(rank) for rank in data["count"].values if not math.isnan(rank)})
    slopes = _slopes(data)
    penalty = [_points(data, rank, slopes.get(rank), place) for place, rank in enumerate(ranks)]
    unsure = data["penalty"].where(data["count"].isnull() & fitted)
    penalty.append(Curve("a singular value near 0.1", data["depth"], unsure, "points", 6))
    lost = data["penalty"].where(~fitted)
    penalty.append(Curve("training loss above 0.1", data["depth"], lost, "points", 5))
    losses = [Curve("data loss", data["depth"], data["data_loss"], "both")]
    losses.append(Curve("objective", data["depth"], data["objective"], "both"))
    spectra = [_spectrum(data, float(depth)) for depth in data["shown"]]
    return (
        panel(
            "depth-plateaus-penalty",
            "Squared norm of the weights against depth, by how many singular values of the middle matrix are above "
            "0.1, counted where none lies within a factor of 2 of it. Along one rank it rises by that whole number per "
            "layer; where training collapses it is 0.",
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


def _doubt(data: xr.Dataset) -> str:
    """Why curves of which hardly a depth was fitted decide nothing, or an empty text."""
    fewest = int((data["data_loss"] <= FITTED).sum("depth").min())
    if fewest >= LEAST_FITTED:
        return ""
    return (
        f"{fewest} of {data.sizes['depth']} depths were fitted to a data loss of {FITTED:g}, {LEAST_FITTED} are needed"
    )


def verdict(data: xr.Dataset) -> tuple[Claim, ...]:
    """Whole slopes, the true rank found, ranks that fall, and the collapse."""
    source = "Jacot 2023b, Figure 1"
    claim = partial(Claim.over_starts, doubt=_doubt(data), looks=int(data["looks"]))
    curves = [data.isel(start=start) for start in range(data.sizes["start"])]
    slopes = [_slopes(curve) for curve in curves]
    off = [max((abs(slope - rank) for rank, slope in of.items()), default=np.nan) for of in slopes]
    ranks = sorted({rank for of in slopes for rank in of})
    told = ", ".join(f"{np.mean([of[rank] for of in slopes if rank in of]):.2f} at rank {rank}" for rank in ranks)
    fitted = [curve["count"].values[curve["data_loss"].values <= FITTED] for curve in curves]
    counts = [of[~np.isnan(of)] for of in fitted]
    return (
        claim(
            "Along the depths of one rank the squared norm rises by that rank per layer.", source,
            f"largest distance of a slope from its rank ({told or 'no rank at three depths'})", off, most=0.35,
        ),
        claim(
            f"The true rank ({RANK}) is found over a range of depths.", source, "depths that read it",
            [float((of == RANK).sum()) for of in counts], least=2,
        ),
        claim(
            "Depth lowers the rank: over-estimates come at small depths.", "Jacot 2023b, section 3.1",
            "depths at which the count rises",
            [float((np.diff(of) > 0).sum()) if len(of) else np.nan for of in counts], most=0,
        ),
        claim(
            "At large depth the weights collapse to 0.", source,
            f"squared norm at depth {float(data['depth'][-1]):.0f}",
            data["penalty"].isel(depth=-1).values.tolist(), most=1e-3,
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
