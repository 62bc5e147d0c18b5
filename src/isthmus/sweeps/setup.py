"""From canonical settings to what `fit` takes: tensors, an untrained network, a solver.

The settings: `fields`. Training and recording: `execution`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from isthmus.discovery.data.scaling import Scaling, Standardiser
from isthmus.errors import DataError
from isthmus.networks.kinds import kind_named, kinds
from isthmus.sweeps.runs import canonical_json
from isthmus.sweeps.task_fields import make_task
from isthmus.tasks import Kind
from isthmus.training.losses import Loss, loss_argument
from isthmus.training.solvers.preconditioned import PreconditionedLBFGS
from isthmus.training.solvers.solver import Solver

Sections = Mapping[str, Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a run starts from.

    Attributes:
        network: untrained, of its seed.
        x: inputs (n, d_in), scaled.
        y: targets (n, d_out), scaled, or class numbers (n,).
        loss: of its training.
        solver: None for the default schedule.
        true_rank: of the task, where it is known.
    """

    network: nn.Module
    x: Tensor
    y: Tensor
    loss: Loss
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
    loss = loss_argument(str(training["loss"]), "training")
    x, y, d_out, true_rank = _data(canonical_json(settings["task"]), source, loss, str(training["scaling"]))
    arguments: dict[str, Any] = {k: v for k, v in settings["network"].items() if k != "kind"}
    kind, dtype = kind_named(str(settings["network"]["kind"])), getattr(torch, str(training["dtype"]))
    loss.check_precision(dtype)
    network = kind.made(x.shape[1], d_out, dtype=dtype, **arguments)
    solver = None
    if training["solver"] == "preconditioned":
        if not (kind.preconditioned and loss.is_quadratic):
            able = " or ".join(other.name for other in kinds() if other.preconditioned)
            raise ValueError(f"training.solver 'preconditioned' needs a {able} network and the squared loss.")
        solver = PreconditionedLBFGS(int(str(training["evaluations"] or 5000)))
    return Prepared(network, x, y, loss, solver, true_rank)


@lru_cache(maxsize=4)
def _data(task: str, source: str | None, loss: Loss, scaling: str) -> tuple[Tensor, Tensor, int, int | None]:
    """x, y, the number of outputs, the true rank; kept for the next run on the same task."""
    made = make_task(json.loads(task), source)
    x, target = made.x, made.target
    if loss.classes:
        if made.kind is not Kind.CLASSIFICATION:
            raise DataError(f"training.loss {loss.name!r} needs a task of classes. Use 'squared', or name classes.")
        labels = torch.from_numpy(target.argmax(1))
        return torch.from_numpy(_scaled(x, scaling, total=False)), labels, target.shape[1], made.true_rank
    loss.check(torch.from_numpy(target), f"training.loss {loss.name!r}")
    y = torch.from_numpy(_scaled(target, scaling if loss.standardised else "none", total=True))
    return torch.from_numpy(_scaled(x, scaling, total=False)), y, loss.num_outputs(y), made.true_rank


def _scaled(values: np.ndarray, scaling: str, *, total: bool) -> np.ndarray:
    if scaling == "none":
        return values
    found = Standardiser.of(values, scaling=Scaling(scaling), total=total)
    if not len(found.kept):
        raise DataError("all columns are constant; nothing is left after scaling. Use training.scaling 'none'.")
    return found.apply(values)
