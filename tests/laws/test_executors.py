"""A discovery gives the same bits whatever computes its units, however many at once, and whoever is killed."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

from command_lines import carried_out
from figure_parts import raising, trainings
from isthmus import Discovery, FullyConnected, Limits, discover
from isthmus.errors import ProcessLost, SweepError
from isthmus.figures import Workshop
from isthmus.processes import pool
from isthmus.processes.pool import Processes, nursery
from isthmus.sweeps.engine_choice import EngineChoice
from isthmus.tasks import teacher
from isthmus.training import fit_several
from isthmus.training.culling import Culling
from isthmus.training.several import Starts
from isthmus.training.solvers.solver import LBFGS, Adam
from signal_stress import SRC

TASK = teacher(2, d_in=5, d_out=3, num_samples=640, seed=3)  # rows enough for products whose library is measured

pytestmark = pytest.mark.usefixtures("unshifted")  # processes start their networks where they always do


def found(**where: Any) -> Discovery:
    limits = Limits(evaluations=30)
    return discover(TASK.x, TASK.y, ridge=[1e-2, 3e-3], starts=2, limits=limits, effort="quick", **where)


def bits(discovery: Discovery) -> list[bytes]:
    """Its weights and curves."""
    networks = (discovery.network, discovery.encoder, discovery.decoder)
    tensors = [p.detach().numpy().tobytes() for network in networks for p in network.parameters()]
    tables: list[xr.Dataset] = [discovery.scree, discovery.objective_curve]
    return tensors + [np.ascontiguousarray(v).tobytes() for table in tables for v in table.data_vars.values()]


def until_ready() -> None:
    until = time.monotonic() + 60
    while not nursery().is_ready():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.fixture(scope="module")
def usual() -> list[bytes]:
    return bits(found(executor="threads", workers=1))


def test_one_thread_and_two_give_the_same_bits(usual: list[bytes]) -> None:
    assert bits(found(executor="threads", workers=2)) == usual
    assert bits(found(executor="threads", workers=1, seed=1)) != usual, "the comparison is dead"


@pytest.mark.slow
def test_threads_and_processes_give_the_same_bits(usual: list[bytes]) -> None:
    until_ready()
    assert bits(found(executor="processes", workers=2)) == usual


def several(**where: Any) -> tuple[Starts, list[bytes]]:
    assert TASK.y is not None
    networks = [FullyConnected(5, 3, width=48, depth=4, seed=s, dtype=torch.float32) for s in range(3)]
    starts = fit_several(networks, TASK.x, TASK.y, ridge=1e-2, solver=(Adam(30), LBFGS(20)), **where)
    assert [result.network for result in starts.results] == networks
    return starts, [p.detach().numpy().tobytes() for network in networks for p in network.parameters()]


@pytest.fixture(scope="module")
def two_processes() -> Iterator[Executor]:
    with Processes(2) as executor:
        yield executor


def test_several_starts_are_the_same_in_threads_and_in_an_executor(two_processes: Executor) -> None:
    assert TASK.y is not None
    usual, weights = several(workers=1)
    starts, theirs = several(executor=two_processes)
    with pytest.raises(ValueError, match="run in threads"):
        several(executor=two_processes, culling=Culling(every=20, first=60))
    with pytest.raises(ValueError, match="needs a finite number"):
        fit_several([FullyConnected(5, 3, width=4, depth=2)], TASK.x, TASK.y, ridge=-1.0, executor=two_processes)
    assert theirs == weights
    assert starts.best == usual.best
    assert [r.objective for r in starts.results] == [r.objective for r in usual.results]
    assert len(set(weights)) == len(weights), "the comparison is dead"


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_several_starts_take_the_words_that_a_discovery_takes(executor: str) -> None:
    assert several(executor=executor, workers=2)[1] == several(workers=1)[1]


def test_an_executor_that_cannot_train_several_starts_is_said() -> None:
    with pytest.raises(ValueError, match=r"fit_several\(executor='fibres'\): needs one of 'threads', 'processes'"):
        several(executor="fibres")
    with ThreadPoolExecutor(1) as threads:
        threads.shutdown()
        with pytest.raises(ProcessLost, match=r"fit_several: the executor was ended.*Give one that can"):
            several(executor=threads)
    with ThreadPoolExecutor(1) as busy:
        ended = threading.Event()
        busy.submit(ended.wait)
        threading.Timer(0.3, busy.shutdown, kwargs={"wait": False, "cancel_futures": True}).start()
        with pytest.raises(ProcessLost, match="CancelledError"):
            several(executor=busy)
        ended.set()


def test_processes_that_were_asked_for_and_cannot_begin_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_NURSERIES", [])
    monkeypatch.setattr(pool.sys, "executable", shutil.which("true"))
    pool.nursery()._process.wait(timeout=20)  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(ProcessLost, match="ended while it began"):
        found(executor="processes", workers=2)


@pytest.mark.slow
def test_parts_of_figures_are_the_same_in_an_executor(two_processes: Executor, tmp_path: Path) -> None:
    usual = Workshop(tmp_path / "here", EngineChoice(workers=0)).parts(trainings(2))
    heard: list[int] = []
    shop = Workshop(
        tmp_path / "there", EngineChoice(), executor=two_processes, listener=lambda event: heard.append(event.done)
    )
    found = shop.parts(trainings(2))
    with pytest.raises(SweepError, match="ArithmeticError: no square root(.|\n)*same command tries"):
        shop.parts([raising()])
    assert heard[:3] == [0, 1, 2]
    for one, other in zip(usual, found, strict=True):
        xr.testing.assert_identical(one.drop_attrs(), other.drop_attrs())


def children_of(process: int) -> list[int]:
    kin: list[int] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            name, state, parent = stat.parent.name, *stat.read_text().rpartition(")")[2].split()[:2]
            if int(parent) == process and state != "Z":
                kin.append(int(name))
    return kin


@contextmanager
def killing(folder: Path, workers: Callable[[], list[int]], *, most: int) -> Generator[list[int]]:
    """Kill a worker as often as it is at work, up to `most` times."""
    killed, over = list[int](), threading.Event()

    def kill() -> None:
        while not over.wait(0.05) and len(killed) < most:
            if list(folder.glob("work/*-*")) and (there := workers()):
                with suppress(ProcessLookupError):
                    os.kill(there[0], signal.SIGKILL)
                    killed.append(there[0])
                time.sleep(0.5)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


@pytest.mark.slow
def test_killed_workers_change_nothing(usual: list[bytes], tmp_path: Path) -> None:
    until_ready()
    family = nursery()._process.pid  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    with killing(tmp_path / "run", lambda: children_of(family), most=3) as killed:
        assert bits(found(executor="processes", workers=2, out=tmp_path / "run")) == usual
    assert killed


@pytest.mark.slow
def test_an_executor_of_the_callers_breaks_and_the_same_call_goes_on(usual: list[bytes], tmp_path: Path) -> None:
    def pool() -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, mp_context=get_context("spawn"))  # a worker takes seconds to begin

    with pool() as executor:
        assert executor.submit(os.getpid).result()
        workers = list(executor._processes)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        with killing(tmp_path / "run", lambda: workers, most=1), pytest.raises(ProcessLost, match="The same call"):
            found(executor=executor, out=tmp_path / "run")
    with pool() as executor:
        assert bits(found(executor=executor, out=tmp_path / "run")) == usual


@pytest.mark.slow
def test_workers_of_dask_give_the_same_bits_also_when_one_is_killed(usual: list[bytes], tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="dask.distributed is an extra")
    from isthmus.sweeps.schedulers import local_cluster

    cluster = local_cluster(2)
    try:
        executor: Executor = cluster.executor()
        workers = list(executor.map(lambda _: os.getpid(), range(2)))
        with killing(tmp_path / "run", lambda: workers[:1], most=1) as killed:
            assert bits(found(executor=executor, workers=2, out=tmp_path / "run")) == usual
        assert killed
    finally:
        cluster.close()


def words(folder: Path, data: Path, *options: str) -> list[str]:
    asked = ["--effort", "quick", "--target", "u,v", "--ridge", "1e-2,3e-3", "--starts", "3", "--evaluations", "200"]
    return ["discover", str(data), *asked, "--no-pictures", "--out", str(folder), *options]


def command(folder: Path, data: Path, *options: str) -> subprocess.Popen[str]:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(SRC)}
    return subprocess.Popen(
        [sys.executable, "-m", "isthmus", *words(folder, data, *options)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True,
    )  # fmt: skip


def numbers(folder: Path) -> dict[str, bytes]:
    """The weights of a run."""
    return {path.name: path.read_bytes() for path in folder.glob("*.safetensors")}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A table, and the folder of a run of it that nothing stopped."""
    data, folder = tmp_path_factory.mktemp("data") / "data.csv", tmp_path_factory.mktemp("whole") / "run"
    assert TASK.y is not None
    np.savetxt(data, np.hstack([TASK.x, TASK.y[:, :2]]), delimiter=",", header="a,b,c,d,e,u,v", comments="")
    carried_out(words(folder, data, "--executor", "threads"))
    return data, folder


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_a_run_in_processes_soon_and_it_goes_on_bit_for_bit(
    whole: tuple[Path, Path], tmp_path: Path, number: signal.Signals
) -> None:
    data, folder = whole[0], tmp_path / "run"
    process = command(folder, data, "--executor", "processes", "--workers", "2")
    until = time.monotonic() + 120
    while not list(folder.glob("work/*-*")) and time.monotonic() < until and process.poll() is None:
        time.sleep(0.02)
    os.killpg(process.pid, number)
    began = time.monotonic()
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, ""), err
    assert "go on with" in err
    assert "Traceback" not in err
    assert time.monotonic() - began < 15
    carried_out([*words(folder, data)[:-2], "--resume", str(folder), "--executor", "threads"])
    assert numbers(folder)
    assert numbers(folder) == numbers(whole[1])
