"""Sweeps on bad days: killed, out of space, read-only, with clocks that go back. At the end every run is there once.

Damaged files: `tests/sweeps/test_sweep.py`. Lost schedulers and hosts: `tests/sweeps/test_cluster.py`.
"""

import os
import resource
import signal
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

from isthmus.errors import SweepError
from isthmus.sweeps import sweep
from isthmus.sweeps.run_files import read_result
from sweep_plans import attempts, computed_after_their_end, contents, tiny, write_plan
from sweep_processes import finish, kill_all, lines, start_sweep, until

GRID = {"seed": [0, 1, 2]}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The undisturbed sweep."""
    folder = tmp_path_factory.mktemp("whole")
    sweep(tiny(**GRID), out=folder, workers=0)
    return folder


def assert_whole(folder: Path, whole: Path) -> None:
    """Every run is there, once, bit for bit, and none was computed after it had ended."""
    assert contents(folder) == contents(whole)
    assert computed_after_their_end(folder) == []


@contextmanager
def file_size_limit(most: int) -> Generator[None]:
    """No file of this process may grow beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def mounted(folder: Path, *options: str) -> Generator[None]:
    """A mount over `folder`, where that is allowed."""
    done = subprocess.run(["mount", *options, str(folder)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot mount here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.dear(1)
@pytest.mark.parametrize("most", [1000, 5000, 40_000])
def test_files_that_may_not_grow(most: int, whole: Path, tmp_path: Path) -> None:
    with file_size_limit(most), pytest.raises(SweepError, match="cannot be written"):
        sweep(tiny(**GRID), out=tmp_path / "out", workers=0)
    sweep(tiny(**GRID), out=tmp_path / "out", workers=0)
    assert_whole(tmp_path / "out", whole)


@pytest.mark.parametrize("size", ["64k", "100k", "124k"])
def test_a_full_disk(size: str, whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with mounted(out, "-t", "tmpfs", "-o", f"size={size}", "tmpfs"):
        with pytest.raises(SweepError, match=r"cannot be written \((No space|database or disk is full).* Make room"):
            sweep(tiny(**GRID), out=out, workers=0)
        subprocess.run(["mount", "-o", "remount,size=4m", str(out)], check=True)
        sweep(tiny(**GRID), out=out, workers=0)
        assert_whole(out, whole)


def test_a_folder_made_read_only(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sweep(tiny(seed=[0]), out=out, workers=0)
    with mounted(out, "--bind", str(out)):
        subprocess.run(["mount", "-o", "remount,bind,ro", str(out)], check=True)
        with pytest.raises(OSError, match="Read-only file system"):
            sweep(tiny(**GRID), out=out, workers=0)
    sweep(tiny(**GRID), out=out, workers=0)
    assert_whole(out, whole)


def test_a_clock_that_was_set_back(whole: Path, tmp_path: Path) -> None:
    sweep(tiny(seed=[0, 1]), out=tmp_path, workers=0)
    future = time.time() + 10 * 365 * 24 * 3600
    for path in tmp_path.rglob("*"):
        os.utime(path, (future, future))
    sweep(tiny(**GRID), out=tmp_path, workers=0)
    assert_whole(tmp_path, whole)
    assert len(attempts(tmp_path)) == 6


@pytest.mark.slow
def test_the_driver_is_killed(tmp_path: Path) -> None:
    plan = write_plan(tmp_path, "seed = [0, 1, 2, 3, 4, 5]", evaluations=200)
    out = tmp_path / "out"
    process = start_sweep(plan, out, "--workers", "0")
    until(lambda: len(lines(out, "begin")) >= 2, process=process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(lines(out, "end")) < 6
    sweep(plan, out=out, workers=0)
    sweep(plan, out=tmp_path / "whole", workers=0)
    assert_whole(out, tmp_path / "whole")


@pytest.mark.slow
def test_every_process_is_killed_and_the_workers_of_a_killed_driver_end(tmp_path: Path) -> None:
    plan = write_plan(tmp_path, "seed = [0, 1, 2, 3, 4, 5]", evaluations=1500)
    finish(start_sweep(plan, tmp_path / "whole", "--workers", "0"))
    out = tmp_path / "out"
    first = start_sweep(plan, out, "--workers", "2")
    until(lambda: len(lines(out, "begin")) >= 2, process=first)
    kill_all(first)
    second = start_sweep(plan, out, "--workers", "2")
    until(lambda: len(set(lines(out, "begin"))) >= 3, process=second)
    second.send_signal(signal.SIGKILL)
    second.wait()
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in lines(out, "begin")))
    finish(start_sweep(plan, out, "--workers", "2"))
    assert_whole(out, tmp_path / "whole")


@pytest.mark.slow
def test_a_hundred_kills_in_one_sweep_of_forty_runs(tmp_path: Path) -> None:
    plan = write_plan(tmp_path, f"seed = {list(range(40))}", evaluations=1500)
    finish(start_sweep(plan, tmp_path / "whole", "--workers", "0"))
    results = [read_result(path.parent) for path in (tmp_path / "whole").glob("runs/*/*/result.json")]
    each = float(np.mean([result.numbers["seconds"] for result in results]))
    rng, out, kills = np.random.default_rng(0), tmp_path / "out", {"worker": 0, "driver": 0, "all": 0}
    process = start_sweep(plan, out, "--workers", "2")
    while sum(kills.values()) < 100:
        seen = len(lines(out, "begin"))
        until(lambda: len(lines(out, "begin")) > seen or process.poll() is not None, seconds=600)  # noqa: B023
        assert process.poll() is None, f"it ended after {kills}: {process.said()}"
        time.sleep(float(rng.uniform(0, 1.5 * each)))
        victim = str(rng.choice(["worker", "driver", "all"], p=[0.9, 0.05, 0.05]))
        kills[victim] += 1
        if victim == "worker":
            with suppress(ProcessLookupError):  # the other kill was faster
                os.kill(lines(out, "begin")[-1], signal.SIGKILL)
            continue
        if victim == "driver":
            process.send_signal(signal.SIGKILL)
            process.wait()
        else:
            kill_all(process)
        process = start_sweep(plan, out, "--workers", "2")
    finish(process)
    assert_whole(out, tmp_path / "whole")
    assert len(contents(out)) == 40
    assert len(lines(out, "begin")) > 80
