"""Arrays of a run come back as they were; files damaged although their checksums hold: one line, whatever is thrown."""

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from isthmus.discovery.files.netcdf import checksum, read_table, write_table
from isthmus.errors import SweepError
from isthmus.sweeps import sweep
from isthmus.sweeps.run_files import (
    ARRAYS,
    RESULT,
    WEIGHTS,
    arrays_of,
    read_network,
    read_result,
)
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


ATTRIBUTES = {"missing": "no gap: a tenth of \u03c3\u2081", "none": None, "yes": True, "numbers": [1, 2.5], "empty": ""}


def test_every_attribute_comes_back_as_it_was(tmp_path: Path) -> None:
    arrays = xr.Dataset({"a": ("layer", [1.0, np.nan], ATTRIBUTES), "b": ("layer", [1.0, 2.0])}, attrs=ATTRIBUTES)
    arrays = arrays.assign_coords(layer=("layer", np.array([1, 2], dtype=np.int32), {"unit": None}))
    write_table(tmp_path / "arrays.nc", arrays)
    assert arrays["a"].attrs == ATTRIBUTES, "what is written stays as it is"
    xr.testing.assert_identical(read_table(tmp_path / "arrays.nc"), arrays)
    with pytest.raises(AssertionError):
        xr.testing.assert_identical(read_table(tmp_path / "arrays.nc"), arrays.drop_attrs())


def test_arrays_of_older_sweeps_are_read_whose_variables_have_no_attributes(tmp_path: Path) -> None:
    older = xr.Dataset({"a": ("layer", [1.0, np.nan])}, attrs={"json": json.dumps({"note": "old"})})
    (tmp_path / "arrays.nc").write_bytes(bytes(older.to_netcdf(engine="scipy", encoding={"a": {"_FillValue": None}})))
    found = read_table(tmp_path / "arrays.nc")
    assert found.attrs == {"note": "old"}
    assert found["a"].attrs == {}
