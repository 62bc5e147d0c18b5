"""Linear ResNets trained on a map of known singular values, and what the closed form says of what they learned.

Beside them networks written down after Theorem 3.3 for a nonlinear function through two dimensions. The closed form:
`theory.residual_costs`; the networks: `constructions.residual`. The figure that shows them: `linear_resnets`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
import xarray as xr

from isthmus.constructions import best_embedding_scale, residual_composition
from isthmus.figures.parts import Hear, Part
from isthmus.networks import FullyConnected, ResNet
from isthmus.networks.jacobians import jacobians
from isthmus.theory import resnet_cost, resnet_jacobian_lower_bound
from isthmus.training import fit
from isthmus.training.solvers.solver import LBFGS

D_IN, D_OUT, VALUES = 4, 5, (3.0, 1.0, 0.3)
BLOCKS = (1, 2)  # matrices per residual block


@dataclass(frozen=True, slots=True)
class LinearTraining:
    """One training.

    Attributes:
        block: matrices per residual block, 1 or 2.
        depth: number of blocks.
        weight: residual weight lambda.
        ridge: of the training.
        evaluations: gradients.
    """

    block: int
    depth: int
    weight: float
    ridge: float
    evaluations: int

    def part(self) -> Part:
        """Its penalty, the closed form for what it learned, and how far that is off the map."""
        settings = {"block": self.block, "depth": self.depth, "weight": self.weight, "ridge": self.ridge}
        settings |= {"evaluations": self.evaluations, "values": VALUES, "ends": (D_IN, D_OUT), "seed": 0}
        settings |= {"reads": "stationarity"}  # of parts kept before there was none
        return Part("linear resnet", settings, partial(_train, self))


def map_of(values: Sequence[float], d_out: int | None = None, d_in: int | None = None) -> torch.Tensor:
    """A matrix of these singular values, in random directions of a fixed seed; square unless a side is given."""
    generator, num = torch.Generator().manual_seed(0), len(values)
    left, right = (
        torch.linalg.qr(torch.randn(d or num, num, generator=generator, dtype=torch.float64))[0] for d in (d_out, d_in)
    )
    return left * torch.tensor(values, dtype=torch.float64) @ right.T


def _train(case: LinearTraining, checkpoint: Path, hear: Hear) -> xr.Dataset:
    """Fit the map on unit vectors."""
    matrix = map_of(VALUES, D_OUT, D_IN)
    network = ResNet(
        D_IN, D_OUT, width=D_OUT, depth=case.depth, block_depth=case.block, residual_weight=case.weight, linear=True,
        seed=0, dtype=torch.float64,
    )  # fmt: skip
    x = D_IN**0.5 * torch.eye(D_IN, dtype=torch.float64)  # the mean over samples is then the squared distance of maps
    result = fit(
        network, x, x @ matrix.T, ridge=case.ridge, solver=LBFGS(case.evaluations), checkpoint=checkpoint, callback=hear
    )
    with torch.no_grad():
        learned = network(torch.eye(D_IN, dtype=torch.float64)).T
    values = torch.linalg.svdvals(learned)
    closed = float(resnet_cost(values, residual_weight=case.weight, depth=case.depth, block_depth=case.block))
    numbers = {
        "trained_penalty": result.penalty,
        "trained_closed": closed,
        "trained_nuclear": float(values.sum()),
        "trained_stationarity": result.stationarity,
        "trained_error": float((learned - matrix).norm() / matrix.norm()),
    }
    return xr.Dataset({name: ((), value) for name, value in numbers.items()})


RANK, NUM_POINTS = 2, 200
_D_IN, _D_OUT = 4, 3


def compositions(depth: int) -> xr.Dataset:
    """Costs of the networks of so many blocks for a random function, and the lower bound from its Jacobians."""
    inner = FullyConnected(_D_IN, RANK, width=8, depth=2, seed=1, dtype=torch.float64)
    outer = FullyConnected(RANK, _D_OUT, width=8, depth=2, seed=2, dtype=torch.float64)
    x = torch.randn(NUM_POINTS, _D_IN, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    with torch.no_grad():
        after = inner(x)
    slopes = jacobians(outer, after) @ jacobians(inner, x)
    weights = np.logspace(-16, -2, 8)
    rows = np.empty((3, len(weights)))
    for i, weight in enumerate(map(float, weights)):
        scale = best_embedding_scale(weight, rank=RANK, d_in=_D_IN, d_out=_D_OUT)
        made = residual_composition(inner, outer, depth=depth, residual_weight=weight, embedding_scale=scale, x=x)
        bound = resnet_jacobian_lower_bound(slopes, residual_weight=weight, depth=None, block_depth=2)
        with torch.no_grad():
            error = float((made.network(x) - outer(after)).abs().max() / outer(after).abs().max())
        rows[:, i] = made.cost, float(bound), error
    names = ("construction_cost", "construction_bound", "construction_error")
    return xr.Dataset(
        {"construction_weight": ("case", weights), **{n: ("case", row) for n, row in zip(names, rows, strict=True)}}
    )
