"""A run that is killed, in whatever phase, goes on with --resume and ends with the same bits."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import torch

import isthmus
from command_lines import carried_out, write_table
from isthmus import Discovery, tasks
from isthmus.training.checkpoint import load_state

# the command, with a checkpoint at every step: between seconds of a clock a fast machine would end a start without one
PROGRAM = """
from isthmus.cli.main import main
from isthmus.training import fitting
fitting.CHECKPOINT_SECONDS = 0.0
main()
"""
COMMAND = [sys.executable, "-c", PROGRAM]
OPTIONS = (
    ("--target", "y0,y1,y2"), ("--ridge", "3e-3,1e-3"), ("--starts", "1"), ("--evaluations", "200"), ("--no-pictures",),
)  # fmt: skip
SHORT = ["--ridge", "3e-3", "--evaluations", "60", "--effort", "quick"]
Condition = Callable[[Path], bool]


def table(folder: Path, num_samples: int) -> Path:
    task = tasks.teacher(2, d_in=9, d_out=3, latent_dim=4, num_samples=num_samples, noise=0.05, seed=3)
    assert task.y is not None
    names = [f"x{i}" for i in range(9)] + [f"y{i}" for i in range(3)]
    return write_table(folder / "data.csv", names, np.hstack([task.x, task.y]).round(6))


def words(data: Path, *options: str) -> list[str]:
    common = [words for words in OPTIONS if words[0] not in options]  # an option of a case stands for that of all
    return ["discover", str(data), *chain.from_iterable(common), *options]


def start(data: Path, *options: str) -> subprocess.Popen[bytes]:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(isthmus.__file__).parents[1])}
    return subprocess.Popen(
        [*COMMAND, *words(data, *options)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment
    )


def finish(process: subprocess.Popen[bytes]) -> None:
    _, errors = process.communicate(timeout=300)
    assert process.returncode in {0, 3}, errors.decode()


def kill_when(process: subprocess.Popen[bytes], folder: Path, condition: Condition, *, signum: int) -> bool:
    """Send the signal as soon as the condition holds; False if the process ended before."""
    while process.poll() is None:
        if condition(folder):
            process.send_signal(signum)
            process.communicate(timeout=60)
            return process.returncode not in {0, 3}
        time.sleep(0.002)
    process.communicate(timeout=60)
    return False


def finished_units(stage: str, at_least: int) -> Condition:
    return lambda folder: sum(".partial" not in p.name for p in folder.glob(f"work/{stage}-*.pt")) >= at_least


def begun(folder: Path) -> bool:
    return (folder / "work" / "belongs.pt").exists()


def writing(folder: Path) -> bool:
    return (folder / "scree.nc").exists() and not (folder / "result.json").exists()


def partial_in_phase(phase: int) -> Condition:
    """Whether a checkpoint of a start in this phase of its schedule (0 is the warm-up) is on disk."""

    def condition(folder: Path) -> bool:
        for path in folder.glob("work/*.partial.pt"):
            try:
                state = load_state(path)
            except FileNotFoundError:  # finished and removed between the listing and the reading
                continue
            if state is not None and state.get("run", {}).get("phase") == phase:  # none once the fit has ended
                return True
        return False

    return condition


def assert_same(first: Discovery, second: Discovery) -> None:
    assert first.rank == second.rank
    assert first.reasons == second.reasons
    for name in ("network", "encoder", "decoder"):
        pairs = zip(getattr(first, name).parameters(), getattr(second, name).parameters(), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs), name
    assert first.scree.identical(second.scree)
    assert first.objective_curve.identical(second.objective_curve)
    assert first.runs.drop_vars("seconds").identical(second.runs.drop_vars("seconds"))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Discovery]:
    folder = tmp_path_factory.mktemp("undisturbed")
    data = table(folder, 240)
    finish(start(data, "--out", str(folder / "run")))
    return data, isthmus.load(folder / "run")


def disturbed(data: Path, folder: Path, kills: list[tuple[Condition, int]], *more: str) -> Discovery:
    """A run that is killed at each of the conditions in turn, then left to finish.

    On a busy machine a run may end between the condition and the signal: then all is done again, three times at most.
    """
    for _ in range(3):
        options = killed(data, folder, kills, *more)
        if options is not None:
            finish(start(data, *options))
            return isthmus.load(folder)
        shutil.rmtree(folder)
    raise AssertionError("it ended before it could be killed, three times")


def killed(data: Path, folder: Path, kills: list[tuple[Condition, int]], *more: str) -> list[str] | None:
    """The options with which a run goes on that was killed at each of the conditions; None where it ended before."""
    options = [*more, "--out", str(folder)]
    for condition, signum in kills:
        if not kill_when(start(data, *options), folder, condition, signum=signum):
            return None
        if (folder / "work").exists():
            options = [*more, "--resume", str(folder)]
    return options


@pytest.mark.slow
@pytest.mark.usefixtures("unshifted")
def test_a_kill_in_the_truncation_changes_nothing(tmp_path: Path) -> None:
    data = table(tmp_path, 120)
    carried_out(words(data, *SHORT, "--out", str(tmp_path / "whole")))
    kills: list[tuple[Condition, int]] = [(finished_units("truncate", 1), signal.SIGKILL)]
    assert_same(disturbed(data, tmp_path / "run", kills, *SHORT), isthmus.load(tmp_path / "whole"))


@pytest.mark.slow
@pytest.mark.usefixtures("unshifted")
def test_kills_at_the_start_and_in_the_scree_curve_change_nothing(
    undisturbed: tuple[Path, Discovery], tmp_path: Path
) -> None:
    data, whole = undisturbed
    kills: list[tuple[Condition, int]] = [
        (begun, signal.SIGKILL), (begun, signal.SIGINT), (finished_units("scree", 1), signal.SIGKILL),
    ]  # fmt: skip
    assert_same(disturbed(data, tmp_path / "run", kills), whole)


@pytest.mark.slow
def test_the_comparison_sees_another_seed(undisturbed: tuple[Path, Discovery], tmp_path: Path) -> None:
    data, whole = undisturbed
    finish(start(data, "--out", str(tmp_path / "run"), "--seed", "1"))
    with pytest.raises(AssertionError):
        assert_same(isthmus.load(tmp_path / "run"), whole)


@pytest.mark.slow
def test_a_kill_while_the_result_is_written_leaves_no_half_result(
    undisturbed: tuple[Path, Discovery], tmp_path: Path
) -> None:
    data, whole = undisturbed
    for attempt in range(8):  # the moment is short: try until it is hit
        folder = tmp_path / f"run{attempt}"
        if kill_when(start(data, "--out", str(folder)), folder, writing, signum=signal.SIGKILL):
            break
    else:
        pytest.fail("the writing was never hit")
    assert not (folder / "result.json").exists()
    with pytest.raises(isthmus.errors.DataError):
        isthmus.load(folder)
    finish(start(data, "--resume", str(folder)))
    assert_same(isthmus.load(folder), whole)


@pytest.mark.slow
@pytest.mark.usefixtures("unshifted")
def test_kills_within_long_units_go_on_from_their_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # products as large as these are measured, and which library is faster is noted once for all runs of a machine; each
    # run keeps what it took, but without that note two runs beside other work may take differently: other last bits
    monkeypatch.setenv("ISTHMUS_CACHE", str(tmp_path / "cache"))
    data = table(tmp_path, 12_000)
    # of so many rows a start outlasts the search for a moment to kill it; what is done about doubts took minutes more
    long = ["--ridge", "3e-3", "--evaluations", "800", "--effort", "quick"]
    finish(start(data, *long, "--out", str(tmp_path / "whole")))
    kills: list[tuple[Condition, int]] = [
        (partial_in_phase(0), signal.SIGKILL),
        (partial_in_phase(1), signal.SIGTERM),
        (finished_units("truncate", 1), signal.SIGKILL),
        (finished_units("truncate", 3), signal.SIGINT),
        (finished_units("scree", 1), signal.SIGKILL),
    ]
    assert_same(disturbed(data, tmp_path / "run", kills, *long), isthmus.load(tmp_path / "whole"))


@pytest.mark.slow
def test_kills_at_random_moments_change_nothing(undisturbed: tuple[Path, Discovery], tmp_path: Path) -> None:
    data, whole = undisturbed
    rng = np.random.default_rng(0)
    folder, kills = tmp_path / "run", 0
    while not (folder / "result.json").exists():
        begin = time.monotonic()
        wait = float(rng.uniform(2.0, 6.0 * 1.15**kills))  # longer and longer: a slow machine must get to the end too
        options = ["--resume" if (folder / "work").exists() else "--out", str(folder)]
        over = kill_when(
            start(data, *options), folder, lambda _: time.monotonic() - begin > wait, signum=signal.SIGKILL  # noqa: B023
        )  # fmt: skip
        kills += over
        shutil.rmtree(folder, ignore_errors=True) if not (folder / "work").exists() and over else None
        assert kills < 30, "it never got to the end"
    assert_same(isthmus.load(folder), whole)
