"""Which engine runs a sweep, as the caller chose; refused before anything starts if it cannot.

The engines: `engine` (this process), `cluster` (dask), started by `schedulers` or `slurm`.
"""

import importlib.util
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from isthmus.errors import PlanError, SweepError
from isthmus.networks.arguments import whole_argument
from isthmus.networks.devices import CPU, device_argument
from isthmus.processes.pool import num_cores
from isthmus.sweeps.engine import Engine, InProcess
from isthmus.sweeps.runs import SweepRun

MOST_WORKERS = 4096  # processes of one machine; a thousand million would be started until it stands still


@dataclass(frozen=True, slots=True)
class Certificates:
    """Files by which a client and a scheduler of others know each other, in PEM format.

    Attributes:
        ca_file: who vouches for the certificates.
        cert: of the client.
        key: of the client.
    """

    ca_file: Path
    cert: Path
    key: Path


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """Where to run.

    Args:
        workers: processes on this machine; None: one per core, one alone on a GPU; 0: this process.
        scheduler: address of a running scheduler.
        slurm: a file that says how to start workers as Slurm jobs.
        patience: seconds that a lost scheduler is waited for.
        certificates: for a running scheduler; None: those of dask's configuration, if any.
        dashboard: where the dashboard of a scheduler of our own listens, as "127.0.0.1:8787"; None: on this machine's
            loopback, at any port.
        device: where each worker trains, as `fit` takes it.

    Raises:
        PlanError: more than one of the first three, a number out of range, what belongs to another engine, or a device
            that workers of this machine do not have.
    """

    workers: int | None = None
    scheduler: str | None = None
    slurm: Path | None = None
    patience: float = 60.0
    certificates: Certificates | None = None
    dashboard: str | None = None
    device: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.scheduler, str | None):  # pyright: ignore[reportUnnecessaryIsInstance] - callers
            raise PlanError(f"--scheduler {self.scheduler}: needs an address, as in tls://host:8786.")
        given = [name for name in ("workers", "scheduler", "slurm") if getattr(self, name) is not None]
        if len(given) > 1:
            raise PlanError(f"--{given[0]} and --{given[1]} exclude each other. Give one of them.")
        if self.workers is not None and not 0 <= whole_argument(self.workers, "sweep(workers=...)") <= MOST_WORKERS:
            raise PlanError(f"--workers {self.workers}: needs a number from 0 to {MOST_WORKERS}.")
        if not self.patience >= 0:
            raise PlanError(f"--patience {self.patience}: needs a number >= 0.")
        if self.certificates is not None and self.scheduler is None:
            raise PlanError(
                "--tls-cert: belongs to --scheduler; the sweep's own workers get certificates of their own."
            )
        if self.dashboard is not None and (self.scheduler is not None or self.workers == 0):
            raise PlanError(
                "--dashboard: belongs to a scheduler of the sweep's own. Leave it out, or give --workers N."
            )
        if self.scheduler is None and self.slurm is None:
            try:
                device_argument(self.device, f"--device {self.device}")
            except ValueError as error:
                raise PlanError(str(error)) from None

    def processes(self) -> int:
        """How many this machine has for it: on a GPU processes take turns, and ten together got a tenth of its pace."""
        if self.workers is not None:
            return self.workers
        place = device_argument(self.device, f"--device {self.device}")
        return num_cores() if place is None or place == CPU else 1


@contextmanager
def joined_executor(address: str, certificates: Certificates | None) -> Generator[tuple[int, Executor]]:
    """The workers of a running scheduler as an executor, and how many there are; for work that is no sweep.

    Raises:
        SweepError: the extra is missing, the scheduler cannot be reached, or its workers do not fit.
    """
    _check_extra(f"--scheduler {address}: needs dask.distributed. Install isthmus[cluster].")
    from isthmus.sweeps.schedulers import joined_cluster  # an optional extra

    cluster = joined_cluster(address, certificates, patience=0.0)
    try:
        cluster.check(())
        yield cluster.workers, cluster.executor()
    finally:
        cluster.close()


def _check_extra(otherwise: str) -> None:
    if importlib.util.find_spec("distributed") is None:
        raise SweepError(otherwise)


def opened_engine(choice: EngineChoice, runs: Sequence[SweepRun], folder: Path, say: Callable[[str], None]) -> Engine:
    """The chosen engine, its workers checked.

    Args:
        choice: where to run.
        runs: that the workers must be able to do.
        folder: of the sweep.
        say: hears notes, one line each.

    Raises:
        SweepError: the extra is missing, the scheduler cannot be reached, or workers do not fit.
    """
    if choice.workers == 0:
        return InProcess()
    _check_extra("isthmus sweep: needs dask.distributed for workers. Install isthmus[cluster], or use --workers 0.")
    from isthmus.sweeps.schedulers import joined_cluster, local_cluster  # an optional extra

    if choice.scheduler is not None:
        cluster = joined_cluster(choice.scheduler, choice.certificates, patience=choice.patience)
    elif choice.slurm is not None:
        from isthmus.sweeps.slurm import slurm_cluster  # an optional extra

        cluster = slurm_cluster(choice.slurm, folder, dashboard=choice.dashboard)
    else:
        cluster = local_cluster(choice.processes(), dashboard=choice.dashboard)
    try:
        cluster.check(runs)
    except BaseException:
        cluster.close()
        raise
    say(f"workers: {cluster.workers} at {cluster.address}; dashboard: {cluster.dashboard}")
    return cluster
