"""The panels of linear ResNets: both limits of the cost, trained networks on the closed form, compositions on a bound.

Where the numbers come from: `linear_resnets`.
"""

import numpy as np
import xarray as xr

from isthmus.figures.linear_resnet_training import BLOCKS, RANK, VALUES
from isthmus.figures.panels import Curve, Frame, panel
from isthmus.reports.picture import Picture

NAMES = {1: "one matrix per block", 2: "two matrices per block"}
CHEAP = 0.1  # residual weights up to it show the limit lambda log(1/lambda), which has a maximum at 1/e


def small_weight_ratio(data: xr.Dataset, block: int) -> xr.DataArray:
    """Cost over lambda log(1/lambda) for blocks of two matrices, over lambda log^2(1/lambda) for blocks of one."""
    weight = data["tiny_weight"]
    return data["tiny_cost"].sel(block=block) / (weight * np.log(1 / weight) ** (2 if block == 1 else 1))


def draw(data: xr.Dataset) -> tuple[Picture, ...]:
    """Both limits, the trained networks on the closed form, the construction above its bound."""
    return (_both_limits(data), _towards_zero(data), _trained(data), _written_down(data))


def _both_limits(data: xr.Dataset) -> Picture:
    nuclear, weight, two = sum(VALUES), data["wide_weight"], data["trained_block"] == 2
    found = [
        Curve(_name(depth), weight, data["wide_cost"].sel(block=2, depth=depth) / nuclear, look=look)
        for look, depth in enumerate(data["depth"].values)
    ]
    ratio = (data["trained_penalty"] / data["trained_nuclear"])[two]
    trained = Curve("trained", data["trained_weight"][two], ratio, "points", 5)
    counted = (len(VALUES) * weight * np.log(1 / weight) / nuclear).where(weight <= CHEAP)
    limit = Curve(f"{len(VALUES)} λ log(1/λ)", weight, counted, look=5)
    return panel(
        "linear-resnets-large",
        "Least cost over the nuclear norm against the residual weight lambda, blocks of two matrices, singular "
        "values 3, 1, .3. To the right residual blocks are too dear to be used and the cost is the nuclear norm; to "
        "the left, at infinite depth, it goes to lambda log(1/lambda) times the rank. Triangles: trained networks of "
        "several depths, each over the nuclear norm of what it learned.",
        [*found, limit, trained],
        Frame("residual weight λ", "cost / nuclear norm", log_x=True, log_y=True, levels={"nuclear norm": 1.0}),
    )


def _towards_zero(data: xr.Dataset) -> Picture:
    found = [
        Curve(_name(depth), -np.log10(data["tiny_weight"]), small_weight_ratio(data, 2).sel(depth=depth), look=look)
        for look, depth in enumerate(data["depth"].values)
        if depth > 1  # at depth 1 the ratio leaves the picture at once
    ]
    return panel(
        "linear-resnets-small",
        "Least cost over lambda log(1/lambda) as lambda goes to 0, far beyond what can be trained. Only at "
        "infinite depth it tends to the rank 3; at every finite depth it grows without limit, against (2.4).",
        found,
        Frame("digits of 1 / λ", "cost / (λ log 1/λ)", levels={"rank": 3.0}, limits=(0, 10)),
    )


def _trained(data: xr.Dataset) -> Picture:
    found = [Curve(NAMES[block], *_pair(data, block), kind="points", look=block - 1) for block in BLOCKS]
    return panel(
        "linear-resnets-trained",
        "Penalty of each trained linear ResNet against the closed form of Theorem 2.1 for the map that it learned; "
        "on the diagonal they agree.",
        [*found, Curve("equal", *_diagonal(data), look=4)],
        Frame("closed form", "penalty after training", log_x=True, log_y=True),
    )


def _written_down(data: xr.Dataset) -> Picture:
    logs = np.log(1 / data["construction_weight"]) * data["construction_weight"]
    heading = -np.log10(data["construction_weight"])
    return panel(
        "linear-resnets-construction",
        "Cost of networks written down after Theorem 3.3 for a nonlinear function through two dimensions, and the "
        "lower bound from its Jacobians, both over lambda log(1/lambda).",
        [
            Curve("network", heading, data["construction_cost"] / logs, "both"),
            Curve("lower bound", heading, data["construction_bound"] / logs, "both"),
        ],
        Frame("digits of 1 / λ", "cost / (λ log 1/λ)", levels={"rank": float(RANK)}, limits=(0, 9)),
    )


def _name(depth: float) -> str:
    return "infinite depth" if np.isinf(depth) else f"depth {depth:.0f}"


def _pair(data: xr.Dataset, block: int) -> tuple[xr.DataArray, xr.DataArray]:
    chosen = data["trained_block"] == block
    return data["trained_closed"][chosen], data["trained_penalty"][chosen]


def _diagonal(data: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    ends = np.array([float(data["trained_closed"].min()), float(data["trained_closed"].max())])
    return ends, ends
