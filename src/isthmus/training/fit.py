"""`fit`: run a schedule of solvers to a minimum of the penalised objective, and say how it ended."""

import math
import os
from collections.abc import Callable
from pathlib import Path

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from isthmus.errors import ShapeError
from isthmus.networks.arguments import check_finite, check_ridge, module_argument, seed_argument, tensor_argument
from isthmus.networks.devices import device_argument, lying_on, made_on_cpu, usual_device, with_gradients
from isthmus.networks.network import Network
from isthmus.tasks.arrays import counted
from isthmus.tasks.foreign import check_row_labels
from isthmus.training.fit_checkpoint import CheckpointFile
from isthmus.training.fit_result import FitResult
from isthmus.training.fitting import FitEvent, Fitting
from isthmus.training.limits import Limits, limits_argument
from isthmus.training.losses import SQUARED, DataLoss, Loss, loss_argument
from isthmus.training.sharded.row_step import step_within
from isthmus.training.sharded.team import Team
from isthmus.training.solvers.schedule import Schedule, check_rates, check_steps_move, default_schedule, on_all_rows
from isthmus.training.solvers.solver import Solver
from isthmus.training.steps.memory_step import check_answers, check_trainable, left_in_place


@made_on_cpu
@with_gradients
def fit(  # noqa: PLR0913 - the arguments are a public contract
    network: nn.Module,
    x: ArrayLike | Tensor,
    y: ArrayLike | Tensor,
    *,
    ridge: float,
    loss: str | Loss = SQUARED,
    solver: Solver | Schedule | None = None,
    sample_weight: ArrayLike | Tensor | None = None,
    seed: int | None = None,
    limits: Limits | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    callback: Callable[[FitEvent], bool | None] | None = None,
    device: torch.device | str | None = None,
) -> FitResult:
    """Train a network to a minimum of `data_loss + ridge * network.penalty()`, in place.

        data_loss = sum_i w_i loss(f(x_i), y_i)   (w_i = 1/n unless given),   squared error: loss(f, y) = |f - y|^2

    Args:
        network: any module, in the mode (train, eval) in which it is; `FullyConnected` has a step written by hand. Its
            parameters are changed in place, but those with
            `requires_grad=False`: then autograd takes the gradient, and moves and rank trials are left out.
        x: inputs (n, d_in), converted to the network's precision and device.
        y: targets (n, d_out), or class numbers (n,) for cross-entropy.
        ridge: total coefficient of the penalty, >= 0 (the paper's lambda / L for fully connected networks).
        loss: by name, "squared" or "cross_entropy" (of logits) among others, or an object of `training.losses`.
        solver: a solver or a tuple of them, run one after the other; see `training.solvers.schedule` for the default.
        sample_weight: finite weights >= 0 (n,), up to a common factor; normalised to sum 1.
        seed: new initial weights of a `FullyConnected`; None keeps the weights that it has.
        limits: seconds, gradient evaluations, and bytes: rows whose activations need more are gone over in runs.
        checkpoint: a file that is written every few seconds; if it is there already, the fit goes on from it, bit for
            bit as if it had not stopped. Remove it once the result is safe: the end of a fit stays in it, and the same
            call, with the same initial weights, returns the same result at once; another one begins anew.
        callback: called after every iteration; returning True ends the fit with its state saved.
        device: where the network lies while it is trained: "cpu", "cuda", "cuda:1", or "auto" for a GPU where there is
            one. None: where it lies. Afterwards it lies where it was; checkpoints can be gone on with on any device.

    Returns:
        The network with objective, stationarity and the reason why it ended. A network that collapsed or diverged is
        tried once more from the same start with a gentler warm-up; what is returned is the better end.

    Raises:
        TypeError: no network, or one of TorchScript.
        DataError: x or y is no array of numbers, or holds some that are not finite; nothing to train; a module that
            fails on x, gives something else each time it is called, or no tensor of real numbers with a gradient.
        ShapeError: x and y of different length, or not matching the network.
        ValueError: ridge < 0, a number of ridge, loss or solver that the network's precision does not hold, an unknown
            loss, weights that are negative or not finite, adaptive steps that no solver
            moves, a solver of leaky networks for one that is frozen in part, a device that torch does not see.
        DataError: the checkpoint is damaged, or belongs to another fit. OSError: it cannot be written.

    >>> net = isthmus.FullyConnected(4, 2, width=6, depth=2, seed=0, dtype=torch.float64)
    >>> result = isthmus.fit(net, x, y, ridge=1e-2, limits=isthmus.Limits(evaluations=50))
    >>> result.objective < 1, result.network is net
    (True, True)
    """
    kind = loss_argument(loss, "fit")
    check_row_labels(x, {"y": y, "sample_weight": sample_weight}, in_order=False)
    module_argument(network, "fit(network, x, y)")
    check_trainable(network, "fit(network, x, y)")
    check_ridge(ridge, "fit", next(network.parameters()).dtype)
    ridge = float(ridge)
    _check_ways(checkpoint, callback, solver)
    limits = limits_argument(limits, "fit", heeds=("seconds", "evaluations", "memory"))
    if seed is not None:
        _reseed(network, seed_argument(seed, "fit(seed=...)"))
    place = device_argument(device, f"fit(device={str(device)!r})") or usual_device()
    with left_in_place(network), lying_on(network, place), torch.no_grad():
        inputs, data = checked_data(network, x, y, kind, sample_weight)
        check_answers(network, inputs, data, "fit(network, x, y)")
        schedule = solver if isinstance(solver, tuple) else (solver,) if solver else None
        chosen = schedule or default_schedule(
            network, evaluations=limits.evaluations, ridge=ridge, rows=len(inputs), memory=limits.memory
        )
        check_steps_move(network, chosen)
        check_rates(chosen, inputs.dtype)
        step = step_within(network, inputs, data, ridge, memory=limits.memory)
        chosen = on_all_rows(chosen) if step.at_once < len(step.x) else chosen
        kept = CheckpointFile(Path(checkpoint), Team()) if checkpoint else None
        return Fitting(step, chosen, limits, kept, callback).run()


def checked_data(
    network: nn.Module, x: ArrayLike | Tensor, y: ArrayLike | Tensor, loss: Loss, weight: ArrayLike | Tensor | None
) -> tuple[Tensor, DataLoss]:
    """Inputs and loss in the network's precision and on its device.

    Raises:
        ShapeError: x and y of different length, or not matching the network.
        ValueError: weights that are negative, not finite, or all zero, or a loss whose numbers the precision lacks.
    """
    check_trainable(network, "fit(network, x, y)")
    like = next(network.parameters())
    dtype, device = like.dtype, like.device
    loss.check_precision(dtype)
    inputs = tensor_argument(x, "fit(network, x, y): x").to(device, dtype).contiguous()
    targets = tensor_argument(y, "fit(network, x, y): y").to(device)
    if inputs.ndim == 0 or targets.ndim == 0:
        raise ShapeError(
            f"fit(network, x, y): needs rows, got shapes {tuple(inputs.shape)} and {tuple(targets.shape)}."
        )
    # our own networks take rows of so many numbers; what others take, they say themselves
    if isinstance(network, Network) and inputs.shape[1:] != (network.d_in,):
        raise ShapeError(
            f"fit(network, x, y): the network takes rows of {network.d_in}, x has shape {tuple(inputs.shape)}."
        )
    check_finite(inputs, "fit(network, x, y)")
    loss.check(targets, "fit(network, x, y): y")  # which may name the row of what it refuses
    check_finite(targets.to(dtype) if targets.is_floating_point() else targets, "fit(network, x, y)", "y")
    targets = loss.targets(targets, dtype)
    if len(inputs) != len(targets) or len(inputs) == 0:
        raise ShapeError(f"fit(network, x, y): needs as many rows in x as in y, got {len(inputs)} and {len(targets)}.")
    # one column of y would be spread silently over all outputs
    outputs = getattr(network, "d_out", None)
    if outputs is not None and not loss.classes and loss.num_outputs(targets) != outputs:
        asked = f", for which the loss {loss.name!r} needs {loss.num_outputs(targets)}" if loss.per_target > 1 else ""
        raise ShapeError(
            f"fit(network, x, y): the network has {counted(outputs, 'output')}, y has "
            f"{counted(targets.shape[1], 'column')}{asked}."
        )
    if weight is None:
        return inputs, DataLoss(loss, targets)
    return inputs, DataLoss(loss, targets, _shares(weight, len(inputs)).to(device, dtype))


def _shares(weight: ArrayLike | Tensor, rows: int) -> Tensor:
    """The weights over their sum, float64: in the precision of a network they may all be infinite, or all 0."""
    weights = tensor_argument(weight, "fit(sample_weight=...)").double().reshape(-1)
    if len(wrong := (~weights.isfinite()).nonzero()):
        raise ValueError(
            f"fit(sample_weight=...): {len(wrong)} of {len(weights)} weights are NaN or infinite, the first in row "
            f"{int(wrong[0]) + 1}. Leave those rows out, or give them finite weights."
        )
    if len(weights) != rows:
        raise ValueError(f"fit(sample_weight=...): needs one weight per row, {rows}, got {len(weights)}.")
    if len(wrong := (weights < 0).nonzero()) or not float(weights.max()) > 0:
        first = f"{float(weights[wrong[0]]):g} in row {int(wrong[0]) + 1}" if len(wrong) else "0 in all rows"
        raise ValueError(f"fit(sample_weight=...): needs weights >= 0, some above 0; got {first}.")
    # a power of two, which rounds nothing: the sum of what is left neither overflows nor vanishes
    weights = weights / math.ldexp(1.0, math.frexp(float(weights.max()))[1] - 1)
    return weights / weights.sum()


def _check_ways(checkpoint: object, callback: object, solver: object) -> None:
    """Refuse what is no file, no function and no solver before anything is trained."""
    if checkpoint is not None and not (isinstance(checkpoint, str | os.PathLike) and os.fspath(checkpoint)):
        raise ValueError(f"fit(checkpoint={checkpoint!r}): needs the name of a file, or None to keep nothing.")
    if callback is not None and not callable(callback):
        raise TypeError(f"fit(callback={str(callback)[:40]}): needs a function that takes a FitEvent, or None.")
    for one in solver if isinstance(solver, tuple) else (solver,):
        if one is not None and not hasattr(one, "start"):
            known = "Adam, LBFGS and others of isthmus.training.solvers"
            raise TypeError(f"fit(solver={str(one)[:40]!r}): needs one or a tuple of {known}, or None.")


def _reseed(network: nn.Module, seed: int) -> None:
    reseed = getattr(network, "reseed", None)
    if not callable(reseed):
        raise ValueError(
            "fit(seed=...): new initial weights need a FullyConnected; seed other networks when making them."
        )
    reseed(seed)
