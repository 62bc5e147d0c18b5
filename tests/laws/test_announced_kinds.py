"""A kind that an installed package announces is known to every process, and to none from a folder that one works in."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import isthmus
from isthmus.cli.main import run
from isthmus.errors import DataWarning
from isthmus.networks import kinds
from isthmus.sweeps.run_files import read_network, read_result

ROOT = Path(__file__).parents[2]
EXAMPLE = (ROOT / "examples" / "gated_resnet.py").read_text().partition("\nregister(")[0]
KIND = 'GATED = KindOfNetwork("gated", GatedResNet, SHAPE, examples=({"width": 6, "depth": 3},))\n'
ASK = "from isthmus.networks.kinds import kinds; print(*(kind.name for kind in kinds()))"
OURS = ["fully_connected", "leaky", "resnet"]
PLAN = """
[task]
name = "teacher"
rank = 1
d_in = 5
d_out = 2
latent_dim = 2
num_samples = 40

[network]
kind = "gated"
width = 6

[training]
ridge = 1e-2
evaluations = 20

[grid]
depth = [2]
"""


def install(site: Path, announced: str = "gated_nets:GATED") -> Path:
    """A package as an installer leaves it: its module, and beside it what it announces."""
    about = site / "gated_nets-1.0.dist-info"
    about.mkdir(parents=True)
    (site / "gated_nets.py").write_text(f"{EXAMPLE}\n{KIND}")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: gated-nets\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[isthmus.kinds]\ngated = {announced}\n")
    return site


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The registry as it is before anybody asks, whatever tests before have registered."""
    monkeypatch.setattr(kinds, "_KINDS", [kind for kind in kinds.kinds() if kind.name in OURS])
    monkeypatch.setattr(kinds, "_unread", [kinds.GROUP])
    return monkeypatch


def python(folder: Path, *words: str, site: Path | None = None) -> "subprocess.CompletedProcess[str]":
    places = [str(Path(isthmus.__file__).parents[1]), *([] if site is None else [str(site)])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(places), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.slow
def test_it_is_known_to_every_process_that_asks(tmp_path: Path) -> None:
    found = python(tmp_path, "-c", ASK, site=install(tmp_path / "site"))
    assert found.stdout.split() == [*OURS, "gated"], found.stderr


@pytest.mark.parametrize("named", ["", "in full"])
def test_a_folder_that_one_works_in_announces_nothing(named: str, tmp_path: Path, unread: pytest.MonkeyPatch) -> None:
    """Not even where the path names it, for nobody can tell why it does."""
    folder = install(tmp_path / "data")
    unread.chdir(folder)
    unread.syspath_prepend(folder if named else "")
    assert [kind.name for kind in kinds.kinds()] == OURS
    unread.chdir(tmp_path)
    unread.syspath_prepend(folder)
    unread.setattr(kinds, "_unread", [kinds.GROUP])
    assert [kind.name for kind in kinds.kinds()] == [*OURS, "gated"], "nothing was announced there"


@pytest.mark.parametrize(
    ("announced", "reason"),
    [
        ("no_such_module:GATED", "ModuleNotFoundError"),
        ("gated_nets:SHAPE", "TypeError: a dict is no KindOfNetwork"),
        ("isthmus.networks.kinds:kinds", "TypeError: a function is no KindOfNetwork"),
    ],
)
def test_a_broken_one_is_left_out_and_said(
    announced: str, reason: str, tmp_path: Path, unread: pytest.MonkeyPatch
) -> None:
    unread.syspath_prepend(install(tmp_path / "site", announced))
    with pytest.warns(DataWarning, match=f"network kind 'gated' of {announced}: left out .{reason}"):
        assert [kind.name for kind in kinds.kinds()] == OURS


@pytest.mark.slow
def test_workers_of_a_sweep_train_it_and_files_bring_it_back(
    tmp_path: Path, unread: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("distributed", reason="workers need the extra cluster")
    site, out = install(tmp_path / "site"), tmp_path / "out"
    (tmp_path / "plan.toml").write_text(PLAN)
    words = ["sweep", str(tmp_path / "plan.toml"), "--out", str(out), "--workers", "1"]
    assert run(words) == 2
    assert "network.kind is 'gated'" in capsys.readouterr().err
    done = python(tmp_path, "-m", "isthmus", *words, site=site)
    assert done.returncode == 0, done.stderr
    (folder,) = out.glob("runs/*/*")
    assert read_result(folder).settings["network"]["kind"] == "gated"
    unread.syspath_prepend(site)
    unread.setattr(kinds, "_unread", [kinds.GROUP])
    assert type(read_network(folder)).__name__ == "GatedResNet"
