"""`fit_shards`: a fit whose samples lie in several processes, to the same bits as in one. `fit`: samples in memory.

Starting the processes: `process_group`. Why it is done so, and what it costs: docs/notes/distributed.md.
"""

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from isthmus.errors import ShapeError
from isthmus.training.fitting import FitEvent, Fitting
from isthmus.training.limits import Limits
from isthmus.training.losses import DataLoss, Loss
from isthmus.training.result import FitResult
from isthmus.training.schedule import Schedule, default_schedule, on_all_rows
from isthmus.training.sharded_step import ShardedStep
from isthmus.training.team import Team


def fit_shards(  # noqa: PLR0913 - the arguments of `fit`, and whose rows they are
    network: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    total: int,
    team: Team,
    ridge: float,
    loss: Loss = Loss.SQUARED,
    schedule: Schedule | None = None,
    limits: Limits | None = None,
    checkpoint: Path | None = None,
    callback: Callable[[FitEvent], bool | None] | None = None,
) -> FitResult:
    """Train a network, in place, on samples of which each process of a team holds its own rows.

        minimise  sum_i loss(f(x_i), y_i) / n + ridge * network.penalty(),   i over the n rows of all processes

    All processes call this with the same arguments but for x, y. Each returns the same network and result, to the last
    bit, and the bits do not depend on the number of processes (on machines of one kind, with equally many threads).

    Args:
        network: any module whose penalty is a sum of c_i theta_i^2 / 2; that of the first process is the start of all.
        x: inputs (n_own, d_in) of the rows `team.rows(total)`, on the network's device.
        y: their targets (n_own, d_out), or class numbers (n_own,) for cross-entropy.
        total: number of rows n of all processes.
        team: the processes; `Team()` is one alone.
        ridge: total coefficient of the penalty, >= 0.
        loss: squared error or cross-entropy.
        schedule: solvers run one after the other; None: as `fit`.
        limits: seconds (of the slowest process) and gradient evaluations.
        checkpoint: written by the first process every few seconds; read by it, and sent to the others, if it is there.
            A team of another size may go on with it.
        callback: called in each process after every iteration; the fit ends in all when one returns True.

    Returns:
        As `fit`; `seconds` are those of this process.

    Raises:
        ShapeError: x and y are not the rows of this process.
        ValueError: ridge < 0.
        DataError: fewer parts of rows than processes, or a checkpoint of another fit.
        ProcessLost: another process died or fell silent.
    """
    if not ridge >= 0:
        raise ValueError(f"fit_shards(ridge={ridge}): needs a ridge >= 0.")
    rows = team.rows(total)
    if not len(x) == len(y) == rows.stop - rows.start:
        raise ShapeError(
            f"fit_shards(x, y, total={total}): process {team.rank} of {team.size} needs the rows {rows.start} to "
            f"{rows.stop - 1}, got {len(x)} in x and {len(y)} in y. Slice with team.rows(total)."
        )
    with torch.no_grad():
        step = ShardedStep(network, x.contiguous(), DataLoss(loss, y.contiguous()), ridge, total=total, team=team)
        chosen = schedule or default_schedule(network, evaluations=limits.evaluations if limits else None)
        return Fitting(step, on_all_rows(chosen), limits or Limits(), checkpoint, callback, team=team).run()
