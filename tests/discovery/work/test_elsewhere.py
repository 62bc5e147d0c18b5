"""Units handed to executors: the same bits, their files, stops, errors, warnings, and what a killed worker costs."""

import multiprocessing
import os
import pickle
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
import torch

from isthmus import Limits, discover
from isthmus.discovery.minimum import Minimum
from isthmus.discovery.work import search_memory
from isthmus.discovery.work.elsewhere import (
    STOP,
    UNDER_WAY,
    Elsewhere,
    Parcel,
    carried_out,
    opened,
    units_at_once,
)
from isthmus.discovery.work.runner import Tracker, UnitRunner
from isthmus.discovery.work.search_memory import faster
from isthmus.discovery.work.unit import Progress, Session, Stopped, Unit, silent
from isthmus.errors import DataError, DataWarning, ProcessLost
from isthmus.networks.devices import CPU
from isthmus.processes import pool as pool_of_processes
from isthmus.processes.pool import Processes, Where, executor_argument
from isthmus.tasks import teacher
from isthmus.training import Outcome
from isthmus.training.checkpoint import load_state
from isthmus.training.losses import SQUARED
from isthmus.training.losses.squared import Squared
from minima import minimum, noise_problem
from sent_units import asks_precision, complains, fails, kills, kills_once, trainings

pytestmark = pytest.mark.usefixtures("unshifted")  # processes start their networks where they always do


@pytest.fixture(scope="module")
def pool() -> Generator[Processes]:
    with Processes(2) as processes:
        processes.submit(os.getpid).result()
        yield processes


def runner(executor: Executor, folder: Path, *, kept: bool = True, tracker: Tracker | None = None) -> UnitRunner:
    place = Elsewhere(executor, folder)
    return UnitRunner(folder if kept else None, tracker or Tracker(silent, 100), workers=2, elsewhere=place)


def same(found: list[Minimum], others: list[Minimum]) -> bool:
    pairs = zip(found, others, strict=True)
    return all(torch.equal(one.theta, other.theta) and one.objective == other.objective for one, other in pairs)


@pytest.mark.slow
def test_every_executor_gives_the_bits_of_threads_and_one_that_breaks_is_said(pool: Processes, tmp_path: Path) -> None:
    units = trainings(3)
    here = UnitRunner(None, Tracker(silent, 100), workers=1).run(units)
    assert not same(here, here[::-1]), "all units end alike: the comparison is dead"
    there = runner(pool, tmp_path).run(units)
    assert same(there, here)
    assert os.getpid() not in {m.seconds for m in there}, "they were computed in other processes"
    assert {path.name for path in tmp_path.glob("fit-*")} == {"fit-0.pt", "fit-1.pt", "fit-2.pt"}
    assert same(runner(pool, tmp_path, kept=False).run(units), here)
    apart = [carried_out(Parcel(u.key, pickle.dumps(u.compute), str(tmp_path / "apart"), None)) for u in units]
    assert same([pickle.loads(reply.minimum) for reply in apart], here), "where a worker sees no folder"
    with ThreadPoolExecutor(2) as threads, ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        for number, executor in enumerate((threads, processes)):
            (tmp_path / str(number)).mkdir()
            assert same(runner(executor, tmp_path / str(number)).run(units), here)
        with pytest.raises(ProcessLost, match=r"BrokenProcessPool.*The same call, with one that can, goes on"):
            runner(processes, tmp_path / "1").run([Unit("kills", kills, 1, "training")])


@pytest.mark.slow
def test_what_is_under_way_is_heard(pool: Processes, tmp_path: Path) -> None:
    heard: list[Progress] = []
    runner(pool, tmp_path, tracker=Tracker(heard.append, 120)).run(trainings(2, pause=0.02))
    assert any(0 < progress.step < 60 for progress in heard)
    assert not list(tmp_path.glob("*.heard"))


@pytest.mark.parametrize("kind", [ValueError, CancelledError])
def test_what_a_listener_raises_arrives_as_itself(kind: type[Exception], tmp_path: Path) -> None:
    def listen(progress: Progress) -> None:
        if progress.step > 0:
            raise kind("the window is closed")

    where: dict[str, Any] = {"tracker": Tracker(listen, 60)}
    with pytest.raises(kind, match="the window is closed"):
        UnitRunner(None, workers=1, **where).run(trainings(1, pause=0.02))
    with ThreadPoolExecutor(1) as threads, pytest.raises(kind, match="the window is closed"):
        runner(threads, tmp_path, **where).run(trainings(1, pause=0.02))
    assert (tmp_path / STOP).exists()  # the worker heard of it


@pytest.mark.slow
def test_a_stop_is_heard_in_the_workers_and_the_rest_goes_on_bit_for_bit(pool: Processes, tmp_path: Path) -> None:
    [whole] = UnitRunner(None, Tracker(silent, 100), workers=1).run(trainings(1))

    def interrupt(progress: Progress) -> None:
        if progress.step > 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runner(pool, tmp_path, tracker=Tracker(interrupt, 60)).run(trainings(1, pause=0.1))
    state = load_state(tmp_path / "fit-0.partial.pt") or {}
    assert "run" in state, "it waited for the end of the training"
    assert (tmp_path / STOP).exists()
    assert same(runner(pool, tmp_path).run(trainings(1)), [whole])
    assert not (tmp_path / STOP).exists()


@pytest.mark.slow
def test_a_unit_that_has_not_begun_is_called_back(pool: Processes, tmp_path: Path) -> None:
    place, stop = Elsewhere(pool, tmp_path), threading.Event()
    busy = [pool.submit(time.sleep, 1.0) for _ in range(2)]
    stop.set()
    with pytest.raises(Stopped):
        place(trainings(1)[0], Session(), stop.is_set)
    assert not any(future.done() for future in busy)


@pytest.mark.slow
def test_errors_and_warnings_of_units_come_back(pool: Processes, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="in a unit") as caught:
        runner(pool, tmp_path).run([Unit("fails", fails, 1, "training")])
    assert "sent_units.py" in str(caught.value.__cause__)
    with pytest.warns(DataWarning, match="unit 7 is thin"):
        runner(pool, tmp_path).run([Unit("thin", partial(complains, number=7), 1, "training")])


@pytest.mark.slow
def test_a_killed_worker_costs_its_own_unit_alone(pool: Processes, tmp_path: Path) -> None:
    units = [Unit("kills", partial(kills_once, mark=tmp_path / "mark"), 60, "training"), *trainings(1)]
    here = UnitRunner(None, Tracker(silent, 100), workers=1).run([*trainings(2)[1:], *trainings(1)])
    assert same(runner(pool, tmp_path).run(units), here)
    assert (tmp_path / "mark").exists()
    with pytest.raises(ProcessLost, match=r"lost a worker.*were killed.*goes on from what the folder"):
        runner(pool, tmp_path).run([Unit("again", kills, 1, "training")])


@pytest.fixture
def busy() -> Generator[ThreadPoolExecutor]:
    """An executor whose only worker is at something else until the test ends."""
    ended = threading.Event()
    with ThreadPoolExecutor(1) as threads:
        threads.submit(ended.wait)
        yield threads
        ended.set()


def patient() -> Callable[[], bool]:
    """Stops what hangs after half a minute."""
    until = time.monotonic() + 30
    return lambda: time.monotonic() > until


def test_an_executor_that_is_ended_under_a_unit_is_said(busy: ThreadPoolExecutor, tmp_path: Path) -> None:
    """Its futures are cancelled, of which `concurrent.futures.wait` never hears."""
    ending = threading.Timer(0.3, busy.shutdown, kwargs={"wait": False, "cancel_futures": True})
    ending.start()
    with pytest.raises(ProcessLost, match=r"was ended.*CancelledError.*with one that can, goes on"):
        Elsewhere(busy, tmp_path)(trainings(1)[0], Session(), patient())
    with pytest.raises(ProcessLost, match=r"cannot schedule new futures"):
        Elsewhere(busy, tmp_path)(trainings(1)[0], Session(), patient())


def test_a_busy_executor_does_not_stretch_the_time(busy: ThreadPoolExecutor, tmp_path: Path) -> None:
    place = Elsewhere(busy, tmp_path)
    first, second = trainings(2)
    assert place(first, Session(seconds=0.2), patient()).seconds == os.getpid()
    busy.shutdown(wait=False, cancel_futures=True)
    assert place(second, Session(seconds=60.0), patient()).seconds == os.getpid(), "it is asked no more"
    assert not list(tmp_path.glob("*.heard"))


@pytest.mark.slow
def test_what_cannot_be_sent_is_said(pool: Processes, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"cannot be sent to another process.*executor='threads'"):
        runner(pool, tmp_path).run([Unit("closure", lambda _session: minimum(), 1, "training")])


def test_workers_find_the_folder_of_a_program_that_went_elsewhere(
    pool: Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path)
    units = trainings(1)
    assert runner(pool, Path("run")).run(units)[0].seconds != os.getpid()
    heard: list[Progress] = []
    place = UnitRunner(Path("run"), Tracker(heard.append, 100), workers=1, elsewhere=Elsewhere(pool, Path("run")))
    assert place.elsewhere is not None
    assert place.elsewhere.folder == tmp_path / "run"


def test_a_stop_of_another_run_ends_no_training(tmp_path: Path) -> None:
    """A result that was cut short by a file that was not ours would be taken for a minimum."""

    class Interrupted(Elsewhere):
        def __call__(self, *_: object) -> Minimum:
            return replace(minimum(), outcome=Outcome.INTERRUPTED)

    with ThreadPoolExecutor(1) as executor:
        place = Interrupted(executor, tmp_path)
        found = UnitRunner(tmp_path, Tracker(silent, 100), workers=1, elsewhere=place).run(trainings(1))[0]
    assert found.outcome is not Outcome.INTERRUPTED
    assert found.seconds == os.getpid(), "computed here"


def test_workers_multiply_as_the_program_does(pool: Processes, tmp_path: Path) -> None:
    torch.set_float32_matmul_precision("medium")
    try:
        found = Elsewhere(pool, tmp_path)(Unit("asks", asks_precision, 1, "training"), Session(), lambda: False)
    finally:
        torch.set_float32_matmul_precision("highest")
    assert found.kind == "medium"


@pytest.mark.slow
def test_until_workers_are_there_units_are_computed_here(pool: Processes, tmp_path: Path) -> None:
    place = Elsewhere(pool, tmp_path, lambda: False)
    assert place(trainings(1)[0], Session(), lambda: False).seconds == os.getpid()


class OwnLoss(Squared):
    """As a program of a user's may make one."""


FASTER: dict[str, tuple[dict[str, Any], Where]] = {
    "as usual": ({}, Where.PROCESSES),
    "one worker": ({"workers": 1}, Where.THREADS),
    "few rows": ({"rows": 150}, Where.THREADS),
    "a short search": ({"gradients": 1000}, Where.THREADS),
    "on a GPU": ({"device": torch.device("cuda")}, Where.THREADS),
    "rows without end": ({"rows": 300_000}, Where.THREADS),
    "a loss of one's own": ({"loss": OwnLoss()}, Where.THREADS),
    "residual networks": ({"network": "leaky"}, Where.PROCESSES),
    "a system that cannot fork": ({"CAN_FORK": False}, Where.THREADS),
    "a system that ends what forks": ({"platform": "darwin"}, Where.THREADS),
    "a child of multiprocessing": ({"child": True}, Where.THREADS),
    "a system without room for one": ({"is_begun": False}, Where.THREADS),
}


@pytest.mark.parametrize(("given", "where"), FASTER.values(), ids=FASTER)
def test_processes_are_chosen_where_they_pay_and_know_what_is_needed(
    given: dict[str, Any], where: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_memory, "WORTH_PROCESSES", 2e6)
    monkeypatch.setattr(search_memory, "CAN_FORK", given.get("CAN_FORK", True))
    monkeypatch.setattr(search_memory, "is_begun", lambda: given.get("is_begun", True))
    monkeypatch.setattr(search_memory.sys, "platform", given.get("platform", "linux"))
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: object() if given.get("child") else None)
    x = torch.zeros(given.get("rows", 400), 6)
    problem = replace(noise_problem(6, 2), x=x, y=x[:, :2], loss=given.get("loss", SQUARED))
    told: dict[str, Any] = {"gradients": 9975, "workers": 2, "device": CPU, **given}
    asked = {name: told[name] for name in ("gradients", "workers", "device")}
    assert faster(problem, given.get("network", "fully_connected"), **asked) is where


@pytest.mark.slow
def test_a_discovery_goes_into_processes_by_itself_with_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a process that was begun early is let go where threads do."""
    task = teacher(2, d_in=6, d_out=3, num_samples=80, seed=1)
    asked: dict[str, Any] = {"effort": "quick", "workers": 2}
    here = discover(task.x, task.y, **asked)
    monkeypatch.setattr(pool_of_processes, "_NURSERIES", [])
    first = pool_of_processes.nursery()
    assert not first.is_used
    discover(task.x, task.y, ridge=1e-2, starts=1, limits=Limits(evaluations=20), **asked)
    assert not first.is_alive()
    monkeypatch.setattr(search_memory, "WORTH_PROCESSES", 1e5)
    until = time.monotonic() + 60
    while not pool_of_processes.nursery().is_ready() and time.monotonic() < until:
        time.sleep(0.1)
    there = discover(task.x, task.y, **asked)
    assert pool_of_processes.nursery().is_used
    assert np.array_equal(here.predict(task.x), there.predict(task.x))
    assert here.to_dict()["scree"] == there.to_dict()["scree"]


def test_what_our_own_choice_of_processes_cannot_compute_is_computed_here(tmp_path: Path) -> None:
    """Where the system has no room for them; whoever asked for processes hears of it."""

    class Broken(ThreadPoolExecutor):
        def submit(self, *_: object, **__: object) -> NoReturn:  # pyright: ignore[reportIncompatibleMethodOverride]
            raise BrokenExecutor("no room")

    with Broken(1) as executor:
        here = Elsewhere(executor, tmp_path, asked=False)(trainings(1)[0], Session(), lambda: False)
        assert here.seconds == os.getpid()
        with pytest.raises(ProcessLost, match="no room"):
            Elsewhere(executor, tmp_path)(trainings(1)[0], Session(), lambda: False)


def test_which_executor_is_meant(tmp_path: Path) -> None:
    assert executor_argument("threads", "discover") is Where.THREADS
    assert executor_argument(None, "discover") is None
    for wrong in ("fibres", 3, ["threads"]):
        with pytest.raises(ValueError, match=r"fit\(executor=.*\): needs one of 'threads', 'processes', or"):
            executor_argument(wrong, "fit")
    with ThreadPoolExecutor(3) as threads:
        assert executor_argument(threads, "discover") is threads
        assert units_at_once(threads, None) == 3
        assert units_at_once(threads, 2) == 2
        threads.__dict__["_max_workers"] = "four"  # as an executor of somebody else's may have it
        assert units_at_once(threads, None) == UNDER_WAY
        threads.__dict__["_max_workers"] = 3
    with opened(Where.THREADS, workers=2, folder=tmp_path) as place:
        assert place is None
    with opened(Where.PROCESSES, workers=2, folder=None) as place:
        assert place is not None
        assert place.folder.is_dir()
    assert not place.folder.exists()
