"""What an autoencoder makes of noisy samples, in numbers, and the same of one that was trained on from rank 1.

Which autoencoders there are, and which of them is shown: `denoising`. The network of rank 1: `constructions`.
"""

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch
import xarray as xr
from torch import Tensor

from isthmus import tasks
from isthmus.constructions import rank_one_interpolator
from isthmus.figures.parts import Hear, Part
from isthmus.networks import FullyConnected
from isthmus.networks.jacobians import jacobians
from isthmus.networks.layer_widths import widened
from isthmus.theory import idempotency_defect
from isthmus.theory.inputs import Real
from isthmus.theory.spread_rows import median_over_rows
from isthmus.training import fit
from isthmus.training.solvers.solver import LBFGS

NOISE = 0.3  # of the spread of the curve
ADDED = 0.02  # weights of the neurons that are added to that network, so that training can leave rank 1
KNOTS = 12  # samples of the curve that the network of rank 1 passes through


@dataclass(frozen=True, slots=True)
class RankOneStart:
    """One training of an autoencoder of the curve, begun at a network of rank 1 through a few of its samples.

    Attributes:
        depth: L.
        width: of every hidden layer.
        num_samples: points of the curve.
        ridge: of the training.
        evaluations: gradients.
        seed: of the weights that are added; it decides which minimum near rank 1 the training ends in.
    """

    depth: int
    width: int
    num_samples: int
    ridge: float
    evaluations: int
    seed: int = 0

    def part(self) -> Part:
        """What `measured` says of it, and its `defect`."""
        return Part("curve from rank one", {**asdict(self), "knots": KNOTS}, partial(_trained, self))


def _trained(case: RankOneStart, checkpoint: Path, hear: Hear) -> xr.Dataset:
    made = tasks.curve_autoencoder(num_samples=case.num_samples)
    assert made.latent is not None
    x = torch.from_numpy(made.x)
    along = torch.from_numpy(made.latent)[:, 0].argsort()
    knots = x[along[torch.linspace(0, len(x) - 1, KNOTS, dtype=torch.float64).round().long()]]
    network = widened(
        rank_one_interpolator(knots, knots, depth=case.depth).network, case.width, noise=ADDED, seed=case.seed
    )
    result = fit(
        network, x, x, ridge=case.ridge, solver=LBFGS(case.evaluations), checkpoint=checkpoint, callback=hear
    )  # fmt: skip
    table = measured(network, x, noise=NOISE, data_loss=result.data_loss, objective=result.objective)
    return table.assign(defect=((), defect(network, x)))


def with_noise(x: Tensor, noise: Real) -> Tensor:
    """Samples as rows with Gaussian noise of so many times their spread, the same at every call."""
    spread = x.var(0, correction=0).sum().sqrt()
    added = torch.randn(x.shape, generator=torch.Generator().manual_seed(0), dtype=x.dtype)
    return x + noise * spread * added / x.shape[1] ** 0.5


def measured(network: FullyConnected, x: Tensor, *, noise: Real, data_loss: Real, objective: Real) -> xr.Dataset:
    """Depth and objective; mean distance to the nearest sample after over before; share of the variance that is lost.

    Besides the samples, the same with noise, and what the network makes of these.
    """
    noisy = with_noise(x, noise)
    with torch.no_grad():
        cleaned = network(noisy)
    before, after = (torch.cdist(rows, x).min(1).values.mean() for rows in (noisy, cleaned))
    lost = data_loss / float(x.var(0, correction=0).sum())
    numbers = {"depth": network.depth, "objective": objective, "gain": float(after / before), "lost": lost}
    table = xr.Dataset({name: ((), float(value)) for name, value in numbers.items()})
    samples = {"clean": x, "noisy": noisy, "cleaned": cleaned}
    return table.assign({name: (("row", "pixel"), rows.numpy()) for name, rows in samples.items()})


def defect(network: FullyConnected, x: Tensor) -> float:
    """Median of |J J - J| at the samples."""
    return float(median_over_rows(idempotency_defect(jacobians(network, x))))
