"""A kill between the end of a training and the record of its result: the fit is not lost, and not trained again.

Real processes kill themselves at that point: each runs a command with one function replaced, by the script below.
Kills from outside, at moments that are watched for or drawn: `test_kill`, `test_sweep_faults`.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import isthmus
from command_lines import carried_out
from isthmus.sweeps import sweep
from isthmus.training.checkpoint import load_state
from isthmus.training.fitting import Fitting
from isthmus.writing.atomic import is_leftover
from isthmus.writing.checksums import opened_json
from sweep_plans import contents, write_plan

ENVIRONMENT = os.environ | {
    "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(Path(isthmus.__file__).parents[1])
}  # fmt: skip
# every fit keeps its end, however short; what is named is replaced by the end of the process, or by an error
SCRIPT = """
import importlib, os, signal, sys
from isthmus.cli.main import run
from isthmus.training import fitting
fitting.CHECKPOINT_SECONDS = 0.0
def die(*arguments, **named):
    os.kill(os.getpid(), signal.SIGKILL)
def fail(*arguments, **named):
    raise AssertionError("it was trained again")
def replace(where, deed):
    module, _, names = where.partition(":")
    *path, last = names.split(".")
    place = importlib.import_module(module)
    for name in path:
        place = getattr(place, name)
    setattr(place, last, deed)
if sys.argv[1]:
    replace(sys.argv[1], fail if sys.argv[1] == "isthmus.training.fitting:Fitting._phases" else die)
if __name__ == "__main__":
    sys.exit(run(sys.argv[2:]))
"""
TRAINING = "isthmus.training.fitting:Fitting._phases"
FIT = ["--target", "c6,c7", "--ridge", "3e-3", "--depth", "3", "--width", "40", "--evaluations", "30"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "driver.py").write_text(SCRIPT)
    draw = np.random.default_rng(0)
    x = draw.normal(size=(300, 5))
    np.save(tmp_path / "d.npy", np.hstack([x, np.maximum(x @ draw.normal(size=(5, 2)), 0)]))
    return tmp_path / "d.npy"


def ends(data: Path, replaced: str, *words: str, processes: int = 0) -> int:
    """How the command ends with a function replaced; alone, or in so many processes."""
    team = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)] if processes else []
    command = [sys.executable, *team, str(data.with_name("driver.py")), replaced, *words]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=300, check=False)
    assert "AssertionError" not in done.stderr, done.stderr
    return done.returncode


def fitted(folder: Path) -> tuple[object, bytes]:
    stored = opened_json((folder / "result.json").read_bytes())
    left_out = {"seconds", "peak_memory"}
    same = {name: value for name, value in stored.items() if name not in left_out}
    return same, (folder / "network.safetensors").read_bytes()


def check_fit(data: Path, windows: Sequence[str], *more: str, processes: int = 0) -> None:
    words = ["fit", str(data), *FIT, *more]
    whole = data.with_name("whole")
    assert ends(data, "", *words, "--out", str(whole), processes=processes) in {0, 3}
    for number, window in enumerate(windows):
        folder = data.with_name(f"run{number}")
        assert ends(data, window, *words, "--out", str(folder), processes=processes) in {-signal.SIGKILL, 1}
        assert (folder / "work").exists()
        ends(data, TRAINING, *words, "--resume", str(folder), processes=processes)
        assert fitted(folder) == fitted(whole)
        assert sorted(path.name for path in folder.iterdir()) == ["network.safetensors", "result.json"]


FIT_WINDOWS = ("isthmus.cli.fit_run:_described", "isthmus.cli.fit_run:write_bytes", "isthmus.cli.fit_run:shutil.rmtree")


@pytest.mark.slow
@pytest.mark.usefixtures("unshifted")
def test_a_fit_that_was_killed_before_its_result_stood_is_not_trained_again(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["fit", str(data), *FIT]
    assert ends(data, FIT_WINDOWS[1], *words, "--out", str(data.with_name("run"))) == -signal.SIGKILL
    with monkeypatch.context() as patched:
        patched.setattr(Fitting, "_phases", _never)
        carried_out([*words, "--resume", str(data.with_name("run"))])
    carried_out([*words, "--out", str(data.with_name("whole"))])
    assert fitted(data.with_name("run")) == fitted(data.with_name("whole"))


def _never(_fitting: Fitting) -> str:
    raise AssertionError("it was trained again")


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["--split-parameters"]], ids=["whole", "split"])
@pytest.mark.parametrize("processes", [0, 2])
def test_no_window_of_a_fit_loses_it(data: Path, processes: int, more: list[str]) -> None:
    check_fit(data, FIT_WINDOWS, *more, processes=processes)


SWEEP_WINDOWS = (
    "isthmus.sweeps.execution:_numbers", "isthmus.sweeps.worker:write_run", "isthmus.sweeps.run_files:sealed_json",
    "isthmus.sweeps.worker:_report", "isthmus.sweeps.driver:Row",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("window", SWEEP_WINDOWS)
def test_a_run_of_a_sweep_that_was_killed_before_its_result_stood_is_not_trained_again(
    window: str, data: Path, tmp_path: Path
) -> None:
    plan, out = write_plan(tmp_path, "seed = [0]"), tmp_path / "out"
    words = ["sweep", str(plan), "--out", str(out), "--workers", "0"]
    assert ends(data, window, *words) == -signal.SIGKILL
    assert ends(data, TRAINING, *words) == 0
    sweep(plan, out=tmp_path / "whole", workers=0)
    assert contents(out) == contents(tmp_path / "whole")
    assert [path.name for path in out.glob("work/*")] == ["attempts.log"]


@pytest.mark.slow
def test_a_unit_of_a_discovery_that_was_killed_before_its_record_is_not_trained_again(data: Path) -> None:
    words = ["discover", str(data), "--target", "c6,c7", "--ridge", "1e-2", "--starts", "1", "--evaluations", "40"]
    words.append("--no-pictures")
    whole, folder = data.with_name("whole"), data.with_name("run")
    assert ends(data, "", *words, "--out", str(whole)) in {0, 3}
    assert ends(data, "isthmus.discovery.work.runner:save_state", *words, "--out", str(folder)) == -signal.SIGKILL
    partial = next(folder.glob("work/*.partial.pt"))
    assert "ended" in (load_state(partial) or {})
    unit = partial.name.removesuffix(".partial.pt")
    # the next unit is trained, this one is not
    assert "it was trained again" in ends_with(data, [*words, "--resume", str(folder)])
    assert (folder / "work" / f"{unit}.pt").exists()
    assert ends(data, "", *words, "--resume", str(folder)) in {0, 3}
    one, other = isthmus.load(folder), isthmus.load(whole)
    assert one.scree.identical(other.scree)
    assert one.runs.drop_vars("seconds").identical(other.runs.drop_vars("seconds"))
    assert not (folder / "work").exists()


@pytest.mark.slow
def test_a_part_of_a_figure_that_was_killed_before_its_record_is_not_trained_again(data: Path) -> None:
    folder = data.with_name("figures")
    words = ["figure", "linear-resnets", "--preset", "tiny", "--workers", "0", "--out", str(folder)]
    assert ends(data, "isthmus.figures.parts:write_run", *words) == -signal.SIGKILL
    [checkpoint] = folder.glob("parts/work/*.pt")
    assert "ended" in (load_state(checkpoint) or {})
    ends_by = ends_with(data, words)
    assert "it was trained again" in ends_by
    assert list(folder.glob(f"parts/runs/*/{checkpoint.stem}/result.json"))


def ends_with(data: Path, words: list[str]) -> str:
    """What a command says that comes to train."""
    command = [sys.executable, str(data.with_name("driver.py")), TRAINING, *words]
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=300, check=False).stderr


FIRST_WRITES = {
    "sweep": ["sweep", "plan.toml", "--out", "out", "--workers", "0"],
    "figure": ["figure", "1", "--preset", "tiny", "--out", "out", "--workers", "1"],
    "discover": [
        "discover", "d.npy", "--target", "c6,c7", "--ridge", "1e-2", "--starts", "1", "--evaluations", "40",
        "--no-pictures", "--out", "out",
    ],
    "fit": ["fit", "d.npy", *FIT, "--out", "out"],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("command", FIRST_WRITES)
def test_a_kill_while_the_first_file_is_written_leaves_a_folder_that_the_same_command_takes(
    command: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_plan(tmp_path, "seed = [0]")
    monkeypatch.chdir(tmp_path)
    assert ends(data, "isthmus.writing.atomic:_sync", *FIRST_WRITES[command]) == -signal.SIGKILL
    out = tmp_path / "out"
    assert any(is_leftover(path) for path in out.rglob("*")), "it was killed with a file half-written"
    assert ends(data, "", *FIRST_WRITES[command]) in {0, 3}
    assert not any(is_leftover(path) for path in out.rglob("*"))
