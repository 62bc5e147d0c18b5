"""The executor of processes: results, errors, deaths, and that nobody is left behind."""

import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import NoReturn

import pytest

import isthmus
from isthmus.processes import pool
from isthmus.processes.pool import MOST_DEATHS, Processes


def is_there(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(process: int) -> bool:
    until = time.monotonic() + 20
    while is_there(process) and time.monotonic() < until:
        time.sleep(0.02)
    return not is_there(process)


@pytest.mark.slow
def test_calls_run_in_other_processes_and_errors_come_back() -> None:
    with Processes(2) as pool:
        assert list(pool.map(abs, range(-3, 3))) == [3, 2, 1, 0, 1, 2]
        worker = pool.submit(os.getpid).result()
        assert worker != os.getpid()
        with pytest.raises(ZeroDivisionError) as caught:
            pool.submit(divmod, 1, 0).result()
        assert "Traceback" in str(caught.value.__cause__)
        assert pool.submit(os.getpid).result() == worker, "an error does not end it"
    assert gone(worker)


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced_and_a_call_that_kills_ends() -> None:
    with Processes(1) as pool:
        first = pool.submit(os.getpid).result()
        sleeping = pool.submit(time.sleep, 0.5)
        time.sleep(0.1)
        os.kill(first, signal.SIGKILL)
        assert sleeping.result() is None
        assert pool.submit(os.getpid).result() != first
        with pytest.raises(BrokenExecutor, match=f"{MOST_DEATHS} worker processes"):
            pool.submit(os._exit, 1).result()
        assert pool.submit(abs, -1).result() == 1


def test_a_signal_of_the_terminal_reaches_no_worker() -> None:
    with Processes(1) as pool:
        assert pool.submit(os.getsid, 0).result() != os.getsid(0)


ALONE = """
import os, time
from isthmus.processes.pool import Processes, nursery
pool = Processes(1)
print(pool.submit(os.getpid).result(), nursery()._process.pid, flush=True)
pool.submit(time.sleep, 60)
time.sleep(60)
"""


@pytest.mark.slow
def test_workers_end_with_the_process_that_started_them() -> None:
    with subprocess.Popen([sys.executable, "-c", ALONE], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        others = [int(word) for word in parent.stdout.readline().split()]
        assert all(map(is_there, others))
        parent.kill()
    assert all(map(gone, others))


# begins the nursery and is through before that has imported anything
IN_A_CHILD = """
import multiprocessing, sys
from isthmus.processes.pool import nursery

def work():
    print(nursery()._process.pid, flush=True)

if __name__ == "__main__":
    child = multiprocessing.get_context("forkserver").Process(target=work)
    child.start()
    child.join()
    sys.exit(child.exitcode)
"""


def test_a_child_of_multiprocessing_ends_without_a_traceback(tmp_path: Path) -> None:
    """It runs no functions of atexit, so that the nursery found its door closed when it was ready."""
    (tmp_path / "script.py").write_text(IN_A_CHILD)
    environment = os.environ | {"PYTHONPATH": str(Path(isthmus.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(  # until the nursery too has let go of stderr
        [sys.executable, tmp_path / "script.py"],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert gone(int(done.stdout))


KILLED = """
import os, signal, sys
from isthmus.processes.pool import Processes, nursery
processes = Processes(1)
place = processes.folder()
worker = processes.submit(os.getpid).result()
open(place.name + "/heard", "w").close()
print(place.name, flush=True)
for one in [worker, nursery()._process.pid] * int(sys.argv[1]) + [os.getpid()]:
    os.kill(one, signal.SIGTERM)
"""


@pytest.mark.slow
@pytest.mark.parametrize("everyone", [0, 1], ids=["alone", "all of a job"])
def test_a_process_that_is_killed_leaves_no_temporary_folder(everyone: int, tmp_path: Path) -> None:
    """SIGTERM, as of a batch system, which may tell all processes of a job, runs neither `finally` nor atexit."""
    (other := tmp_path / "isthmus-work-ffff-other").mkdir()
    done = subprocess.run(  # until the nursery too has let go of stderr
        [sys.executable, "-c", KILLED, str(everyone)],
        capture_output=True,
        text=True,
        env=os.environ
        | {"PYTHONPATH": str(Path(isthmus.__file__).parents[1]), "OMP_NUM_THREADS": "1", "TMPDIR": str(tmp_path)},
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (-signal.SIGTERM, "")
    assert Path(done.stdout.strip()).parent == tmp_path
    assert [*tmp_path.iterdir()] == [other]


def test_a_nursery_that_is_let_go_leaves_the_folders_of_a_process_that_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend("/100%s")  # a path may hold what formats text
    one = pool.Nursery()
    with one.folder() as folder:
        one.close()
        assert Path(folder).is_dir()
    assert not Path(folder).exists()


@pytest.mark.parametrize("error", [BlockingIOError, FileNotFoundError])
def test_a_system_without_room_for_a_process_is_told_from_one_with_it(
    error: type[OSError], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> NoReturn:
        raise error("no more processes")

    monkeypatch.setattr(pool, "_NURSERIES", [])
    with monkeypatch.context() as refusing:
        refusing.setattr(pool.subprocess, "Popen", refused)
        assert not pool.is_begun()
    assert pool.is_begun()
    pool.let_go()


@pytest.mark.slow
def test_places_of_modules_that_are_no_words_are_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Scripts put paths there, which Python itself passes over."""
    monkeypatch.setattr(pool, "_NURSERIES", [])
    monkeypatch.setattr(sys, "path", [*sys.path, tmp_path, b"here"])
    with Processes(1) as processes:
        assert processes.submit(os.getpid).result() != os.getpid()
    pool.nursery().close()


def test_what_cannot_begin_is_begun_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter that is another program ends at once; each call had begun it again."""
    monkeypatch.setattr(pool, "_NURSERIES", [])
    monkeypatch.setattr(pool.sys, "executable", shutil.which("true"))
    with Processes(2) as processes:
        until = time.monotonic() + 20
        while pool._NURSERIES[-1].is_alive() and time.monotonic() < until:  # pyright: ignore[reportPrivateUsage]
            time.sleep(0.01)
        for _ in range(2):
            with pytest.raises(BrokenExecutor, match="ended while it began"):
                processes.is_ready()
    assert not pool.is_begun()
    assert len(pool._NURSERIES) == 1  # pyright: ignore[reportPrivateUsage]
