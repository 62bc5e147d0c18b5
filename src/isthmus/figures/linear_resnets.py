"""Linear ResNets between the nuclear norm and the rank: closed forms, trained networks, both limits (figure 11).

Trainings, and networks written down: `linear_resnet_training`. Pictures: `linear_resnet_panels`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr

from isthmus.figures.claims import Claim, unfinished
from isthmus.figures.figure import FigurePlan, PaperFigure, Preset
from isthmus.figures.linear_resnet_panels import draw, small_weight_ratio
from isthmus.figures.linear_resnet_training import BLOCKS, RANK, VALUES, LinearTraining, compositions
from isthmus.figures.workshop import Workshop
from isthmus.theory import resnet_cost


@dataclass(frozen=True, slots=True)
class LinearResnetsSizes:
    """Numbers of a preset.

    Attributes:
        depths: of the curves, beside infinite depth.
        num_weights: residual weights lambda on each curve.
        trained_depths: of the trained networks.
        trained_weights: lambda of the trained networks.
        ridge: of their training.
        evaluations: of each training.
        construction_depth: blocks of the networks of Theorem 3.3.
    """

    depths: tuple[int, ...]
    num_weights: int
    trained_depths: tuple[int, ...]
    trained_weights: tuple[float, ...]
    ridge: float
    evaluations: int
    construction_depth: int


PRESETS = {
    Preset.PAPER: LinearResnetsSizes((1, 4, 16, 64), 121, (1, 3, 8, 16), (0.05, 0.1, 0.5, 2.0, 10.0), 0.05, 6000, 4000),
    Preset.QUICK: LinearResnetsSizes((1, 4, 16, 64), 61, (1, 3, 8), (0.1, 0.5, 2.0), 0.05, 1500, 1000),
    Preset.TINY: LinearResnetsSizes((1, 16), 11, (3,), (0.5,), 0.05, 200, 600),
}


def plan(preset: Preset) -> FigurePlan[LinearResnetsSizes]:
    """Closed forms and small trainings; the paper shows no experiment, so every size is ours."""
    sizes = PRESETS[preset]
    return FigurePlan(sizes, parts=tuple(case.part() for case in _trainings(sizes)))


def _trainings(sizes: LinearResnetsSizes) -> Iterator[LinearTraining]:
    for block in BLOCKS:
        for depth in sizes.trained_depths:
            for weight in sizes.trained_weights:
                yield LinearTraining(block, depth, weight, sizes.ridge, sizes.evaluations)


def compute(plan: FigurePlan[LinearResnetsSizes], workshop: Workshop) -> xr.Dataset:
    """Costs over lambda at every depth, penalties of trained networks, costs of the construction."""
    sizes = plan.sizes
    wide = np.logspace(-4, 3, sizes.num_weights)
    tiny = np.logspace(-300, -1, sizes.num_weights)
    depths: list[int | None] = [*sizes.depths, None]
    data = xr.Dataset(coords={"block": list(BLOCKS), "depth": [float(d or np.inf) for d in depths]})
    for name, weights in (("wide", wide), ("tiny", tiny)):
        data[f"{name}_weight"] = (f"{name}_point", weights)
        data[f"{name}_cost"] = (("block", "depth", f"{name}_point"), _costs(weights, depths))
    parts = [part.drop_attrs() for part in workshop.parts(plan.parts)]
    data = data.merge(xr.concat(parts, "training")).merge(compositions(sizes.construction_depth))
    for name in ("block", "depth", "weight"):
        column = [float(getattr(case, name)) for case in _trainings(sizes)]
        data[f"trained_{name}"] = ("training", column)
    return data


def _costs(weights: np.ndarray, depths: list[int | None]) -> np.ndarray:
    values = torch.tensor(VALUES, dtype=torch.float64)
    return np.array(
        [
            [
                [float(resnet_cost(values, residual_weight=w, depth=depth, block_depth=block)) for w in weights]
                for depth in depths
            ]
            for block in BLOCKS
        ]
    )


def _intercept(data: xr.Dataset) -> float:
    """Where cost / (lambda log(1/lambda)) of the construction heads, by a straight line in 1 / log(1/lambda)."""
    logs = np.log(1 / data["construction_weight"].values)
    ratios = data["construction_cost"].values / data["construction_weight"].values / logs
    return float(np.polyfit(1 / logs, ratios, 1)[1])


def verdict(data: xr.Dataset) -> tuple[Claim, ...]:
    """The theorem, both limits, the limit as printed, and the theorem on nonlinear functions."""
    excess, doubt = data["trained_penalty"] / data["trained_closed"], unfinished(data["trained_stationarity"])
    last = {block: small_weight_ratio(data, block).isel(tiny_point=0) for block in BLOCKS}
    heavy = data["wide_cost"].isel(wide_point=-1) / sum(VALUES)
    finite = float(last[2].sel(depth=np.isfinite(data["depth"])).min())
    slack = float((data["construction_cost"] / data["construction_bound"]).min())
    return (
        Claim(
            "No network computes a linear map with a smaller norm than the closed form.",
            "Boix-Adsera 2025, Theorem 2.1",
            "least penalty / closed form over trained networks", float(excess.min()), least=1 - 1e-6, doubt=doubt,
        ),
        Claim(
            "The closed form is attained.", "Boix-Adsera 2025, Theorem 2.1",
            "largest penalty / closed form over trained networks", float(excess.max()), most=1.01, doubt=doubt,
        ),
        Claim(
            "With dear residual blocks the cost is the nuclear norm.", "Boix-Adsera 2025, Corollary 2.3",
            "least cost / nuclear norm at lambda = 1000", float(heavy.min()), least=0.99, most=1 + 1e-9,
        ),
        Claim(
            "With cheap blocks and infinite depth the cost counts the rank (3), blocks of two matrices.",
            "Boix-Adsera 2025, Corollary 2.3", "cost / (lambda log 1/lambda) at lambda = 1e-300",
            float(last[2].sel(depth=np.inf)), least=2.9, most=3.1,
        ),
        Claim(
            "The same for blocks of one matrix.", "Boix-Adsera 2025, Corollary 2.3",
            "cost / (lambda log^2 1/lambda) at lambda = 1e-300", float(last[1].sel(depth=np.inf)), least=2.9, most=3.1,
        ),
        Claim(
            "The limit as printed, at fixed finite depth, is the rank (3).", "Boix-Adsera 2025, (2.4)",
            "least cost / (lambda log 1/lambda) over finite depths at lambda = 1e-300", finite, least=2.9, most=3.1,
        ),
        Claim(
            "The networks of the theorem cost at least what the Jacobians demand.", "Boix-Adsera 2025, Theorem 3.3",
            "least cost / lower bound", slack, least=1.0,
        ),
        Claim(
            "Their cost over lambda log(1/lambda) tends to the bottleneck rank (2).", "Boix-Adsera 2025, Theorem 3.3",
            "value at lambda = 0 of a line in 1 / log(1/lambda)", _intercept(data), least=RANK - 0.15, most=RANK + 0.15,
        ),
    )  # fmt: skip


FIGURE = PaperFigure(
    11,
    "linear-resnets",
    "Linear ResNets between the nuclear norm and the rank",
    "Boix-Adsera 2025, Theorem 2.1, Corollaries 2.2 and 2.3, Theorem 3.3",
    "A 5 x 4 map of singular values 3, 1 and .3; linear ResNets trained on unit vectors. The paper shows no "
    "experiment: every size is ours.",
    plan,
    compute,
    draw,
    verdict,
)
