"""A folder of pictures as DATA, from the first word to new pictures; readers of each kind: `tests/tasks`."""

import csv
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import isthmus
from command_lines import line_of
from isthmus.cli.data import TargetChoice, read_rows
from isthmus.cli.diagnose_run import diagnosis_data
from isthmus.cli.main import run
from isthmus.cli.model_data import model_rows
from isthmus.discovery.files.models import LoadedModel

pytestmark = pytest.mark.usefixtures("blank_pictures")
QUICK = ["--ridge", "3e-3", "--starts", "1", "--evaluations", "80", "--effort", "quick"]


def film(folder: Path, *, count: int = 40, width: int = 4, first: int = 0) -> Path:
    """Mixtures of two pictures of 3 lines."""
    parts = np.random.default_rng(0).uniform(0, 100, size=(2, 3, width))
    shares = np.random.default_rng(1).uniform(0, 1, size=(100, 2))[first : first + count]
    folder.mkdir()
    for i, picture in enumerate(np.einsum("ns,shw->nhw", shares, parts), start=first):
        Image.fromarray(picture.round().astype(np.uint8)).save(folder / f"f{i}.png")
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pictures")


@pytest.fixture(scope="module")
def out(made: Path) -> Path:
    assert run(["discover", str(film(made / "film")), *QUICK, "--no-pictures", "--out", str(made / "run")]) in {0, 3}
    return made / "run"


def test_the_rank_of_pictures_is_found_and_their_order_is_kept(out: Path) -> None:
    assert isthmus.load(out).rank == 2
    rows = list(csv.reader((out / "rows.csv").read_text().splitlines()))
    assert rows == [["row", "file"], *([str(i + 1), f"f{i}.png"] for i in range(40))]


def test_new_pictures_go_through_the_run_by_name(out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run(["apply", str(out), str(film(tmp_path / "new", count=3, first=40))]) == 0
    head, *rows = csv.reader(capsys.readouterr().out.splitlines())
    assert head == ["file", "coordinate 1", "coordinate 2"]
    assert [row[0] for row in rows] == ["f40.png", "f41.png", "f42.png"]
    assert np.isfinite(np.array([row[1:] for row in rows], dtype=float)).all()


@pytest.mark.parametrize("kind", ["size", "array"])
def test_other_pictures_and_arrays_are_refused(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    film(tmp_path / "size", count=3, width=5)
    np.save(tmp_path / "array", np.zeros((30, 12)))
    capsys.readouterr()
    assert run(["apply", str(out), str(tmp_path / {"size": "size", "array": "array.npy"}[kind])]) == 2
    assert "run was made of" in (line := line_of(capsys.readouterr().err))
    assert "pictures of" in line or "those of" in line


def test_what_is_taken_for_classes_is_said(tmp_path: Path) -> None:
    for name in ("a", "b"):
        film(tmp_path / name, count=20)
    assert (read_rows(str(tmp_path), TargetChoice()).note or "").endswith(
        "the folders 'a', 'b' are the classes of the pictures; --autoencode leaves them alone."
    )
    assert read_rows(str(tmp_path), TargetChoice(autoencode=True)).note is None
    assert "so the pictures are autoencoded" in (read_rows(str(tmp_path / "a"), TargetChoice()).note or "")


def test_a_model_is_given_pictures_with_their_classes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        film(tmp_path / name, count=5)
    data = diagnosis_data(str(tmp_path), LoadedModel(torch.nn.Conv2d(1, 2, 2), "here"), target=None, classes="folder")
    assert isinstance(data.x, torch.Tensor)
    assert data.x.shape == (10, 1, 3, 4)
    assert data.y is not None
    assert data.y.tolist() == [0] * 5 + [1] * 5


@pytest.mark.parametrize(
    ("module", "shape"),
    [(torch.nn.Conv2d(1, 2, 2), (5, 1, 3, 4)), (torch.nn.Linear(12, 2), (5, 12))],
    ids=["bands, height, width", "rows"],
)
def test_a_model_is_given_pictures_in_the_shape_that_it_takes(
    tmp_path: Path, module: torch.nn.Module, shape: tuple[int, ...]
) -> None:
    found = model_rows(str(film(tmp_path / "film", count=5)), LoadedModel(module, "made here"))
    assert found.shape == shape
    assert 0 < float(found.max()) < 1
