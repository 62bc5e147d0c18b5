"""Rank recovery in a deep network: spectra over layers, and where its nonlinearities act (figure 1).

The tables by layer: `diagnostics`. The same over many depths: `depth_plateaus`.
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from isthmus import plots
from isthmus.figures.claims import Claim, unlearned
from isthmus.figures.figure import FigurePlan, PaperFigure, Preset
from isthmus.figures.panels import Curve, Frame, panel
from isthmus.figures.workshop import Workshop
from isthmus.reports.picture import Picture
from isthmus.sweeps import Plan

RANK = 5  # of the teacher: the appendix's number, where the caption says 4
LEARNED = 0.2  # of the variance: a data loss above it says that the teacher was not learned
SHOWN = 10  # singular values per layer, as in the paper
_VARIABLES = (
    "activation_singular_values", "weight_singular_values", "nonlinearity_impact", "dimension_activation"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RankRecoverySizes:
    """Numbers of a preset.

    Attributes:
        depth: L.
        width: of every hidden layer.
        num_samples: rows.
        lam: lambda of the paper; the ridge is lambda / L.
        seeds: starts; the one of least objective is shown.
        evaluations: gradients of each training.
    """

    depth: int
    width: int
    num_samples: int
    lam: float
    seeds: tuple[int, ...]
    evaluations: int


PRESETS = {
    Preset.PAPER: RankRecoverySizes(13, 100, 500, 0.05, (0, 1, 2), 6000),
    Preset.QUICK: RankRecoverySizes(13, 100, 500, 0.05, (0,), 6000),
    Preset.TINY: RankRecoverySizes(6, 12, 60, 0.05, (0,), 150),
}


def plan(preset: Preset) -> FigurePlan[RankRecoverySizes]:
    """The teacher of FC-47: 15 latent coordinates, 5 of which matter, 50 inputs and outputs, E|y|^2 = 1."""
    sizes = PRESETS[preset]
    training = {"ridge": sizes.lam / sizes.depth, "evaluations": sizes.evaluations, "scaling": "none"}
    sweep = Plan(
        {"name": "teacher_reference", "num_samples": sizes.num_samples},
        {"width": sizes.width, "depth": sizes.depth},
        training,
        grid={"seed": list(sizes.seeds)},
        name="rank-recovery",
    )
    return FigurePlan(sizes, {"teacher": sweep})


def compute(plan: FigurePlan[RankRecoverySizes], workshop: Workshop) -> xr.Dataset:
    """The table by layer of the start with the least objective."""
    best = min(workshop.trained(plan.sweeps["teacher"]), key=lambda trained: trained.number("objective"))
    table = best.table()
    data = table[[*_VARIABLES]].isel(component=slice(SHOWN)).drop_attrs()
    data = data.drop_vars([name for name in data.coords if name not in data.dims])
    numbers = {name: best.number(name) for name in ("objective", "data_loss", "penalty", "rank")}
    return data.assign({name: ((), value) for name, value in numbers.items()})


def _middle(data: xr.Dataset) -> slice:
    """The middle third of the weight layers."""
    depth = data.sizes["layer"]
    return slice(depth // 3, depth - depth // 3)


def draw(data: xr.Dataset) -> tuple[Picture, ...]:
    """Both spectra as maps over layers, and the impact of the nonlinearity."""
    hidden = data.isel(layer=slice(-1))  # the last layer has no nonlinearity
    impact = Curve("", hidden["layer"], hidden["nonlinearity_impact"], "both")
    return (
        Picture(
            "rank-recovery-activations",
            f"Singular values of the centred activations of each layer, over the largest. The teacher has rank {RANK}.",
            "A map of the singular values of activations, layer by component.",
            lambda: plots.layer_spectra(data, variable="activation_singular_values", rank=RANK),
        ),
        Picture(
            "rank-recovery-weights",
            f"Singular values of each weight matrix, over the largest: {RANK} stand out in the middle.",
            "A map of the singular values of weights, layer by component.",
            lambda: plots.layer_spectra(data, variable="weight_singular_values", rank=RANK),
        ),
        panel(
            "rank-recovery-impact",
            "Impact of the nonlinearity, |Z - relu(Z)| / |Z| over the preactivations Z of each layer: where it is 0 "
            "the network is linear on the data.",
            [impact],
            Frame("layer", "nonlinearity impact", limits=(0, None), whole=True),
        ),
    )


def verdict(data: xr.Dataset) -> tuple[Claim, ...]:
    """The rank in the middle, the linear middle between nonlinear ends, the norm per layer."""
    layers = data["dimension_activation"].isel(layer=_middle(data))
    impact = data["nonlinearity_impact"]
    ends = float(np.nanmax(impact.values[[0, -2]]))
    doubt = unlearned(float(data["data_loss"]), most=LEARNED)
    return (
        Claim(
            f"The weights in the middle have the rank of the task ({RANK}).", "Jacot 2023a, Figure 1",
            "numerical rank of the middle weights", float(data["rank"]), least=RANK, most=RANK, doubt=doubt,
        ),
        Claim(
            f"The representations in the middle have approximately rank {RANK}.", "Jacot 2023a, Figure 1",
            "median gap of the centred activations over the middle third", float(layers.median()),
            least=RANK, most=RANK, doubt=doubt,
        ),
        Claim(
            "The impact of the nonlinearity vanishes in the middle layers.", "Jacot 2023a, Figure 1",
            "median impact over the middle third", float(impact.isel(layer=_middle(data)).median()), most=0.02,
            doubt=doubt,
        ),
        Claim(
            "It does not at the ends.", "Jacot 2023a, Figure 1",
            "largest impact at the first and last hidden layers", ends,
            least=0.2, doubt=doubt,
        ),
        Claim(
            "The squared norm over the depth is about 6.", "Jacot 2023a, Figure 1", "penalty / L",
            float(data["penalty"]) / data.sizes["layer"], least=5.0, most=7.0, doubt=doubt,
        ),
    )  # fmt: skip


FIGURE = PaperFigure(
    1,
    "rank-recovery",
    "Rank recovery at depth 13",
    "Jacot 2023a, Figure 1",
    "A teacher of rank 5 from 50 to 50 dimensions, E|y|^2 = 1, ridge 0.05 / L; L-BFGS after Adam instead of Adam "
    "alone. The caption says rank 4, the appendix 5.",
    plan,
    compute,
    draw,
    verdict,
)
