"""`fit_shards`: a fit whose samples lie in several processes, to the same bits as in one. `fit`: samples in memory.

Starting the processes: `sharded.process_group`. Why it is done so, and what it costs: docs/notes/distributed.md.
"""

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from isthmus.errors import ShapeError
from isthmus.networks import FullyConnected
from isthmus.networks.arguments import check_ridge
from isthmus.training.fit_checkpoint import CheckpointFile
from isthmus.training.fit_result import FitResult
from isthmus.training.fitting import FitEvent, Fitting
from isthmus.training.limits import Limits
from isthmus.training.losses import SQUARED, DataLoss, Loss, loss_argument
from isthmus.training.moves import in_sequence
from isthmus.training.sharded.checkpoint_parts import CheckpointParts
from isthmus.training.sharded.coordinates import PIECES
from isthmus.training.sharded.layer_moves import layerwise_schedule
from isthmus.training.sharded.layer_step import LayerwiseStep
from isthmus.training.sharded.row_step import ShardedStep
from isthmus.training.sharded.team import Team
from isthmus.training.solvers.schedule import Schedule, check_rates, default_schedule, on_all_rows
from isthmus.training.steps.memory_step import check_trainable, frozen


def fit_shards(  # noqa: PLR0913 - the arguments of `fit`, and whose rows they are
    network: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    total: int,
    team: Team,
    ridge: float,
    loss: str | Loss = SQUARED,
    schedule: Schedule | None = None,
    limits: Limits | None = None,
    checkpoint: Path | None = None,
    callback: Callable[[FitEvent], bool | None] | None = None,
    split_parameters: bool = False,
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
        loss: as in `fit`.
        schedule: solvers run one after the other; None: as `fit`.
        limits: seconds (of the slowest process) and gradient evaluations.
        checkpoint: written by the first process every few seconds; read by it, and sent to the others, if it is there.
            A team of another size may go on with it.
        callback: called in each process after every iteration; the fit ends in all when one returns True.
        split_parameters: each process keeps its part of the parameters, of the gradient and of all that a solver keeps,
            and no more than a layer beside. Of a `FullyConnected`, which lets go of its parameters: afterwards it reads
            its layers from all processes, which have to ask for them together; `layer_shares.brought_together` makes
            it whole. The checkpoint is one file for each process beside the one that is named. The bits do not depend
            on the number of processes here either, but are others than those of whole parameters.

    Returns:
        As `fit`; `seconds` are those of this process.

    Raises:
        ShapeError: x and y are not the rows of this process.
        ValueError: ridge < 0, another network than a `FullyConnected`, or one that is frozen in part, is to be split,
            or among more than 64 processes.
        DataError: nothing to train, fewer parts of rows than processes, or a checkpoint of another fit.
        ProcessLost: another process died or fell silent.
    """
    check_trainable(network, "fit_shards(network, x, y)")
    dtype = next(network.parameters()).dtype
    check_ridge(ridge, "fit_shards", dtype)
    rows = team.rows(total)
    if not len(x) == len(y) == rows.stop - rows.start:
        raise ShapeError(
            f"fit_shards(x, y, total={total}): process {team.rank} of {team.size} needs the rows {rows.start} to "
            f"{rows.stop - 1}, got {len(x)} in x and {len(y)} in y. Slice with team.rows(total)."
        )
    chosen = schedule or default_schedule(network, evaluations=limits.evaluations if limits else None)
    kind, limits = loss_argument(loss, "fit_shards"), limits or Limits()
    kind.check(y, "fit_shards(x, y): y")
    kind.check_precision(dtype)
    check_rates(chosen, dtype)
    data = DataLoss(kind, y.contiguous())
    with torch.no_grad():
        if not split_parameters:
            step = ShardedStep(network, x.contiguous(), data, ridge, total=total, team=team)
            kept = CheckpointFile(checkpoint, team) if checkpoint else None
            return Fitting(step, on_all_rows(chosen), limits, kept, callback, team=team).run()
        split = LayerwiseStep(_splittable(network, team), x.contiguous(), data, ridge, total=total, team=team)
        parts = CheckpointParts(checkpoint, split.layers.split) if checkpoint else None
        return Fitting(split, layerwise_schedule(chosen), limits, parts, callback, team=team).run()


def _splittable(network: nn.Module, team: Team) -> FullyConnected:
    if team.size > PIECES:
        raise ValueError(
            f"fit_shards(split_parameters=True): needs at most {PIECES} processes, came {team.size}. Start fewer."
        )
    if (connected := in_sequence(network)) is None:
        raise ValueError(
            f"fit_shards(network, split_parameters=True): needs a FullyConnected, got {type(network).__name__}. "
            "Leave split_parameters out."
        )
    if names := frozen(network):
        raise ValueError(
            f"fit_shards(network, split_parameters=True): trains all parameters, but {', '.join(names)} are frozen "
            "(requires_grad=False). Leave split_parameters out."
        )
    return connected
