"""Leaky networks of figures 8, 9 and 10: one training with everything that is read off it, kept once for all three.

Solver and steps: `training`. Energies: `diagnostics.leaky`. Which networks a figure takes: its own file.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from isthmus import tasks
from isthmus.diagnostics import leaky_diagnosis, leaky_path
from isthmus.diagnostics.principal_planes import representation_path
from isthmus.figures.parts import Hear, Part
from isthmus.networks import LeakyResNet
from isthmus.sweeps.run_readings import heard_warnings
from isthmus.training import fit
from isthmus.training.solvers.adaptive_steps import AdaptiveSteps
from isthmus.training.solvers.preconditioned import PLATEAU, PreconditionedLBFGS

SHOWN = 10  # singular values of each layer
FALLING = 2e-3  # of the objective in 100 iterations: at the papers' sizes networks are trained while it falls faster
_ENERGIES = (
    "position", "hamiltonian", "hamiltonian_mixed", "cost_of_identity", "kinetic_energy", "momentum_norm"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Leaky:
    """One training.

    Attributes:
        dimensions: of the teacher, from its inputs to its outputs; the least one is its rank.
        residual: whether the teacher is made of ResNets.
        num_samples: rows for training, and as many for the test error.
        width: of the representations.
        depth: number of layers L.
        effective_depth: Lt.
        steps: "equidistant", "irregular" or "adaptive".
        ridge: lambda, for targets of unit variance per column.
        evaluations: gradients.
        seed: of the teacher.
        start: number of the initial weights.
        plateau: relative fall of the objective over 100 iterations below which training goes on to the next width of
            the smoothed relu, or ends.
    """

    dimensions: tuple[int, ...]
    residual: bool
    num_samples: int
    width: int
    depth: int
    effective_depth: float
    steps: str
    ridge: float
    evaluations: int
    seed: int = 0
    start: int = 0
    plateau: float = PLATEAU

    @property
    def rank(self) -> int:
        """That of the teacher."""
        return min(self.dimensions)


def leaky_part(setting: Leaky) -> Part:
    """A trained network as arrays: energies, momenta and weight spectra by layer, errors, the path of the samples."""
    settings = asdict(setting)
    for field in fields(setting):  # what has the usual value leaves the id as it was before there was a choice
        if field.name in {"start", "plateau"} and settings[field.name] == field.default:
            del settings[field.name]
    return Part("leaky network", settings, partial(_train, setting))


def over_effective_depths(found: Sequence[xr.Dataset], depths: Sequence[float]) -> xr.Dataset:
    """Results of trainings at several effective depths along the dimension "effective_depth", without the paths."""
    tables = [table.drop_attrs().drop_vars(["path"]) for table in found]
    return xr.concat(tables, xr.Variable("effective_depth", np.array(depths, dtype=np.float64)))


def data(setting: Leaky) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Training and test rows of the teacher, each column of zero mean and unit variance over all of them."""
    n = setting.num_samples
    made = tasks.composed_teacher(
        setting.dimensions, num_samples=2 * n, residual=setting.residual, seed=setting.seed
    )  # fmt: skip
    x, y = torch.from_numpy(made.x), torch.from_numpy(made.target)
    return x[:n], y[:n], x[n:], y[n:]


def _train(setting: Leaky, checkpoint: Path, hear: Hear) -> xr.Dataset:
    x, y, other_x, other_y = data(setting)
    network = LeakyResNet(
        setting.dimensions[0], setting.dimensions[-1], width=setting.width, depth=setting.depth,
        effective_depth=setting.effective_depth, steps=setting.steps, seed=setting.seed + setting.start,
        dtype=torch.float64,
    )  # fmt: skip
    descent = PreconditionedLBFGS(setting.evaluations, plateau=setting.plateau)
    solver = AdaptiveSteps(descent) if network.adaptive else descent
    result = fit(network, x, y, ridge=setting.ridge, solver=solver, checkpoint=checkpoint, callback=hear)
    with heard_warnings():  # the stationarity goes with the numbers
        table = leaky_diagnosis(network, x, y, ridge=setting.ridge)
        path = leaky_path(network, x, y, ridge=setting.ridge)
    with torch.no_grad():
        test = float((network(other_x) - other_y).square().sum(1).mean()) / setting.dimensions[-1]
    found = table[[*_ENERGIES]].drop_attrs()
    spectra = torch.linalg.svdvals(path.weights)[:, :SHOWN].numpy()
    found["weight_singular_values"] = (("layer", "component"), spectra)
    found["product_norm"] = ("layer", torch.linalg.matrix_norm(path.critical).numpy() / setting.effective_depth)
    plane = representation_path(network, x)["path"].transpose("sample", "layer", "component").values
    found["path"] = (("sample", "level", "axis"), plane)
    moves = (path.activations[1:] - path.activations[:-1]).flatten(1).norm(dim=1)
    numbers = {
        "stationarity": result.stationarity, "objective": result.objective, "train_error": result.data_loss,
        "test_error": test, "path_length": float(moves.sum()) / len(x) ** 0.5,
    }  # fmt: skip
    return found.assign({name: ((), value) for name, value in numbers.items()})
