"""Arrays of pictures, taken as rows: what their columns were is recorded, and nothing else of them changes."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import discoveries
import isthmus
from isthmus import Limits
from isthmus.discovery.data.checking import checked_data
from isthmus.discovery.evidence.straight_halves import straight_half
from isthmus.networks import FullyConnected
from isthmus.plots.images import are_pixels
from isthmus.reports.meaning import meaning_pictures
from isthmus.tasks import read_table
from isthmus.tasks.input_columns import InputColumn, columns_of, pixels_of, recorded

pytestmark = pytest.mark.filterwarnings("ignore:.*was flattened to:isthmus.errors.DataWarning")
PICTURES = np.random.default_rng(0).random((40, 2, 3))
FLAT = PICTURES.reshape(40, 6)
PIXELS = [f"row {i} column {j}" for i in (1, 2) for j in (1, 2, 3)]


SHAPES = {
    "grey": ((9, 2, 3), 6), "band first": ((9, 1, 2, 3), 6), "band last": ((9, 2, 3, 1), 6), "line": ((9, 16, 1), 0),
    "bands": ((9, 3, 4, 4), 0), "channels": ((9, 64, 3), 0), "rows": ((9, 6), 0),
}  # fmt: skip


@pytest.mark.parametrize(("shape", "count"), SHAPES.values(), ids=SHAPES)
def test_pixels_are_those_of_grey_pictures(shape: tuple[int, ...], count: int) -> None:
    assert len(pixels_of(shape)) == count


@pytest.mark.parametrize(
    "pictures",
    [PICTURES, PICTURES[:, None], torch.from_numpy(PICTURES)],
    ids=["array", "band", "tensor"],
)
def test_rows_of_pictures_are_the_same_data_as_flat_ones(pictures: object) -> None:
    found, flat = checked_data(pictures, FLAT[:, :2], None), checked_data(FLAT, FLAT[:, :2], None)
    assert found.fingerprint() == flat.fingerprint()
    assert found.input_names == flat.input_names == tuple(f"x{i}" for i in range(6))
    assert [column.pixel for column in found.columns] == PIXELS
    assert [replace(column, pixel="") for column in found.columns] == list(flat.columns)


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "large.npy"])
def test_pixels_are_known_in_files_of_arrays(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "large.npy":
        monkeypatch.setattr("isthmus.tasks.large_tables.is_large", lambda *_: True)
    target: dict[str, Any] = {"target": ["c2"]}
    if name.endswith("npz"):
        np.savez(tmp_path / name, x=PICTURES, y=FLAT[:, 0])
        target = {}
    else:
        np.save(tmp_path / name, PICTURES)
    columns = read_table(tmp_path / name, **target).x_columns
    names = ["c1", "c3", "c4", "c5", "c6"] if target else [f"c{i}" for i in range(1, 7)]
    assert [(column.name, column.pixel) for column in columns] == [(c, PIXELS[int(c[1:]) - 1]) for c in names]


def test_a_record_of_pixels_is_read_back_and_one_from_before_has_none() -> None:
    columns = [InputColumn("x0", pixel="row 1 column 1"), InputColumn("x1")]
    record = json.loads(json.dumps(recorded(columns)))
    assert record[1] == {"made": "numeric"}
    assert columns_of(["x0", "x1"], record) == tuple(columns)


def test_a_discovery_of_pictures_takes_pictures_and_flat_rows_as_before(tmp_path: Path) -> None:
    y = (FLAT[:, :2] - 0.5) ** 2
    some: dict[str, Any] = {"limits": Limits(evaluations=10), "ridge": 1e-3, "starts": 1, "effort": "quick"}
    found = isthmus.discover(PICTURES, y, **some)
    found.save(tmp_path / "run")
    for one in (found, isthmus.load(tmp_path / "run")):
        assert [column.pixel for column in one.columns or ()] == PIXELS
        np.testing.assert_array_equal(one.predict(PICTURES), found.predict(FLAT))


def discovery_of(pixels: Sequence[str]) -> isthmus.Discovery:
    """One made by hand, its inputs pixels of an array, or none."""
    found = discoveries.discovery()
    made = [InputColumn(name, pixel=pixel) for name, pixel in zip(found.input_names, pixels, strict=True)]
    return replace(found, settings={**found.settings, "input_columns": recorded(made)})


@pytest.mark.parametrize("known", [True, False], ids=["pixels", "numbers"])
def test_what_coordinates_follow_in_arrays_of_pictures_is_drawn_as_pictures(known: bool) -> None:
    found = discovery_of(PIXELS[:5] if known else [""] * 5)
    meaning = isthmus.interpret(found, discoveries.inputs())
    assert meaning["input"].values.tolist() == list(found.input_names)
    assert ("One picture for each" in meaning_pictures(meaning)[1].description) == known
    half = FullyConnected.from_layers([torch.eye(5).double()[:3]], [torch.zeros(3).double()])
    straight = replace(found, encoder=half, settings={**found.settings, "encoder_side": "linear"})
    loadings = straight_half(straight, discoveries.inputs())
    assert loadings is not None
    assert are_pixels(loadings["column"]) == known
    outputs = straight_half(replace(found, settings={**found.settings, "decoder_side": "linear"}))
    assert outputs is None or not are_pixels(outputs["column"])
