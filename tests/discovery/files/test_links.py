"""A run folder whose files are not files: links out of it and devices are refused before anything is read."""

import json
from pathlib import Path

import pytest

import discoveries
from isthmus.discovery import load
from isthmus.errors import DataError, SweepError
from isthmus.sweeps.run_files import RESULT, read_result


@pytest.mark.parametrize("name", ["result.json", "scree.nc", "runs.nc", "weights.safetensors"])
def test_links_out_of_a_run_and_devices_are_refused(tmp_path: Path, name: str) -> None:
    run = tmp_path / "run"
    discoveries.discovery().save(run)
    assert load(run).rank == discoveries.discovery().rank
    kept = tmp_path / "kept"
    (run / name).rename(kept)
    (run / name).symlink_to(kept)
    with pytest.raises(DataError, match="is a link out of its folder"):
        load(run)
    (run / name).unlink()
    (run / name).symlink_to("/dev/zero")
    with pytest.raises(DataError, match="is a device"):
        load(run)


@pytest.mark.parametrize("name", ["/dev/zero", "../kept", "a/../b", ""])
def test_a_run_of_a_sweep_reads_no_file_outside(tmp_path: Path, name: str) -> None:
    (tmp_path / "kept").write_text("x")
    run = tmp_path / "run"
    run.mkdir()
    content = {"format": "isthmus run", "format_version": 1, "checksums": {name: "0" * 64}}
    (run / RESULT).write_text(json.dumps(content))
    with pytest.raises(SweepError, match="names .* which is no file of that folder"):
        read_result(run)
