"""Linear ResNets trained on a map of known singular values, and what the closed form says of what they learned.

The closed form: `theory.residual_costs`. The figure that shows them: `linear_resnets`.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
import xarray as xr

from isthmus.figures.parts import Hear, Part
from isthmus.networks import ResNet
from isthmus.theory import resnet_cost
from isthmus.training import fit
from isthmus.training.solvers import LBFGS

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
        return Part("linear resnet", settings, partial(_train, self))


def target() -> torch.Tensor:
    """A map with the singular values `VALUES`, in random directions of a fixed seed."""
    generator = torch.Generator().manual_seed(0)
    left, right = (
        torch.linalg.qr(torch.randn(d, len(VALUES), generator=generator, dtype=torch.float64))[0] for d in (D_OUT, D_IN)
    )
    return left * torch.tensor(VALUES, dtype=torch.float64) @ right.T


def _train(case: LinearTraining, checkpoint: Path, hear: Hear) -> xr.Dataset:
    """Fit the map on unit vectors."""
    matrix = target()
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
        "trained_error": float((learned - matrix).norm() / matrix.norm()),
    }
    return xr.Dataset({name: ((), value) for name, value in numbers.items()})
