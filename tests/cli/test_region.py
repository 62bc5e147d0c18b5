import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib import image

import discoveries
from command_lines import line_of, write_table
from isthmus.cli.main import run
from isthmus.discovery import Discovery
from isthmus.discovery.files.networks import write_network
from isthmus.discovery.groups.logarithms import LogCoordinates
from isthmus.discovery.groups.powers import Powers
from isthmus.networks import FullyConnected
from isthmus.writing.atomic import write_bytes
from isthmus.writing.checksums import sealed_json

OUT = "slice.png"


def fan() -> FullyConnected:
    """Logits of three sectors that meet at (0.2, -0.3)."""
    angles = torch.arange(3, dtype=torch.float64) * (2 * torch.pi / 3) + 0.1
    weight = torch.stack([angles.cos(), angles.sin()], 1)
    return FullyConnected.from_layers([weight], [-weight @ torch.tensor([0.2, -0.3], dtype=torch.float64)])


def stripes() -> FullyConnected:
    """Logits of three classes through x + 2 y: no tripoint."""
    inner = torch.tensor([[1.0, 2.0]], dtype=torch.float64)
    outer = torch.tensor([[-1.0], [0.0], [1.0]], dtype=torch.float64)
    return FullyConnected.from_layers([outer @ inner], [torch.tensor([-0.5, 0.0, -0.5], dtype=torch.float64)])


def rank_two_corner() -> FullyConnected:
    """f = (relu x, relu y, 0): rank 2, 1, 1 and 0 on the four quadrants, Lipschitz constant 1."""
    eye = torch.eye(2, dtype=torch.float64)
    return FullyConnected.from_layers([eye, torch.cat([eye, eye[:1] * 0])], None)


def hand_made() -> Discovery:
    """The discovery made by hand with one activation in both halves."""
    found = discoveries.discovery()
    weights, biases = found.decoder.written_layers()
    return replace(found, decoder=FullyConnected.from_layers(weights, biases))


@pytest.fixture
def plane_table(tmp_path: Path) -> Path:
    rows = np.array(
        [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [0.5, 0.5], *np.random.default_rng(0).uniform(-1, 1, (20, 2))]
    )
    return write_table(tmp_path / "plane.csv", ["a", "b"], rows)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plane_table: Path, inputs: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str]) -> str:
    """The table with its lines joined: wrapping is that of the terminal."""
    out, err = capsys.readouterr()
    assert err == ""
    return " ".join(out.split())


def colours(path: Path) -> set[tuple[int, ...]]:
    pixels = (np.asarray(image.imread(path))[..., :3] * 255).round().astype(int).reshape(-1, 3)
    values, counts = np.unique(pixels, axis=0, return_counts=True)
    return {tuple(value) for value in values[counts > 0.02 * len(pixels)].tolist()}


@pytest.mark.slow
def test_the_slice_of_a_corner_is_exact(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_network("corner.safetensors", rank_two_corner())
    assert run(["region", "corner.safetensors", "--data", "plane.csv", "--slice", "a,b", "--out", OUT]) == 0
    text = said(capsys)
    assert "columns a and b: 4 pieces" in text
    assert "Jacobian rank 2 (exact on the slice)" in text
    assert "at least 4 at depth 2 (Schatten bound); it is 4 here" in text
    assert "Lipschitz 1 (exact, along the slice)" in text
    assert "tripoints" not in text
    assert len(colours(here / OUT)) == 4  # three ranks and the ground


@pytest.mark.slow
@pytest.mark.parametrize(("network", "num", "classes"), [(fan, 1, 3), (stripes, 0, 3)])
def test_classes_and_tripoints(
    here: Path, capsys: pytest.CaptureFixture[str], network: Callable[[], FullyConnected], num: int, classes: int
) -> None:
    write_network("logits.safetensors", network())
    options = ["--slice", "1,2,3", "--colour", "class", "--out", OUT]
    assert run(["region", "logits.safetensors", "--data", "plane.csv", *options]) == 0
    text = said(capsys)
    assert "the plane through rows 1, 2, 3: 1 piece J" in text
    assert f"tripoints {num}" in text
    assert ("needs 2 dimensions" in text) == (num == 1)
    assert ("0 - 2" in text) == (num == 1)  # in stripes the outer classes never touch
    assert ("at x = (0.2, -0.3)" in text) == (num == 1)
    assert len(colours(here / OUT)) == classes + 1
    assert run(["region", "logits.safetensors", "--data", "plane.csv", *options, "--replace", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    np.testing.assert_allclose(
        facts["tripoints"], [[0.2, -0.3]] if num else [], atol=1e-12, err_msg="in units of the data"
    )
    assert [len(met) for met in facts["tripoint_classes"]] == [3] * num
    assert len(facts["tripoints_on_slice"]) == num
    assert len(facts["witness"]) == 2


def test_a_discovery_is_cut_in_the_units_of_the_data(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = hand_made()
    found.save("run")
    assert run(["region", "run", "--data", "inputs.csv", "--slice", "4,9,2", "--out", "slice.svg"]) == 0
    text = said(capsys)
    assert "decoder o encoder through 3 dimensions, in the units of the data" in text
    x = torch.from_numpy(discoveries.inputs())[[3, 8, 1]]
    with torch.no_grad():
        y = found.decoder(found.encoder(x))
    stretch = max(float((y[0] - y[i]).norm() / (x[0] - x[i]).norm()) for i in (1, 2))
    lipschitz = float(text.split("Lipschitz ")[1].split()[0])
    assert lipschitz >= stretch * (1 - 1e-5)
    assert (here / "slice.svg").read_text().startswith("<?xml")


def test_a_run_with_logarithms_is_cut_in_them_and_says_points_in_the_units_of_the_data(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names, rows = discoveries.INPUTS, np.exp(discoveries.inputs())
    write_table(here / "positive.csv", list(names), rows)
    coordinates = LogCoordinates(names, names[:4])
    found = hand_made()
    powers = Powers(coordinates, (False,) * len(found.target_names), None)
    replace(found, settings={**found.settings, "powers": powers.as_plain()}).save("run")
    slices = ["--slice", f"{names[0]},{names[4]}", "--at", "3", "--out", "slice.svg"]
    assert run(["region", "run", "--data", "positive.csv", *slices]) == 0
    text = said(capsys)
    assert "through 3 dimensions, in logarithms of the data" in text
    point = [float(part) for part in text.split("at x = (")[1].split(")")[0].split(", ")]
    assert point[1:4] == pytest.approx(rows[2, 1:4], rel=1e-3), "columns that were fixed, as the table has them"
    picture = (here / "slice.svg").read_text()
    assert f"log {names[0]}" in picture
    assert f"log {names[4]}" not in picture


@pytest.mark.slow
def test_two_columns_of_many_are_cut_at_the_means_or_at_a_row(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hand_made().save("run")
    for more, fixed in (([], "their means"), (["--at", "3"], "row 3")):
        options = ["--slice", "probe 0,probe 3", "--colour", "class", "--out", OUT, "--replace", *more]
        assert run(["region", "run", "--data", "inputs.csv", *options]) == 0
        assert f"columns probe 0 and probe 3, the others at {fixed}" in said(capsys)


BAD = {
    "no model": (["none.safetensors"], "no such file"),
    "program": (["net.pt2"], "is .pt2; needs the weights of a fully connected network. Give a folder"),
    "run of fit": (["fitted"], "fitted is a run of fit; give its network.safetensors"),
    "no run": (["."], "no finished run"),
    "no number": (["net.safetensors", "--slice", "²,1,2"], "needs three row numbers"),
    "not three": (["net.safetensors", "--slice", "1"], "needs three row numbers"),
    "no row": (["net.safetensors", "--slice", "1,2,99"], "has no row 99"),
    "a row of 5,000 digits": (["net.safetensors", "--slice", f"1,2,{'9' * 5000}"], "rows are numbered 1 to 24"),
    "row zero": (["net.safetensors", "--slice", "0,2,3"], "has no row 0"),
    "one line": (["net.safetensors", "--slice", "1,2,2"], "lie on one line"),
    "same row": (["net.safetensors", "--slice", "1,1,2"], "lie on one line"),
    "no column": (["net.safetensors", "--slice", "a,z"], "no input column 'z'"),
    "twice": (["net.safetensors", "--slice", "a,a"], "names column 'a' twice"),
    "at rows": (["net.safetensors", "--at", "1"], "three rows leave none"),
    "at none": (["net.safetensors", "--slice", "a,b", "--at", "99"], "rows are numbered 1 to 24"),
    "one output": (["single.safetensors", "--colour", "class"], "has one output"),
    "too wide": (["net.safetensors", "--data", "inputs.csv"], "has 5 input columns"),
    "picture": (["net.safetensors", "--out", "slice.pdf"], "unknown extension '.pdf'"),
    "folder": (["net.safetensors", "--out", "none/slice.png"], "its folder does not exist"),
    "colour": (["net.safetensors", "--colour", "red"], "Invalid value for '--colour'"),
}


@pytest.mark.parametrize("case", BAD)
def test_region_refuses_in_one_line(here: Path, capsys: pytest.CaptureFixture[str], case: str) -> None:
    write_network("net.safetensors", fan())
    write_network("single.safetensors", FullyConnected(2, 1, width=3, depth=2, seed=0, dtype=torch.float64))
    Path("net.pt2").write_bytes(b"PK")
    (here / "fitted").mkdir()
    write_bytes(here / "fitted" / "result.json", sealed_json({"format": "isthmus fit"}))
    options, message = BAD[case]
    defaults = {"--data": "plane.csv", "--slice": "1,2,3", "--out": OUT}
    rest = [word for option, value in defaults.items() if option not in options for word in (option, value)]
    assert run(["region", *options, *rest]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in line_of(err)
    assert not (here / OUT).exists()
