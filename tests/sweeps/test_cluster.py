"""Sweeps on dask workers: real processes, real schedulers, killed, stopped, of other versions, on other hosts."""

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster

from isthmus.errors import SweepError
from isthmus.sweeps import Plan, SweepProgress, sweep
from isthmus.sweeps.cluster import Cluster
from isthmus.sweeps.on_worker import said, say, topic
from isthmus.sweeps.schedulers import local_cluster
from isthmus.sweeps.slurm import job_script
from isthmus.sweeps.telling import Telling
from network_hosts import network
from sweep_plans import NETWORK, TRAINING, computed_after_their_end, contents, tiny, write_plan
from sweep_processes import ENVIRONMENT, Process, finish, lines, start, start_sweep, until

# distributed warns about its own sockets when a test kills the other end of them
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore::isthmus.errors.ExposureWarning",  # schedulers without TLS; those with: test_certificates
)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def scheduler(port: int, *, host: str = "127.0.0.1", prefix: tuple[str, ...] = ()) -> Generator[Process]:
    """A scheduler of its own process."""
    process = start([
        *prefix, sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", host, "--port", str(port),
        "--no-dashboard",
    ], ENVIRONMENT | {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "30s"})  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def worker(
    port: int, folder: Path, *options: str, host: str = "127.0.0.1", prefix: tuple[str, ...] = ()
) -> Generator[Process]:
    """A worker of its own process, with its own folder."""
    folder.mkdir(exist_ok=True)
    process = start([
        *prefix, sys.executable, "-m", "distributed.cli.dask_worker", f"tcp://{host}:{port}", "--nthreads", "1",
        "--no-dashboard", "--local-directory", str(folder), *options,
    ])  # fmt: skip
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The undisturbed sweep, in this process."""
    folder = tmp_path_factory.mktemp("whole")
    sweep(tiny(seed=[0, 1, 2]), out=folder, workers=0)
    return folder


@pytest.mark.slow
def test_a_worker_is_killed_and_the_sweep_ends_as_it_would_have(whole: Path, tmp_path: Path) -> None:
    killed: list[int] = []

    def kill_once(_event: SweepProgress) -> None:
        begun = lines(tmp_path, "begin")
        if not killed and begun:
            killed.append(begun[0])
            os.kill(begun[0], signal.SIGKILL)

    found = sweep(tiny(seed=[0, 1, 2]), out=tmp_path, workers=1, progress=kill_once)
    assert killed
    assert killed[0] != os.getpid()
    assert set(found["status"].values) == {"done"}
    assert contents(tmp_path) == contents(whole)
    assert computed_after_their_end(tmp_path) == []
    assert set(lines(tmp_path, "begin")) != {killed[0]}


def test_the_job_script_of_slurm(tmp_path: Path) -> None:
    path = tmp_path / "slurm.toml"
    path.write_text(
        'jobs = 3\nprocesses = 4\nmemory = "8GB"\nwalltime = "02:00:00"\nqueue = "cpu"\naccount = "deep"\n'
        'interface = "lo"\njob_extra_directives = ["--exclusive"]\n'
    )
    (tmp_path / "work").mkdir()
    script = job_script(path, tmp_path)
    for line in (
        "export PYTHONSAFEPATH=1",
        "#SBATCH -p cpu",
        "#SBATCH -A deep",
        "#SBATCH --cpus-per-task=4",
        "#SBATCH -t 02:00:00",
        "--exclusive",
    ):
        assert line in script
    assert "--nthreads 1 --memory-limit 1.86GiB --nworkers 4" in script


@pytest.mark.parametrize(
    ("text", "said"),
    [("memroy = '8GB'", "Did you mean 'memory'?"), ("jobs = 0\nmemory = '8GB'", "slurm.jobs is 0"),
     ("jobs = 1", "slurm.memory is missing"), ("jobs =", "cannot be read as TOML"),
     ("memory = '8GB'", "sbatch is not on")],
)  # fmt: skip
def test_slurm_options_are_checked(text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slurm.toml").write_text(text)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises((SweepError, ValueError), match=said.replace("?", r"\?")):
        sweep(tiny(seed=[0]), out=tmp_path / "out", slurm=tmp_path / "slurm.toml")


def test_a_task_file_that_is_missing_or_another_on_a_worker_is_one_line(tmp_path: Path) -> None:
    data = tmp_path / "d.csv"
    data.write_text("a,b,c\n" + "\n".join(f"{i},{i * i},{i % 3}" for i in range(20)))
    runs = Plan({"file": str(data), "target": "c"}, NETWORK, TRAINING, grid={"seed": [0]}).runs()
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0") as owned,
        closing(Cluster(partial(Client, owned))) as cluster,
    ):
        cluster.check(runs)
        data.write_text("a,b,c\n1,2,3\n")
        with pytest.raises(SweepError, match=r"^worker \S+: \S+d\.csv: is not the file of the plan"):
            cluster.check(runs)
        data.unlink()
        with pytest.raises(SweepError, match=r"^worker \S+: \S+d\.csv: no such file. Put the task's file at this path"):
            cluster.check(runs)


@pytest.mark.slow
def test_what_a_worker_says_of_a_job_comes_through_a_scheduler() -> None:
    told, came = Telling("run", 40, 200, 0.5, None), threading.Event()
    heard: list[tuple[float, Any]] = []

    def hear(event: tuple[float, Any]) -> None:
        heard.append(event)
        came.set()

    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0") as owned,
        Client(owned) as client,
    ):
        client.subscribe_topic(topic("here"), hear)
        client.submit(say, "here", told).result()
        assert came.wait(60)
    assert said(heard[0]) == told


@pytest.mark.slow
def test_the_dashboard_answers_or_it_is_said_what_is_missing() -> None:
    with closing(local_cluster(0)) as cluster:
        said = cluster.dashboard
        if importlib.util.find_spec("bokeh"):
            direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with direct.open(said, timeout=60) as page:
                assert b"Dask needs bokeh" not in page.read()
        else:
            assert said.startswith("none, bokeh is missing where the scheduler runs")


@pytest.mark.slow
def test_workers_of_another_version_or_with_threads_are_refused(tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / "older.py").write_text("import isthmus\nisthmus.__version__ = '0.0.9'\n")
    cases = {
        "isthmus 0.1.0 (driver), 0.0.9": ("--preload", str(tmp_path / "older.py")),
        "has 3 threads": ("--nthreads", "3"),
    }
    with scheduler(port):
        for said, options in cases.items():
            with worker(port, tmp_path / "w", *options):
                until(lambda: _workers(port) == 1, every=0.2)
                with pytest.raises(SweepError) as caught:
                    sweep(tiny(seed=[0]), out=tmp_path / "out", scheduler=f"tcp://127.0.0.1:{port}")
                assert said in str(caught.value)
                assert "\n" not in str(caught.value)
                assert not (tmp_path / "out" / "work" / "attempts.log").exists()
            until(lambda: _workers(port) == 0, every=0.2)


def _workers(port: int) -> int:
    client: Any
    try:
        with Client(f"tcp://127.0.0.1:{port}", timeout=2, set_as_default=False) as client:
            return len(client.nthreads())
    except OSError:
        return -1


@pytest.mark.slow
def test_a_scheduler_that_dies_and_comes_back(tmp_path: Path) -> None:
    port = free_port()
    plan = write_plan(tmp_path, "seed = [0, 1, 2, 3, 4, 5]", evaluations=1500)
    finish(start_sweep(plan, tmp_path / "whole", "--workers", "0"))
    out = tmp_path / "out"
    with worker(port, tmp_path / "w", "--death-timeout", "120"):
        with scheduler(port) as first:
            process = start_sweep(plan, out, "--scheduler", f"tcp://127.0.0.1:{port}")
            until(lambda: len(lines(out, "end")) >= 2, process=process)
            first.kill()
            first.wait()
        with scheduler(port), worker(port, tmp_path / "w2"):
            finish(process)
    assert contents(out) == contents(tmp_path / "whole")
    assert computed_after_their_end(out) == []


@pytest.mark.slow
def test_three_hosts_one_of_which_is_cut_off(tmp_path: Path) -> None:
    """Each worker sees only a folder of its own, by a mount namespace; one is stopped, as by a cut cable."""
    probe = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip("no mount namespaces here: needs the right to unshare")
    port, out = free_port(), tmp_path / "out"
    plan = write_plan(tmp_path, "seed = [0, 1, 2, 3, 4, 5, 6, 7]", evaluations=1500)
    finish(start_sweep(plan, tmp_path / "whole", "--workers", "0"))
    out.mkdir()
    hide = ("unshare", "--mount", "sh", "-c", f'mount -t tmpfs none {out} && exec "$@"', "sh")
    with (
        scheduler(port),
        worker(port, tmp_path / "a", prefix=hide) as cut,
        worker(port, tmp_path / "b", prefix=hide),
        worker(port, tmp_path / "c", prefix=hide),
    ):
        until(lambda: _workers(port) == 3, every=0.2)
        process = start_sweep(plan, out, "--scheduler", f"tcp://127.0.0.1:{port}")
        until(lambda: len(list(out.glob("runs/*/*/result.json"))) >= 2, process=process)
        os.killpg(cut.pid, signal.SIGSTOP)
        finish(process)
    assert not (out / "work" / "attempts.log").exists(), "no worker saw the driver's folder"
    assert contents(out) == contents(tmp_path / "whole")


@pytest.mark.slow
def test_three_hosts_of_a_network_one_of_which_is_cut_off(tmp_path: Path) -> None:
    """Scheduler and driver on the hub; each host sees only a folder of its own; one cable is pulled out on the way."""
    plan, out = write_plan(tmp_path, "seed = [0, 1, 2, 3, 4, 5, 6, 7]", evaluations=1500), tmp_path / "out"
    finish(start_sweep(plan, tmp_path / "whole", "--workers", "0"))
    out.mkdir()
    hide = ("unshare", "--mount", "sh", "-c", f'mount -t tmpfs none {out} && exec "$@"', "sh")
    port = 8786  # a namespace has all its ports for itself
    with network(3) as hosts, ExitStack() as stack:
        stack.enter_context(scheduler(port, host=hosts.address, prefix=hosts.on(hosts.hub)))
        for name in hosts.hosts:
            prefix = (*hosts.on(name), *hide)
            stack.enter_context(worker(port, tmp_path / name, host=hosts.address, prefix=prefix))
        waiting = f"from distributed import Client; Client('tcp://{hosts.address}:{port}').wait_for_workers(3, 200)"
        finish(start([*hosts.on(hosts.hub), sys.executable, "-c", waiting]))
        command = ["sweep", str(plan), "--out", str(out), "--scheduler", f"tcp://{hosts.address}:{port}"]
        process = start([*hosts.on(hosts.hub), sys.executable, "-m", "isthmus", *command])
        until(lambda: len(list(out.glob("runs/*/*/result.json"))) >= 2, process=process)
        hosts.cut(hosts.hosts[0])
        finish(process)
    assert not (out / "work" / "attempts.log").exists(), "no worker saw the driver's folder"
    assert contents(out) == contents(tmp_path / "whole")


@pytest.mark.slow
def test_an_interrupt_saves_and_the_same_command_goes_on(tmp_path: Path) -> None:
    # some seconds a run: one that is short is over before it is interrupted
    plan = write_plan(tmp_path, "seed = [0, 1, 2]", evaluations=200_000)
    finish(start_sweep(plan, tmp_path / "whole", "--workers", "0"))
    for options in (["--workers", "0"], ["--workers", "2"]):
        out = tmp_path / f"out{options[1]}"
        process = start_sweep(plan, out, *options)
        until(lambda: len(lines(out, "begin")) >= 1, process=process)  # noqa: B023
        threading.Event().wait(1.0)
        os.killpg(process.pid, signal.SIGINT)
        finish(process, code=130)
        assert list((out / "work").glob("*.pt")), "the state of the run at work was saved"
        said = finish(start_sweep(plan, out, *options))
        assert ("note: workers: 2 at tls://127.0.0.1:" in said) == ("; dashboard: " in said) == (options[1] == "2")
        assert "3/3 done" in said, "a log is told how it ended"
        assert "\x1b" not in said, "a log holds no codes for a terminal"
        assert contents(out) == contents(tmp_path / "whole")
        assert computed_after_their_end(out) == []


# presses Ctrl-C in the moment in which the first worker's process is there
INTERRUPTED = """
import multiprocessing, os, signal, threading, time
from isthmus.sweeps.schedulers import local_cluster

def interrupt():
    while not multiprocessing.active_children():
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT)

if __name__ == "__main__":
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        local_cluster(2)
    except KeyboardInterrupt:
        print("interrupted, left:", multiprocessing.active_children())
"""


def test_an_interrupt_while_workers_start_leaves_none_and_no_traceback(tmp_path: Path) -> None:
    """Half-started ones cannot be closed: each said so when the program ended."""
    program = tmp_path / "program.py"
    program.write_text(INTERRUPTED)
    done = subprocess.run(
        [sys.executable, str(program)], env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted, left: []\n", "")


@pytest.mark.slow
def test_a_lost_scheduler_that_stays_lost_ends_the_sweep_with_what_there_is(tmp_path: Path) -> None:
    port = free_port()
    plan = write_plan(tmp_path, "seed = [0, 1, 2, 3, 4, 5]", evaluations=1500)
    with scheduler(port) as lost, worker(port, tmp_path / "w"):
        process = start_sweep(
            plan, tmp_path / "out", "--scheduler", f"tcp://127.0.0.1:{port}", "--patience", "1"
        )  # fmt: skip
        until(lambda: len(lines(tmp_path / "out", "end")) >= 1, process=process)
        lost.kill()
        finish(process, code=3)
    finish(start_sweep(plan, tmp_path / "out", "--workers", "0"))
    assert len(contents(tmp_path / "out")) == 6
    assert computed_after_their_end(tmp_path / "out") == []
