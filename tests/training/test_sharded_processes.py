"""`fit_shards` in two processes started by torchrun, from Python: the bits of one. The command line: `tests/cli`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import isthmus
from isthmus.training import Limits, fit_shards
from isthmus.training.sharded.process_group import process_group
from isthmus.training.sharded.team import Team

SCRIPT = "import test_sharded_processes as here\nhere.told()\n"


def fitted(team: Team, *, split: bool, seed: int) -> str:
    """The objective of a small fit, to the last bit; wide enough that both of two processes hold half of it."""
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(200, 5, generator=generator, dtype=torch.float64)
    y = torch.tanh(x @ torch.randn(5, 4, generator=generator, dtype=torch.float64))
    rows = team.rows(200)
    result = fit_shards(
        isthmus.FullyConnected(5, 4, width=40, depth=3, seed=seed, dtype=torch.float64).to(team.device),
        x[rows].to(team.device), y[rows].to(team.device), total=200, team=team, ridge=3e-2,
        limits=Limits(evaluations=30), split_parameters=split,
    )  # fmt: skip
    return result.objective.hex()


def told() -> None:
    """In each process: what it found, from a start of its own that does not count but in the first."""
    with process_group(timeout=120) as team:
        for split in (False, True):
            line = f"{team.rank} {split} {fitted(team, split=split, seed=team.rank)}\n"
            team.together(lambda line=line: os.write(1, line.encode()))


def torchrun(folder: Path, **environment: str) -> list[str]:
    """What two processes told, sorted."""
    (folder / "script.py").write_text(SCRIPT)
    places = [str(Path(isthmus.__file__).parents[1]), str(Path(__file__).parent)]
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*command, str(folder / "script.py")], text=True, capture_output=True, timeout=300, check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(places)} | environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return sorted(done.stdout.splitlines())


def expected_lines(team: Team) -> list[str]:
    """What they should have told: what this process finds alone, on one thread as torchrun gives to each."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        expected = {split: fitted(team, split=split, seed=0) for split in (False, True)}
    finally:
        torch.set_num_threads(threads)
    assert fitted(team, split=True, seed=1) != expected[True]
    return [f"{rank} {split} {expected[split]}" for rank in (0, 1) for split in (False, True)]


@pytest.mark.slow
def test_two_processes_find_what_one_finds_from_the_start_of_the_first(tmp_path: Path) -> None:
    assert torchrun(tmp_path, CUDA_VISIBLE_DEVICES="") == expected_lines(Team())


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices: NCCL wants one for each process")
def test_two_devices_find_what_one_finds(tmp_path: Path) -> None:
    assert torchrun(tmp_path) == expected_lines(Team(device=torch.device("cuda", 0)))
