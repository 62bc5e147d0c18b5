"""Schedulers for a sweep: one of this machine with workers of its own, or one that is running.

Needs the extra `cluster`. Workers as Slurm jobs: `slurm`. What is done with the workers: `cluster`.
"""

import logging
from functools import partial

import dask
from distributed import Client, LocalCluster

from isthmus.errors import SweepError
from isthmus.sweeps.cluster import CONNECT_SECONDS, MOST_DEATHS, Cluster

_ANY_PORT = "127.0.0.1:0"  # of the dashboard: the usual one may be taken


def local_cluster(workers: int) -> Cluster:
    """Workers on this machine: one process and one thread each, started again when they die."""
    dask.config.set(
        {
            "distributed.scheduler.allowed-failures": MOST_DEATHS,
            # on a busy machine a killed worker takes more than the usual 15 and 30 s to come back, and is given up
            "distributed.deploy.lost-worker-timeout": "1h",
            "distributed.comm.timeouts.connect": "300s",
        }
    )
    owned = LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=_ANY_PORT,
        silence_logs=logging.CRITICAL,
    )  # fmt: skip
    return Cluster(partial(Client, owned), owned=owned, revive=partial(owned.scale, workers))


def joined_cluster(address: str, *, patience: float) -> Cluster:
    """The workers of a running scheduler.

    Raises:
        SweepError: it cannot be reached.
    """
    try:
        return Cluster(partial(Client, address, timeout=CONNECT_SECONDS, set_as_default=False), patience=patience)
    except (OSError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise SweepError(
            f"--scheduler {address}: cannot be reached ({reason}). Start it with dask scheduler, or check the address."
        ) from None
