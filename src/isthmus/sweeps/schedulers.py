"""Schedulers for a sweep: one of this machine with workers of its own, or one that is running.

Needs the extra `cluster`. Workers as Slurm jobs: `slurm`. What is done with the workers: `cluster`.
"""

import contextlib
import logging
import tempfile
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import dask
from distributed import Client, LocalCluster
from distributed.utils import LoopRunner

from isthmus.errors import ExposureWarning, SweepError, outside
from isthmus.processes.children import deaf_to, safe_path, start_tracker
from isthmus.sweeps.cluster import CONNECT_SECONDS, MOST_DEATHS, Cluster
from isthmus.sweeps.engine_choice import Certificates
from isthmus.sweeps.security import fresh_security, joining

LOOPBACK = "127.0.0.1:0"  # of the dashboard, which asks nobody who they are; any port, the usual one may be taken
_STARTS = 3  # a worker that is killed while it starts takes the whole cluster with it


def local_cluster(workers: int, *, dashboard: str | None = None) -> Cluster:
    """Workers on this machine: one process and one thread each, started again when they die.

    Raises:
        SweepError: they cannot be started.
    """
    dask.config.set(
        {
            "distributed.scheduler.allowed-failures": MOST_DEATHS,
            # on a busy machine a killed worker takes more than the usual 15 and 30 s to come back, and is given up
            "distributed.deploy.lost-worker-timeout": "1h",
            "distributed.comm.timeouts.connect": "300s",
        }
    )
    security, stack = fresh_security(), contextlib.ExitStack()
    try:
        # what workers spill is read back as code would be: not below a folder in /tmp that anybody can make first
        scratch = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="isthmus-workers-", ignore_cleanup_errors=True)
        )
        stack.enter_context(safe_path())  # as long as it lives: a worker that dies is started again
        start_tracker()
        loop = LoopRunner()
        # its threads start the workers, now and again when one dies: what a terminal sends to all is the driver's
        # affair, which asks them to save; by themselves they end in tracebacks
        with deaf_to("SIGINT"), deaf_to("SIGHUP"):
            loop.start()
        stack.callback(loop.stop)
        # in a thread, which an interrupt leaves alone: what is half started cannot be closed, and ends in tracebacks
        thread = ThreadPoolExecutor(1, "isthmus-workers")
        starting = thread.submit(
            _started, n_workers=workers, threads_per_worker=1, processes=True, host="127.0.0.1", security=security,
            dashboard_address=dashboard or LOOPBACK, silence_logs=logging.CRITICAL, local_directory=scratch,
            loop=loop.loop,
        )  # fmt: skip
        stack.callback(_close, starting)
        thread.shutdown(wait=False)
        owned = starting.result()
        return Cluster(partial(Client, owned), owned=stack, revive=partial(owned.scale, workers))
    except BaseException:
        stack.close()
        raise


def _started(**options: Any) -> LocalCluster:
    """A cluster of this machine, tried again when a worker dies before it is there: that takes down all of it.

    Raises:
        SweepError: it never came up; says the innermost reason, which dask wraps once for each layer.
    """
    for left in reversed(range(_STARTS)):
        try:
            return LocalCluster(**options)
        except (OSError, RuntimeError, ValueError) as error:
            cause: BaseException = error
            while cause.__cause__ is not None:
                cause = cause.__cause__
            reason = " ".join(str(cause).split())[:160] or type(cause).__name__
            if not left:
                raise SweepError(
                    f"isthmus sweep: its workers could not be started ({reason}). The same command goes on."
                ) from None
    raise AssertionError


def _close(starting: Future[LocalCluster]) -> None:
    """Close it once it is there, if it came up."""
    if starting.exception() is None:
        starting.result().close()


def joined_cluster(address: str, certificates: Certificates | None = None, *, patience: float) -> Cluster:
    """The workers of a running scheduler.

    Raises:
        SweepError: it cannot be reached.
    """
    security = joining(address, certificates)
    try:
        made = Cluster(
            partial(Client, address, timeout=CONNECT_SECONDS, set_as_default=False, security=security),
            patience=patience,
        )
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise SweepError(
            f"--scheduler {address}: cannot be reached ({reason}). Start it with dask scheduler, or check the address."
        ) from None
    if not made.address.startswith("tls://"):
        warnings.warn(
            f"{made.address}: this scheduler asks nobody who they are. Whoever reaches its port can run code as you; "
            "start scheduler and workers with --tls-ca-file, --tls-cert and --tls-key.",
            ExposureWarning,
            stacklevel=outside(),
        )
    return made
