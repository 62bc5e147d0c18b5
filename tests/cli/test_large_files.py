"""`isthmus discover` of files that are taken for too large to be read whole: the answer, and the memory it takes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from isthmus.cli.main import run

ROWS = 120_000
QUICK = ("--target", "c2", "--rows", "60", "--evaluations", "12", "--starts", "1", "--ridge", "1e-2", "--effort",
         "quick", "--no-pictures", "--workers", "1")  # fmt: skip


def written(folder: Path, name: str) -> Path:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, 12))
    x[:, 1] = np.tanh(x[:, 0] + x[:, 2])
    if name.endswith(".npy"):
        np.save(folder / name, x)
    elif name.endswith(".zarr"):
        as_zarr(folder / name, x)
    else:
        table = pd.DataFrame(x, columns=[f"c{i}" for i in range(1, 13)]).assign(
            kind=np.array(["u", "v"])[(x[:, 5] > 0).astype(int)]
        )
        table.to_parquet(folder / name, row_group_size=50_000)
    return folder / name


def as_zarr(place: Path, x: np.ndarray) -> None:
    zarr = pytest.importorskip("zarr", reason="the extra zarr is not installed")
    zarr.create_array(place, data=x, chunks=(10_000, x.shape[1]))


def answered(data: Path, folder: Path) -> tuple[dict[str, Any], bytes]:
    run(["discover", str(data), *QUICK, "--out", str(folder)])
    return json.loads((folder / "result.json").read_text()), (folder / "weights.safetensors").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["x.npy", "x.zarr", "t.parquet"])
def test_the_answer_is_that_of_a_file_that_is_read_whole(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = written(tmp_path, name)
    found, said = [], []
    for place, memory in enumerate(("2G", "20M")):
        monkeypatch.setenv("ISTHMUS_MEMORY", memory)
        found.append(answered(data, tmp_path / str(place)))
        said.append(capsys.readouterr().err.replace(str(tmp_path / str(place)), ""))
    (whole, weights), (by_parts, same) = found
    assert weights == same
    keys = ("rank", "readings", "reasons", "settings", "input_names", "target_names", "interval")
    assert [whole.get(key) for key in keys] == [by_parts.get(key) for key in keys]
    assert "of 12 input columns as 13 inputs" in said[0] or name != "t.parquet"
    assert [line for line in said[0].splitlines() if "column" in line] == [
        line for line in said[1].splitlines() if "column" in line
    ]


PEAK = """
import resource, sys
from isthmus.cli.main import run
run(sys.argv[1:])
print("PEAK", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def peak(data: Path, folder: Path) -> int:
    """MiB of a process of its own."""
    command = [sys.executable, "-c", PEAK, "discover", str(data), *QUICK, "--out", str(folder)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout
    return int(said.rpartition("PEAK ")[2])


@pytest.mark.slow
def test_a_zarr_gives_the_bits_of_a_npy(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = np.tanh(rng.normal(size=(80, 3)) @ rng.normal(size=(3, 5)))
    np.save(tmp_path / "x.npy", x)
    as_zarr(tmp_path / "x.zarr", x)
    (npy, weights), (found, same) = (answered(tmp_path / f"x{end}", tmp_path / end[1:]) for end in (".npy", ".zarr"))
    assert weights == same
    for of in (npy, found):
        del of["checksums"], of["isthmus_checksum"]
    assert npy == found


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peaks are counted in other units elsewhere")
@pytest.mark.parametrize("end", [".npy", ".zarr"])
def test_a_file_takes_no_more_memory_than_a_small_one(end: str, tmp_path: Path) -> None:
    """300 MiB of 8 columns beside 3 MiB: some pages, and the targets as they are read whole (8 bytes a row, twice)."""
    rows = 5_000_000
    large = np.lib.format.open_memmap(tmp_path / "large.npy", mode="w+", dtype=np.float64, shape=(rows, 8))
    rng = np.random.default_rng(0)
    for start in range(0, rows, 10**6):
        large[start : start + 10**6] = rng.normal(size=(10**6, 8))
    np.save(tmp_path / "small.npy", large[:50_000])
    if end == ".zarr":
        as_zarr(tmp_path / "large.zarr", large)
        as_zarr(tmp_path / "small.zarr", large[:50_000])
    large.flush()
    size = large.nbytes / 2**20
    del large
    added = peak(tmp_path / f"large{end}", tmp_path / "a") - peak(tmp_path / f"small{end}", tmp_path / "b")
    assert added < 0.6 * size
