"""Which engine runs a sweep, as the caller chose; refused before anything starts if it cannot.

The engines: `engine` (this process), `cluster` (dask), started by `schedulers` or `slurm`.
"""

import importlib.util
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from isthmus.errors import PlanError, SweepError
from isthmus.sweeps.engine import Engine, InProcess
from isthmus.sweeps.runs import Run


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """Where to run.

    Args:
        workers: processes on this machine; None: one per core; 0: this process.
        scheduler: address of a running scheduler.
        slurm: a file that says how to start workers as Slurm jobs.
        patience: seconds that a lost scheduler is waited for.

    Raises:
        PlanError: more than one of the first three, or a number < 0.
    """

    workers: int | None = None
    scheduler: str | None = None
    slurm: Path | None = None
    patience: float = 60.0

    def __post_init__(self) -> None:
        given = [
            name
            for name, value in (("workers", self.workers), ("scheduler", self.scheduler), ("slurm", self.slurm))
            if value is not None
        ]
        if len(given) > 1:
            raise PlanError(f"--{given[0]} and --{given[1]} exclude each other. Give one of them.")
        if self.workers is not None and self.workers < 0:
            raise PlanError(f"--workers {self.workers}: needs a number >= 0.")
        if not self.patience >= 0:
            raise PlanError(f"--patience {self.patience}: needs a number >= 0.")


def opened_engine(choice: EngineChoice, runs: Sequence[Run], say: Callable[[str], None]) -> Engine:
    """The chosen engine, its workers checked.

    Raises:
        SweepError: the extra is missing, the scheduler cannot be reached, or workers do not fit.
    """
    if choice.workers == 0:
        return InProcess()
    if importlib.util.find_spec("distributed") is None:
        raise SweepError(
            "isthmus sweep: needs dask.distributed for workers. Install isthmus[cluster], or use --workers 0."
        )
    from isthmus.sweeps.schedulers import joined_cluster, local_cluster  # an optional extra

    if choice.scheduler is not None:
        cluster = joined_cluster(choice.scheduler, patience=choice.patience)
    elif choice.slurm is not None:
        from isthmus.sweeps.slurm import slurm_cluster  # an optional extra

        cluster = slurm_cluster(choice.slurm)
    else:
        cluster = local_cluster(choice.workers or num_cores())
    try:
        cluster.check(runs)
    except BaseException:
        cluster.close()
        raise
    say(f"workers: {cluster.workers} at {cluster.address}; dashboard: {cluster.dashboard}")
    return cluster


def num_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
