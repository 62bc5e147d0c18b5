import json
import shutil
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

import discoveries
import isthmus
from isthmus.discovery import Discovery, load
from isthmus.discovery.files.json_values import plain, restored
from isthmus.discovery.files.storage import read_beside, write_beside
from isthmus.errors import DataError
from isthmus.networks import FullyConnected
from isthmus.theory import RankEstimate
from isthmus.writing.checksums import opened_json, sealed_json


def assert_same(found: object, saved: object, where: str = "discovery") -> None:
    """Equal bit for bit: tables, weights, architectures, every plain field."""
    assert type(found) is type(saved), where
    if isinstance(saved, xr.Dataset):
        xr.testing.assert_identical(found, saved)  # pyright: ignore[reportArgumentType] - same type as saved
        assert isinstance(found, xr.Dataset)
        for name, variable in saved.variables.items():
            assert found[name].dtype == variable.dtype, f"{where}.{name}"
            if variable.dtype.kind == "f":
                assert found[name].values.tobytes() == variable.values.tobytes(), f"{where}.{name}"
    elif isinstance(saved, FullyConnected):
        assert isinstance(found, FullyConnected)
        assert found.extra_repr() == saved.extra_repr(), where
        assert list(found.state_dict()) == list(saved.state_dict()), where
        for name, tensor in saved.state_dict().items():
            assert torch.equal(found.state_dict()[name], tensor), f"{where}.{name}"
            assert found.state_dict()[name].dtype == tensor.dtype, f"{where}.{name}"
    elif hasattr(saved, "__dataclass_fields__"):
        for f in fields(saved):  # pyright: ignore[reportArgumentType] - checked on the line above
            assert_same(getattr(found, f.name), getattr(saved, f.name), f"{where}.{f.name}")
    else:
        assert found == saved, where


@pytest.fixture(scope="module")
def saved_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "run"
    discoveries.discovery(control=True).save(folder)
    return folder


@pytest.fixture
def run_folder(saved_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved_run, tmp_path / "run"))


def test_a_discovery_comes_back_bit_for_bit(run_folder: Path) -> None:
    saved, found = discoveries.discovery(control=True), isthmus.load(run_folder)
    assert_same(found, saved)
    x = discoveries.inputs()
    assert found.transform(x).tobytes() == saved.transform(x).tobytes()
    assert found.predict(x).tobytes() == saved.predict(x).tobytes()


def test_a_depth_path_travels_and_goes_with_the_result_that_it_belongs_to(tmp_path: Path) -> None:
    saved = discoveries.discovery(depth_path=discoveries.depth_path())
    saved.save(tmp_path)
    assert_same(load(tmp_path), saved)
    (tmp_path / "depth_path.nc").write_bytes(b"other")
    with pytest.raises(DataError, match=r"depth_path.nc is damaged"):
        load(tmp_path)
    discoveries.discovery().save(tmp_path)
    assert load(tmp_path).depth_path is None
    assert not (tmp_path / "depth_path.nc").exists()


@pytest.mark.parametrize("name", ["control", "index"])
def test_another_run_in_the_place_of_a_part_is_told(tmp_path: Path, name: str) -> None:
    part = discoveries.discovery(reasons=("another one",))
    discoveries.discovery(control=True, others={"index": discoveries.discovery()}).save(tmp_path)
    load(tmp_path)
    shutil.rmtree(tmp_path / name)
    part.save(tmp_path / name)
    with pytest.raises(DataError, match=rf"{name}/result.json is damaged or of another run"):
        load(tmp_path)
    content = opened_json((tmp_path / "result.json").read_bytes())
    del content["beside"]  # a run from before they were noted
    (tmp_path / "result.json").write_bytes(sealed_json(content))
    load(tmp_path)


def test_a_table_beside_a_result_is_known_by_it(tmp_path: Path) -> None:
    table, name = discoveries.curves()[0], "interpretation.nc"
    for folder, values in (("run", table), ("other", table + 1)):
        discoveries.discovery().save(tmp_path / folder)
        assert read_beside(tmp_path / folder, name) is None
        write_beside(tmp_path / folder, name, values)
    xr.testing.assert_identical(read_beside(tmp_path / "run", name), table)
    assert_same(load(tmp_path / "run"), discoveries.discovery())
    shutil.copy(tmp_path / "other" / name, tmp_path / "run" / name)
    with pytest.raises(DataError, match=r"interpretation.nc is damaged or of another run"):
        read_beside(tmp_path / "run", name)
    load(tmp_path / "run")
    (tmp_path / "run" / name).unlink()
    (tmp_path / "run" / name).symlink_to(tmp_path / "other" / name)
    with pytest.raises(DataError, match="is a link out of its folder"):
        read_beside(tmp_path / "run", name)
    discoveries.discovery().save(tmp_path / "other")  # a new result, which does not know it
    with pytest.raises(DataError, match="of another run"):
        read_beside(tmp_path / "other", name)


def test_the_comparison_sees_one_bit(run_folder: Path) -> None:
    found = load(run_folder)
    moved = found.scree.copy(deep=True)
    moved["train_error"].values[2] = np.nextafter(moved["train_error"].values[2], 1)
    with pytest.raises(AssertionError):
        assert_same(replace(found, scree=moved), discoveries.discovery(control=True))


def test_what_attributes_refuse_travels(tmp_path: Path) -> None:
    scree = discoveries.curves()[0]
    scree.attrs = {"none": None, "yes": True, "nested": {"a": (1, 2.5)}}
    scree["train_error"].attrs = {"units": "relative", "linear": False}
    scree["heldout_error"][0] = np.nan
    scree["linear_error"][1] = np.inf
    saved = discoveries.discovery(scree=scree)
    saved.save(tmp_path)
    assert_same(load(tmp_path), saved)


def test_single_precision_networks_and_networks_without_biases(tmp_path: Path) -> None:
    network = FullyConnected(5, 4, width=6, depth=3, linear=(2,), bias=False, seed=0, dtype=torch.float32)
    saved = discoveries.discovery(network=network)
    saved.save(tmp_path)
    assert_same(load(tmp_path), saved)


def test_awkward_settings_and_evidence_travel(tmp_path: Path) -> None:
    evidence = {"witness": np.array([[0.1, np.inf], [np.nan, 1e-300]]), "empty": np.zeros((0, 3)), "deep": {"é": 1}}
    estimate = RankEstimate(3, 1, 4, "a", "b", 1e-6, evidence)
    settings = {"budget": float("inf"), "none": None, "flag": True, "big": 2**63, "small": np.float64(0.1)}
    discoveries.discovery(interval=estimate, settings=settings).save(tmp_path)
    found = load(tmp_path)
    assert found.settings == settings
    np.testing.assert_array_equal(found.interval.evidence["witness"], evidence["witness"], strict=True)
    np.testing.assert_array_equal(found.interval.evidence["empty"], np.zeros((0, 3)), strict=True)
    assert found.interval.evidence["deep"] == {"é": 1}
    json.loads((tmp_path / "result.json").read_text(), parse_constant=pytest.fail)


def test_integers_bools_and_single_precision_arrays_come_back() -> None:
    for array in (np.arange(6).reshape(2, 3), np.array([True, False]), np.array([0.1, 2], dtype=np.float32)):
        found = restored(json.loads(json.dumps(plain(array))))
        assert isinstance(found, np.ndarray)
        assert found.dtype == array.dtype
        assert found.tobytes() == array.tobytes()


def test_what_has_no_plain_form_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    saved = discoveries.discovery(settings={"callback": [print]})
    with pytest.raises(TypeError, match=r"settings\['callback'\]\[0\] is a builtin_function"):
        saved.save(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_result_json_is_written_last_and_an_older_one_goes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    discoveries.discovery().save(tmp_path)

    def full_disk(*_args: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("isthmus.discovery.files.storage.save", full_disk)
    with pytest.raises(OSError, match="no space"):
        discoveries.discovery().save(tmp_path)
    with pytest.raises(DataError, match="no finished run"):
        load(tmp_path)


DAMAGED = ["result.json", "scree.nc", "runs.nc", "layers.nc", "weights.safetensors", "control/result.json"]


@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "flipped"])
def test_a_damaged_file_is_named_in_one_line(run_folder: Path, name: str, damage: str) -> None:
    path = run_folder / name
    content = bytearray(path.read_bytes())
    if damage == "missing":
        path.unlink()
    elif damage == "flipped":
        content[len(content) // 2] ^= 0xFF
        path.write_bytes(content)
    else:
        path.write_bytes(content[: 0 if damage == "empty" else len(content) // 2])
    with pytest.raises(DataError, match=Path(name).name.replace(".", r"\.")) as caught:
        load(run_folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("format", "something else", "not a result of isthmus"),
        ("format_version", 3, "format version 3, this isthmus reads 1 and 2"),
        ("checksums", {}, "no checksums"),
        ("verdict", "SURE", "SURE"),
        ("rank", ..., "rank"),
    ],
)
def test_a_result_of_another_making_is_refused(run_folder: Path, key: str, value: object, message: str) -> None:
    content = opened_json((run_folder / "result.json").read_bytes())
    content[key] = value
    if value is ...:
        del content[key]
    (run_folder / "result.json").write_bytes(sealed_json(content))
    with pytest.raises(DataError, match=message):
        load(run_folder)


TYPED = {"rank", "reasons", "task", "input_names", "settings", "readings", "interval", "others"}


def places(content: object, *before: str) -> Iterator[tuple[str, ...]]:
    """The ways to all that has a key."""
    for key, part in content.items() if isinstance(content, dict) else ():
        yield (*before, key)
        yield from places(part, *before, key)


def changed(content: dict[str, Any], way: tuple[str, ...], value: object) -> dict[str, Any]:
    whole = part = json.loads(json.dumps(content))
    for key in way[:-1]:
        part = part[key]
    part[way[-1]] = value
    if value is ...:
        del part[way[-1]]
    return whole


def refusal(folder: Path) -> str:
    """Why it is not read; nothing where it is."""
    try:
        load(folder)
    except DataError as error:
        return str(error)
    return ""


@pytest.mark.slow
def test_a_result_without_any_of_its_keys_is_refused_or_read(run_folder: Path) -> None:
    content = opened_json((run_folder / "result.json").read_bytes())
    content["has_control"] = False
    ways = [way for way in places(content) if way[0] not in {"settings", "readings"} or len(way) == 1]
    assert {("has_control",), ("interval", "lower"), ("architectures", "encoder", "dimensions")} <= set(ways)
    refused = set[tuple[str, ...]]()
    for way in ways:
        for value in (..., None, {"a": "b"}, "x", -1e300) if way[0] in TYPED and len(way) == 1 else (...,):
            (run_folder / "result.json").write_bytes(sealed_json(changed(content, way, value)))
            if said := refusal(run_folder):
                assert "result.json" in said
                assert said.endswith(".")
                refused.add(way)
    assert {("has_control",), ("rank",), ("interval", "lower"), ("others",)} <= refused


def test_weights_that_do_not_fit_the_architecture_are_refused(run_folder: Path) -> None:
    content = opened_json((run_folder / "result.json").read_bytes())
    content["architectures"]["encoder"]["dimensions"][1] = 10**12
    (run_folder / "result.json").write_bytes(sealed_json(content))
    with pytest.raises(DataError, match="encoder: weights of shapes"):
        load(run_folder)


def test_files_of_two_runs_do_not_mix(run_folder: Path, tmp_path: Path) -> None:
    other = discoveries.discovery(network=discoveries.networks()[1])
    other.save(tmp_path / "other")
    (run_folder / "weights.safetensors").write_bytes((tmp_path / "other" / "weights.safetensors").read_bytes())
    with pytest.raises(DataError, match="another run"):
        load(run_folder)


def test_a_folder_without_a_run_says_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no finished run"):
        load(tmp_path / "nowhere")


def test_the_result_is_a_discovery(run_folder: Path) -> None:
    assert isinstance(load(run_folder), Discovery)


def test_a_run_with_a_page_is_not_overwritten_by_another_discovery(tmp_path: Path) -> None:
    """Its page and pictures would have told of the other one."""
    found = discoveries.discovery()
    found.save(tmp_path)
    found.save(tmp_path)  # a discovery alone is replaced
    (tmp_path / "report.html").write_text("page")
    before = (tmp_path / "result.json").read_bytes()
    with pytest.raises(DataError, match=r"holds a finished run, and report\.html would tell of another"):
        discoveries.discovery(rank=2).save(tmp_path)
    assert (tmp_path / "result.json").read_bytes() == before
    (tmp_path / "result.json").unlink()  # of a run that was stopped nothing is told
    found.save(tmp_path)
