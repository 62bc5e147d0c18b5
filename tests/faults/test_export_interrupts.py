"""`factor` and `compress` stopped by Ctrl-C or SIGTERM: exit code 130, nothing half-written, the same command works."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import isthmus
from foreign_modules import Residual, samples, seeded
from isthmus.discovery.files.models import read_model_file

FACTORY = ["--factory", "foreign_modules:Residual"]  # a note on stderr says when the work begins
COMMANDS = {
    "factor": ["factor", "net.pt", "--data", "rows.npy", "--rank", "3", "--out", "out", *FACTORY],
    "compress": ["compress", "net.pt", "--data", "rows.npy", "--tolerance", "0.1", "--out", "out", *FACTORY],
}
PARTS = {"factor": "encoder", "compress": "network"}


def start(here: Path, words: list[str]) -> "subprocess.Popen[str]":
    """The command in a process of its own, once it has said that the work begins."""
    paths = [str(Path(isthmus.__file__).parents[1]), str(Path(__file__).parents[1])]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)}
    process = subprocess.Popen(
        [sys.executable, "-m", "isthmus", *words], cwd=here, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    assert "runs your code" in process.stderr.readline()
    return process


def stop(process: "subprocess.Popen[str]", signum: int) -> str:
    """Send the signal; what was said on stderr since."""
    assert process.poll() is None, "it had ended before it was stopped"
    process.send_signal(signum)
    return process.communicate(timeout=120)[1]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    torch.save(seeded(Residual, 3).state_dict(), tmp_path / "net.pt")
    np.save(tmp_path / "rows.npy", samples(6000, 5).numpy())
    return tmp_path


def check_stopped(process: "subprocess.Popen[str]", said: str, here: Path) -> None:
    assert process.returncode == 130
    assert said.endswith("isthmus: interrupted.\n")
    assert "Traceback" not in said
    assert sorted(p.name for p in here.rglob("*") if p.is_file()) == ["net.pt", "rows.npy"]


@pytest.mark.slow
def test_an_interrupt_before_anything_is_written_leaves_nothing(here: Path) -> None:
    process = start(here, COMMANDS["compress"])
    check_stopped(process, stop(process, signal.SIGINT), here)
    assert not (here / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "signum"),
    [
        ("factor", signal.SIGINT),
        ("factor", signal.SIGTERM),
        ("compress", signal.SIGINT),
        ("compress", signal.SIGTERM),
    ],
)
def test_an_interrupt_while_files_are_written_takes_them_back_and_the_command_works_again(
    here: Path, command: str, signum: int
) -> None:
    process = start(here, COMMANDS[command])
    written = here / "out" / f"{PARTS[command]}.safetensors"
    while not written.exists():  # the program (.pt2) comes next, and takes a second
        assert process.poll() is None, process.communicate()
        time.sleep(0.001)
    check_stopped(process, stop(process, signum), here)
    process = start(here, COMMANDS[command])
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert (here / "out" / "export.json").exists()
    read_model_file(written.with_suffix(".pt2"))
