"""Workers as Slurm jobs: a TOML file with what `sbatch` needs, handed to dask-jobqueue. Needs the extra `cluster`.

jobs = 4                     # Slurm jobs, each with `processes` workers of one thread
processes = 8
memory = "32GB"
walltime = "12:00:00"
queue = "cpu"                # and account, interface, local_directory, python, job_extra_directives,
                             # job_script_prologue, worker_extra_args, log_directory, shebang
certificates = "/home/me"    # a folder that the jobs see; default the folder of the sweep
"""

import contextlib
import re
import shutil
import tempfile
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import Any

from dask_jobqueue import SLURMCluster
from distributed import Client

from isthmus.errors import PlanError, SweepError
from isthmus.networks.argument_fields import Field, listed, optional, whole, words
from isthmus.processes.children import SAFE_LINE
from isthmus.sweeps.cluster import Cluster
from isthmus.sweeps.fields import canonical
from isthmus.sweeps.folder import WORK
from isthmus.sweeps.schedulers import LOOPBACK
from isthmus.sweeps.security import fresh_security, written
from isthmus.tasks.door import read_toml

_PREFIX = "isthmus-certificates-"
QUEUE_SECONDS = 24 * 3600.0  # how long a job may wait in the queue
_TEXTS = ("queue", "account", "interface", "local_directory", "python", "log_directory", "shebang", "certificates")
_LISTS = ("job_extra_directives", "job_script_prologue", "worker_extra_args")
FIELDS: dict[str, Field] = {
    "jobs": whole(1, default=1),
    "processes": whole(1, default=1),
    "memory": words(),
    "walltime": words(default="01:00:00"),
    **{name: optional(words()) for name in _TEXTS},
    **{name: optional(listed(words())) for name in _LISTS},
}


def slurm_options(path: Path, *, dashboard: str | None = None) -> tuple[int, dict[str, Any]]:
    """The number of jobs, and the arguments of `SLURMCluster`; its workers have no dashboard of their own.

    Raises:
        PlanError: no such file, not TOML, an unknown key or a value out of range.
    """
    content = read_toml(path, where="--slurm ", needs="a file", error=PlanError)
    found: dict[str, Any] = canonical(content, FIELDS, section="slurm", where=f"--slurm {path}")
    jobs, processes = found.pop("jobs"), found.pop("processes")
    options = {name: value for name, value in found.items() if value is not None}
    return jobs, {
        **options,
        "cores": processes,
        "processes": processes,
        "n_workers": 0,
        # first, so that the file can say otherwise: a job starts in the folder it was sent from
        "job_script_prologue": [SAFE_LINE, *options.get("job_script_prologue", ())],
        "worker_extra_args": [*options.get("worker_extra_args", ()), "--no-dashboard"],
        "scheduler_options": {"dashboard_address": dashboard or LOOPBACK},
    }


@contextlib.contextmanager
def _certified(options: dict[str, Any], folder: Path) -> Generator[dict[str, Any]]:
    """The options with certificates, made for this sweep, in a folder that jobs see; they go with the block.

    Raises:
        SweepError: a path that a job script cannot hold; dask-jobqueue quotes nothing. OSError: it cannot be written.
    """
    for left in (folder / WORK).glob(f"{_PREFIX}*"):  # of a driver that was killed
        shutil.rmtree(left, ignore_errors=True)
    parent = Path(options.pop("certificates", folder / WORK)).resolve()
    if not re.fullmatch(r"[\w@%+=:,./-]+", str(parent), flags=re.ASCII):
        raise SweepError(
            f"--slurm: a job script cannot hold the path {str(parent)!r}. Give certificates = a plain path in the file."
        )
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=parent) as place:
        yield {**options, "protocol": "tls://", "security": written(fresh_security(), Path(place))}


def job_script(path: Path, folder: Path) -> str:
    """The script that each Slurm job runs, without starting any; the scheduler in it is one of this moment."""
    _, options = slurm_options(path)
    cluster: Any
    with _certified(options, folder) as certified, SLURMCluster(**certified) as cluster:
        return str(cluster.job_script())


def slurm_cluster(path: Path, folder: Path, *, dashboard: str | None = None) -> Cluster:
    """A scheduler in this process and its workers as Slurm jobs.

    Args:
        path: of the file.
        folder: of the sweep, where certificates lie unless the file says another.
        dashboard: where the dashboard listens; None: on the loopback.

    Raises:
        PlanError: see `slurm_options`. SweepError: there is no Slurm here, or no certificate can be handed to jobs.
    """
    jobs, options = slurm_options(path, dashboard=dashboard)
    if shutil.which("sbatch") is None:
        raise SweepError("--slurm: sbatch is not on this machine. Run where Slurm is, or leave --slurm out.")
    stack = contextlib.ExitStack()
    try:
        owned = SLURMCluster(**stack.enter_context(_certified(options, folder)))
        stack.callback(owned.close)
        owned.scale(jobs=jobs)
        return Cluster(partial(Client, owned), owned=stack, first_worker=QUEUE_SECONDS)
    except BaseException:
        stack.close()
        raise
