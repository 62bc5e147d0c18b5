"""Who can make the processes of a sweep run a function: its driver, and nobody else. Real processes and sockets."""

import asyncio
import json
import os
import signal
import stat
import sys
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from distributed import Client, LocalCluster
from distributed.core import rpc
from distributed.protocol.pickle import dumps
from distributed.security import Security

from isthmus.errors import PlanError, SweepError
from isthmus.sweeps import sweep
from isthmus.sweeps.engine_choice import Certificates, EngineChoice
from isthmus.sweeps.schedulers import local_cluster
from isthmus.sweeps.security import fresh_security, joining, written
from sweep_plans import contents, tiny, write_plan
from sweep_processes import ENVIRONMENT, finish, start, start_sweep, until

# distributed warns about its own sockets when a handshake is refused or the other end is killed
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
ROLES = ("scheduler", "worker", "nanny")


def addresses(client: Any) -> dict[str, str]:
    """Where each kind of process listens."""
    ((worker, told),) = client.scheduler_info()["workers"].items()
    return {"scheduler": client.scheduler.address, "worker": worker, "nanny": told["nanny"]}


def ran(places: dict[str, str], security: Security, patience: float = 10.0) -> list[bool]:
    """Which of the processes run our function when somebody with these certificates asks and waits for it."""

    async def ask(role: str) -> bool:
        async with rpc(places[role], connection_args=security.get_connection_args("client"), timeout=patience) as there:
            asked = there.run_function if role == "scheduler" else there.run
            answer: Any = await asked(function=dumps(os.getpid))
        return isinstance(answer["result"], int)

    async def ask_all() -> list[Any]:
        asked = (asyncio.wait_for(ask(role), patience) for role in ROLES)
        return await asyncio.gather(*asked, return_exceptions=True)

    answers = asyncio.run(ask_all())
    assert all(answer is True or isinstance(answer, OSError | TimeoutError | RuntimeError) for answer in answers)
    return [answer is True for answer in answers]


def test_only_the_driver_can_make_its_processes_run_something() -> None:
    with closing(local_cluster(1)) as cluster:
        client: Any = vars(cluster)["_client"]
        places = addresses(client)
        assert all(address.startswith("tls://127.0.0.1:") for address in places.values())
        own = client.security
        assert ran(places, own) == [True] * 3
        plain = {role: address.replace("tls://", "tcp://") for role, address in places.items()}
        with ThreadPoolExecutor(2) as strangers:  # who wait in vain as long as they are told to
            asked = strangers.map(ran, (plain, places), (Security(), Security.temporary()), (1.5, 1.5))
            assert list(asked) == [[False] * 3] * 2
        (listening,) = client.run(_listening).values()
        assert {host for host, _ in listening | _listening()} == {"127.0.0.1"}
        assert cluster.dashboard.startswith(("http://127.0.0.1:", "none"))


def _deaf_to() -> set[signal.Signals]:
    return {number for number in signal.pthread_sigmask(signal.SIG_BLOCK, set()) if isinstance(number, signal.Signals)}


@pytest.mark.slow
def test_workers_hear_nothing_that_a_terminal_sends_to_all() -> None:
    seen: dict[int, set[signal.Signals]] = {}
    with closing(local_cluster(1)) as cluster:
        client: Any = vars(cluster)["_client"]

        def second() -> bool:
            with suppress(OSError):  # of the one that was killed
                seen.update(client.run(lambda: (os.getpid(), _deaf_to())).values())
            return len(seen) == 2

        assert not second()
        os.kill(next(iter(seen)), signal.SIGKILL)
        until(second)  # which the nanny starts
    assert list(seen.values()) == [{signal.SIGINT, signal.SIGHUP}] * 2
    assert not _deaf_to()  # the driver hears all of it


def test_the_control_a_cluster_without_certificates_runs_what_a_stranger_asks_for() -> None:
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0") as owned,
        Client(owned) as client,
    ):
        places = addresses(client)
        assert ran(places, Security()) == [True] * 3


def _listening() -> set[tuple[str, int]]:
    found = psutil.Process().net_connections("tcp")
    return {(c.laddr.ip, c.laddr.port) for c in found if c.status == psutil.CONN_LISTEN}


def test_keys_in_files_are_for_nobody_else(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        security = written(fresh_security(), tmp_path)
    finally:
        os.umask(before)
    files = sorted(tmp_path.iterdir())
    assert [path.name for path in files] == ["ca_file.pem", "cert.pem", "key.pem"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert security.get_connection_args("worker")["ssl_context"] is not None
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "ca_file.pem").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        written(fresh_security(), tmp_path / "other")
    assert not (tmp_path / "elsewhere").exists()


def test_two_sweeps_have_two_keys() -> None:
    assert fresh_security().tls_client_key != fresh_security().tls_client_key


def test_what_is_said_of_certificates_that_do_not_do(tmp_path: Path) -> None:
    with pytest.raises(SweepError, match=r"^--scheduler tls://h:1: needs certificates\. Give --tls-ca-file"):
        joining("tls://h:1", None)
    (tmp_path / "no.pem").write_text("no certificate")
    for path in (tmp_path / "no.pem", tmp_path / "missing.pem"):
        with pytest.raises(SweepError, match=r"^--scheduler tls://h:1: its certificates cannot be used"):
            joining("tls://h:1", Certificates(path, path, path))
    with pytest.raises(PlanError, match="--tls-cert: belongs to --scheduler"):
        EngineChoice(workers=2, certificates=Certificates(tmp_path, tmp_path, tmp_path))
    with pytest.raises(PlanError, match="--dashboard: belongs to a scheduler of the sweep's own"):
        EngineChoice(scheduler="tls://h:1", dashboard=":8787")


@contextmanager
def killer(*, most: int) -> Generator[list[int]]:
    """Kills workers of this process as they start, so many of them."""
    killed, ended = list[int](), threading.Event()

    def hunt() -> None:
        while not ended.wait(0.002) and len(killed) < most:
            for child in psutil.Process().children():
                with suppress(psutil.Error):
                    if child.pid not in killed and "spawn_main" in " ".join(child.cmdline()):
                        child.send_signal(signal.SIGKILL)
                        killed.append(child.pid)

    thread = threading.Thread(target=hunt)
    thread.start()
    try:
        yield killed
    finally:
        ended.set()
        thread.join()


def test_workers_that_die_while_they_start_are_one_line(tmp_path: Path) -> None:
    with killer(most=99) as killed, pytest.raises(SweepError, match=r"^isthmus sweep: its workers could not") as caught:
        sweep(tiny(seed=[0]), out=tmp_path, workers=1)
    assert len(killed) >= 3
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith("The same command goes on.")
    assert set(sweep(tiny(seed=[0]), out=tmp_path, workers=0)["status"].values) == {"done"}


@pytest.mark.slow
def test_one_worker_that_dies_while_it_starts_is_not_noticed(tmp_path: Path) -> None:
    with killer(most=1) as killed:
        found = sweep(tiny(seed=[0]), out=tmp_path, workers=1)
    assert len(killed) == 1
    assert set(found["status"].values) == {"done"}


@contextmanager
def others(folder: Path, *options: str) -> Generator[str]:
    """A scheduler and a worker of others; its address."""
    folder.mkdir(exist_ok=True)
    file = folder / "scheduler.json"
    python = (sys.executable, "-m")
    processes = [
        start([*python, "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
               "--scheduler-file", str(file), *options])
    ]  # fmt: skip
    try:
        until(lambda: file.exists() and file.read_text().endswith("}"))  # it is seen before it is written
        processes.append(
            start([*python, "distributed.cli.dask_worker", "--scheduler-file", str(file), "--nthreads", "1",
                   "--no-dashboard", "--local-directory", str(folder), *options])
        )  # fmt: skip
        yield str(json.loads(file.read_text())["address"])
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.mark.slow
def test_a_scheduler_of_others_is_joined_by_certificates_and_by_nothing_else(tmp_path: Path) -> None:
    written(fresh_security(), tmp_path)
    words = [w for name in ("ca_file", "cert", "key") for w in
             (f"--tls-{name.replace('_', '-')}", str(tmp_path / f"{name}.pem"))]  # fmt: skip
    plan = write_plan(tmp_path)
    with others(tmp_path, "--protocol", "tls", *words) as address:
        assert address.startswith("tls://")
        said = finish(start_sweep(plan, tmp_path / "out", "--scheduler", address, *words))
        assert f"at {address}" in said
        assert "asks nobody" not in said
        assert len(contents(tmp_path / "out")) == 2
        said = finish(start_sweep(plan, tmp_path / "no", "--scheduler", address), code=2)
        assert "needs certificates. Give --tls-ca-file" in said
        assert said.count("\n") == 1
        said = finish(start_sweep(plan, tmp_path / "no", "--scheduler", address.replace("tls", "tcp")), code=2)
        assert "cannot be reached" in said
    with others(tmp_path / "plain") as address:
        said = finish(start_sweep(plan, tmp_path / "plain_out", "--scheduler", address))
        assert "note: tcp://127.0.0.1" in said
        assert "asks nobody who they are" in said


FAKE_SBATCH = """#!/bin/sh
# Slurm as far as it matters here: a copy of the script is run by another process, which shares the file system
cp "$1" {place}/script
setsid sh {place}/script > {place}/job.log 2>&1 &
echo "$!" >> {place}/jobs
echo "Submitted batch job $!"
"""


@pytest.mark.slow
def test_workers_that_slurm_starts_have_the_certificates(tmp_path: Path) -> None:
    tools, out = tmp_path / "tools", tmp_path / "out"
    tools.mkdir()
    for name, text in (("sbatch", FAKE_SBATCH.format(place=tmp_path)), ("scancel", "#!/bin/sh\nkill -- -$1\n")):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    (tmp_path / "slurm.toml").write_text('memory = "1GB"\ninterface = "lo"\n')
    environment = ENVIRONMENT | {"PATH": f"{tools}:{os.environ['PATH']}", "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "isthmus", "sweep", str(write_plan(tmp_path, "seed = [0, 1, 2, 3]")), "--out",
               str(out), "--slurm", str(tmp_path / "slurm.toml")]  # fmt: skip
    said = finish(start(command, environment), seconds=120)
    assert "note: workers: 1 at tls://" in said
    assert "dashboard: http://127.0.0.1:" in said or "dashboard: none" in said
    assert len(contents(out)) == 4
    assert list(out.glob("work/isthmus-certificates-*")) == []
    for job in (tmp_path / "jobs").read_text().split():
        until(lambda: not psutil.pid_exists(int(job)))  # noqa: B023
