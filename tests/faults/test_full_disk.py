"""A full disk or a limit on the size of files, whatever library writes: an `OSError` that names the file, and no crash.

Sweeps on a full disk: `test_sweep_faults`.
"""

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

import discoveries
import isthmus
from command_lines import write_table as write_csv
from damage import bits
from isthmus.discovery.files.netcdf import write_table
from isthmus.discovery.files.networks import write_network
from isthmus.training.checkpoint import save_state

ENVIRONMENT = os.environ | {
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": os.pathsep.join([str(Path(isthmus.__file__).parents[1]), str(Path(__file__).parents[1])]),
}


@contextmanager
def files_up_to(most: int) -> Generator[None]:
    """No file of this process grows beyond so many bytes."""
    usual, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (usual, hard))


@pytest.mark.parametrize("most", [0, 100, 500, 1000])
def test_every_writer_says_which_file_could_not_grow_and_works_again_afterwards(most: int, tmp_path: Path) -> None:
    found = discoveries.discovery()
    writers: dict[str, Callable[[Path], object]] = {
        "state.pt": lambda path: save_state(path, {"theta": torch.zeros(1000), "history": list(range(1000))}),
        "network.safetensors": lambda path: write_network(path, found.network),
        "runs.nc": lambda path: write_table(path, found.runs),
        "whole": found.save,
    }
    failed: dict[str, OSError] = {}
    for name, write in writers.items():
        with files_up_to(most), pytest.raises(OSError, match="File too large") as caught:
            write(tmp_path / name)
        failed[name] = caught.value
    # a folder holds those of its tables that were whole, and no result until all are
    finished = {*tmp_path.glob("whole/*.nc")}
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path not in finished] == []
    assert {error.errno for error in failed.values()} == {errno.EFBIG}
    said = {name: Path(str(error.filename)).name for name, error in failed.items()}
    assert said.pop("whole") in {"scree.nc", "runs.nc"}
    assert all(name == file for name, file in said.items())
    for name, write in writers.items():
        write(tmp_path / name)
    assert isthmus.load(tmp_path / "whole").rank == 3


@pytest.mark.slow
@pytest.mark.parametrize("most", [200, 3000, 9000, 16_500])
def test_a_discovery_that_meets_a_limit_is_one_line_and_goes_on_to_the_same_bits(most: int, tmp_path: Path) -> None:
    draw = isthmus.tasks.teacher(2, d_in=9, d_out=3, latent_dim=4, num_samples=120, noise=0.05, seed=3)
    assert draw.y is not None
    names = [f"x{i}" for i in range(9)] + [f"y{i}" for i in range(3)]
    data = write_csv(tmp_path / "data.csv", names, np.hstack([draw.x, draw.y]).round(6))
    words = [str(data), "--target", "y0,y1,y2", "--ridge", "3e-3", "--starts", "1", "--evaluations", "60"]
    command = [sys.executable, "-m", "isthmus", "discover", *words, "--no-pictures"]
    limited = ["prlimit", f"--fsize={most}", *command]

    def run(arguments: list[str], *more: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([*arguments, *more], env=ENVIRONMENT, capture_output=True, text=True, check=False)

    first = run(limited, "--out", str(tmp_path / "run"))
    assert first.returncode == 2, first.stderr
    said = [line for line in first.stderr.splitlines() if line.startswith("isthmus: ")]
    assert len(said) == 1
    assert "File too large" in said[0]
    assert "Traceback" not in first.stderr
    assert run(command, "--resume", str(tmp_path / "run")).returncode in {0, 3}
    assert run(command, "--out", str(tmp_path / "whole")).returncode in {0, 3}
    one, other = (isthmus.load(tmp_path / name) for name in ("run", "whole"))
    assert bits((one.network, one.encoder, one.decoder)) == bits((other.network, other.encoder, other.decoder))
    assert one.runs.drop_vars("seconds").identical(other.runs.drop_vars("seconds"))
