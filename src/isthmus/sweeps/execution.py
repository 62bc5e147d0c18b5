"""One run carried out: set up, trained from its checkpoint on, read, and written as one folder.

What the folder holds: `run_files`. Where a worker writes: `worker`. Which runs there are: `plan`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import xarray as xr
from torch import Tensor

from isthmus.sweeps.run_readings import heard_warnings, rank_readings
from isthmus.sweeps.run_table import MISSING, READINGS, believed
from isthmus.sweeps.setup import Prepared, Sections, prepared
from isthmus.training import FitEvent, FitResult, Limits, Outcome, fit
from isthmus.training.threads import one_thread_each

Listener = Callable[[FitEvent], bool]


@dataclass(frozen=True, slots=True)
class Computed:
    """What a finished run leaves.

    Attributes:
        numbers: objective, data_loss, penalty, stationarity, outcome, gradient_evaluations, steps, seconds, true_rank,
            rank and the readings of `run_readings`, None where one does not apply, and why, as far as it is not the
            kind of network.
        warnings: sentences.
        arrays: the objective over "evaluation" and the table over "layer", as far as they were asked for.
        tensors: the parameters and buffers of the network, if they were asked for.
    """

    numbers: Mapping[str, object]
    warnings: list[str]
    arrays: xr.Dataset
    tensors: Mapping[str, Tensor]


def compute(settings: Sections, source: str | None, checkpoint: Path, listener: Listener) -> Computed | None:
    """Carry out a run, on one thread: the same bits wherever and however often it was interrupted.

    Args:
        settings: canonical settings.
        source: the file of the task.
        checkpoint: where the state of the training stands, and is kept until the caller removes it.
        listener: hears every iteration; True ends the training with its state saved.

    Returns:
        None if the listener ended it.

    Raises:
        CheckpointError: the checkpoint cannot be gone on from.
    """
    with one_thread_each(), heard_warnings() as sentences:
        start = prepared(settings, source)
        result = _trained(start, settings, checkpoint, listener)
        if result.outcome is Outcome.INTERRUPTED:
            return None
        numbers, arrays = _numbers(result, start), xr.Dataset()
        record = settings["record"]
        if record["ranks"] and result.outcome is not Outcome.DIVERGED:
            readings, arrays = rank_readings(result.network, start, ridge=_ridge(settings))
            numbers |= readings
        elif not record["ranks"]:
            numbers[MISSING] = "the plan has ranks = false under [record]"
        if record["history"]:
            arrays = arrays.merge(result.history)
    state = result.network.state_dict() if record["weights"] else {}
    tensors = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in state.items()}
    return Computed(believed(numbers), sentences, arrays, tensors)


def _ridge(settings: Sections) -> float:
    return float(str(settings["training"]["ridge"]))


def _trained(start: Prepared, settings: Sections, checkpoint: Path, listener: Listener) -> FitResult:
    training = settings["training"]
    evaluations = training["evaluations"]
    return fit(
        start.network,
        start.x,
        start.y,
        ridge=_ridge(settings),
        loss=start.loss,
        solver=start.solver,
        limits=Limits(evaluations=int(str(evaluations))) if evaluations is not None else None,
        checkpoint=checkpoint,
        callback=listener,
    )


def _numbers(result: FitResult, start: Prepared) -> dict[str, object]:
    names = ("objective", "data_loss", "penalty", "stationarity", "gradient_evaluations", "steps", "seconds", "rank")
    numbers: dict[str, object] = {name: getattr(result, name) for name in names}
    return numbers | {"outcome": result.outcome.name, "true_rank": start.true_rank} | dict.fromkeys(READINGS)
