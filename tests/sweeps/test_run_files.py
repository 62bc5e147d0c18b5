"""A run of a sweep whose files are damaged although their checksums hold: one line, whatever a library throws."""

import json
from pathlib import Path

import pytest

from isthmus.discovery.files.netcdf import checksum
from isthmus.errors import SweepError
from isthmus.sweeps import sweep
from isthmus.sweeps.run_files import ARRAYS, RESULT, WEIGHTS, arrays_of, read_network, read_result
from isthmus.writing.checksums import sealed_json
from sweep_plans import tiny


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sweep(tiny(seed=[0]), out=tmp_path_factory.mktemp("sweep") / "s", workers=0)
    return next(tmp_path_factory.getbasetemp().glob(f"sweep*/s/runs/*/*/{RESULT}")).parent


CUTS = {"cut in its head": 3, "cut in its middle": 200, "empty": 0}


@pytest.mark.parametrize("name", [ARRAYS, WEIGHTS])
@pytest.mark.parametrize("kept", CUTS.values(), ids=list(CUTS))
def test_a_part_that_no_library_can_read(run: Path, name: str, kept: int) -> None:
    whole, result = (run / name).read_bytes(), (run / RESULT).read_bytes()
    content = json.loads(result)
    try:
        (run / name).write_bytes(whole[:kept])
        content["checksums"][name] = checksum(run / name)
        (run / RESULT).write_bytes(sealed_json(content))
        with pytest.raises(SweepError, match=r"cannot be read, it is damaged .*; run the sweep again\.$"):
            (arrays_of if name == ARRAYS else read_network)(run)
    finally:
        (run / name).write_bytes(whole)
        (run / RESULT).write_bytes(result)
    assert read_result(run).id == run.name


@pytest.mark.parametrize("content", [b"[" * 100_000, b"[]", b"{}", b"\xff", b'{"format": "isthmus run"}'])
def test_a_result_that_is_none(run: Path, content: bytes) -> None:
    result = (run / RESULT).read_bytes()
    try:
        (run / RESULT).write_bytes(content)
        with pytest.raises(SweepError, match="cannot be read, it is damaged"):
            read_result(run)
    finally:
        (run / RESULT).write_bytes(result)
