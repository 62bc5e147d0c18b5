"""Linear ResNets between the nuclear norm and the rank: closed forms, trained networks, both limits (figure 11).

Closed forms: `theory.residual_costs`. Networks written down: `constructions.residual`.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import xarray as xr

from isthmus.constructions import best_embedding_scale, residual_composition
from isthmus.figures.claims import Claim
from isthmus.figures.figure import FigurePlan, PaperFigure, Preset
from isthmus.figures.panels import Curve, Frame, panel
from isthmus.figures.workshop import Workshop
from isthmus.networks import FullyConnected, ResNet
from isthmus.networks.jacobians import jacobians
from isthmus.reports.picture import Picture
from isthmus.theory import resnet_cost, resnet_jacobian_lower_bound
from isthmus.training import fit
from isthmus.training.solvers import LBFGS

D_IN, D_OUT, VALUES = 4, 5, (3.0, 1.0, 0.3)
RANK, NUM_POINTS = 2, 200  # of the nonlinear function of Theorem 3.3
BLOCKS = (1, 2)


@dataclass(frozen=True, slots=True)
class Sizes:
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
    Preset.PAPER: Sizes((1, 4, 16, 64), 121, (1, 3, 8, 16), (0.05, 0.1, 0.5, 2.0, 10.0), 0.05, 6000, 4000),
    Preset.QUICK: Sizes((1, 4, 16, 64), 61, (1, 3, 8), (0.1, 0.5, 2.0), 0.05, 1500, 1000),
    Preset.TINY: Sizes((1, 16), 11, (3,), (0.5,), 0.05, 200, 600),
}


def plan(preset: Preset) -> FigurePlan[Sizes]:
    """Closed forms and small trainings; the paper shows no experiment, so every size is ours."""
    return FigurePlan(PRESETS[preset])


def compute(plan: FigurePlan[Sizes], workshop: Workshop) -> xr.Dataset:
    """Costs over lambda at every depth, penalties of trained networks, costs of the construction."""
    sizes = plan.sizes
    wide = np.logspace(-4, 3, sizes.num_weights)
    tiny = np.logspace(-300, -1, sizes.num_weights)
    depths: list[int | None] = [*sizes.depths, None]
    data = xr.Dataset(coords={"block": list(BLOCKS), "depth": [float(d or np.inf) for d in depths]})
    for name, weights in (("wide", wide), ("tiny", tiny)):
        data[f"{name}_weight"] = (f"{name}_point", weights)
        data[f"{name}_cost"] = (("block", "depth", f"{name}_point"), _costs(weights, depths))
    data = data.merge(_trained(sizes, workshop))
    return data.merge(_construction(sizes))


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


def target() -> torch.Tensor:
    """A map with the singular values `VALUES`, in random directions of a fixed seed."""
    generator = torch.Generator().manual_seed(0)
    left, right = (
        torch.linalg.qr(torch.randn(d, len(VALUES), generator=generator, dtype=torch.float64))[0] for d in (D_OUT, D_IN)
    )
    return left * torch.tensor(VALUES, dtype=torch.float64) @ right.T


def _trained(sizes: Sizes, workshop: Workshop) -> xr.Dataset:
    cases = [(b, d, w) for b in BLOCKS for d in sizes.trained_depths for w in sizes.trained_weights]
    found: list[xr.Dataset] = []
    for block, depth, weight in cases:
        settings = {"block": block, "depth": depth, "weight": weight, "ridge": sizes.ridge}
        settings |= {"evaluations": sizes.evaluations, "values": VALUES, "ends": (D_IN, D_OUT), "seed": 0}

        def make(checkpoint: Path, block: int = block, depth: int = depth, weight: float = weight) -> xr.Dataset:
            return _train(sizes, checkpoint, block=block, depth=depth, weight=weight)

        found.append(workshop.part("linear resnet", settings, make))
    table = xr.concat([part.drop_attrs() for part in found], "training")
    for name, column in zip(("block", "depth", "weight"), zip(*cases, strict=True), strict=True):
        table[f"trained_{name}"] = ("training", np.array(column, dtype=np.float64))
    return table


def _train(sizes: Sizes, checkpoint: Path, *, block: int, depth: int, weight: float) -> xr.Dataset:
    """Fit the map on unit vectors; its penalty, the closed form for what it learned, and how far that is off."""
    matrix = target()
    network = ResNet(
        D_IN, D_OUT, width=D_OUT, depth=depth, block_depth=block, residual_weight=weight, linear=True, seed=0,
        dtype=torch.float64,
    )  # fmt: skip
    x = D_IN**0.5 * torch.eye(D_IN, dtype=torch.float64)  # the mean over samples is then the squared distance of maps
    solver = LBFGS(sizes.evaluations)
    result = fit(network, x, x @ matrix.T, ridge=sizes.ridge, solver=solver, checkpoint=checkpoint)
    with torch.no_grad():
        learned = network(torch.eye(D_IN, dtype=torch.float64)).T
    values = torch.linalg.svdvals(learned)
    closed = float(resnet_cost(values, residual_weight=weight, depth=depth, block_depth=block))
    numbers = {
        "trained_penalty": result.penalty,
        "trained_closed": closed,
        "trained_nuclear": float(values.sum()),
        "trained_error": float((learned - matrix).norm() / matrix.norm()),
    }
    return xr.Dataset({name: ((), value) for name, value in numbers.items()})


def _construction(sizes: Sizes) -> xr.Dataset:
    """Costs of the networks of Theorem 3.3 for a random function through two dimensions, and the lower bound."""
    inner = FullyConnected(4, RANK, width=8, depth=2, seed=1, dtype=torch.float64)
    outer = FullyConnected(RANK, 3, width=8, depth=2, seed=2, dtype=torch.float64)
    x = torch.randn(NUM_POINTS, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    with torch.no_grad():
        after = inner(x)
    slopes = jacobians(outer, after) @ jacobians(inner, x)
    weights = np.logspace(-16, -2, 8)
    rows = np.empty((3, len(weights)))
    for i, weight in enumerate(map(float, weights)):
        scale = best_embedding_scale(weight, rank=RANK, d_in=4, d_out=3)
        made = residual_composition(
            inner, outer, depth=sizes.construction_depth, residual_weight=weight, embedding_scale=scale, x=x
        )  # fmt: skip
        bound = resnet_jacobian_lower_bound(slopes, residual_weight=weight, depth=None, block_depth=2)
        with torch.no_grad():
            error = float((made.network(x) - outer(after)).abs().max() / outer(after).abs().max())
        rows[:, i] = made.cost, float(bound), error
    names = ("construction_cost", "construction_bound", "construction_error")
    return xr.Dataset(
        {"construction_weight": ("case", weights), **{n: ("case", row) for n, row in zip(names, rows, strict=True)}}
    )


def _ratio(data: xr.Dataset, block: int) -> xr.DataArray:
    """Cost over lambda log(1/lambda) for blocks of two matrices, over lambda log^2(1/lambda) for blocks of one."""
    weight = data["tiny_weight"]
    return data["tiny_cost"].sel(block=block) / (weight * np.log(1 / weight) ** (2 if block == 1 else 1))


def _intercept(data: xr.Dataset) -> float:
    """Where cost / (lambda log(1/lambda)) of the construction heads, by a straight line in 1 / log(1/lambda)."""
    logs = np.log(1 / data["construction_weight"].values)
    ratios = data["construction_cost"].values / data["construction_weight"].values / logs
    return float(np.polyfit(1 / logs, ratios, 1)[1])


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
            ratio = _ratio(data, 2).sel(depth=depth)
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


def verdict(data: xr.Dataset) -> tuple[Claim, ...]:
    """The theorem, both limits, the limit as printed, and the theorem on nonlinear functions."""
    excess = data["trained_penalty"] / data["trained_closed"]
    last = {block: _ratio(data, block).isel(tiny_point=0) for block in BLOCKS}
    heavy = data["wide_cost"].isel(wide_point=-1) / sum(VALUES)
    finite = float(last[2].sel(depth=np.isfinite(data["depth"])).min())
    slack = float((data["construction_cost"] / data["construction_bound"]).min())
    return (
        Claim(
            "No network computes a linear map with a smaller norm than the closed form.", "000, Theorem 2.1",
            "least penalty / closed form over trained networks", float(excess.min()), least=1 - 1e-6,
        ),
        Claim(
            "The closed form is attained.", "000, Theorem 2.1",
            "largest penalty / closed form over trained networks", float(excess.max()), most=1.01,
        ),
        Claim(
            "With dear residual blocks the cost is the nuclear norm.", "000, Corollary 2.3",
            "least cost / nuclear norm at lambda = 1000", float(heavy.min()), least=0.99, most=1 + 1e-9,
        ),
        Claim(
            "With cheap blocks and infinite depth the cost counts the rank (3), blocks of two matrices.",
            "000, Corollary 2.3", "cost / (lambda log 1/lambda) at lambda = 1e-300",
            float(last[2].sel(depth=np.inf)), least=2.9, most=3.1,
        ),
        Claim(
            "The same for blocks of one matrix.", "000, Corollary 2.3",
            "cost / (lambda log^2 1/lambda) at lambda = 1e-300", float(last[1].sel(depth=np.inf)), least=2.9, most=3.1,
        ),
        Claim(
            "The limit as printed, at fixed finite depth, is the rank (3).", "000, (2.4)",
            "least cost / (lambda log 1/lambda) over finite depths at lambda = 1e-300", finite, least=2.9, most=3.1,
        ),
        Claim(
            "The networks of the theorem cost at least what the Jacobians demand.", "000, Theorem 3.3",
            "least cost / lower bound", slack, least=1.0,
        ),
        Claim(
            "Their cost over lambda log(1/lambda) tends to the bottleneck rank (2).", "000, Theorem 3.3",
            "value at lambda = 0 of a line in 1 / log(1/lambda)", _intercept(data), least=RANK - 0.15, most=RANK + 0.15,
        ),
    )  # fmt: skip


FIGURE = PaperFigure(
    11,
    "linear-resnets",
    "Linear ResNets between the nuclear norm and the rank",
    "000, Theorem 2.1, Corollaries 2.2 and 2.3, Theorem 3.3",
    "A 5 x 4 map of singular values 3, 1 and .3; linear ResNets trained on unit vectors. The paper shows no "
    "experiment: every size is ours.",
    plan,
    compute,
    draw,
    verdict,
)
