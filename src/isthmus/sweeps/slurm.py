"""Workers as Slurm jobs: a TOML file with what `sbatch` needs, handed to dask-jobqueue. Needs the extra `cluster`.

jobs = 4                     # Slurm jobs, each with `processes` workers of one thread
processes = 8
memory = "32GB"
walltime = "12:00:00"
queue = "cpu"                # and account, interface, local_directory, python, job_extra_directives,
                             # job_script_prologue, worker_extra_args, log_directory, shebang
"""

import shutil
import tomllib
from functools import partial
from pathlib import Path
from typing import Any

from dask_jobqueue import SLURMCluster
from distributed import Client

from isthmus.errors import PlanError, SweepError
from isthmus.sweeps.cluster import Cluster
from isthmus.sweeps.fields import Field, canonical, listed, optional, whole, words

QUEUE_SECONDS = 24 * 3600.0  # how long a job may wait in the queue
_TEXTS = ("queue", "account", "interface", "local_directory", "python", "log_directory", "shebang")
_LISTS = ("job_extra_directives", "job_script_prologue", "worker_extra_args")
FIELDS: dict[str, Field] = {
    "jobs": whole(1, default=1),
    "processes": whole(1, default=1),
    "memory": words(),
    "walltime": words(default="01:00:00"),
    **{name: optional(words()) for name in _TEXTS},
    **{name: optional(listed(words())) for name in _LISTS},
}


def slurm_options(path: Path) -> tuple[int, dict[str, Any]]:
    """The number of jobs, and the arguments of `SLURMCluster`.

    Raises:
        PlanError: no such file, not TOML, an unknown key or a value out of range.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PlanError(f"--slurm {path}: cannot be read ({error.strerror}). Give a TOML file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PlanError(f"--slurm {path}: is not TOML ({error}). Mend that place.") from None
    found: dict[str, Any] = canonical(content, FIELDS, section="slurm", where=f"--slurm {path}")
    jobs, processes = found.pop("jobs"), found.pop("processes")
    options = {name: value for name, value in found.items() if value is not None}
    return jobs, {
        **options,
        "cores": processes,
        "processes": processes,
        "n_workers": 0,
        "scheduler_options": {"dashboard_address": ":0"},
    }


def job_script(path: Path) -> str:
    """The script that each Slurm job runs, without starting any; the scheduler in it is one of this moment."""
    _, options = slurm_options(path)
    cluster: Any
    with SLURMCluster(**options) as cluster:
        return str(cluster.job_script())


def slurm_cluster(path: Path) -> Cluster:
    """A scheduler in this process and its workers as Slurm jobs.

    Raises:
        PlanError: see `slurm_options`. SweepError: there is no Slurm here.
    """
    jobs, options = slurm_options(path)
    if shutil.which("sbatch") is None:
        raise SweepError("--slurm: sbatch is not on this machine. Run where Slurm is, or leave --slurm out.")
    owned = SLURMCluster(**options)
    owned.scale(jobs=jobs)
    return Cluster(partial(Client, owned), owned=owned, first_worker=QUEUE_SECONDS)
