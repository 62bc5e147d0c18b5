"""The panels of linear ResNets: both limits of the cost, trained networks on the closed form, compositions on a bound.

Where the numbers come from: `linear_resnets`.
"""

import numpy as np
import xarray as xr

from isthmus.figures.linear_resnet_training import BLOCKS, VALUES
from isthmus.figures.panels import Curve, Frame, panel
from isthmus.figures.residual_compositions import RANK
from isthmus.reports.picture import Picture


def small_weight_ratio(data: xr.Dataset, block: int) -> xr.DataArray:
    """Cost over lambda log(1/lambda) for blocks of two matrices, over lambda log^2(1/lambda) for blocks of one."""
    weight = data["tiny_weight"]
    return data["tiny_cost"].sel(block=block) / (weight * np.log(1 / weight) ** (2 if block == 1 else 1))


def draw(data: xr.Dataset) -> tuple[Picture, ...]:
    """Both limits, the trained networks on the closed form, the construction above its bound."""
    nuclear, names = sum(VALUES), {1: "one matrix per block", 2: "two matrices per block"}
    large: list[Curve] = []
    small: list[Curve] = []
    for look, depth in enumerate(data["depth"].values):
        label = "infinite depth" if np.isinf(depth) else f"depth {depth:.0f}"
        cost = data["wide_cost"].sel(block=2, depth=depth)
        large.append(Curve(label, data["wide_weight"], cost / nuclear, look=look))
        if depth > 1:  # at depth 1 the ratio leaves the picture at once
            ratio = small_weight_ratio(data, 2).sel(depth=depth)
            small.append(Curve(label, -np.log10(data["tiny_weight"]), ratio, look=look))
    two = data["trained_block"] == 2
    points = Curve(
        "trained", data["trained_weight"][two], (data["trained_penalty"] / data["trained_nuclear"])[two], "points", 5
    )
    logs = np.log(1 / data["construction_weight"]) * data["construction_weight"]
    heading = -np.log10(data["construction_weight"])
    return (
        panel(
            "linear-resnets-large",
            "Least cost over the nuclear norm against the residual weight lambda, blocks of two matrices, singular "
            "values 3, 1, .3. To the right residual blocks are too dear to be used and the cost is the nuclear norm. "
            "Triangles: trained networks of several depths, each over the nuclear norm of what it learned.",
            [*large, points],
            Frame("residual weight", "cost / nuclear norm", log_x=True, levels={"nuclear norm": 1.0}),
        ),
        panel(
            "linear-resnets-small",
            "Least cost over lambda log(1/lambda) as lambda goes to 0, far beyond what can be trained. Only at "
            "infinite depth it tends to the rank 3; at every finite depth it grows without limit, against (2.4).",
            small,
            Frame("digits of 1 / lambda", "cost / (lambda log 1/lambda)", levels={"rank": 3.0}, limits=(0, 10)),
        ),
        panel(
            "linear-resnets-trained",
            "Penalty of each trained linear ResNet against the closed form of Theorem 2.1 for the map that it learned; "
            "on the diagonal they agree.",
            [
                Curve(names[block], *_pair(data, block), kind="points", look=block - 1) for block in BLOCKS
            ]
            + [Curve("equal", *_diagonal(data), look=4)],
            Frame("closed form", "penalty after training", log_x=True, log_y=True),
        ),
        panel(
            "linear-resnets-construction",
            "Cost of networks written down after Theorem 3.3 for a nonlinear function through two dimensions, and the "
            "lower bound from its Jacobians, both over lambda log(1/lambda).",
            [
                Curve("network", heading, data["construction_cost"] / logs, "both"),
                Curve("lower bound", heading, data["construction_bound"] / logs, "both"),
            ],
            Frame("digits of 1 / lambda", "cost / (lambda log 1/lambda)", levels={"rank": float(RANK)}, limits=(0, 9)),
        ),
    )  # fmt: skip


def _pair(data: xr.Dataset, block: int) -> tuple[xr.DataArray, xr.DataArray]:
    chosen = data["trained_block"] == block
    return data["trained_closed"][chosen], data["trained_penalty"][chosen]


def _diagonal(data: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    ends = np.array([float(data["trained_closed"].min()), float(data["trained_closed"].max())])
    return ends, ends
