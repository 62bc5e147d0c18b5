"""`fit_several`: several starts of one network side by side, the hopeless ones given up early. One start: `fit`.

Which are given up: `culling`. Many small networks as one batch, none given up: `batched`.
"""

import math
import pickle
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike
from torch import Tensor, nn

from isthmus.networks.arguments import whole_argument
from isthmus.networks.devices import made_on_cpu, with_gradients
from isthmus.processes.pool import Processes, Where, errors_of_executor, executor_argument, num_cores
from isthmus.training.culling import Culling, Race
from isthmus.training.fit import fit
from isthmus.training.fit_result import FitResult
from isthmus.training.fitting import FitEvent
from isthmus.training.steps.products import kept_choices
from isthmus.training.threads import one_thread_each, one_thread_here

_OWN_REMEDIES = {  # of arguments of `fit` that each start has for itself
    "seed": "Give each network a seed when it is made.",
    "checkpoint": "Call fit for each network with a file of its own.",
    "callback": "Call fit for each network, or give culling.",
}


@dataclass(frozen=True, slots=True)
class Starts:
    """How several starts ended.

    Attributes:
        results: one for each start; the outcome of one that was given up is INTERRUPTED.
        culled: for each start that was given up, after how many gradients.
        best: number of the start with the least objective.
    """

    results: tuple[FitResult, ...]
    culled: dict[int, int]
    best: int


@made_on_cpu
@with_gradients
def fit_several(
    networks: Sequence[nn.Module],
    x: ArrayLike | Tensor,
    y: ArrayLike | Tensor,
    *,
    ridge: float,
    culling: Culling | None = None,
    workers: int | None = None,
    executor: Executor | str | None = None,
    **arguments: Any,
) -> Starts:
    """Train several starts, in place, each to a minimum of its own, and name the lowest.

        minimise  data_loss(f_j) + ridge * network_j.penalty()   for each start j

    One thread a start, at most one start a core, or one call of an executor. Which starts are given up depends on
    objectives at equal numbers of gradients and on nothing else, so the results are those of any number of workers, bit
    for bit.

    Args:
        networks: the starts, at least one.
        x: inputs (n, d_in).
        y: targets (n, d_out), or class numbers (n,) for cross-entropy.
        ridge: total coefficient of the penalty, >= 0.
        culling: which starts are given up; None gives up none.
        workers: threads, one start in each; None: as many as there are cores.
        executor: "threads", "processes" of this machine, or any `concurrent.futures.Executor`, on other hosts too. What
            is not computed in threads is pickled, so solvers and losses of yours stand at the top of a module.
        arguments: as those of `fit`, but for seed, checkpoint and callback.

    Raises:
        ValueError: no network or one twice, an argument that starts cannot share, culling by an executor, whose workers
            do not hear of each other, an unknown executor, or what `fit` refuses.
        ProcessLost: the executor was ended, or its workers were.
        ShapeError: as `fit`.
    """
    if isinstance(networks, nn.Module):
        raise TypeError("fit_several(networks): needs several networks in a list; one is trained by fit.")
    networks = list(networks)
    if not networks:
        raise ValueError("fit_several(networks): needs at least one start, got none. Give one network for each start.")
    if len({id(network) for network in networks}) < len(networks):
        raise ValueError(
            "fit_several(networks): holds one network twice, which two starts would train at once. Give each its own."
        )
    for name in sorted(_OWN_REMEDIES.keys() & arguments.keys()):
        if arguments.pop(name) is not None:
            raise ValueError(f"fit_several({name}=...): starts that share it would be one. {_OWN_REMEDIES[name]}")
    if workers is not None and whole_argument(workers, "fit_several(workers=...)") < 0:
        raise ValueError(f"fit_several(workers={workers}): needs a number of threads, or None for one on each core.")
    if (where := executor_argument(executor, "fit_several")) not in {None, Where.THREADS}:
        if culling:
            raise ValueError(
                "fit_several(culling=..., executor=...): starts that are compared run in threads. Leave one out."
            )
        call = {"x": x, "y": y, "ridge": ridge, **arguments}
        if isinstance(where, Executor):
            return _best(_elsewhere(networks, where, call), {})
        with Processes(min(workers or num_cores(), len(networks))) as ours:
            return _best(_elsewhere(networks, ours, call), {})
    race = Race(culling, len(networks)) if culling else None
    cores = threading.Semaphore(workers or num_cores())

    def one(number: int) -> FitResult:
        value = math.inf
        try:
            with cores:
                callback = _marks(race, number, cores) if race else None
                result = fit(networks[number], x, y, ridge=ridge, callback=callback, **arguments)
            value = result.objective if math.isfinite(result.objective) else math.inf
            return result
        finally:
            if race:
                race.ended(number, value)

    with one_thread_each(), ThreadPoolExecutor(len(networks), initializer=one_thread_here) as pool:
        results = tuple(pool.map(one, range(len(networks))))
    return _best(results, race.culled if race else {})


def _best(results: tuple[FitResult, ...], culled: dict[int, int]) -> Starts:
    objectives = {j: r.objective for j, r in enumerate(results) if j not in culled and math.isfinite(r.objective)}
    return Starts(results, culled, min(objectives, key=lambda j: objectives[j], default=0))


def _elsewhere(networks: Sequence[nn.Module], executor: Executor, call: Mapping[str, Any]) -> tuple[FitResult, ...]:
    """The starts as an executor trains them, all of which take over the products that the first of them measures."""
    with tempfile.TemporaryDirectory(prefix="isthmus-starts-", ignore_cleanup_errors=True) as folder:
        parcels = [pickle.dumps((network, call)) for network in networks]  # bytes: no memory is shared for tensors
        with errors_of_executor("fit_several"):
            futures = [executor.submit(_fitted, parcel, folder) for parcel in parcels]
        with errors_of_executor("fit_several", kinds=(BrokenExecutor, CancelledError)):  # others are of the fits
            results: list[FitResult] = [pickle.loads(future.result()) for future in futures]
    for network, result in zip(networks, results, strict=True):
        network.load_state_dict(result.network.state_dict())
    return tuple(replace(r, network=network) for network, r in zip(networks, results, strict=True))


def _fitted(parcel: bytes, folder: str) -> bytes:
    """What a worker is asked to do."""
    network, call = pickle.loads(parcel)
    choices = Path(folder) / "products.pt" if Path(folder).is_dir() else None  # not there on another host
    with one_thread_each(), kept_choices(choices, shared=True):
        return pickle.dumps(
            fit(network, call["x"], call["y"], **{k: v for k, v in call.items() if k not in {"x", "y"}})
        )


def _marks(race: Race, number: int, cores: threading.Semaphore) -> Callable[[FitEvent], bool]:
    """A callback that lets the race decide at every mark; the core is free for others meanwhile."""
    least, mark = math.inf, 1

    def at(event: FitEvent) -> bool:
        nonlocal least, mark
        least = min(least, event.objective) if math.isfinite(event.objective) else least
        while event.evaluations >= mark * race.rule.every:
            cores.release()
            goes_on = race.passes(number, mark=mark, value=least, left=event.total - event.evaluations)
            cores.acquire()
            mark += 1
            if not goes_on:
                return True
        return False

    return at
