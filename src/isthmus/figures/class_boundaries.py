"""Boundaries of four classes in the plane, shallow and deep, with and without a ridge: tripoints counted exactly (2).

Exact regions and tripoints: `networks.class_regions`. What a tripoint proves about the rank: FC-45.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
import xarray as xr
from torch.nn.utils.rnn import pad_sequence

from isthmus import plots
from isthmus.figures.claims import Claim
from isthmus.figures.figure import FigurePlan, PaperFigure, Preset
from isthmus.figures.parts import Hear, Part
from isthmus.figures.workshop import FinishedTraining, Workshop
from isthmus.networks import FullyConnected
from isthmus.networks.class_regions import ClassRegions, class_regions
from isthmus.networks.slices import slice_cells
from isthmus.reports.picture import Picture
from isthmus.sweeps import Plan

LEARNED = 0.02  # of the samples misclassified: above it boundaries say nothing
MARGIN = 0.5  # of the data's range, beside it
DOTS = 150  # samples drawn


@dataclass(frozen=True, slots=True)
class ClassBoundariesSizes:
    """Numbers of a preset.

    Attributes:
        shallow: depth and width of the shallow networks.
        deep: of the deep ones.
        ridges: none, and one.
        seeds: starts of each; the first is drawn, all are counted.
        num_samples: rows.
        evaluations: gradients of each training.
    """

    shallow: tuple[int, int]
    deep: tuple[int, int]
    ridges: tuple[float, float]
    seeds: tuple[int, ...]
    num_samples: int
    evaluations: int


PRESETS = {
    Preset.PAPER: ClassBoundariesSizes((2, 200), (9, 50), (0.0, 1e-3), (0, 1, 2, 3), 1000, 4000),
    Preset.QUICK: ClassBoundariesSizes((2, 100), (9, 24), (0.0, 1e-3), (0,), 400, 2000),
    Preset.TINY: ClassBoundariesSizes((2, 12), (4, 6), (0.0, 1e-3), (0,), 80, 150),
}


def plan(preset: Preset) -> FigurePlan[ClassBoundariesSizes]:
    """Four overhanging inverted S (FC-48, whose geometry is ours), cross-entropy."""
    sizes = PRESETS[preset]
    settings = [
        {"depth": depth, "width": width, "ridge": ridge, "seed": seed}
        for depth, width in (sizes.shallow, sizes.deep)
        for ridge in sizes.ridges
        for seed in sizes.seeds
    ]
    sweep = Plan(
        {"name": "inverted_s_classes", "num_samples": sizes.num_samples},
        {},
        {"ridge": 0.0, "loss": "cross_entropy", "evaluations": sizes.evaluations},
        settings=settings,
        name="class-boundaries",
    )
    return FigurePlan(sizes, {"classes": sweep})


def compute(plan: FigurePlan[ClassBoundariesSizes], workshop: Workshop) -> xr.Dataset:
    """Tripoints and errors of every network, the regions of the first start of each kind."""
    runs = workshop.trained(plan.sweeps["classes"])
    x, labels = runs[0].data()
    found = workshop.parts([_part(run) for run in runs])
    data = xr.Dataset({"points": (("point", "axis"), x[:DOTS].numpy()), "class": ("point", labels[:DOTS].numpy())})
    data["depth"] = ("run", [run.axis("depth") for run in runs])
    data["ridge"] = ("run", [run.axis("ridge") for run in runs])
    for name in ("tripoints", "error"):
        data[name] = ("run", [float(part[name]) for part in found])
    first = [i for i, run in enumerate(runs) if run.axis("seed") == plan.sizes.seeds[0]]
    data["case"] = [float(i) for i in first]
    shown = [found[i].drop_attrs()[["vertices", "label", "meeting"]] for i in first]
    numbered = [part.assign_coords({d: np.arange(n) for d, n in part.sizes.items()}) for part in shown]
    return data.merge(xr.concat(numbered, "place", join="outer"))  # of different sizes: filled up with NaN


def _part(run: FinishedTraining) -> Part:
    return Part("class regions", {"run": run.run.id, "margin": MARGIN}, partial(_classified, run))


def _classified(run: FinishedTraining, _checkpoint: Path, _hear: Hear) -> xr.Dataset:
    """Regions, tripoints and error of one network, padded with NaN."""
    x, labels = run.data()
    network = run.connected()
    low, high, margin = x.min(0).values, x.max(0).values, MARGIN * (x.max(0).values - x.min(0).values)
    regions = _regions(network, low - margin, high + margin)
    with torch.no_grad():
        answers = network(x.to(next(network.parameters()).dtype)).argmax(1)
    error = float((answers != labels).double().mean())
    return _polygons(regions).assign(tripoints=((), float(len(regions.tripoints))), error=((), error))


def _regions(network: FullyConnected, low: torch.Tensor, high: torch.Tensor) -> ClassRegions:
    (u0, v0), (u1, v1) = low.tolist(), high.tolist()
    plane = torch.eye(2, dtype=torch.float64)
    return class_regions(slice_cells(network, torch.zeros(2).double(), plane, lower=(u0, v0), upper=(u1, v1)))


def _polygons(found: ClassRegions) -> xr.Dataset:
    """All pieces in one array, padded with NaN; the tripoints with a row of NaN, for an array has no dimension of 0."""
    corners = pad_sequence([*found.polygons], True, torch.nan).numpy()
    meeting = np.vstack([found.tripoints.numpy(), np.full(2, np.nan)])
    return xr.Dataset(
        {
            "vertices": (("piece", "vertex", "axis"), corners),
            "label": ("piece", found.labels.numpy().astype(np.float64)),
            "meeting": (("tripoint", "axis"), meeting),
        }
    )


def draw(data: xr.Dataset) -> tuple[Picture, ...]:
    """The regions of each kind of network."""
    return tuple(_picture(data, place, int(run)) for place, run in enumerate(data["case"].values))


def _picture(data: xr.Dataset, place: int, run: int) -> Picture:
    depth, ridge = float(data["depth"][run]), float(data["ridge"][run])
    told = f"depth {depth:.0f}, {f'ridge {ridge:g}' if ridge else 'no ridge'}"
    here, at = data.isel(place=place), data["meeting"].values[place]
    meeting = at[np.isfinite(at).all(axis=1)]
    there = np.isfinite(here["label"].values)  # networks have different numbers of pieces
    part = xr.Dataset(
        {
            "vertices": (("piece", "vertex", "component"), here["vertices"].values[there]),
            "label": ("piece", here["label"].values[there].astype(int)),
            "tripoints": (("tripoint", "component"), meeting),
            "points": (("point", "component"), data["points"].values),
        }
    )
    return Picture(
        f"class-boundaries-{'deep' if place >= 2 else 'shallow'}-{'ridge' if ridge else 'free'}",
        f"Regions of four classes, {told}: {len(meeting)} tripoints (rings). Dots: samples of all classes.",
        f"The plane divided into the regions of four classes by a network of {told}.",
        lambda: plots.decision_regions(part, axis_names=("x1", "x2")),
    )


def verdict(data: xr.Dataset) -> tuple[Claim, ...]:
    """Tripoints in shallow networks, none in deep ones, and little effect of the ridge."""
    deepest = float(data["depth"].max())
    deep, shallow = data["tripoints"][data["depth"] == deepest], data["tripoints"][data["depth"] < deepest]
    error = float(data["error"].max())
    doubt = "" if error <= LEARNED else f"a network misclassifies {100 * error:.0f} % of its samples"
    ridged, free = (float(data["tripoints"][(data["ridge"] > 0) == r].sum()) for r in (True, False))
    return (
        Claim(
            "The regions of shallow networks have tripoints.", "Jacot 2023a, Figure 2",
            "tripoints of shallow networks, sum over ridges and starts", float(shallow.sum()), least=1, doubt=doubt,
        ),
        Claim(
            "Those of deeper networks have none.", "Jacot 2023a, Figure 2", "tripoints of deep networks, the same sum",
            float(deep.sum()), most=0, doubt=doubt,
        ),
        Claim(
            "A ridge has little effect on this.", "Jacot 2023a, section 5",
            "difference of the tripoints with and without it, over their sum",
            abs(ridged - free) / max(ridged + free, 1.0), most=0.5, doubt=doubt,
        ),
    )  # fmt: skip


FIGURE = PaperFigure(
    2,
    "class-boundaries",
    "Class boundaries with and without tripoints",
    "Jacot 2023a, Figure 2",
    "Four inverted S that overhang each other, cross-entropy, depths 2 and 9, ridge 0 and 0.001. Size, gap, samples "
    "and widths are ours: the paper gives none.",
    plan,
    compute,
    draw,
    verdict,
)
