"""Linear networks: cost per layer on its way to the rank and to the number of non-zeros; kernels learn no rank (12).

Closed forms: `theory.linear_costs`, `theory.kernel_baseline`. Linear residual networks: `linear_resnets`.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
import xarray as xr

from isthmus.figures.claims import Claim, unfinished, unlearned
from isthmus.figures.figure import FigurePlan, PaperFigure, Preset
from isthmus.figures.linear_resnet_training import map_of
from isthmus.figures.panels import Curve, Frame, panel
from isthmus.figures.parts import Hear, Part
from isthmus.figures.workshop import FinishedTraining, Workshop
from isthmus.networks import FullyConnected
from isthmus.networks.jacobians import jacobians
from isthmus.reports.picture import Picture
from isthmus.sweeps import Plan
from isthmus.theory import diagonal_linear_cost, kernel_ridge, linear_cost
from isthmus.theory.spread_rows import median_over_rows
from isthmus.training import fit
from isthmus.training.solvers.solver import LBFGS

VALUES = (3.0, 1.0, 0.3, 0.0, 0.0)  # singular values of the matrix, rank 3
ENTRIES = (2.0, -0.5, 0.1, 0.02, 0.0)  # of the diagonal network, 4 of them not zero
RANK, DIMENSION = 2, 12  # of the teacher that kernels and a network learn
LEARNED = 0.2  # of the variance: a data loss above it says that the teacher was not learned
LARGE = 0.01  # of the largest singular value: what counts as a dimension


@dataclass(frozen=True, slots=True)
class LinearNetworksSizes:
    """Numbers of a preset.

    Attributes:
        deepest: the largest depth of the closed forms.
        trained_depths: of the trained linear networks.
        ridge: of their training, divided by the depth.
        evaluations: of each training.
        num_samples: rows of the teacher.
        noise: of its targets, relative.
        bandwidths: of the kernels, in medians of the distance between rows.
        depth: of the network that learns the teacher.
        width: of its layers.
        network_ridge: of its training.
    """

    deepest: int
    trained_depths: tuple[int, ...]
    ridge: float
    evaluations: int
    num_samples: int
    noise: float
    bandwidths: tuple[float, ...]
    depth: int
    width: int
    network_ridge: float


STARTS = 3  # of the network, of which the least minimum counts: from one in a few a third direction is left
PRESETS = {
    Preset.PAPER: LinearNetworksSizes(
        10_000, (1, 2, 3, 5, 8, 12), 0.02, 8000, 1000, 0.1, (0.25, 0.5, 1.0, 2.0), 8, 60, 3e-3
    ),
    Preset.QUICK: LinearNetworksSizes(1000, (1, 2, 3, 5, 8), 0.02, 4000, 400, 0.1, (0.25, 0.5, 1.0, 2.0), 8, 40, 3e-3),
    Preset.TINY: LinearNetworksSizes(1000, (2, 3), 0.02, 600, 100, 0.1, (0.5, 1.0), 8, 16, 1e-2),
}


def plan(preset: Preset) -> FigurePlan[LinearNetworksSizes]:
    """Closed forms, small trainings, and one network on a noisy teacher; every size is ours."""
    sizes = PRESETS[preset]
    teacher = Plan(
        {"name": "teacher", "rank": RANK, "d_in": DIMENSION, "d_out": DIMENSION, "latent_dim": 5,
         "num_samples": sizes.num_samples, "noise": sizes.noise},
        {"width": sizes.width},
        {"ridge": sizes.network_ridge, "evaluations": sizes.evaluations},
        grid={"depth": [sizes.depth], "network.seed": list(range(STARTS))},
        name="linear-networks teacher",
    )  # fmt: skip
    return FigurePlan(sizes, {"teacher": teacher}, tuple(_part(depth, sizes) for depth in sizes.trained_depths))


def _part(depth: int, sizes: LinearNetworksSizes) -> Part:
    settings = {"depth": depth, "ridge": sizes.ridge, "evaluations": sizes.evaluations, "values": VALUES, "seed": 0}
    settings |= {"reads": "stationarity"}  # of parts kept before there was none
    return Part("linear network", settings, partial(_trained, depth, sizes))


def compute(plan: FigurePlan[LinearNetworksSizes], workshop: Workshop) -> xr.Dataset:
    """Costs over depth, penalties of trained networks, spectra of Jacobians."""
    sizes = plan.sizes
    depths = np.unique(np.geomspace(1, sizes.deepest, 40).round().astype(int))
    matrix, entries = map_of(VALUES), torch.tensor(ENTRIES, dtype=torch.float64)
    data = xr.Dataset(
        {
            "full_cost": ("depth", [float(linear_cost(matrix, depth=int(d))) / d for d in depths]),
            "diagonal_cost": ("depth", [float(diagonal_linear_cost(entries, depth=int(d))) / d for d in depths]),
        },
        coords={"depth": depths.astype(float)},
    )
    parts = [part.drop_attrs() for part in workshop.parts(plan.parts)]
    data = data.merge(xr.concat(parts, "training"))
    data["trained_depth"] = ("training", np.array(sizes.trained_depths, dtype=float))
    least = min(workshop.trained(plan.sweeps["teacher"]), key=lambda trained: trained.number("objective"))
    return data.merge(_spectra(least, sizes))


def _trained(depth: int, sizes: LinearNetworksSizes, checkpoint: Path, hear: Hear) -> xr.Dataset:
    """Penalty of a trained linear network, and the closed form for what it learned, both per layer."""
    matrix = map_of(VALUES)
    size = len(matrix)
    network = FullyConnected(
        size, size, width=size + 3, depth=depth, linear=tuple(range(1, depth)), bias=False, seed=0,
        dtype=torch.float64,
    )  # fmt: skip
    x = size**0.5 * torch.eye(size, dtype=torch.float64)
    result = fit(
        network, x, x @ matrix.T, ridge=sizes.ridge / depth, solver=LBFGS(sizes.evaluations), checkpoint=checkpoint,
        callback=hear,
    )  # fmt: skip
    with torch.no_grad():
        learned = network(torch.eye(size, dtype=torch.float64)).T
    closed = float(linear_cost(learned, depth=depth))
    numbers = {
        "trained_penalty": result.penalty / depth, "trained_closed": closed / depth,
        "trained_stationarity": result.stationarity,
    }  # fmt: skip
    return xr.Dataset({name: ((), value) for name, value in numbers.items()})


def _spectra(trained: FinishedTraining, sizes: LinearNetworksSizes) -> xr.Dataset:
    """Median singular values of Jacobians at the samples: of kernels of several bandwidths and of a network."""
    x, y = trained.data()
    median = float(median_over_rows(torch.pdist(x.double())))
    fits = [kernel_ridge(x.double(), y.double(), ridge=sizes.noise, bandwidth=b * median) for b in sizes.bandwidths]
    found = [_median_spectrum(fitted.jacobian(x.double())) for fitted in fits]
    return xr.Dataset(
        {
            "kernel_spectrum": (("bandwidth", "component"), np.array(found)),
            "network_loss": ((), trained.number("data_loss")),
            "network_spectrum": ("component", _median_spectrum(jacobians(trained.connected().double(), x.double()))),
        },
        coords={"bandwidth": list(sizes.bandwidths), "component": np.arange(1, x.shape[1] + 1)},
    )


def _median_spectrum(slopes: torch.Tensor) -> np.ndarray:
    spectrum = median_over_rows(torch.linalg.svdvals(slopes)).numpy()
    return spectrum / spectrum[0]


def draw(data: xr.Dataset) -> tuple[Picture, ...]:
    """Costs over depth with trained networks on them, and the spectra of Jacobians."""
    points = Curve("trained, fully connected", data["trained_depth"], data["trained_penalty"], "points", 2)
    kernels = [
        Curve(f"kernel, bandwidth {float(b):g}", data["component"], data["kernel_spectrum"].sel(bandwidth=b), "both")
        for b in data["bandwidth"]
    ]
    network = Curve("network", data["component"], data["network_spectrum"], "both", 5)
    return (
        panel(
            "linear-networks-cost",
            "Least squared norm per layer of a linear network with singular values 3, 1, .3, 0, 0, and of a diagonal "
            "one with entries 2, -.5, .1, .02, 0: both count what is not zero when networks are deep.",
            [
                Curve("fully connected", data["depth"], data["full_cost"]),
                Curve("diagonal", data["depth"], data["diagonal_cost"]),
                points,
            ],
            Frame("depth", "least norm / depth", log_x=True, levels={"rank 3, 4 non-zeros": 3.0, "": 4.0}),
        ),
        panel(
            "linear-networks-kernels",
            "Singular values of the Jacobian (medians over samples) of a noisy teacher of rank 2, as Gaussian kernel "
            "ridge regression and a deep network with a penalty learn it. Kernels keep every direction.",
            [*kernels, network],
            Frame(
                "component of the Jacobian", "singular value / first", log_y=True, levels={"counted from": LARGE},
                limits=(1e-6, 2), whole=True,
            ),
        ),
    )  # fmt: skip


def verdict(data: xr.Dataset) -> tuple[Claim, ...]:
    """The two limits, the closed form attained, and the ranks that kernels and the network show."""
    excess = data["trained_penalty"] / data["trained_closed"]
    off = abs(data["full_cost"].isel(depth=-1) - 3)
    dimensions = (data["kernel_spectrum"] >= LARGE).sum("component")
    return (
        Claim(
            "The cost per layer of deep linear networks tends to the rank (3).", "Jacot 2023a, introduction",
            f"distance from 3 at depth {float(data['depth'][-1]):.0f}", float(off), most=0.01,
        ),
        Claim(
            "That of diagonal linear networks tends to the number of non-zeros (4).", "Jacot 2023a, introduction",
            "distance from 4 at the same depth", float(abs(data["diagonal_cost"].isel(depth=-1) - 4)), most=0.02,
        ),
        Claim(
            "Trained linear networks reach the closed form.", "Jacot 2023a, Appendix B",
            "largest penalty / closed form of what they learned", float(excess.max()), least=1 - 1e-6, most=1.01,
            doubt=unfinished(data["trained_stationarity"]),
        ),
        Claim(
            "Kernel ridge regression over-estimates the rank (2).", "Jacot 2023a, Appendix D.1",
            "fewest dimensions above 1 % over bandwidths", float(dimensions.min()), least=RANK + 1,
        ),
        Claim(
            "The deep network with a penalty does not.", "Jacot 2023a, Appendix D.1",
            "dimensions above 1 %", float((data["network_spectrum"] >= LARGE).sum()), least=RANK, most=RANK,
            doubt=unlearned(float(data["network_loss"]), most=LEARNED),
        ),
    )  # fmt: skip


FIGURE = PaperFigure(
    12,
    "linear-networks",
    "Linear networks from norms to rank and sparsity",
    "Jacot 2023a, introduction and Appendix D.1",
    "A 5 x 5 matrix of rank 3; a teacher of rank 2 from 12 to 12 dimensions with 10 % noise. The paper shows no "
    "experiment: every size is ours.",
    plan,
    compute,
    draw,
    verdict,
)
