"""Whether the workers of a scheduler can do the runs of a plan, asked before anything starts.

Needs the extra `cluster`. What a worker answers: `on_worker`.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from isthmus.errors import SweepError
from isthmus.sweeps.on_worker import fitness
from isthmus.sweeps.plan_check import task_files
from isthmus.sweeps.runs import Run
from isthmus.sweeps.worker import differences, versions


def check_workers(client: Any, runs: Sequence[Run], *, address: str, first_worker: float) -> None:
    """Refuse workers that cannot do these runs.

    Args:
        client: of the scheduler.
        runs: of the plan.
        address: of the scheduler, for what is said.
        first_worker: seconds to wait for the first worker.

    Raises:
        SweepError: no workers, other versions, threads, or a task file that is missing there or another; says which
            worker.
    """
    if not client.nthreads():
        with suppress(TimeoutError):
            client.wait_for_workers(1, timeout=first_worker)
    answers = client.run(fitness, task_files(runs), on_error="return")
    if not answers:
        raise SweepError(f"{address}: has no workers. Start some with dask worker {address} --nthreads 1.")
    for worker, answer in answers.items():
        if isinstance(answer, BaseException):
            reason = " ".join(str(answer).split())[:160]
            raise SweepError(f"worker {worker}: cannot do a run ({reason}). Install the same isthmus there.")
        found, complaint, threads = answer
        if threads != 1:
            raise SweepError(f"worker {worker}: has {threads} threads, needs 1. Start it with --nthreads 1.")
        if different := differences(versions(), found):
            raise SweepError(f"worker {worker}: {'; '.join(different)}. Install the driver's versions there.")
        if complaint:
            raise SweepError(f"worker {worker}: {complaint}")
