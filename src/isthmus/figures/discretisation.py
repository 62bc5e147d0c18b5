"""Step sizes of leaky ResNets: test error against depth, spectra with an adaptive grid, the path of samples (figure 9).

Trainings: `leaky_training`. How steps are chosen: `networks.leaky_steps`, `training.solvers.adaptive_steps`.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import xarray as xr

from isthmus import plots
from isthmus.figures.claims import Claim, StartRule, unfinished
from isthmus.figures.figure import FigurePlan, PaperFigure, Preset
from isthmus.figures.leaky_training import FALLING, Leaky, leaky_part
from isthmus.figures.panels import Curve, Frame, panel, weight_spectra
from isthmus.figures.parts import Part
from isthmus.figures.workshop import Workshop
from isthmus.reports.picture import Picture

SCHEMES = ("equidistant", "irregular", "adaptive")


@dataclass(frozen=True, slots=True)
class DiscretisationSizes:
    """Numbers of a preset.

    Attributes:
        depths: L, ascending.
        shown: the depth whose adaptive network is drawn, one of them.
        network: everything else of each training.
        starts: of every scheme at every depth.
    """

    depths: tuple[int, ...]
    shown: int
    network: Leaky
    starts: StartRule = StartRule()

    def of_start(self, start: int) -> list[Part]:
        """A network of every scheme at every depth."""
        network = replace(self.network, start=start)
        return [leaky_part(replace(network, depth=at, steps=scheme)) for scheme in SCHEMES for at in self.depths]


PRESETS = {
    Preset.PAPER: DiscretisationSizes(
        (4, 6, 8, 10, 14, 18, 24, 30),
        18,
        Leaky((30, 6, 3, 30), True, 1000, 200, 18, 3.0, "adaptive", 0.002, 30_000, plateau=FALLING),
        StartRule((2, 4)),
    ),
    Preset.QUICK: DiscretisationSizes(
        (5, 8, 14), 14, Leaky((6, 4, 2, 6), True, 40, 14, 14, 3.0, "adaptive", 0.02, 3000)
    ),
    Preset.TINY: DiscretisationSizes(
        (4, 6), 6, Leaky((3, 2, 1, 3), True, 12, 6, 6, 2.0, "adaptive", 0.05, 40), StartRule((2,))
    ),
}


def plan(preset: Preset) -> FigurePlan[DiscretisationSizes]:
    """Effective depth 3 (LEAKY-22); three ResNets from 30 to 6 to 3 to 30 dimensions in the paper's sizes."""
    sizes = PRESETS[preset]
    return FigurePlan(sizes, parts=tuple(part for i in range(sizes.starts.looks[0]) for part in sizes.of_start(i)))


def compute(plan: FigurePlan[DiscretisationSizes], workshop: Workshop) -> xr.Dataset:
    """Errors of every scheme, depth and start; of adaptive networks the positions, of the first spectra and path."""
    sizes = plan.sizes

    def computed(count: int) -> xr.Dataset:
        workshop.make(part for start in range(count) for part in sizes.of_start(start))  # all workers at once
        tables = [_of_start(workshop.parts(sizes.of_start(start)), sizes) for start in range(count)]
        every = ["test_error", "train_error", "objective", "stationarity", "position"]
        together = xr.concat([table[every] for table in tables], "start")
        return together.merge(tables[0].drop_vars(every)).assign(rank=((), float(sizes.network.rank)))

    return sizes.starts.decided(computed, verdict)


def _of_start(found: list[xr.Dataset], sizes: DiscretisationSizes) -> xr.Dataset:
    table = [found[i : i + len(sizes.depths)] for i in range(0, len(found), len(sizes.depths))]
    names = ("test_error", "train_error", "objective", "stationarity")
    data = xr.Dataset(
        {name: (("scheme", "depth"), [[float(run[name]) for run in row] for row in table]) for name in names},
        coords={"scheme": np.arange(len(SCHEMES)), "depth": np.array(sizes.depths, dtype=float)},
    )
    shown = table[SCHEMES.index("adaptive")][sizes.depths.index(sizes.shown)].drop_attrs()
    kept = shown[["position", "weight_singular_values", "path"]]
    return data.merge(kept)


def draw(data: xr.Dataset) -> tuple[Picture, ...]:
    """Errors over depth, singular values over position with the steps, the path of the samples."""
    error = data["test_error"]
    errors = [
        Curve(name, data["depth"], error.sel(scheme=i).mean("start"), "both",
              low=error.sel(scheme=i).min("start"), high=error.sel(scheme=i).max("start"))
        for i, name in enumerate(SCHEMES)
    ]  # fmt: skip
    path = xr.Dataset(
        {
            "path": (("sample", "layer", "component"), data["path"].values),
            "group": ("layer", np.zeros(data.sizes["level"])),
        },
        coords={"layer": np.arange(1, data.sizes["level"] + 1)},
    )
    return (
        panel(
            "discretisation-error",
            "Test error against depth for three choices of the steps, at the same effective depth: mean over the "
            "starts, all of which lie in the bands.",
            errors,
            Frame("depth", "test error / variance", limits=(0, None), whole=True),
        ),
        weight_spectra(
            data.isel(start=0),
            "discretisation-spectra",
            "Singular values of the weights of an adaptive network against the position of their layer: marks show "
            "where its steps are.",
        ),
        Picture(
            "discretisation-path",
            "Samples on their way through the layers of the same network, in two principal components.",
            "One line per sample from its first to its last representation.",
            lambda: plots.representation_path(path),
        ),
    )


def verdict(data: xr.Dataset) -> tuple[Claim, ...]:
    """Irregular and adaptive steps are not worse, and adaptive steps are short at the ends."""
    claim = partial(Claim.over_starts, doubt=unfinished(data["stationarity"]), looks=int(data["looks"]))
    even, irregular, adaptive = (data["test_error"].sel(scheme=i) for i in range(len(SCHEMES)))
    steps = np.diff(data["position"].transpose("start", "layer").values, prepend=0.0, axis=1)
    ends = (steps[:, 0] + steps[:, -1]) / 2 / steps[:, 1:-1].max(axis=1)
    return (
        claim(
            "Irregular steps have a small but consistent advantage in the test error.",
            "Jacot and Kaiser 2024, Figure 2a",
            "largest error over that of equal steps", (irregular / even).max("depth").values.tolist(), most=1.0,
        ),
        claim(
            "So have adaptive steps.", "Jacot and Kaiser 2024, Figure 2a", "largest error over that of equal steps",
            (adaptive / even).max("depth").values.tolist(), most=1.0,
        ),
        claim(
            "Adaptive steps gather at the beginning and at the end.", "Jacot and Kaiser 2024, Figure 2b",
            "mean of the first and last step over the longest between", ends.tolist(), most=0.8,
        ),
    )  # fmt: skip


FIGURE = PaperFigure(
    9,
    "discretisation",
    "Step sizes of leaky ResNets",
    "Jacot and Kaiser 2024, Figure 2",
    "Three random ResNets in a row, from 30 to 6 to 3 to 30 dimensions for the paper's sizes and from 6 to 4 to 2 to 6 "
    "for smaller ones, standardised columns; preconditioned L-BFGS; effective depth 3.",
    plan,
    compute,
    draw,
    verdict,
)
