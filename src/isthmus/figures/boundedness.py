"""Norms on which the convergence theorem of leaky ResNets rests stay bounded as the effective depth grows (figure 10).

Trainings: `leaky_training`; they are those of `leaky_depth`.
"""

from functools import partial

import xarray as xr

from isthmus.figures import leaky_depth
from isthmus.figures.claims import Claim, unfinished
from isthmus.figures.figure import FigurePlan, PaperFigure, Preset
from isthmus.figures.leaky_depth import LeakyDepthSizes
from isthmus.figures.panels import Curve, Frame, panel
from isthmus.figures.workshop import Workshop
from isthmus.reports.picture import Picture

BOUND = 2.0  # growth from the least to the largest effective depth: above it a norm counts as growing


def plan(preset: Preset) -> FigurePlan[LeakyDepthSizes]:
    """The networks of `leaky_depth` (LEAKY-23; the picture of the paper is lost)."""
    return leaky_depth.plan(preset)


def compute(plan: FigurePlan[LeakyDepthSizes], workshop: Workshop) -> xr.Dataset:
    """Length of the path, norms of momenta and of B sigma(A)^T at every effective depth, of every start."""
    table = leaky_depth.over_starts(plan.sizes, workshop, verdict)
    return table[["path_length", "momentum_norm", "product_norm", "stationarity", "looks"]]


def draw(data: xr.Dataset) -> tuple[Picture, ...]:
    """Each norm over the effective depth, with its range over the layers."""
    depths = data["effective_depth"]
    path = data["path_length"]
    length = [Curve("", depths, path.mean("start"), "both", low=path.min("start"), high=path.max("start"))]
    return (
        panel(
            "boundedness-path",
            "Length of the path of representations, sum of |A_l - A_(l-1)| over the layers, per root of the number of "
            "samples: mean over the starts, all of which lie in the band.",
            length,
            Frame("effective depth", "path length", limits=(0, None)),
        ),
        _norm(data, "boundedness-momenta", "momentum_norm", "|B|", "Norm of the momenta B"),
        _norm(data, "boundedness-products", "product_norm", "|B σ(A)ᵀ|", "Norm of B σ(A)ᵀ"),
    )


def _norm(data: xr.Dataset, name: str, variable: str, label: str, words: str) -> Picture:
    values, depths, every = data[variable], data["effective_depth"], ("layer", "start")
    curve = Curve("", depths, values.median(every), "both", low=values.min(every), high=values.max(every))
    caption = f"{words} against the effective depth: median over layers and starts, band from the least to the largest."
    return panel(name, caption, [curve], Frame("effective depth", label, limits=(0, None)))


def verdict(data: xr.Dataset) -> tuple[Claim, ...]:
    """None of the three grows."""
    claim = partial(Claim.over_starts, doubt=unfinished(data["stationarity"]), looks=int(data["looks"]))
    norms = {
        "the path length": data["path_length"],
        "the norm of the momenta": data["momentum_norm"].max("layer"),
        "the norm of B sigma(A)^T": data["product_norm"].max("layer"),
    }
    return tuple(
        claim(
            f"As the effective depth grows, {name} stays bounded.", "Jacot and Kaiser 2024, Figure 3",
            "value at the largest effective depth over that at the least",
            (values.isel(effective_depth=-1) / values.isel(effective_depth=0)).values.tolist(), most=BOUND,
        )
        for name, values in norms.items()
    )  # fmt: skip


FIGURE = PaperFigure(
    10,
    "boundedness",
    "Bounded path length and momenta",
    "Jacot and Kaiser 2024, Figure 3",
    "The networks of figure 8. The paper's picture is lost; its text says that the three norms stay bounded.",
    plan,
    compute,
    draw,
    verdict,
)
