"""From canonical settings to what `fit` takes: tensors, an untrained network, a solver.

The settings: `fields`. Training and recording: `execution`.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from isthmus.discovery.scaling import Scaling, Standardiser
from isthmus.errors import DataError
from isthmus.networks import FullyConnected, LeakyResNet, ResNet
from isthmus.sweeps.runs import canonical_json
from isthmus.sweeps.task_fields import make_task
from isthmus.tasks import Kind
from isthmus.training.preconditioned import PreconditionedLBFGS
from isthmus.training.solvers import Solver

Sections = Mapping[str, Mapping[str, object]]
_CLASSES: Mapping[str, Callable[..., nn.Module]] = {
    "fully_connected": FullyConnected, "leaky": LeakyResNet, "resnet": ResNet,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a run starts from.

    Attributes:
        network: untrained, of its seed.
        x: inputs (n, d_in), scaled.
        y: targets (n, d_out), scaled, or class numbers (n,).
        solver: None for the default schedule.
        true_rank: of the task, where it is known.
    """

    network: nn.Module
    x: Tensor
    y: Tensor
    solver: Solver | None
    true_rank: int | None


def prepared(settings: Sections, source: str | None) -> Prepared:
    """Data, network and solver of a run.

    Args:
        settings: canonical settings of a run.
        source: the file of its task.

    Raises:
        DataError: the data cannot be used with this loss. ValueError: arguments that do not fit together.
    """
    training = settings["training"]
    x, y, d_out, true_rank = _data(
        canonical_json(settings["task"]), source, str(training["loss"]), str(training["scaling"])
    )
    arguments: dict[str, Any] = {k: v for k, v in settings["network"].items() if k != "kind"}
    kind, dtype = str(settings["network"]["kind"]), getattr(torch, str(training["dtype"]))
    network = _CLASSES[kind](x.shape[1], d_out, **arguments, dtype=dtype)
    solver = None
    if training["solver"] == "preconditioned":
        if kind != "leaky" or training["loss"] != "squared":
            raise ValueError("training.solver 'preconditioned' needs a leaky network and the squared loss.")
        solver = PreconditionedLBFGS(int(str(training["evaluations"] or 5000)))
    return Prepared(network, x, y, solver, true_rank)


@lru_cache(maxsize=4)
def _data(task: str, source: str | None, loss: str, scaling: str) -> tuple[Tensor, Tensor, int, int | None]:
    """x, y, the number of outputs, the true rank; kept for the next run on the same task."""
    made = make_task(json.loads(task), source)
    x, target = made.x, made.target
    if loss == "cross_entropy":
        if made.kind is not Kind.CLASSIFICATION:
            raise DataError("training.loss 'cross_entropy' needs a task of classes. Use 'squared', or name classes.")
        labels = torch.from_numpy(target.argmax(1))
        return torch.from_numpy(_scaled(x, scaling, total=False)), labels, target.shape[1], made.true_rank
    y = _scaled(target, scaling, total=True)
    return torch.from_numpy(_scaled(x, scaling, total=False)), torch.from_numpy(y), y.shape[1], made.true_rank


def _scaled(values: np.ndarray, scaling: str, *, total: bool) -> np.ndarray:
    if scaling == "none":
        return values
    found = Standardiser.of(values, scaling=Scaling(scaling), total=total)
    if not len(found.kept):
        raise DataError("all columns are constant; nothing is left after scaling. Use training.scaling 'none'.")
    return found.apply(values)
