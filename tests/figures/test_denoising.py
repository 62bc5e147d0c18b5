"""Figure 3 on images: MNIST from files of the user beside the digits, noise, distances and the pixels that vary."""

from pathlib import Path

import numpy as np
import pytest

from isthmus.errors import DataError
from isthmus.figures import Finished, Preset, Workshop, named_figures, with_mnist
from isthmus.figures.denoising_images import varying, whole
from isthmus.sweeps.engine_choice import EngineChoice


def bars(count: int = 60) -> np.ndarray:
    """Images of bars of random places on a black ground."""
    rng = np.random.default_rng(0)
    images = np.zeros((count, 28, 28), dtype=np.uint8)
    for image, column in zip(images, rng.integers(6, 20, count), strict=True):
        image[5:20, column : column + 3] = 200
    return images


def write_images(path: Path) -> Path:
    """The bars in the form of MNIST."""
    images = bars()
    labels = np.zeros(len(images), dtype=np.uint8)
    np.savez(path, x_train=images, y_train=labels, x_test=images[:5], y_test=labels[:5])
    return path


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    folder = tmp_path_factory.mktemp("denoising")
    [figure] = with_mnist(named_figures("denoising"), write_images(folder / "images.npz"), folder)
    data = figure.compute(figure.plan(Preset.TINY), Workshop(folder, EngineChoice(workers=0)))
    return Finished(figure, data, figure.verdict(data), figure.draw(data))


@pytest.mark.slow
def test_every_set_of_images_has_its_claims_and_its_picture(done: Finished) -> None:
    assert [picture.name for picture in done.pictures] == [
        "denoising-digits", "denoising-mnist", "denoising-shallow", "denoising-deep"
    ]  # fmt: skip
    assert len(done.pictures[1].draw().get_images()) == 4 * 6
    told = [claim.statement for claim in done.claims]
    assert len(told) == 3 + 2 + 2
    assert sum("MNIST" in statement for statement in told) == sum("digits" in statement for statement in told) == 2


@pytest.mark.slow
def test_images_are_shown_whole_with_their_noise(done: Finished) -> None:
    shown = done.data["MNIST"].values
    assert shown.shape == (4, 6, 784)
    clean, noisy = shown[0], shown[1]
    assert set(np.unique(clean)) == {0.0, 200 / 255}
    there = clean.reshape(-1, 28, 28)[:, 5:20, 6:22]
    assert clean.sum() == there.sum()  # in their places
    assert not noisy.reshape(-1, 28, 28)[:, :5].any()  # pixels that never vary get no noise
    added, spread = ((noisy - clean) ** 2).sum(1).mean(), (bars().reshape(60, -1) / 255).var(0).sum()
    assert 0.85 < added / spread < 1.15  # 6 images of 225 pixels that vary: 4 % at one standard deviation


def test_without_files_the_digits_stand_alone() -> None:
    [figure] = named_figures("3")
    plan = figure.plan(Preset.TINY)
    assert set(plan.sweeps) == {"curve", "digits"}
    assert not plan.files


def test_columns_that_vary_come_back_to_their_places() -> None:
    x = np.array([[1.0, 5.0, 0.0], [2.0, 5.0, 0.0]])
    np.testing.assert_array_equal(varying(x), [True, False, False])
    np.testing.assert_array_equal(whole(x[:, varying(x)], varying(x)), [[1, 0, 0], [2, 0, 0]])


def test_mnist_for_another_figure_or_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="only figure denoising reads it"):
        with_mnist(named_figures("narrowness"), tmp_path, tmp_path)
    [figure] = with_mnist(named_figures("denoising"), tmp_path / "none.npz", tmp_path)
    with pytest.raises(DataError, match="no such file or folder"):
        figure.plan(Preset.TINY)
