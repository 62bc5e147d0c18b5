"""Boundaries of four classes in the plane, shallow and deep, with and without a ridge: tripoints counted exactly (2).

Exact regions and tripoints: `networks.class_regions`. What a tripoint proves about the rank: FC-45.
"""

from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr

from isthmus import plots
from isthmus.figures.claims import Claim
from isthmus.figures.figure import FigurePlan, PaperFigure, Preset
from isthmus.figures.workshop import Trained, Workshop
from isthmus.networks import FullyConnected
from isthmus.networks.class_regions import ClassRegions, class_regions
from isthmus.networks.slices import slice_cells
from isthmus.reports.picture import Picture
from isthmus.sweeps import Plan

LEARNED = 0.02  # of the samples misclassified: above it boundaries say nothing
MARGIN = 0.5  # of the data's range, beside it
DOTS = 150  # samples drawn


@dataclass(frozen=True, slots=True)
class Sizes:
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
    Preset.PAPER: Sizes((2, 200), (9, 50), (0.0, 1e-3), (0, 1, 2, 3), 1000, 4000),
    Preset.QUICK: Sizes((2, 100), (9, 24), (0.0, 1e-3), (0,), 400, 2000),
    Preset.TINY: Sizes((2, 12), (4, 6), (0.0, 1e-3), (0,), 80, 150),
}


def plan(preset: Preset) -> FigurePlan[Sizes]:
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


def compute(plan: FigurePlan[Sizes], workshop: Workshop) -> xr.Dataset:
    """Tripoints and errors of every network, the regions of the first start of each kind."""
    runs = workshop.trained(plan.sweeps["classes"])
    x, labels = runs[0].data()
    span = x.max(0).values - x.min(0).values
    low, high = x.min(0).values - MARGIN * span, x.max(0).values + MARGIN * span
    found = [_regions(run, low, high) for run in runs]
    data = xr.Dataset({"points": (("point", "axis"), x[:DOTS].numpy()), "class": ("point", labels[:DOTS].numpy())})
    data["depth"] = ("run", [run.axis("depth") for run in runs])
    data["ridge"] = ("run", [run.axis("ridge") for run in runs])
    data["tripoints"] = ("run", [float(len(regions.tripoints)) for regions in found])
    data["error"] = ("run", [_error(run, x, labels) for run in runs])
    first = [i for i, run in enumerate(runs) if run.axis("seed") == plan.sizes.seeds[0]]
    data["case"] = [float(i) for i in first]
    return data.merge(_polygons([found[i] for i in first]))


def _network(run: Trained) -> FullyConnected:
    network = run.network()
    assert isinstance(network, FullyConnected)
    return network


def _regions(run: Trained, low: torch.Tensor, high: torch.Tensor) -> ClassRegions:
    (u0, v0), (u1, v1) = low.tolist(), high.tolist()
    plane = torch.eye(2, dtype=torch.float64)
    return class_regions(slice_cells(_network(run), torch.zeros(2).double(), plane, lower=(u0, v0), upper=(u1, v1)))


def _error(run: Trained, x: torch.Tensor, labels: torch.Tensor) -> float:
    network = _network(run)
    with torch.no_grad():
        answers = network(x.to(next(network.parameters()).dtype)).argmax(1)
    return float((answers != labels).double().mean())


def _polygons(found: list[ClassRegions]) -> xr.Dataset:
    """All pieces in one array, padded with NaN, each with the place of its network."""
    pieces = [(i, polygon, int(label)) for i, r in enumerate(found) for polygon, label in _labelled(r)]
    corners = np.full((len(pieces), max(len(polygon) for _, polygon, _ in pieces), 2), np.nan)
    for place, (_, polygon, _) in enumerate(pieces):
        corners[place, : len(polygon)] = polygon.numpy()
    meeting = [np.column_stack([np.full(len(r.tripoints), float(i)), r.tripoints.numpy()]) for i, r in enumerate(found)]
    return xr.Dataset(
        {
            "vertices": (("piece", "vertex", "axis"), corners),
            "label": ("piece", np.array([label for _, _, label in pieces])),
            "piece_case": ("piece", np.array([i for i, _, _ in pieces])),
            "meeting": (("tripoint", "column"), np.concatenate(meeting)),
        }
    )


def _labelled(found: ClassRegions) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return list(zip(found.polygons, found.labels, strict=True))


def draw(data: xr.Dataset) -> tuple[Picture, ...]:
    """The regions of each kind of network."""
    return tuple(_picture(data, place, int(run)) for place, run in enumerate(data["case"].values))


def _picture(data: xr.Dataset, place: int, run: int) -> Picture:
    depth, ridge = float(data["depth"][run]), float(data["ridge"][run])
    told = f"depth {depth:.0f}, {f'ridge {ridge:g}' if ridge else 'no ridge'}"
    here = data["piece_case"].values == place
    meeting = data["meeting"].values[data["meeting"].values[:, 0] == place, 1:]
    part = xr.Dataset(
        {
            "vertices": (("piece", "vertex", "component"), data["vertices"].values[here]),
            "label": ("piece", data["label"].values[here]),
            "tripoints": (("tripoint", "component"), meeting),
            "points": (("point", "component"), data["points"].values),
        }
    )
    return Picture(
        f"class-boundaries-{'deep' if place >= 2 else 'shallow'}-{'ridge' if ridge else 'free'}",
        f"Regions of four classes, {told}: {len(meeting)} tripoints (rings). Dots: samples of all classes.",
        f"The plane divided into the regions of four classes by a network of {told}.",
        lambda: plots.decision_regions(part),
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
            "The regions of shallow networks have tripoints.", "001, Figure 2",
            "tripoints of shallow networks, sum over ridges and starts", float(shallow.sum()), least=1, doubt=doubt,
        ),
        Claim(
            "Those of deeper networks have none.", "001, Figure 2", "tripoints of deep networks, the same sum",
            float(deep.sum()), most=0, doubt=doubt,
        ),
        Claim(
            "A ridge has little effect on this.", "001, section 5",
            "difference of the tripoints with and without it, over their sum",
            abs(ridged - free) / max(ridged + free, 1.0), most=0.5, doubt=doubt,
        ),
    )  # fmt: skip


FIGURE = PaperFigure(
    2,
    "class-boundaries",
    "Class boundaries with and without tripoints",
    "001, Figure 2",
    "Four inverted S that overhang each other, cross-entropy, depths 2 and 9, ridge 0 and 0.001. Size, gap, samples "
    "and widths are ours: the paper gives none.",
    plan,
    compute,
    draw,
    verdict,
)
