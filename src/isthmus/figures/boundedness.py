"""Norms on which the convergence theorem of leaky ResNets rests stay bounded as the effective depth grows (figure 10).

Trainings: `leaky_training`; they are those of `leaky_depth`.
"""

import xarray as xr

from isthmus.figures import leaky_depth
from isthmus.figures.claims import Claim
from isthmus.figures.figure import FigurePlan, PaperFigure, Preset
from isthmus.figures.leaky_depth import LeakyDepthSizes
from isthmus.figures.leaky_training import doubt_of
from isthmus.figures.panels import Curve, Frame, panel
from isthmus.figures.workshop import Workshop
from isthmus.reports.picture import Picture

BOUND = 2.0  # growth from the least to the largest effective depth: above it a norm counts as growing


def plan(preset: Preset) -> FigurePlan[LeakyDepthSizes]:
    """The networks of `leaky_depth` (LEAKY-23; the picture of the paper is lost)."""
    return leaky_depth.plan(preset)


def compute(plan: FigurePlan[LeakyDepthSizes], workshop: Workshop) -> xr.Dataset:
    """Length of the path, norms of momenta and of B sigma(A)^T at every effective depth."""
    table = leaky_depth.compute(plan, workshop)
    return table[["path_length", "momentum_norm", "product_norm", "stationarity"]]


def draw(data: xr.Dataset) -> tuple[Picture, ...]:
    """Each norm over the effective depth, with its range over the layers."""
    depths = data["effective_depth"]
    length = [Curve("", depths, data["path_length"], "both")]
    return (
        panel(
            "boundedness-path",
            "Length of the path of representations, sum of |A_l - A_(l-1)| over the layers, per root of the number of "
            "samples.",
            length,
            Frame("effective depth", "path length", limits=(0, None)),
        ),
        _norm(data, "boundedness-momenta", "momentum_norm", "|B|", "Norm of the momenta B"),
        _norm(data, "boundedness-products", "product_norm", "|B σ(A)ᵀ|", "Norm of B σ(A)ᵀ"),
    )


def _norm(data: xr.Dataset, name: str, variable: str, label: str, words: str) -> Picture:
    values, depths = data[variable], data["effective_depth"]
    curve = Curve("", depths, values.median("layer"), "both", low=values.min("layer"), high=values.max("layer"))
    caption = f"{words} against the effective depth: median over the layers, band from the least to the largest."
    return panel(name, caption, [curve], Frame("effective depth", label, limits=(0, None)))


def verdict(data: xr.Dataset) -> tuple[Claim, ...]:
    """None of the three grows."""
    doubt = doubt_of(data)
    norms = {
        "the path length": data["path_length"],
        "the norm of the momenta": data["momentum_norm"].max("layer"),
        "the norm of B sigma(A)^T": data["product_norm"].max("layer"),
    }
    return tuple(
        Claim(
            f"As the effective depth grows, {name} stays bounded.", "Jacot and Kaiser 2024, Figure 3",
            "value at the largest effective depth over that at the least", float(values[-1] / values[0]), most=BOUND,
            doubt=doubt,
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
