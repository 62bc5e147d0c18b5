"""`isthmus fit` in one process and, under torchrun, in several: the same bits, one line when something is wrong."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import isthmus
from command_lines import line_of
from isthmus.cli.main import run
from isthmus.discovery.files.networks import read_network
from isthmus.errors import DataError
from isthmus.training.sharded import process_group
from isthmus.writing.checksums import opened_json

SMALL = ["--target", "c6,c7", "--ridge", "3e-3", "--depth", "3", "--width", "6", "--evaluations", "30"]
LONG = ["--target", "c6,c7", "--ridge", "1e-3", "--depth", "4", "--width", "48", "--evaluations", "700"]


VARYING = {"seconds", "processes", "peak_memory"}  # the rest of result.json is the same for any number of processes


def values(rows: int, seed: int = 0) -> np.ndarray:
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(rows, 5)) * [1, 10, 0.1, 1, 1] + 3
    return np.hstack([x, np.maximum(x @ draw.normal(size=(5, 2)), 0) * 7 + 3])


@pytest.fixture
def data(tmp_path: Path) -> Path:
    np.save(tmp_path / "d.npy", values(300))
    return tmp_path / "d.npy"


def test_a_device_is_chosen(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [str(data), *SMALL, "--device"]
    for device, there in (("cpu", True), ("auto", True), ("tpu", False), ("cuda:99", False)):
        out = tmp_path / device.replace(":", "-")
        assert (alone(*command, device, "--out", str(out)) != 2) is there
        assert (out / "result.json").exists() is there
        said = capsys.readouterr().err
        assert there or line_of(said).startswith(f"isthmus: --device {device}: "), said


@pytest.mark.parametrize(("asked", "place"), [(None, "cuda:1"), ("cuda", "cuda:1"), ("auto", "cuda:1"), ("cpu", "cpu")])
def test_each_of_several_processes_has_a_gpu_of_its_own(
    asked: str | None, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which torchrun numbers; nothing is computed there."""
    said = {None: None, "cpu": torch.device("cpu")}
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setattr(process_group, "device_argument", lambda device, _: said.get(device, torch.device("cuda", 0)))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", lambda _: None)
    assert process_group.chosen_device(asked) == torch.device(place)
    with pytest.raises(DataError, match=r"--device cuda:0: of several processes each has a GPU of its own. Give cuda"):
        process_group.chosen_device("cuda:0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert process_group.chosen_device("cuda:0") == torch.device("cuda:0")


def torchrun(processes: int, *arguments: str) -> subprocess.Popen[str]:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(isthmus.__file__).parents[1])}
    environment |= {"CUDA_VISIBLE_DEVICES": ""}  # on a device each process would need one of its own
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    return subprocess.Popen(
        [*command, "-m", "isthmus", "fit", *arguments], env=environment, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip


def alone(*arguments: str) -> int:
    """In this process, on one thread as torchrun gives to each."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return run(["fit", *arguments])
    finally:
        torch.set_num_threads(threads)


def content(folder: Path) -> dict[str, object]:
    stored = opened_json((folder / "result.json").read_bytes())
    return {name: value for name, value in stored.items() if name not in VARYING}


def assert_same_run(first: Path, second: Path) -> None:
    assert content(first) == content(second)
    assert (first / "network.safetensors").read_bytes() == (second / "network.safetensors").read_bytes()


@pytest.mark.slow
def test_two_processes_reach_the_minimum_of_one_bit_for_bit(data: Path, tmp_path: Path) -> None:
    two = torchrun(2, str(data), *SMALL, "--out", str(tmp_path / "two"))
    assert alone(str(data), *SMALL, "--out", str(tmp_path / "one")) == 3  # 30 gradients are too few for a minimum
    output, errors = two.communicate(timeout=300)
    assert (output.count("\n"), two.returncode) == (1, 0), errors  # torchrun calls any other code a crash
    assert "30 gradients on 300 rows in 2 processes" in output
    assert_same_run(tmp_path / "one", tmp_path / "two")
    assert {path.name for path in (tmp_path / "two").iterdir()} == {"result.json", "network.safetensors"}
    assert alone(str(data), *SMALL, "--seed", "1", "--out", str(tmp_path / "other")) == 3
    with pytest.raises(AssertionError):
        assert_same_run(tmp_path / "one", tmp_path / "other")


def test_the_network_takes_and_gives_the_units_of_the_file(data: Path, tmp_path: Path) -> None:
    alone(str(data), *SMALL, "--out", str(tmp_path / "run"))
    stored = content(tmp_path / "run")
    table = torch.from_numpy(np.load(data))
    with torch.no_grad():
        residual = read_network(tmp_path / "run" / "network.safetensors")(table[:, :5]) - table[:, 5:]
    spread = table[:, 5:].var(0, correction=0)
    # each target had variance 1/2 in training
    assert float((residual.square().mean(0) / spread / 2).sum()) == pytest.approx(stored["data_loss"], rel=1e-9)
    assert stored["inputs"] == ["c1", "c2", "c3", "c4", "c5"]


def test_a_finished_run_is_said_again_and_another_one_refused(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert alone(str(data), *SMALL, "--out", str(tmp_path / "run")) == 3
    first = capsys.readouterr().out
    assert alone(str(data), *SMALL, "--resume", str(tmp_path / "run")) == 3
    assert capsys.readouterr().out == first
    assert alone(str(data), *SMALL, "--seed", "1", "--resume", str(tmp_path / "run")) == 2
    assert "holds another run" in line_of(capsys.readouterr().err)


@pytest.mark.slow
def test_builtin_data_are_fitted_as_their_file_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Their own targets, classes by their names, or the data themselves; with the bits of a file of them."""
    task = isthmus.tasks.builtin("friedman", seed=3)
    assert task.y is not None
    np.save(tmp_path / "friedman.npy", np.hstack([task.x, task.y]))
    few = ["--ridge", "1e-2", "--depth", "3", "--width", "6", "--seed", "3", "--evaluations", "20", "--out"]
    assert alone(str(tmp_path / "friedman.npy"), "--target", "c11", *few, str(tmp_path / "file")) == 3
    assert alone("builtin:friedman", *few, str(tmp_path / "name")) == 3
    weights = [(tmp_path / name / "network.safetensors").read_bytes() for name in ("file", "name")]
    assert weights[0] == weights[1]
    assert alone("builtin:wine", *few, str(tmp_path / "classes")) == 3
    assert content(tmp_path / "classes")["outputs"] == ["class_0", "class_1", "class_2"]
    assert alone("builtin:circle", *few, str(tmp_path / "data")) == 3
    assert content(tmp_path / "data")["outputs"] == content(tmp_path / "data")["inputs"]
    capsys.readouterr()
    assert alone("builtin:friedman", "--target", "c1", "--ridge", "1") == 2
    assert "brings its own targets" in capsys.readouterr().err


def test_a_running_fit_says_where_it_stands(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert alone(str(data), *SMALL, "--out", str(tmp_path / "run")) == 3
    assert re.fullmatch(r" *\d+ %  training  step \d+/\d+  objective [\d.]+", line_of(capsys.readouterr().err))


def test_what_a_kill_left_half_written_does_not_stop_the_end(data: Path, tmp_path: Path) -> None:
    (tmp_path / "run" / "work").mkdir(parents=True)
    (tmp_path / "run" / "work" / ".fit.0123456789ab.isthmus-tmp.pt").write_bytes(b"half")
    assert alone(str(data), *SMALL, "--resume", str(tmp_path / "run")) == 3
    assert {path.name for path in (tmp_path / "run").iterdir()} == {"result.json", "network.safetensors"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--ridge", "-1"], "--ridge -1: needs a finite number"),
        (["--ridge", "1", "--linear", "4"], "--linear 4: needs hidden layers 1 to 3, got 4"),
        (["--ridge", "1", "--linear", "x"], "--linear x: needs numbers separated by commas"),
        (["--ridge", "1", "--slope", "1"], "--slope 1: needs a number above -1"),
        (["--ridge", "1", "--dtype", "int"], "--dtype int: needs float32 or float64"),
        (["--ridge", "1", "--target", "c9"], "has no column 'c9'"),
        (["--ridge", "1", "--target", __file__], "fit takes targets from columns of"),
        (["--ridge", "1", "--target", "c1", "--autoencode"], "--target and --autoencode exclude each other"),
        (["--ridge", "1", "--classes", "c1"], "has 300 different values in 300 rows"),
        (["--ridge", "1", "--target", "c1,c2,c3,c4,c5,c6,c7"], "no column is left as input"),
    ],
)
def test_bad_options_are_one_line_and_leave_no_folder(
    arguments: list[str], message: str, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["fit", str(data), *arguments, "--out", str(tmp_path / "run")]) == 2
    assert message in line_of(capsys.readouterr().err)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_classes_of_a_parquet_in_float32_are_the_same_for_three_processes(tmp_path: Path) -> None:
    table = pd.DataFrame(values(5000)[:, :6], columns=list("abcdef"))
    table["kind"] = np.where(table["f"] > table["f"].median(), "high", "low")
    path = tmp_path / "d.parquet"
    table.drop(columns="f").to_parquet(path, row_group_size=700)
    options = ["--classes", "kind", "--ridge", "1e-3", "--dtype", "float32", "--evaluations", "150", "--linear", "2"]
    three = torchrun(3, str(path), *options, "--out", str(tmp_path / "three"))
    alone(str(path), *options, "--out", str(tmp_path / "one"))
    three.communicate(timeout=300)
    assert_same_run(tmp_path / "one", tmp_path / "three")
    assert content(tmp_path / "one")["outputs"] == ["high", "low"]


@pytest.mark.slow
def test_what_is_wrong_in_the_rows_of_one_process_is_one_line_from_all(tmp_path: Path) -> None:
    table = values(300)
    table[250, 3] = np.nan
    np.save(tmp_path / "d.npy", table)
    began = time.monotonic()
    process = torchrun(2, str(tmp_path / "d.npy"), *SMALL, "--out", str(tmp_path / "run"))
    _, errors = process.communicate(timeout=300)
    ours = [line for line in errors.splitlines() if "isthmus: " in line]
    assert len(ours) == 1, errors
    assert "column 'c4' holds a missing value or NaN in row 251" in ours[0]
    assert time.monotonic() - began < 120, "it waited for a timeout"
    assert not (tmp_path / "run").exists()


def child_of(process: subprocess.Popen[str], rank: int) -> int:
    """The process of this rank that torchrun started."""
    for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
        if f"\0RANK={rank}\0".encode() in Path(f"/proc/{child}/environ").read_bytes():
            return int(child)
    raise AssertionError(f"no process of rank {rank}")


def stopped(process: subprocess.Popen[str], folder: Path, number: int, *, name: str = "fit.pt") -> str:
    """Send a signal to the second process once there is a new checkpoint; returns what was written to stderr."""
    path = folder / "work" / name
    before = path.stat().st_mtime_ns if path.exists() else 0
    while not path.exists() or path.stat().st_mtime_ns == before:
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    os.kill(child_of(process, 1), number)
    return process.communicate(timeout=120)[1]


@pytest.mark.slow
def test_a_dead_process_ends_the_others_and_any_number_goes_on_from_the_checkpoint(tmp_path: Path) -> None:
    np.save(tmp_path / "d.npy", values(20_000))
    longer = ["1400" if word == "700" else word for word in LONG]  # two checkpoints must come well before the end
    options = [str(tmp_path / "d.npy"), *longer]
    whole = torchrun(2, *options, "--out", str(tmp_path / "whole"))
    whole.communicate(timeout=500)
    folder = tmp_path / "run"
    errors = stopped(torchrun(2, *options, "--out", str(folder)), folder, signal.SIGKILL)
    ours = [line for line in errors.splitlines() if "isthmus: " in line]
    assert len(ours) == 1, errors
    assert "fit: process 0 of 2 lost another one" in ours[0]
    before = (folder / "work" / "fit.pt").stat().st_mtime_ns
    stopped(torchrun(2, *options, "--resume", str(folder)), folder, signal.SIGTERM)
    assert (folder / "work" / "fit.pt").stat().st_mtime_ns > before, "the state was saved on SIGTERM"
    alone(*options, "--resume", str(folder))
    assert_same_run(tmp_path / "whole", folder)


LINEAR = ["--target", "c6,c7", "--ridge", "1e-2", "--depth", "3", "--width", "20", "--linear", "1,2"]


@pytest.mark.slow
def test_split_parameters_reach_the_minimum_of_one_process(data: Path, tmp_path: Path) -> None:
    split = torchrun(2, str(data), *LINEAR, "--split-parameters", "--out", str(tmp_path / "split"))
    assert alone(str(data), *LINEAR, "--out", str(tmp_path / "one")) == 0
    output, errors = split.communicate(timeout=300)
    assert output.count("\n") == 1, errors
    one, two = content(tmp_path / "one"), content(tmp_path / "split")
    assert one["outcome"] == two["outcome"] == "CONVERGED"
    assert two["objective"] == pytest.approx(one["objective"], rel=1e-10)
    assert two["rank"] == one["rank"]
    first, second = (read_network(tmp_path / name / "network.safetensors") for name in ("one", "split"))
    x = torch.from_numpy(np.load(data))[:, :5]
    with torch.no_grad():
        torch.testing.assert_close(second(x), first(x), rtol=1e-4, atol=1e-4)
    peaks = json.loads((tmp_path / "split" / "result.json").read_text())["peak_memory"]
    assert len(peaks) == 2
    assert all(f"{peak / 2**20:.0f}" in output for peak in peaks)
    assert {path.name for path in (tmp_path / "split").iterdir()} == {"result.json", "network.safetensors"}


@pytest.mark.slow
def test_split_parameters_have_the_bits_of_one_process_on_kinks_too(data: Path, tmp_path: Path) -> None:
    wide = ["40" if word == "6" else word for word in SMALL]
    options = [str(data), *wide, "--split-parameters"]
    two = torchrun(2, *options, "--out", str(tmp_path / "two"))
    assert alone(*options, "--out", str(tmp_path / "one")) == 3
    _, errors = two.communicate(timeout=300)
    assert (tmp_path / "two" / "result.json").exists(), errors
    assert_same_run(tmp_path / "one", tmp_path / "two")
    assert alone(*options[:-1], "--out", str(tmp_path / "whole")) == 3
    with pytest.raises(AssertionError):
        assert_same_run(tmp_path / "one", tmp_path / "whole")


@pytest.mark.slow
def test_split_parameters_of_a_dead_process_go_on_in_any_number(tmp_path: Path) -> None:
    np.save(tmp_path / "d.npy", values(20_000))
    options = [str(tmp_path / "d.npy"), *LONG, "--split-parameters"]
    _, errors = torchrun(2, *options, "--out", str(tmp_path / "whole")).communicate(timeout=500)
    assert (tmp_path / "whole" / "result.json").exists(), errors
    folder = tmp_path / "run"
    errors = stopped(torchrun(2, *options, "--out", str(folder)), folder, signal.SIGKILL, name="fit.parts.pt")
    ours = [line for line in errors.splitlines() if "isthmus: " in line]
    assert len(ours) == 1, errors
    assert "fit: process 0 of 2 lost another one" in ours[0]
    assert alone(*options[:-1], "--resume", str(folder)) == 2, "it was started with split parameters"
    stopped(torchrun(3, *options, "--resume", str(folder)), folder, signal.SIGTERM, name="fit.parts.pt")
    assert sorted(path.name.split(".")[3] for path in (folder / "work").glob("fit.parts.*.*.pt")) == ["0", "1", "2"]
    _, errors = torchrun(2, *options, "--resume", str(folder)).communicate(timeout=500)
    assert (folder / "result.json").exists(), errors
    assert_same_run(tmp_path / "whole", folder)
