"""Work so far with flipped bits: set aside, computed again, which is said, and the end has the same bits.

Which damage is seen at all: `test_bit_flips`. Single units: `tests/discovery/work/test_runner.py`.
"""

import os
import random
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import isthmus
from damage import bits
from figure_parts import trainings
from isthmus.cli import fit_run
from isthmus.cli.main import run
from isthmus.discovery import Discovery
from isthmus.discovery.work.unit import Progress
from isthmus.errors import DataError, DataWarning
from isthmus.figures import Workshop
from isthmus.sweeps.engine_choice import EngineChoice
from isthmus.sweeps.plan_check import checked_runs
from isthmus.sweeps.run_files import WEIGHTS
from isthmus.sweeps.sweeping import run_plan
from isthmus.training import fitting
from sweep_plans import contents, tiny


def flip(path: Path, draw: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path.write_bytes(content)


def discovered(out: Path, *, stop_in: str = "") -> Discovery | None:
    """A small discovery, or None where it was stopped in this stage."""
    task = isthmus.tasks.teacher(1, d_in=5, d_out=2, latent_dim=2, num_samples=60, noise=0.05, seed=3)

    def hear(progress: Progress) -> None:
        if stop_in and progress.stage == stop_in:
            raise KeyboardInterrupt

    try:
        return isthmus.discover(
            task.x,
            task.y,
            ridge=1e-2,
            starts=1,
            limits=isthmus.Limits(evaluations=20),
            out=out,
            progress=hear,
            workers=1,
            effort="quick",
        )
    except KeyboardInterrupt:
        return None


@pytest.mark.slow
def test_a_bit_in_every_file_of_a_discovery_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "CHECKPOINT_SECONDS", 0.0)
    whole = discovered(tmp_path / "whole")
    assert whole is not None
    assert discovered(tmp_path / "run", stop_in="scree curve") is None
    shutil.copytree(tmp_path / "run", tmp_path / "twice")
    draw, files = random.Random(5), sorted((tmp_path / "run" / "work").glob("*.pt"))
    names = {path.name for path in files if ".copy" not in path.name}
    assert {"belongs.pt", "products.pt", "start-0.01-0.pt"} < names
    for path in files:
        if path.name in names:
            flip(path, draw)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        found = discovered(tmp_path / "run")
    said = " ".join(str(warning.message) for warning in caught)
    assert all(f"{name}: cannot be read" in said for name in names), said
    assert found is not None
    for part in ("network", "encoder", "decoder", "scree", "objective_curve", "reasons", "interval"):
        assert bits(getattr(found, part)) == bits(getattr(whole, part)), part
    for name in ("belongs.pt", "belongs.copy.pt"):
        flip(tmp_path / "twice" / "work" / name, draw)
    with pytest.raises(DataError, match=r"belongs.copy.pt: cannot be read"):
        discovered(tmp_path / "twice")


def pipe(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.slow
@pytest.mark.parametrize("put", [pipe, endless, Path.mkdir])
def test_what_is_no_file_in_the_place_of_every_file_of_a_discovery_under_way(
    tmp_path: Path, put: Callable[[Path], None]
) -> None:
    whole = discovered(tmp_path / "whole")
    assert whole is not None
    assert discovered(tmp_path / "run", stop_in="scree curve") is None
    names = {path.name for path in (tmp_path / "run" / "work").glob("*.pt") if ".copy" not in path.name}
    assert {"belongs.pt", "products.pt", "start-0.01-0.pt"} <= names
    for name in names:
        (tmp_path / "run" / "work" / name).unlink()
        put(tmp_path / "run" / "work" / name)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        found = discovered(tmp_path / "run")  # which waited for ever, or took all memory
    said = " ".join(str(warning.message) for warning in caught)
    assert all(f"{name}: cannot be read" in said for name in names), said
    assert found is not None
    for part in ("network", "encoder", "decoder", "scree", "objective_curve", "reasons", "interval"):
        assert bits(getattr(found, part)) == bits(getattr(whole, part)), part


@pytest.mark.slow
def test_a_bit_in_the_checkpoint_of_a_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fitting, "CHECKPOINT_SECONDS", 0.0)
    x = np.random.default_rng(0).normal(size=(60, 4))
    np.save(tmp_path / "d.npy", np.hstack([x, np.maximum(x[:, :2], 0)]))
    words = [
        "fit",
        str(tmp_path / "d.npy"),
        "--target",
        "c5,c6",
        "--ridge",
        "1e-2",
        "--evaluations",
        "30",
        "--width",
        "6",
    ]
    assert run([*words, "--out", str(tmp_path / "whole")]) in {0, 3}

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "network.safetensors")

    with monkeypatch.context() as patched:
        patched.setattr(fit_run, "write_network", full)
        assert run([*words, "--out", str(tmp_path / "run")]) == 2
    flip(tmp_path / "run" / "work" / "fit.pt", random.Random(1))
    capsys.readouterr()
    assert run([*words, "--resume", str(tmp_path / "run")]) in {0, 3}
    assert "fit.pt: cannot be read (its checksum differs). The fit starts over." in capsys.readouterr().err
    one, other = (tmp_path / name / "network.safetensors" for name in ("whole", "run"))
    assert one.read_bytes() == other.read_bytes()
    assert not (tmp_path / "run" / "work").exists()


def test_a_bit_in_the_checkpoint_of_a_run_of_a_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "CHECKPOINT_SECONDS", 0.0)
    plan, said = tiny(seed=[0]), list[str]()
    runs = checked_runs(plan)
    run_plan(runs, tmp_path / "whole", EngineChoice(workers=0), listener=lambda _: None)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("isthmus.sweeps.worker.write_run", full)
        with pytest.raises(isthmus.errors.SweepError, match="cannot be written"):
            run_plan(runs, tmp_path / "run", EngineChoice(workers=0), listener=lambda _: None)
    flip(tmp_path / "run" / "work" / f"{runs[0].id}.pt", random.Random(1))
    run_plan(runs, tmp_path / "run", EngineChoice(workers=0), listener=lambda _: None, say=said.append)
    assert len(said) == 1
    assert "its checksum differs). It was set aside as" in said[0]
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")
    assert next((tmp_path / "run").glob(f"runs/*/*/{WEIGHTS}")).exists()


def test_a_bit_in_a_finished_part_of_a_figure(tmp_path: Path) -> None:
    parts, said = trainings(1), list[str]()
    shop = Workshop(tmp_path, EngineChoice(workers=0), say=said.append)
    [first] = shop.parts(parts)
    [result] = tmp_path.glob("parts/runs/*/*/result.json")
    flip(result, random.Random(1))
    [again] = shop.parts(parts)
    assert len(said) == 1
    assert "It was set aside in" in said[0]
    assert bits(again.drop_attrs()) == bits(first.drop_attrs())
    assert len(list(tmp_path.glob("parts/damaged/*"))) == 1
