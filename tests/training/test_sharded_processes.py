"""`fit_shards` in two processes started by torchrun, from Python: the bits of one. The command line: `tests/cli`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import isthmus
from isthmus.training import Limits, fit_shards
from isthmus.training.process_group import process_group
from isthmus.training.team import Team

SCRIPT = "import test_sharded_processes as here\nhere.told()\n"


def fitted(team: Team, *, split: bool, seed: int) -> str:
    """The objective of a small fit, to the last bit; wide enough that both of two processes hold half of it."""
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(200, 5, generator=generator, dtype=torch.float64)
    y = torch.tanh(x @ torch.randn(5, 4, generator=generator, dtype=torch.float64))
    rows = team.rows(200)
    result = fit_shards(
        isthmus.FullyConnected(5, 4, width=40, depth=3, seed=seed, dtype=torch.float64), x[rows], y[rows], total=200,
        team=team, ridge=3e-2, limits=Limits(evaluations=30), split_parameters=split,
    )  # fmt: skip
    return result.objective.hex()


def told() -> None:
    """In each process: what it found, from a start of its own that does not count but in the first."""
    with process_group(timeout=120) as team:
        for split in (False, True):
            line = f"{team.rank} {split} {fitted(team, split=split, seed=team.rank)}\n"
            team.together(lambda line=line: os.write(1, line.encode()))


@pytest.mark.slow
def test_two_processes_find_what_one_finds_from_the_start_of_the_first(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    places = [str(Path(isthmus.__file__).parents[1]), str(Path(__file__).parent)]
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*command, str(tmp_path / "script.py")], text=True, capture_output=True, timeout=300, check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(places)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        expected = {split: fitted(Team(), split=split, seed=0) for split in (False, True)}
    finally:
        torch.set_num_threads(threads)
    found = sorted(done.stdout.splitlines())
    assert found == [f"{rank} {split} {expected[split]}" for rank in (0, 1) for split in (False, True)]
    assert fitted(Team(), split=True, seed=1) != expected[True]
